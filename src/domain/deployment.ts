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
  podsOfRun,
  type Step,
  showDeleting,
  started,
  stopInHand,
  WAIT,
  warn,
} from './lifecycle-draft.ts'
import { creatingStall, earliest, explain, LASTING_MS, showTroubles } from './lifecycle-trouble.ts'
import type { Condition, DeploymentFacts, Gone, Seen, Trouble } from './observation.ts'

type SeenDeployment = Seen & { readonly facts: DeploymentFacts }

/** How long pods of a gone object are waited for before they are looked at again, if nothing is heard of them. */
export const PODS_AGAIN_MS = 5_000

/** Rows 11–23 of lifecycle.md §4, top down: the first that matches wins. */
export function deploymentRows(draft: Draft, seen: SeenDeployment, now: number): Step {
  const verb = draft.life.verb?.verb ?? null
  if (verb === 'delete' || seen.deleting) return row11(draft, seen)
  if (verb === 'stop') {
    const step = stopRows(draft, seen)
    if (step !== null) return step
  }
  if (opensRun(draft.life)) return WAIT // 13a
  if (!seen.current) return WAIT // 14
  return openRows(draft, seen, now)
}

function row11(draft: Draft, seen: SeenDeployment): Step {
  showDeleting(draft, seen)
  return WAIT
}

/** Rows 12 and 13; null = the stop was dropped, the run goes on with the rows that follow. */
function stopRows(draft: Draft, seen: SeenDeployment): Step | null {
  const { facts } = seen
  const stop = draft.life.verb
  if (stop === null) return null
  if (seemsZero(seen)) {
    if (!seen.livePods) return LOOK_PODS
    // 12; a stop that found nothing to do (row 5) leaves the state as it is
    if (!draft.life.open && draft.life.state !== 'stopping') change(draft, { verb: null })
    else endByStop(draft, stop, lastFinish(draft.life, facts.pods))
    return WAIT
  }
  if (!stop.accepted || facts.desired === 0) {
    if (draft.life.open) change(draft, { state: 'stopping', ready: false }) // 13
    return WAIT
  }
  dropStop(draft, seen) // 13: others scaled up after our scale
  return null
}

function dropStop(draft: Draft, seen: SeenDeployment): void {
  const { open, started: ran, verb } = draft.life
  change(draft, { verb: null, startBy: null, reason: null, message: null, hint: null })
  if (open) {
    warn(draft, scaledByOthers(seen))
    change(draft, { state: ran ? 'running' : 'creating' })
    return
  }
  const { state = 'failed', reason = null, message = null } = verb?.previous ?? {}
  const back = state === 'stopped' || state === 'created' ? state : 'failed'
  change(draft, { state: back, reason, message })
}

export const scaledByOthers = (seen: Seen): Trouble => ({
  cause: 'others',
  reason: 'ScaledByOthers',
  message: 'it was started again by others while it was being stopped',
  hint: 'Stop it again, or find what scales it (an autoscaler, a GitOps controller) and change it there.',
  quiet: false,
  at: seen.at,
  pod: null,
})

/** Rows 15–22. Row 19 opens a run and goes on with the rows before it. */
function openRows(draft: Draft, seen: SeenDeployment, now: number): Step {
  const { facts } = seen
  if (!draft.life.open && !reopen(draft, seen, now)) return draft.life.open ? WAIT : closedRow(draft, seen, now)
  if (seemsZero(seen)) {
    if (!seen.livePods) return LOOK_PODS
    exited(draft, 'ScaledToZero', lastFinish(draft.life, facts.pods)) // 15
    return WAIT
  }
  if (seemsStarted(draft.life, seen)) {
    if (needsLivePods(draft.life) && !seen.livePods) return LOOK_PODS
    return running(draft, seen, now) // 16
  }
  const failure = failureOf(draft, seen, now)
  if (failure.condition !== null) {
    if (draft.life.exitCode === null && !seen.livePods) return LOOK_PODS
    const { reason, message, at } = failure.condition
    failed(draft, reason, message ?? reason, at) // 17
    return WAIT
  }
  if (timerPassed(draft.life, now)) {
    if (!seen.live || !seen.livePods) return LOOK_PODS
    stopInHand(draft, 'StartTimeout') // 22
    return WAIT
  }
  if (draft.life.started)
    change(draft, { state: 'running', ready: isReady(facts) }) // 20
  else change(draft, { state: 'creating', ready: false }) // 21
  const step = troubles(draft, seen, now)
  return 'look' in step ? step : { wakeAt: earliest(step.wakeAt, failure.wakeAt, timerOf(draft.life)) }
}

/** Row 19: others scaled up what had stopped, or was never started. */
function reopen(draft: Draft, { facts }: SeenDeployment, now: number): boolean {
  const { state } = draft.life
  if ((state !== 'stopped' && state !== 'created') || facts.desired === 0) return false
  allot(draft, now, standingAt(facts, 'ended'))
  return true
}

/** Row 18, the recovery of what had failed, is a new run; row 23 else. */
function closedRow(draft: Draft, seen: SeenDeployment, now: number): Step {
  if (draft.life.state !== 'failed' || !seemsStarted(draft.life, seen)) return WAIT
  if (!seen.livePods) return LOOK_PODS
  allot(draft, now, standingAt(seen.facts, 'all'))
  return running(draft, seen, now)
}

function running(draft: Draft, seen: SeenDeployment, now: number): Step {
  const { facts } = seen
  if (!draft.life.started) {
    started(draft, readySince(draft.life, facts))
    const adopted = facts.pods.filter(pod => pod.ready && !pod.gone && !pod.terminating).map(pod => pod.uid)
    const { standing } = draft.life
    change(draft, { standing: { ...standing, pods: standing.pods.filter(uid => !adopted.includes(uid)) } })
  }
  change(draft, { state: 'running', ready: isReady(facts), failingSince: null })
  return troubles(draft, seen, now)
}

function troubles(draft: Draft, seen: SeenDeployment, now: number): Step {
  const { facts } = seen
  const { standing } = draft.life
  const stall = explain(draft, seen, now, creatingStall(podsOfRun(draft.life, facts.pods)))
  if ('look' in stall.step) return stall.step
  const stood = facts.deadline !== null && standing.failures.includes(failureKey('deadline', facts.deadline))
  const shown = facts.troubles.filter(trouble => !(stood && trouble.reason === 'ProgressDeadlineExceeded'))
  showTroubles(draft, shown, stall.stalled)
  return stall.step
}

/** Readiness of the newest pod that is ready, for the time of Started. */
function readySince(life: Life, facts: DeploymentFacts): number | null {
  const times = facts.pods.filter(pod => pod.ready && !pod.terminating && !pod.gone).map(pod => pod.readyAt ?? 0)
  const last = Math.max(0, ...times)
  return last === 0 ? null : Math.max(last, life.run > 1 ? (life.runAt ?? 0) : 0)
}

const isReady = (facts: DeploymentFacts): boolean => facts.desired > 0 && facts.ready > 0

/** §3 zero, as far as this look reaches; it counts only with the pods from a live LIST. */
function seemsZero({ current, facts }: SeenDeployment): boolean {
  return current && facts.desired === 0 && facts.replicas === 0 && podsLeft(facts.pods) === 0
}

/** §3 started. The counters are necessary, the pod is the proof. */
function seemsStarted(life: Life, { current, facts }: SeenDeployment): boolean {
  if (!current || facts.desired === 0 || facts.ready === 0) return false
  return life.open && life.started ? true : facts.pods.some(pod => pod.ready && !pod.terminating && !pod.gone)
}

const needsLivePods = (life: Life): boolean => life.run > 1 && !life.started

/** §3 failure: a deadline at once, ReplicaFailure once it has lasted; none that stood when the run was allotted. */
function failureOf(
  draft: Draft,
  seen: SeenDeployment,
  now: number,
): { condition: Condition | null; wakeAt: number | null } {
  const { deadline, replicaFailure, ready } = seen.facts
  const { failures } = draft.life.standing
  const none = { condition: null, wakeAt: null }
  if (ready > 0) return none
  if (deadline !== null && !failures.includes(failureKey('deadline', deadline)))
    return { condition: deadline, wakeAt: null }
  if (replicaFailure === null || failures.includes(failureKey('replicas', replicaFailure))) {
    change(draft, { failingSince: null })
    return none
  }
  const since = draft.life.failingSince ?? now
  change(draft, { failingSince: since })
  return now >= since + LASTING_MS
    ? { condition: replicaFailure, wakeAt: null }
    : { condition: null, wakeAt: since + LASTING_MS }
}

const failureKey = (type: 'deadline' | 'replicas', { at }: Condition): string => `${type}@${at ?? 0}`

/** 'all': a start of ours, every pod known belongs to earlier runs; 'ended': others started it, its pods may be new. */
export function standingAt(facts: DeploymentFacts, which: 'all' | 'ended'): Standing {
  const { deadline, replicaFailure, pods } = facts
  const failures = [
    ...(deadline === null ? [] : [failureKey('deadline', deadline)]),
    ...(replicaFailure === null ? [] : [failureKey('replicas', replicaFailure)]),
  ]
  const old = pods.filter(pod => which === 'all' || pod.gone || pod.ended || pod.terminating)
  return { succeeded: 0, failures, pods: old.map(pod => pod.uid) }
}

export const opensRun = ({ verb, open }: Life): boolean =>
  verb !== null && (verb.verb === 'create' || (verb.verb === 'start' && !(verb.joins && open)))

export const timerPassed = (life: Life, now: number): boolean => {
  const due = timerOf(life)
  return due !== null && now >= due
}

/** When the start timer of this run is due; null once it has started, or has none. */
export const timerOf = ({ open, started: ran, startBy, verb }: Life): number | null =>
  open && !ran && verb?.verb !== 'stop' ? startBy : null

/** Row 10. `livePods` and `podsLeft` say whether a stop or delete may end now. */
export function deploymentGone(draft: Draft, gone: Gone): Step {
  const { verb } = draft.life
  const waits = verb?.verb === 'stop' || verb?.verb === 'delete'
  if (waits && !gone.livePods) return LOOK_PODS
  if (waits && gone.podsLeft > 0) return { wakeAt: gone.at + PODS_AGAIN_MS }
  if (verb?.verb === 'stop' && draft.life.open) {
    endByStop(draft, verb, gone.last === null ? null : lastFinish(draft.life, gone.last.facts.pods))
  }
  deleted(draft, verb?.verb === 'delete' ? (verb.cause ?? 'DeletedByRequest') : 'NotFound')
  return WAIT
}
