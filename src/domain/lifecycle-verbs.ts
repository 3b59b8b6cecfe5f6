import type { Intended } from './decision.ts'
import type { Intent, Life, Verb, VerbInHand } from './life.ts'
import type { Observation } from './observation.ts'
import { formatRuntimeId } from './runtime-id.ts'

export interface IntentContext {
  readonly now: number
  /** Stop: StoppedByRequest unless a trouble's reason; delete: DeletedByRequest, Expired or Replaced. */
  readonly cause: string | null
  /** The newest that is known of it; null if nothing is. */
  readonly observation: Observation | null
}

/**
 * A user's verb set against the row (lifecycle.md §2.5, §2.6 and the verb rows of §4–§6): what is made durable before
 * the cluster is touched. A later verb replaces the one in hand; the same verb again joins it.
 */
export function intend(life: Life, verb: Exclude<Verb, 'create'>, context: IntentContext): Intended {
  if (life.state === 'deleted') return refused('RUNTIME_NOT_FOUND', life, verb, 'it was deleted; create it anew')
  if (life.foreign) return refused('FOREIGN_WORKLOAD', life, verb, 'its label was removed by others; put it back first')
  if (verb === 'delete') return intendDelete(life, context)
  return verb === 'start' ? intendStart(life, context) : intendStop(life, context)
}

function refused(
  code: 'RUNTIME_NOT_FOUND' | 'FOREIGN_WORKLOAD' | 'RUNTIME_BUSY',
  life: Life,
  verb: Verb,
  why: string,
): Intended {
  return { type: 'refused', code, message: `cannot ${verb} ${formatRuntimeId(life.id)}: ${why}` }
}

const busy = (life: Life, verb: Verb): Intended =>
  refused('RUNTIME_BUSY', life, verb, 'it is being deleted; wait until it is gone, then create it anew')

const notRestartable = (life: Life): Intended => ({
  type: 'refused',
  code: 'JOB_NOT_RESTARTABLE',
  message: `cannot start ${formatRuntimeId(life.id)}: ${notRestartableText(life)}`,
})

/** Why an ended Job or Pod is not started again, and what to do instead. */
export const notRestartableText = ({ id }: Life): string =>
  id.kind === 'pod'
    ? 'an agent container that has ended or is being stopped is not started again; ask for it anew by POST /v1/containers'
    : 'a Job that has ended is not started again; delete it and create it anew'

/** Under way already: a verb without an answer is tried again for this caller too. */
const join = (life: Life): Intended => (life.verb?.accepted ? { type: 'nothing' } : { type: 'effect', life })

const take = (
  life: Life,
  verb: Omit<VerbInHand, 'previous' | 'accepted' | 'tried'>,
  shown: Partial<Life> = {},
): Intended => ({
  type: 'effect',
  life: { ...life, ...shown, verb: { ...verb, accepted: false, tried: false, previous: intentOf(life) } },
})

export const intentOf = ({ state, ready, reason, message, hint, verb }: Life): Intent => ({
  state,
  ready,
  reason,
  message,
  hint,
  verb,
})

const CALM = { ready: false, reason: null, message: null, hint: null } as const

/** §4 row 8, §5 row 9, §6 row 5: accepted in every state. */
function intendDelete(life: Life, { cause }: IntentContext): Intended {
  if (life.verb?.verb === 'delete') return join(life)
  return take(
    life,
    { verb: 'delete', cause: cause ?? 'DeletedByRequest', joins: false },
    { ...CALM, state: 'deleting' },
  )
}

function isDeleting(life: Life, observation: Observation | null): boolean {
  if (life.verb?.verb === 'delete' || life.state === 'deleting') return true
  return observation?.type === 'seen' && observation.uid === life.uid && observation.deleting
}

const endedForGood = ({ id, open, run, state, suspendedByUs, gone }: Life): boolean =>
  id.kind !== 'deployment' && !open && (gone || run > 0 || state !== 'created') && (gone || !suspendedByUs)

/** A stop by deletion: what it ends is never started again. */
export const stopsByDeletion = ({ id, jobStop }: Life): boolean =>
  id.kind === 'pod' || (id.kind === 'job' && jobStop === 'delete')

function intendStart(life: Life, { observation }: IntentContext): Intended {
  const held = life.verb?.verb ?? null
  if (held === 'stop' && stopsByDeletion(life)) return notRestartable(life)
  if (held === null && endedForGood(life)) return notRestartable(life)
  if (isDeleting(life, observation)) return busy(life, 'start')
  if (held === 'stop') return take(life, { verb: 'start', cause: null, joins: false }, { ...CALM, state: 'creating' }) // 6; §5 5
  if (held === 'start') return join(life)
  if (life.open) {
    if (held === 'create') return join(life)
    if (life.id.kind === 'pod') return { type: 'nothing' } // §6 3
    return take(life, { verb: 'start', cause: null, joins: true }) // 3
  }
  return take(life, { verb: 'start', cause: null, joins: false }, { ...CALM, state: 'creating' }) // 2
}

function intendStop(life: Life, context: IntentContext): Intended {
  const { cause, observation } = context
  const held = life.verb
  if (held?.verb === 'stop') return join(life)
  if (held === null && endedForGood(life)) return { type: 'nothing' } // §5 7, §6 4
  if (isDeleting(life, observation)) return busy(life, 'stop')
  if (held?.verb === 'start') return stopOverStart(life, context)
  if (!life.open && life.id.kind !== 'deployment') return { type: 'nothing' } // §5 7
  const stop = { verb: 'stop', cause: cause ?? 'StoppedByRequest', joins: false } as const
  const scaled =
    observation?.type === 'seen' && observation.facts.kind === 'deployment' && observation.facts.desired > 0
  const stopping = life.open || (life.state === 'failed' && scaled) // 4, 5
  return take(life, stop, stopping ? { ...CALM, state: 'stopping' } : {})
}

/**
 * The start is withdrawn; a stop it had replaced goes on, else the stop is carried out as for an open run: a write of
 * that start without answer may still have landed.
 */
function stopOverStart(life: Life, context: IntentContext): Intended {
  const joined = life.verb?.joins === true
  const base = withdrawn(life)
  if (base.verb?.verb === 'stop') {
    return { type: 'effect', life: { ...base, verb: { ...base.verb, accepted: false, tried: true } } }
  }
  if (joined || base.verb !== null) return intendStop(base, context)
  const stop = { verb: 'stop', cause: context.cause ?? 'StoppedByRequest', joins: false } as const
  return take(base, stop, { ...CALM, state: 'stopping' })
}

const STATE_OF_INTENT: Readonly<Record<Verb, Life['state']>> = {
  create: 'creating',
  start: 'creating',
  stop: 'stopping',
  delete: 'deleting',
}

/** The verb in hand and what its intent changed are as before; what was observed since stays (§2.2). */
export function withdrawn(life: Life): Life {
  const { verb } = life
  if (verb === null || verb.previous === null) return life
  const { verb: before, ...shown } = verb.previous
  const untouched = !verb.joins && life.state === STATE_OF_INTENT[verb.verb]
  return { ...life, ...(untouched ? shown : {}), verb: before }
}

/** Once bound, a create is never repeated: it is taken out wherever it lies. */
export function withoutCreate(verb: VerbInHand | null): VerbInHand | null {
  if (verb === null || verb.verb === 'create') return null
  if (verb.previous === null) return verb
  return { ...verb, previous: { ...verb.previous, verb: withoutCreate(verb.previous.verb) } }
}
