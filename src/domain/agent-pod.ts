import { opensRun, timerOf } from './deployment.ts'
import { rest } from './job.ts'
import type { Life } from './life.ts'
import {
  change,
  type Draft,
  deleted,
  endByStop,
  exited,
  failed,
  type Step,
  showDeleting,
  started,
  stopInHand,
  WAIT,
  warn,
} from './lifecycle-draft.ts'
import { creatingStall, earliest, explain, LASTING_MS, showTroubles } from './lifecycle-trouble.ts'
import type { Gone, PodFacts, PodSeen, Seen, Trouble, TroubleCause } from './observation.ts'

type SeenPod = Seen & { readonly facts: PodFacts }

/** lifecycle.md §1: agent containers without a start timeout have this one. */
export const AGENT_START_TIMEOUT_SECONDS = 120

const HOPELESS: readonly TroubleCause[] = ['image', 'config', 'crash', 'scheduling', 'rejected']

/** Rows 7–14 of lifecycle.md §6, top down: the first that matches wins. */
export function agentPodRows(draft: Draft, seen: SeenPod, now: number): Step {
  const { verb, open, run } = draft.life
  const pod = seen.facts.pods[0]
  if (pod === undefined) return WAIT
  if (verb?.verb === 'stop') {
    change(draft, { state: 'stopping', ready: false }) // 7
    return WAIT
  }
  if (verb?.verb === 'delete' || (seen.deleting && (open || run === 0))) {
    if (verb === null) for (const lost of seen.facts.troubles.filter(byOthers)) warn(draft, lost)
    showDeleting(draft, seen) // 7
    return WAIT
  }
  if (!open || opensRun(draft.life)) return WAIT // 14
  if (pod.ended) {
    end(draft, pod) // 8, 9
    return WAIT
  }
  return openRows(draft, seen, pod, now)
}

const byOthers = ({ cause }: Trouble): boolean => cause === 'evicted' || cause === 'node'

/** Rows 13, 10, 11, 12. */
function openRows(draft: Draft, seen: SeenPod, pod: PodSeen, now: number): Step {
  if (pod.ready) change(draft, { evidence: true, startBy: null })
  const hopeless = hopelessOf(draft, seen.facts.troubles, now)
  if (!draft.life.evidence && hopeless.cause !== null) {
    if (!seen.live) return { look: 'object' }
    showTroubles(draft, seen.facts.troubles)
    stopInHand(draft, hopeless.cause) // 13
    return WAIT
  }
  if (pod.phase === 'Running') {
    if (!draft.life.started) started(draft, pod.startedAt)
    change(draft, { state: 'running', ready: pod.ready }) // 10
  } else if (pod.phase !== null && pod.phase !== 'Pending') {
    change(draft, { state: 'unknown', ready: false }) // 11
    showTroubles(draft, unknownPhase(seen, pod.phase))
    return { wakeAt: timerOf(draft.life) }
  } else change(draft, { state: 'creating', ready: false }) // 12
  const stall = explain(draft, seen, now, creatingStall(seen.facts.pods))
  if ('look' in stall.step) return stall.step
  showTroubles(draft, seen.facts.troubles, stall.stalled)
  return { wakeAt: earliest(stall.step.wakeAt, hopeless.wakeAt) }
}

function unknownPhase(seen: SeenPod, phase: string): Trouble[] {
  const lost = seen.facts.troubles.filter(trouble => trouble.cause === 'node')
  if (lost.length > 0) return lost
  const unknown = phase === 'Unknown'
  const reason = unknown ? 'NodeLost' : phase
  const hint = unknown ? 'The node has not been heard of; see whether it is up.' : null
  return [{ cause: 'node', reason, message: null, hint, quiet: false, at: null, pod: null }]
}

/** Row 13: never Ready, and the start timer passed, or a trouble of these has lasted. */
function hopelessOf(
  draft: Draft,
  troubles: readonly Trouble[],
  now: number,
): { cause: string | null; wakeAt: number | null } {
  const { evidence, startBy } = draft.life
  if (evidence) {
    change(draft, { failingSince: null })
    return { cause: null, wakeAt: null }
  }
  const trouble = troubles.find(({ cause }) => HOPELESS.includes(cause))
  const since = trouble === undefined ? null : (draft.life.failingSince ?? now)
  change(draft, { failingSince: since })
  if (trouble !== undefined && since !== null && now >= since + LASTING_MS)
    return { cause: trouble.reason, wakeAt: null }
  if (startBy !== null && now >= startBy) return { cause: 'StartTimeout', wakeAt: null }
  return { cause: null, wakeAt: earliest(startBy, since === null ? null : since + LASTING_MS) }
}

/** Rows 8 and 9; the object is kept until it is deleted or replaced. */
function end(draft: Draft, pod: PodSeen): void {
  const { life } = draft
  const success = pod.phase === 'Succeeded'
  if (!life.started && (success || pod.ran)) started(draft, pod.startedAt)
  if (success) {
    if (life.exitCode === null) change(draft, { exitCode: pod.exitCode })
    exited(draft, null, pod.finishedAt)
    return
  }
  const message =
    pod.message ?? pod.reason ?? (draft.life.exitCode === null ? null : `exit code ${draft.life.exitCode}`)
  failed(draft, pod.reason ?? (pod.oomKilled ? 'OOMKilled' : 'Error'), message, pod.finishedAt)
}

/** Row 6. */
export function agentPodGone(draft: Draft, gone: Gone): Step {
  const { verb, open } = draft.life
  if (verb?.verb === 'delete') {
    deleted(draft, verb.cause ?? 'DeletedByRequest')
    return WAIT
  }
  const last = gone.last?.facts.pods[0]
  if (verb?.verb === 'stop') endByStop(draft, verb, last?.finishedAt ?? null)
  else if (open) {
    if (last === undefined || !last.ended || !last.endingCounts) {
      deleted(draft, 'NotFound')
      return WAIT
    }
    end(draft, last)
  }
  rest(draft, gone)
  return WAIT
}

/** Whether the pod's own end is an ending that counts: a stop then writes nothing. */
export const podEnded = ({ facts }: SeenPod): boolean => facts.pods.some(pod => pod.ended && pod.endingCounts)

export const agentStartTimeout = (life: Pick<Life, 'startTimeoutSeconds'>): number =>
  life.startTimeoutSeconds > 0 ? life.startTimeoutSeconds : AGENT_START_TIMEOUT_SECONDS
