import { agentPodGone, podEnded } from './agent-pod.ts'
import type { Decision, Outcome, Plan } from './decision.ts'
import { deploymentGone, standingAt as standingOfDeployment } from './deployment.ts'
import { jobGone, jobVerdict, rest, standingAt as standingOfJob } from './job.ts'
import type { Life, Standing, VerbInHand } from './life.ts'
import {
  allot,
  change,
  type Draft,
  deleted,
  draftOf,
  endByStop,
  exited,
  lastFinish,
  nothing,
  unlessSame,
} from './lifecycle-draft.ts'
import { notRestartableText, stopsByDeletion, withdrawn, withoutCreate } from './lifecycle-verbs.ts'
import type { Gone, Observation, Seen } from './observation.ts'
import { formatRuntimeId } from './runtime-id.ts'
import { newer } from './version.ts'

const NONE: Plan = { write: 'none' }

/**
 * The write that the verb in hand needs, by the effect's own live read. A create under it is finished first; the verb
 * itself then needs a second read and write, which `decide` asks for.
 */
export function plan(life: Life, observation: Observation): Plan {
  const { verb } = life
  if (verb === null) return NONE
  if (life.uid === null) return planUnbound(life, verb, observation)
  if (verb.verb === 'delete') return planDelete(observation)
  if (observation.type === 'gone' || observation.uid !== life.uid) return planGone(life, verb, observation)
  return verb.verb === 'start' ? planStart(life, verb, observation) : planStop(life, verb, observation)
}

/** GET by name found ours by its nonce, or nothing (lifecycle.md §2.5). */
function planUnbound(life: Life, { verb }: VerbInHand, observation: Observation): Plan {
  if (verb === 'create') return { write: 'make', active: life.open }
  if (verb === 'delete') return NONE
  if (verb === 'stop' && observation.type === 'gone' && stopsByDeletion(life)) return NONE
  return { write: 'make', active: verb === 'start' }
}

/** Also when it is gone: what belongs to it may still be there, unless another has taken the name. */
const planDelete = (observation: Observation): Plan =>
  observation.type === 'gone' && observation.otherUid !== null ? NONE : { write: 'remove' }

function planGone(life: Life, { verb, tried }: VerbInHand, observation: Observation): Plan {
  if (verb === 'start') {
    const message = `cannot start ${formatRuntimeId(life.id)}: it is gone from the cluster; create it anew`
    return { write: 'refuse', code: 'RUNTIME_NOT_FOUND', message }
  }
  return tried && !observation.livePods ? { write: 'look', depth: 'pods' } : NONE
}

const busy = (life: Life, verb: string): Plan => ({
  write: 'refuse',
  code: 'RUNTIME_BUSY',
  message: `cannot ${verb} ${formatRuntimeId(life.id)}: it is being deleted; wait until it is gone, then create it anew`,
})

function planStart(life: Life, verb: VerbInHand, seen: Seen): Plan {
  const { facts } = seen
  if (facts.kind === 'job' && (facts.complete !== null || facts.failure !== null || jobVerdict({ ...seen, facts }))) {
    const message = `cannot start ${formatRuntimeId(life.id)}: ${notRestartableText(life)}`
    return { write: 'refuse', code: 'JOB_NOT_RESTARTABLE', message } // §5 4
  }
  if (seen.deleting) return busy(life, 'start')
  if (facts.kind === 'deployment') return facts.desired > 0 ? NONE : { write: 'up' } // 2, 3
  if (facts.kind !== 'job' || !facts.suspended) return NONE
  if (!verb.joins && life.run > 0 && !seen.livePods) return { write: 'look', depth: 'pods' }
  return { write: 'up' } // §5 2, 3, 5
}

function planStop(life: Life, verb: VerbInHand, seen: Seen): Plan {
  const { facts } = seen
  if (hasEnded(life, seen)) return NONE // §5 7, §6 4
  if (stopsByDeletion(life)) {
    if (!seen.deleting) return { write: 'remove' } // §5 6, §6 4
    return verb.tried ? NONE : busy(life, 'stop')
  }
  if (seen.deleting) return busy(life, 'stop')
  if (facts.kind === 'deployment') return facts.desired > 0 ? { write: 'down' } : NONE // 4, 5
  return facts.kind === 'job' && !facts.suspended ? { write: 'down' } : NONE
}

/** Its own read shows an ending that counts, and that was not ours. */
function hasEnded(life: Life, seen: Seen): boolean {
  const { facts } = seen
  if (seen.deleting && life.verb?.tried === true) return false
  if (facts.kind === 'job') return jobVerdict({ ...seen, facts }) !== null
  return facts.kind === 'pod' && podEnded({ ...seen, facts })
}

/**
 * The result of an effect, one transaction. Afterwards the verb is accepted, done, withdrawn, or still in hand; in the
 * last case `effect` is true and it is repeated. Its `withdraw` takes a refused create away.
 */
export function settle(life: Life, outcome: Outcome, { now }: { now: number }): Decision {
  switch (outcome.type) {
    case 'noAnswer':
      return { ...nothing(tried(life)), effect: true }
    case 'halfMade':
      return { ...nothing(undoing(life)), effect: true }
    case 'refused':
      return settleRefused(life, outcome.final)
    case 'done':
      return settleDone(life, outcome, now)
  }
}

const tried = (life: Life): Life =>
  life.verb === null || life.verb.tried ? life : { ...life, verb: { ...life.verb, tried: true } }

/** What is left of a refused create is deleted, without event (§2.2). */
function undoing(life: Life): Life {
  const verb: VerbInHand = { verb: 'delete', cause: null, accepted: false, tried: true, joins: false, previous: null }
  return { ...life, state: 'deleting', verb }
}

function settleRefused(life: Life, final: boolean): Decision {
  const { verb } = life
  if (verb === null) return nothing(life)
  if (verb.tried && !final) return { ...nothing(life), effect: true }
  if (verb.verb === 'create') return { ...nothing(life), withdraw: true }
  if (verb.previous === null) return { ...nothing(tried(life)), effect: true }
  return nothing(withdrawn(life))
}

type Done = Extract<Outcome, { type: 'done' }>

function settleDone(life: Life, done: Done, now: number): Decision {
  const draft = draftOf(life, now)
  const withdraw = applyDone(draft, done, now)
  const next = unlessSame(life, draft.life)
  const effect = !withdraw && next.verb !== null && !next.verb.accepted
  return { ...nothing(next), events: draft.events, effect, ...(withdraw ? { withdraw } : {}) }
}

/** True: the row is to be taken away. */
function applyDone(draft: Draft, done: Done, now: number): boolean {
  const { verb, uid } = draft.life
  if (verb === null) return false
  if (uid === null) return bind(draft, verb, done)
  const { seen, plan: planned } = done
  if (seen?.type === 'gone') return settleGone(draft, verb, seen)
  if (seen !== null && planned.write !== 'none' && done.written === null) return vanished(draft, verb)
  noteWritten(draft, done)
  if (verb.verb === 'delete') change(draft, { verb: { ...verb, accepted: true } })
  else if (verb.verb === 'start') startAccepted(draft, verb, seen, now)
  else stopAccepted(draft, verb, done)
  return false
}

/** The create's answer, or what the GET by name found, binds the uid. */
function bind(draft: Draft, verb: VerbInHand, { seen, written }: Done): boolean {
  const uid = written?.uid ?? (seen?.type === 'seen' ? seen.uid : null)
  if (uid === null) return endUnbound(draft, verb)
  change(draft, { uid, verb: withoutCreate(verb) })
  if (written !== null) change(draft, { writtenVersion: written.version, writtenGeneration: written.generation })
  return false
}

/** Nothing there and nothing made: a delete ends the life (row 9), a stop by deletion the run. */
function endUnbound(draft: Draft, verb: VerbInHand): boolean {
  if (verb.verb === 'delete') {
    if (verb.cause === null) return true
    deleted(draft, verb.cause)
  } else if (verb.verb === 'stop') {
    endByStop(draft, verb, null)
    change(draft, { gone: true, goneAt: draft.at })
  }
  return false
}

function noteWritten(draft: Draft, { seen, written }: Done): void {
  const version = written?.version ?? (seen?.type === 'seen' ? seen.version : null)
  if (version === null || !newer(version, draft.life.writtenVersion)) return
  const generation = written === null ? (seen?.type === 'seen' ? seen.generation : null) : written.generation
  change(draft, { writtenVersion: version, writtenGeneration: generation })
}

/** The write found it gone just after the read: its end is read from the cluster, as any other. */
function vanished(draft: Draft, verb: VerbInHand): boolean {
  if (verb.verb === 'start') draft.life = withdrawn(draft.life)
  else change(draft, { verb: { ...verb, accepted: true } })
  return false
}

/** Rows 2, 3, 6 (§5: 2, 3, 5): the run is allotted now that the cluster has accepted the start. */
function startAccepted(draft: Draft, verb: VerbInHand, seen: Observation | null, now: number): void {
  if (verb.joins && draft.life.open) {
    change(draft, { verb: null })
    return
  }
  const stop = verb.previous?.verb
  if (draft.life.open) {
    const pods = seen?.type === 'seen' ? seen.facts.pods : []
    const cause = stop?.verb === 'stop' ? stop.cause : 'StoppedByRequest'
    endByStop(draft, { ...verb, verb: 'stop', cause }, lastFinish(draft.life, pods))
  }
  change(draft, { verb: null })
  allot(draft, now, standingAt(draft.life, seen))
}

function standingAt(life: Life, seen: Observation | null): Standing {
  if (seen?.type !== 'seen') return life.standing
  const { facts } = seen
  if (facts.kind === 'deployment') return standingOfDeployment(facts, 'all')
  return facts.kind === 'job' ? standingOfJob(facts, 'all') : life.standing
}

function stopAccepted(draft: Draft, verb: VerbInHand, { seen, plan: planned }: Done): void {
  const { life } = draft
  const idle = !life.open && life.state !== 'stopping'
  const ended = seen?.type === 'seen' && planned.write === 'none' && hasEnded(life, seen)
  if ((idle && planned.write === 'none') || ended) {
    // row 5, §5 row 7, §6 row 4: nothing was to be done; what the read showed is observed next
    draft.life = verb.previous === null ? { ...life, verb: null, state: 'creating' } : withdrawn(life)
    return
  }
  change(draft, { state: 'stopping', ready: false, verb: { ...verb, accepted: true } })
}

/** The first look finds 404 (rows 7, 9; §5 8, 9; §6 4), or a repeat does (row 10, §5 11). True: the row goes. */
function settleGone(draft: Draft, verb: VerbInHand, gone: Gone): boolean {
  if (verb.tried || (verb.verb === 'stop' && !draft.life.open)) return settleGoneAgain(draft, verb, gone)
  if (verb.verb === 'delete') {
    if (verb.cause === null) return true
    deleted(draft, verb.cause)
    return false
  }
  if (verb.cause !== null && verb.cause !== 'StoppedByRequest') endByStop(draft, verb, null)
  else if (draft.life.open) exited(draft, 'NotFound', null, 'not found')
  change(draft, { verb: null })
  if (draft.life.id.kind === 'deployment') deleted(draft, 'NotFound')
  else rest(draft, gone)
  return false
}

function settleGoneAgain(draft: Draft, verb: VerbInHand, gone: Gone): boolean {
  if (verb.verb === 'delete' && verb.cause === null) return true
  const { kind } = draft.life.id
  const before = draft.life
  const step = (kind === 'deployment' ? deploymentGone : kind === 'job' ? jobGone : agentPodGone)(draft, gone)
  if ('look' in step || draft.life === before) change(draft, { verb: { ...verb, accepted: true } })
  return false
}
