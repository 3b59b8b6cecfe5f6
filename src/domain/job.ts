import { opensRun, PODS_AGAIN_MS, scaledByOthers, timerOf, timerPassed } from './deployment.ts'
import type { Life, Standing } from './life.ts'
import {
  allot,
  change,
  type Draft,
  deleted,
  endByStop,
  exited,
  failed,
  LOOK_PODS,
  lastFinish,
  podsLeft,
  type Step,
  showDeleting,
  startByFrom,
  started,
  stopInHand,
  WAIT,
  warn,
} from './lifecycle-draft.ts'
import { creatingStall, earliest, explain, lackOfPods, type Stall, showTroubles } from './lifecycle-trouble.ts'
import type { Condition, Gone, JobFacts, PodSeen, Seen, Trouble } from './observation.ts'

type SeenJob = Seen & { readonly facts: JobFacts }

/** How a Job ended. `condition`: what says so, null for the counters. */
export interface JobVerdict {
  readonly type: 'success' | 'failure'
  readonly condition: Condition | null
}

/** Rows 15–24 of lifecycle.md §5, top down: the first that matches wins. */
export function jobRows(draft: Draft, seen: SeenJob, now: number): Step {
  const { life } = draft
  const verb = life.verb?.verb ?? null
  const verdict = jobVerdict(seen)
  const ended = !life.open && life.run > 0
  if (verb === 'delete' || (seen.deleting && verb === null && !ended && verdict === null)) {
    showDeleting(draft, seen) // 15
    return WAIT
  }
  if (verb === 'stop') {
    const step = stopRows(draft, seen, verdict)
    if (step !== null) return step
  }
  if (opensRun(draft.life)) return WAIT // 16a
  if (!draft.life.open && !reopen(draft, seen, verdict, now)) return WAIT // 24
  return openRows(draft, seen, verdict, now)
}

/** Row 16; null = the stop was dropped, the run goes on with the rows that follow. */
function stopRows(draft: Draft, seen: SeenJob, verdict: JobVerdict | null): Step | null {
  const { life } = draft
  const stop = life.verb
  if (stop === null) return null
  if (life.jobStop === 'delete') return stopping(draft)
  if (verdict !== null) {
    if (life.open) return end(draft, seen, verdict)
    dropStop(draft, seen) // over a start that had landed after all: row 20 opens its run and ends it
    return null
  }
  if (seemsZero(seen)) {
    if (!seen.livePods) return LOOK_PODS
    endByStop(draft, stop, lastFinish(life, seen.facts.pods))
    change(draft, { suspendedByUs: true })
    return WAIT
  }
  if (!stop.accepted || seen.facts.suspended) return stopping(draft)
  dropStop(draft, seen)
  return null
}

function stopping(draft: Draft): Step {
  change(draft, { state: 'stopping', ready: false })
  return WAIT
}

function dropStop(draft: Draft, seen: SeenJob): void {
  const { open, started: ran, run } = draft.life
  change(draft, { verb: null, startBy: null, reason: null, message: null, hint: null })
  if (open) {
    warn(draft, scaledByOthers(seen))
    change(draft, { state: ran ? 'running' : 'creating' })
  } else change(draft, { state: run === 0 ? 'created' : 'stopped', suspendedByUs: true })
}

/** Row 20: others unsuspended what was created or stopped by our suspend, or it has even ended since. */
function reopen(draft: Draft, { facts }: SeenJob, verdict: JobVerdict | null, now: number): boolean {
  const { state, suspendedByUs, standing } = draft.life
  if (state !== 'created' && !suspendedByUs) return false
  if (facts.suspended && verdict === null) return false
  const succeeded = verdict === null ? facts.succeeded : standing.succeeded
  allot(draft, now, { ...standingAt(facts, 'ended'), succeeded })
  return true
}

/** Rows 17–22. */
function openRows(draft: Draft, seen: SeenJob, verdict: JobVerdict | null, now: number): Step {
  const { facts } = seen
  const proof = noteEvidence(draft, seen)
  if (verdict !== null) return proof ?? end(draft, seen, verdict) // 17, 18
  if (facts.suspended) return suspendedByOthers(draft, seen) // 19
  resumeTimer(draft, now)
  const runs = draft.life.evidence && (facts.active > 0 || facts.hasStartTime)
  if (!runs && proof !== null && (facts.active > 0 || facts.hasStartTime)) return proof
  if (!runs && timerPassed(draft.life, now)) {
    if (!seen.live || !seen.livePods) return LOOK_PODS
    stopInHand(draft, 'StartTimeout') // 23
    return WAIT
  }
  if (runs && !draft.life.started) started(draft, firstStart(draft.life, facts.pods)) // 21
  const { started: ran } = draft.life
  change(draft, { state: ran ? 'running' : 'creating', ready: ran && facts.ready > 0 }) // 21, 22
  const stall = explain(draft, seen, now, stallOf(draft, seen, now))
  if ('look' in stall.step) return stall.step
  showTroubles(draft, facts.troubles, stall.stalled)
  return { wakeAt: earliest(stall.step.wakeAt, timerOf(draft.life)) }
}

function suspendedByOthers(draft: Draft, seen: SeenJob): Step {
  const trouble: Trouble = {
    cause: 'others',
    reason: 'JobSuspended',
    message: 'the Job is suspended, and not by us',
    hint: 'Start it to have it unsuspended, or ask whoever suspended it (a queue such as Kueue, an admission policy).',
    quiet: false,
    at: seen.at,
    pod: null,
  }
  change(draft, { state: 'creating', ready: false })
  showTroubles(draft, [trouble])
  return WAIT
}

/** The start timer stands still while others keep it suspended, and begins anew after. */
function resumeTimer(draft: Draft, now: number): void {
  const { reason, started: ran, startTimeoutSeconds } = draft.life
  if (reason === 'JobSuspended' && !ran) change(draft, { startBy: startByFrom(startTimeoutSeconds, now) })
}

/** A Job that has no pod at all, neither in its counters nor to be seen. */
function stallOf(draft: Draft, { facts }: SeenJob, now: number): Stall | null {
  const idle = facts.active === 0 && facts.terminating === 0 && !facts.deciding
  const bare = idle && !facts.pods.some(pod => !pod.gone && !pod.ended)
  if (!bare) {
    change(draft, { failingSince: null })
    return creatingStall(facts.pods)
  }
  const since = draft.life.failingSince ?? now
  change(draft, { failingSince: since })
  return lackOfPods(since)
}

/**
 * §3 evidence, kept for the run once true. From run 2 on the pods must come from a live LIST: the cache may still show
 * those of the run before. Returns the look that is missing for it.
 */
function noteEvidence(draft: Draft, { facts, livePods }: SeenJob): Step | null {
  const { life } = draft
  if (life.evidence) return null
  const counted = facts.succeeded > life.standing.succeeded
  if (!counted && !hasRun(life, facts.pods)) return null
  if (!counted && life.run > 1 && !livePods) return LOOK_PODS
  change(draft, { evidence: true })
  return null
}

const hasRun = ({ standing }: Life, pods: readonly PodSeen[]): boolean =>
  pods.some(pod => pod.ran && !pod.terminating && (isRunning(pod) || !standing.pods.includes(pod.uid)))

const isRunning = ({ running, gone }: PodSeen): boolean => running && !gone

function firstStart(life: Life, pods: readonly PodSeen[]): number | null {
  const times = pods.filter(pod => pod.ran && !pod.terminating).map(pod => pod.startedAt ?? Number.POSITIVE_INFINITY)
  const first = Math.min(...times)
  return Number.isFinite(first) ? Math.max(first, life.run > 1 ? (life.runAt ?? 0) : 0) : null
}

/** Rows 17 and 18. */
function end(draft: Draft, seen: SeenJob, verdict: JobVerdict): Step {
  const { facts } = seen
  if (verdict.type === 'failure' && draft.life.exitCode === null && !seen.livePods) return LOOK_PODS
  applyVerdict(draft, facts, verdict)
  return WAIT
}

function applyVerdict(draft: Draft, facts: JobFacts, { type, condition }: JobVerdict): void {
  const at = condition?.at ?? lastFinish(draft.life, facts.pods)
  if (!draft.life.started && (type === 'success' || draft.life.evidence)) {
    started(draft, firstStart(draft.life, facts.pods))
  }
  if (type === 'success') {
    change(draft, { exitCode: 0 })
    exited(draft, null, at)
  } else {
    const reason = condition?.reason ?? 'BackoffLimitExceeded'
    failed(draft, reason, condition?.message ?? String(facts.failed), at)
  }
  change(draft, { verb: null, suspendedByUs: false })
}

/** §3: condition Failed beats Complete, both beat the counters; what the killing causes is no verdict. */
export function jobVerdict(seen: SeenJob): JobVerdict | null {
  const { facts, deleting } = seen
  const { failure, complete } = facts
  if (failure !== null && conditionCounts(seen, failure)) return { type: 'failure', condition: failure }
  if (complete !== null && conditionCounts(seen, complete)) return { type: 'success', condition: complete }
  if (failure !== null || complete !== null) return null
  if (facts.active > 0 || facts.terminating > 0 || facts.suspended || facts.deciding || deleting) return null
  if (facts.failed > facts.backoffLimit) return { type: 'failure', condition: null }
  return facts.succeeded >= facts.completions ? { type: 'success', condition: null } : null
}

const second = (ms: number): number => Math.floor(ms / 1000)

function conditionCounts({ deleting, deletionAskedAt, facts }: SeenJob, { at }: Condition): boolean {
  if (!deleting) return true
  const asked = second(deletionAskedAt ?? 0)
  if (second(at ?? 0) <= asked) return true
  const finished = facts.pods.map(pod => pod.finishedAt)
  return finished.length > 0 && finished.every(time => time !== null && second(time) < asked)
}

/** §3 zero, stopped by suspend, as far as this look reaches. */
function seemsZero({ facts }: SeenJob): boolean {
  return facts.suspended && facts.suspendedSeen && facts.active === 0 && podsLeft(facts.pods) === 0
}

/** 'all': a start of ours; 'ended': others started it, its pods may be new. */
export function standingAt(facts: JobFacts, which: 'all' | 'ended'): Standing {
  const old = facts.pods.filter(pod => which === 'all' || pod.gone || pod.ended || pod.terminating)
  return { succeeded: facts.succeeded, failures: [], pods: old.map(pod => pod.uid) }
}

/** Rows 10–14. */
export function jobGone(draft: Draft, gone: Gone): Step {
  const { verb, open } = draft.life
  if (verb?.verb === 'delete' || verb?.verb === 'stop') {
    if (!gone.livePods) return LOOK_PODS
    if (gone.podsLeft > 0) return { wakeAt: gone.at + PODS_AGAIN_MS }
    if (verb.verb === 'delete') {
      deleted(draft, verb.cause ?? 'DeletedByRequest') // 10
      return WAIT
    }
    endByStop(draft, verb, gone.last === null ? null : lastFinish(draft.life, gone.last.facts.pods)) // 11
  } else if (open) {
    const verdict = lastVerdict(draft, gone.last)
    if (verdict === null) {
      deleted(draft, 'NotFound') // 12
      return WAIT
    }
  } else if (!draft.life.gone && (draft.life.run === 0 || verb !== null)) {
    deleted(draft, 'NotFound') // 14
    return WAIT
  }
  rest(draft, gone) // 13
  return WAIT
}

/** The record stays, for good; unless another object has taken the name. */
export function rest(draft: Draft, gone: Gone): void {
  if (gone.otherUid !== null) deleted(draft, 'NotFound')
  else if (!draft.life.gone) change(draft, { gone: true, goneAt: gone.at, suspendedByUs: false, verb: null })
}

/** Row 12: an ending read from the last that was seen; applied if there is one. */
function lastVerdict(draft: Draft, last: Seen | null): JobVerdict | null {
  if (last === null || last.facts.kind !== 'job') return null
  const seen = { ...last, facts: last.facts }
  if (!draft.life.evidence && hasRun(draft.life, seen.facts.pods)) change(draft, { evidence: true })
  const verdict = jobVerdict(seen) ?? verdictOfPods(seen)
  if (verdict !== null) applyVerdict(draft, seen.facts, verdict)
  return verdict
}

/** All its pods ended by themselves, none terminating, the object without deletionTimestamp, and no retry left. */
function verdictOfPods({ deleting, facts }: SeenJob): JobVerdict | null {
  const { pods, backoffLimit, completions } = facts
  if (deleting || facts.suspended || pods.length === 0) return null
  if (!pods.every(pod => pod.ended && pod.endingCounts && !pod.terminating)) return null
  const succeeded = Math.max(facts.succeeded, pods.filter(pod => pod.phase === 'Succeeded').length)
  if (succeeded >= completions) return { type: 'success', condition: null }
  const lost = Math.max(facts.failed, pods.filter(pod => pod.phase === 'Failed').length)
  return lost > backoffLimit ? { type: 'failure', condition: null } : null
}
