import type { Decision } from '../domain/decision.ts'
import type { Life } from '../domain/life.ts'
import { decide } from '../domain/lifecycle.ts'
import type { Observation } from '../domain/observation.ts'
import { formatRuntimeId, parseRuntimeId, type RuntimeId } from '../domain/runtime-id.ts'
import { isRuntimeError } from '../errors.ts'
import type { Backends } from './backends.ts'
import type { Effects } from './effects.ts'
import type { Clock, Log, RuntimeTable } from './ports.ts'
import type { Recorder } from './recorder.ts'

export interface ReconcilerOptions {
  readonly table: Pick<RuntimeTable, 'newest' | 'byNonce'>
  readonly backends: Backends
  readonly effects: Effects
  readonly recorder: Recorder
  readonly clock: Clock
  readonly log: Log
  /** Works the key again at a time, in ms from now. */
  readonly again: (key: string, ms: number) => void
  /** Waits for a commit without keeping others from being worked. */
  readonly aside: <T>(wait: () => Promise<T>) => Promise<T>
}

/** Decisions of one turn: more than the longest chain of rows that can follow each other. */
const STEPS_A_TURN = 12

/**
 * Makes row and cluster agree for one key. Level-triggered: it decides from what is there now, never from what
 * happened; repeating it changes nothing. A look that fails throws, and nothing was changed by it (P8).
 */
export class Reconciler {
  readonly #options: ReconcilerOptions

  constructor(options: ReconcilerOptions) {
    this.#options = options
  }

  /** Only inside the key's turn. `fresh`: the first observation is one live GET. Throws what kept it from deciding; logged. */
  async reconcile(key: string, fresh: boolean): Promise<void> {
    try {
      const life = this.#options.table.newest(key)
      if (life === null || life.state === 'deleted') return await this.#stray(parseRuntimeId(key))
      if (!this.#options.backends.serves(life.id)) return
      await this.#settleDown(key, life, fresh)
    } catch (error) {
      this.#options.log.warn({ runtimeId: key, err: error }, 'cannot reconcile now, will try again')
      throw error
    }
  }

  async #settleDown(key: string, found: Life, fresh: boolean): Promise<void> {
    let life = found
    let observation = await this.#firstLook(life, fresh)
    for (let step = 0; step < STEPS_A_TURN; step++) {
      const decision = decide(life, observation, { now: this.#options.clock.now() })
      if (decision.look !== null) {
        observation = await this.#workloads(life).look(life, decision.look)
        continue
      }
      this.#wake(key, decision)
      const next = await this.#record(life, decision)
      if (decision.withdraw === true || next.state === 'deleted') return
      if (decision.effect) {
        const after = await this.#carryOut(next)
        if (after === null) return
        life = after
        observation = await this.#firstLook(life, false)
      } else if (next === life) return
      else life = next
    }
    this.#options.again(key, 0)
  }

  /** A row that has calls to come keeps its worker, so that no more than `workers` call the cluster at once. */
  async #record(life: Life, decision: Decision): Promise<Life> {
    const { recorder, aside } = this.#options
    const record = (): Promise<Life> => recorder.record(life, decision)
    return decision.effect || decision.life === life ? await record() : await aside(record)
  }

  async #firstLook(life: Life, fresh: boolean): Promise<Observation | null> {
    const workloads = this.#workloads(life)
    return fresh && life.uid !== null ? await workloads.look(life, 'object') : workloads.observe(life)
  }

  /**
   * A verb that is repeated: a refusal that withdraws it is an end like another; anything else comes back later. Answers
   * the row as it is then; null = it went with the verb, and whatever is done now would make a workload without a row.
   */
  async #carryOut(life: Life): Promise<Life | null> {
    try {
      await this.#options.effects.carryOut(life)
      return this.#stored(life)
    } catch (error) {
      if (!isRuntimeError(error) || error.code === 'STORAGE_UNAVAILABLE') throw error
      const after = this.#stored(life)
      if (after !== null && after.verb?.verb === life.verb?.verb) throw error
      this.#options.log.warn(
        { runtimeId: keyOf(life), err: error },
        'the cluster refused it for good; the verb is withdrawn',
      )
      return after
    }
  }

  #stored({ id, life }: Life): Life | null {
    const newest = this.#options.table.newest(formatRuntimeId(id))
    return newest?.life === life ? newest : null
  }

  /** An object that carries the nonce of a life that is over (a write that landed late) is deleted at sight (§2.10). */
  async #stray(id: RuntimeId): Promise<void> {
    if (!this.#options.backends.serves(id)) return
    const backend = this.#options.backends.get(id.runtime)
    const found = backend.inventory.cached(id)
    if (found === null || found.deleting || found.nonce === null) return
    const life = this.#options.table.byNonce(found.nonce)
    if (life === null || life.state !== 'deleted' || life.uid === found.uid) return
    await backend.workloads.remove({ ...life, uid: found.uid })
  }

  #wake(key: string, { wakeAt }: Decision): void {
    if (wakeAt !== null) this.#options.again(key, wakeAt - this.#options.clock.now())
  }

  #workloads(life: Life) {
    return this.#options.backends.get(life.id.runtime).workloads
  }
}

const keyOf = (life: Life): string => formatRuntimeId(life.id)
