import { agentPodGone, agentPodRows, agentStartTimeout } from './agent-pod.ts'
import type { Decision } from './decision.ts'
import { deploymentGone, deploymentRows } from './deployment.ts'
import { jobGone, jobRows } from './job.ts'
import type { Life, Standing } from './life.ts'
import {
  believe,
  change,
  type Draft,
  deleted,
  draftOf,
  noteExitCode,
  nothing,
  podsLeft,
  type Step,
  startByFrom,
  stopInHand,
  unlessSame,
} from './lifecycle-draft.ts'
import type { Gone, Observation, Seen } from './observation.ts'
import type { RuntimeId } from './runtime-id.ts'
import { notOlder } from './version.ts'
import type { WorkloadSpec } from './workload-spec.ts'

export { plan, settle } from './lifecycle-effects.ts'
export { type IntentContext, intend } from './lifecycle-verbs.ts'

const NO_STANDING: Standing = { succeeded: 0, failures: [], pods: [] }

const UNSEEN = {
  life: 0,
  reason: null,
  message: null,
  hint: null,
  ready: false,
  verb: null,
  started: false,
  evidence: false,
  suspendedByUs: false,
  standing: NO_STANDING,
  podControllers: [],
  exitReason: null,
  exitCode: null,
  warned: [],
  failingSince: null,
  warningsAt: null,
  writtenVersion: null,
  writtenGeneration: null,
  seenVersion: null,
  gone: false,
  foreign: false,
  startedAt: null,
  endedAt: null,
  observedAt: null,
  deletedAt: null,
  goneAt: null,
} as const

export interface NewLife {
  readonly spec: WorkloadSpec
  readonly nonce: string
  readonly now: number
  /** Of earlier lives of this ID; 0 = none. */
  readonly lastEventAt: number
}

/** The claim of a create (row 1 of §4–§6): start:true opens run 1 at once, start:false none. `life` is the store's to give. */
export function newLife({ spec, nonce, now, lastEventAt }: NewLife): Life {
  const { runtime, namespace, kind, name, start } = spec
  const seconds = kind === 'pod' ? agentStartTimeout(spec) : spec.startTimeoutSeconds
  return {
    ...UNSEEN,
    id: { runtime, namespace, kind, name },
    uid: null,
    nonce,
    spec,
    image: spec.image,
    labels: spec.labels,
    jobStop: spec.jobStop ?? 'delete',
    startTimeoutSeconds: seconds,
    state: start ? 'creating' : 'created',
    verb: { verb: 'create', cause: null, accepted: false, tried: false, joins: false, previous: null },
    run: start ? 1 : 0,
    open: start,
    runAt: start ? now : null,
    startBy: start ? startByFrom(seconds, now) : null,
    createdAt: now,
    lastEventAt,
    lastUsedAt: kind === 'pod' ? now : null,
  }
}

export interface TakenUp {
  readonly id: RuntimeId
  readonly uid: string
  readonly nonce: string
  readonly image: string | null
  readonly labels: Readonly<Record<string, string>>
  readonly now: number
  readonly lastEventAt: number
  /** What a live look showed of it; null for a row that is only to look through. */
  readonly seen: Seen | null
  readonly jobStop?: 'delete' | 'suspend'
  readonly startTimeoutSeconds?: number
}

/** A workload without row (§9 orphan): run 1 open; run 0 if it is at zero (stopped) or suspended (created). Then `decide`. */
export function takenUp(found: TakenUp): Life {
  const { id, now, seen, jobStop = 'delete', startTimeoutSeconds = 0 } = found
  const state = seen === null ? null : restingState(seen)
  const open = state === null
  const seconds = id.kind === 'pod' ? agentStartTimeout({ startTimeoutSeconds }) : startTimeoutSeconds
  return {
    ...UNSEEN,
    id,
    uid: found.uid,
    nonce: found.nonce,
    spec: null,
    image: found.image,
    labels: found.labels,
    jobStop,
    startTimeoutSeconds: seconds,
    state: state ?? 'creating',
    run: open ? 1 : 0,
    open,
    runAt: open ? now : null,
    startBy: open ? startByFrom(seconds, now) : null,
    createdAt: seen?.createdAt ?? now,
    lastEventAt: found.lastEventAt,
    lastUsedAt: id.kind === 'pod' ? now : null,
  }
}

function restingState({ facts, current }: Seen): 'stopped' | 'created' | null {
  if (facts.kind === 'deployment') {
    const zero = current && facts.desired === 0 && facts.replicas === 0 && podsLeft(facts.pods) === 0
    return zero ? 'stopped' : null
  }
  if (facts.kind !== 'job' || !facts.suspended) return null
  return facts.complete === null && facts.failure === null ? 'created' : null
}

/** Create over an ended Job or Pod whose object is gone: the old life's end (§2.9). null = it does not make room. */
export function replaced(life: Life, now: number): Decision | null {
  const ended = life.gone && !life.open && life.verb === null && life.id.kind !== 'deployment'
  if (!ended || life.state === 'deleted') return null
  const draft = draftOf(life, now)
  deleted(draft, 'Replaced')
  return { ...nothing(draft.life), events: draft.events }
}

/**
 * Observation and timer rows of §4–§6. Never acts on what is not trusted (§3); asks by `look` for what must be live.
 * Repeating it with the same observation changes nothing. `observation` null: no fact; a verb that is due is still told.
 */
export function decide(life: Life, observation: Observation | null, { now }: { now: number }): Decision {
  if (life.state === 'deleted') return nothing(life)
  if (observation === null) return withEffect(life, nothing(life))
  if (life.uid === null) return landedLate(life, observation) ?? withEffect(life, nothing(life))
  if (observation.type === 'gone') return decideGone(life, observation)
  if (!isTrusted(life, observation)) return withEffect(life, nothing(life))
  if (!observation.labelled) return rests(life, observation)
  const draft = draftOf(life, observation.at)
  believe(draft, observation)
  return decided(life, draft, rows(draft, observation, now), observation)
}

/**
 * The create of a run that was ended before anything was made has landed after all (§2.10): it is bound, and stopped
 * without event. null = nothing of that kind.
 */
function landedLate(life: Life, observation: Observation): Decision | null {
  if (!life.gone || observation.type === 'gone') return null
  const cause = life.state === 'failed' ? (life.reason ?? 'StartTimeout') : 'StoppedByRequest'
  const draft = draftOf(life, observation.at)
  stopInHand(draft, cause)
  change(draft, { uid: observation.uid, gone: false, goneAt: null })
  return withEffect(life, nothing(draft.life))
}

function rows(draft: Draft, seen: Seen, now: number): Step {
  const { facts } = seen
  switch (facts.kind) {
    case 'deployment':
      return deploymentRows(draft, { ...seen, facts }, now)
    case 'job':
      return jobRows(draft, { ...seen, facts }, now)
    case 'pod':
      return agentPodRows(draft, { ...seen, facts }, now)
  }
}

/** Of this uid, not gone before, not older than our last write nor than what was last believed. */
function isTrusted(life: Life, { uid, version }: Seen): boolean {
  if (uid !== life.uid || life.gone) return false
  return notOlder(version, life.writtenVersion) && notOlder(version, life.seenVersion)
}

/** Label removed by others (§9): the row rests, nothing is written to the workload. Only a live look says so. */
function rests(life: Life, seen: Seen): Decision {
  if (!seen.live) return { ...nothing(life), look: 'object' }
  return nothing(life.foreign ? life : { ...life, foreign: true, seenVersion: seen.version, observedAt: seen.at })
}

function decideGone(life: Life, gone: Gone): Decision {
  if (!gone.live) {
    if (life.gone && life.verb === null && gone.otherUid === null) return withEffect(life, nothing(life))
    return { ...nothing(life), look: 'object' }
  }
  if (life.verb?.verb === 'delete' && life.verb.cause === null) return { ...nothing(life), withdraw: true }
  const draft = draftOf(life, gone.at)
  if (gone.last !== null) noteExitCode(draft, gone.last.facts.pods)
  return decided(life, draft, goneRows(draft, gone))
}

function goneRows(draft: Draft, gone: Gone): Step {
  const { kind } = draft.life.id
  if (draft.life.foreign) change(draft, { foreign: false })
  if (kind === 'deployment') return deploymentGone(draft, gone)
  return kind === 'job' ? jobGone(draft, gone) : agentPodGone(draft, gone)
}

/** What was believed is noted when it changed the row, or came past the cache: nothing older is believed after it. */
function decided(before: Life, draft: Draft, step: Step, seen: Seen | null = null): Decision {
  if ('look' in step) return { ...nothing(before), look: step.look }
  if (seen !== null && (seen.live || unlessSame(before, draft.life) !== before)) {
    change(draft, { seenVersion: seen.version })
  }
  const changed = unlessSame(before, draft.life)
  const life = changed === before ? before : { ...changed, observedAt: draft.at }
  return withEffect(before, { ...nothing(life, step.wakeAt), events: draft.events })
}

/** A verb that was in hand before and is not accepted is repeated: from then on only a final refusal withdraws it. */
function withEffect(before: Life, decision: Decision): Decision {
  const { life } = decision
  if (life.verb === null || life.verb.accepted) return decision
  const fresh = before.verb === null || before.verb.verb !== life.verb.verb
  const marked = fresh || life.verb.tried ? life : { ...life, verb: { ...life.verb, tried: true } }
  return { ...decision, life: marked, effect: true }
}
