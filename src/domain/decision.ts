import type { ErrorCode } from '../errors.ts'
import type { NewEvent } from './event.ts'
import type { Life } from './life.ts'
import type { Observation } from './observation.ts'

/** What the transition function says of one row and one input (lifecycle.md §2, §4–§6). */
export interface Decision {
  /** The next row; the same object if nothing changed. */
  readonly life: Life
  /** In the order in which they are to be numbered. */
  readonly events: readonly NewEvent[]
  /**
   * The observation does not reach far enough to decide: look again this deep and ask again. `life` is then unchanged
   * and `events` empty. 'object' = one GET, 'pods' = GET and a live LIST of its pods, 'warnings' = and its Warning Events.
   */
  readonly look: 'object' | 'pods' | 'warnings' | null
  /** Decide again at this time (ms) even if nothing is heard: start-by, conditions that must last. */
  readonly wakeAt: number | null
  /** The verb in hand is due for its effect: a stop by the start timer, or a verb that is to be repeated. */
  readonly effect: boolean
  /** The row is to be taken away as if it had never been (a refused create); no event. */
  readonly withdraw?: boolean
}

/** A verb of a user, or of a timer, set against the row: intent only, nothing was written to the cluster. */
export type Intended =
  /** Durable intent; then the effect is due. */
  | { readonly type: 'effect'; readonly life: Life }
  /** Nothing to do: answer with the row as it is. */
  | { readonly type: 'nothing' }
  | { readonly type: 'refused'; readonly code: ErrorCode; readonly message: string }

/** The write that the verb in hand needs, after the effect's own read. */
export type Plan =
  | { readonly write: 'make'; readonly active: boolean }
  | { readonly write: 'up' | 'down' | 'remove' }
  /** Nothing is written: at 0 already, at ≥ 1 already, gone, or it had ended. `settle` says what comes of it. */
  | { readonly write: 'none' }
  | { readonly write: 'refuse'; readonly code: ErrorCode; readonly message: string }
  /** The read must go deeper first. */
  | { readonly write: 'look'; readonly depth: 'pods' | 'warnings' }

/** What came of an effect. */
export type Outcome =
  /** The write was accepted, or none was needed. `written` null: the write found the object gone. */
  | {
      readonly type: 'done'
      readonly plan: Plan
      /** What the effect's own read showed; null for the first try of a create, which reads nothing before. */
      readonly seen: Observation | null
      readonly written: { readonly uid: string; readonly version: string; readonly generation: number | null } | null
    }
  /** An error reply, or surely not sent. `final`: the write itself was refused in a way that a repeat cannot mend (409, 422 of wire.md §7). */
  | { readonly type: 'refused'; readonly final: boolean }
  /** A create was refused after its workload was made, and undoing that got no answer: a delete stays in hand that ends without event. */
  | { readonly type: 'halfMade' }
  /** Time-out or reset after sending: it may have happened. */
  | { readonly type: 'noAnswer' }
