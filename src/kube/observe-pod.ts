import type { Display, PodSeen } from '../domain/observation.ts'
import type { Pod } from './objects.ts'
import { conditionsOf, mainAndInit, mainStatus, millis } from './status.ts'

/** A pod as the cache keeps it. */
export interface KeptPod {
  readonly pod: Pod
  /** `deletionAskedAt` of its first form that carried a deletionTimestamp; null if there was none, or it is not known. */
  readonly deletionAskedAt?: number | null
  /** Its object is gone; `pod` is the last that was seen. */
  readonly gone?: boolean
}

/** deletionTimestamp less its grace, ms: when the deletion was asked for. The kubelet's last delete rewrites both. */
export function deletionAskedAt(meta: Pod['metadata']): number | null {
  const due = millis(meta?.deletionTimestamp)
  return due === null ? null : due - (meta?.deletionGracePeriodSeconds ?? 0) * 1000
}

type Terminated = NonNullable<NonNullable<ReturnType<typeof mainStatus>>['state']>['terminated']

/** What never became a process of its own, or nobody knows of (lifecycle.md §3 "has run"). */
const NEVER_RAN = ['StartError', 'ContainerCannotRun', 'ContainerStatusUnknown']
const UNKNOWN_END = 'ContainerStatusUnknown'

function ranAndEnded(terminated: Terminated): boolean {
  if (!terminated || NEVER_RAN.includes(terminated.reason ?? '')) return false
  return (millis(terminated.startedAt) ?? 0) > 0
}

const isKnown = (terminated: Terminated): boolean =>
  terminated !== undefined && terminated !== null && terminated.reason !== UNKNOWN_END

/** What one pod proves (lifecycle.md §3). Facts only. */
export function observePod(kept: KeptPod): PodSeen {
  const { pod, gone = false } = kept
  const { metadata, status } = pod
  const main = mainStatus(pod)
  const { state, lastState } = main ?? {}
  const last = [state?.terminated, lastState?.terminated].find(isKnown)
  const ready = conditionsOf(pod).get('Ready')
  const startedAt = state?.running?.startedAt ?? last?.startedAt
  return {
    uid: metadata?.uid ?? '',
    phase: status?.phase ?? null,
    terminating: Boolean(metadata?.deletionTimestamp),
    gone,
    ended: status?.phase === 'Succeeded' || status?.phase === 'Failed',
    ready: ready?.status === 'True',
    readyAt: millis(ready?.lastTransitionTime),
    ran: Boolean(state?.running || lastState?.running) || [state?.terminated, lastState?.terminated].some(ranAndEnded),
    running: Boolean(state?.running),
    startedAt: millis(startedAt),
    finishedAt: millis(last?.finishedAt),
    exitCode: last?.exitCode ?? null,
    oomKilled: mainAndInit(pod).some(
      ({ state, lastState }) =>
        state?.terminated?.reason === 'OOMKilled' || lastState?.terminated?.reason === 'OOMKilled',
    ),
    endingCounts: endingCounts(kept),
    reason: status?.reason || null,
    message: status?.message || null,
    creatingSince:
      state?.waiting?.reason === 'ContainerCreating'
        ? (millis(status?.startTime) ?? millis(metadata?.creationTimestamp))
        : null,
  }
}

/** A pod's ending counts only if `main` finished in an earlier second than its deletion was asked for (§3). */
function endingCounts({ pod, deletionAskedAt: first }: KeptPod): boolean {
  const { metadata, status } = pod
  const due = millis(metadata?.deletionTimestamp)
  if (due === null) return true
  const asked = first ?? deletionAskedAt(metadata) ?? due
  const onlyLastForm = (metadata?.deletionGracePeriodSeconds ?? 0) === 0 && asked >= due
  if (onlyLastForm) return (status?.observedGeneration ?? Number.POSITIVE_INFINITY) < (metadata?.generation ?? 0)
  const finished = millis(mainStatus(pod)?.state?.terminated?.finishedAt)
  return finished !== null && Math.floor(finished / 1000) < Math.floor(asked / 1000)
}

/** The newest Running pod, else the newest that has run, else the newest (§3). */
export function newestPod(pods: readonly KeptPod[]): Pod | null {
  const there = pods.filter(({ gone }) => !gone).sort((a, b) => madeAt(b.pod) - madeAt(a.pod))
  const newest =
    there.find(({ pod }) => pod.status?.phase === 'Running') ?? there.find(kept => observePod(kept).ran) ?? there[0]
  return newest?.pod ?? null
}

const madeAt = (pod: Pod): number => millis(pod.metadata?.creationTimestamp) ?? 0

/** What inspect shows of the pods. `failed`: a Job's failed pods, counted as restarts. */
export function displayOf(pods: readonly KeptPod[], replicas: Display['replicas'], failed = 0): Display {
  const pod = newestPod(pods)
  return {
    replicas,
    restarts: (pod === null ? 0 : (mainStatus(pod)?.restartCount ?? 0)) + failed,
    podName: pod?.metadata?.name ?? null,
    podIp: pod?.status?.podIP || null,
    nodeName: pod?.spec?.nodeName || null,
  }
}
