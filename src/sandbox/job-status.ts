import { isTrue } from './conditions.ts'
import { hasEnded, isDeleting, isReadyPod } from './controller.ts'
import type { KubeObject, Loose } from './types.ts'

/** The finalizer that keeps a pod until its Job has counted it. */
export const JOB_TRACKING = 'batch.kubernetes.io/job-tracking'

/** What the pods of a Job say at one moment. `succeeded` and `failed` hold what is counted and what waits to be. */
export interface JobView {
  active: number
  ready: number
  terminating: number
  succeeded: number
  failed: number
  /** uids of ended pods that still carry the finalizer */
  uncounted: { succeeded: string[]; failed: string[] }
  /** as many have succeeded as were asked for */
  enough: boolean
}

export const isFinished = (job: KubeObject): boolean =>
  isTrue(job.status?.conditions, 'Complete') || isTrue(job.status?.conditions, 'Failed')

export function viewOf(job: KubeObject, pods: KubeObject[]): JobView {
  const running = pods.filter(pod => !hasEnded(pod))
  const active = running.filter(pod => !isDeleting(pod))
  const tracked = pods.filter(pod => pod.metadata.finalizers?.includes(JOB_TRACKING))
  const known = job.status?.uncountedTerminatedPods
  const succeededUids = tracked
    .filter(pod => pod.status?.phase === 'Succeeded' && !isFailed(pod))
    .map(pod => pod.metadata.uid)
  const failedUids = tracked.filter(isFailed).map(pod => pod.metadata.uid)
  const waiting = (listed: string[] | undefined, found: string[]): number => new Set([...(listed ?? []), ...found]).size
  const succeeded = (job.status?.succeeded ?? 0) + waiting(known?.succeeded, succeededUids)
  return {
    active: active.length,
    ready: active.filter(isReadyPod).length,
    terminating: running.filter(isDeleting).length,
    succeeded,
    failed: (job.status?.failed ?? 0) + waiting(known?.failed, failedUids),
    uncounted: { succeeded: succeededUids, failed: failedUids },
    enough: job.spec.completions == null ? succeeded > 0 && active.length === 0 : succeeded >= job.spec.completions,
  }
}

/** A pod counts as failed when it ended so, or is being deleted before it ended. */
const isFailed = (pod: KubeObject): boolean =>
  pod.status?.phase === 'Failed' || (isDeleting(pod) && pod.status?.phase !== 'Succeeded')

interface StatusParts extends JobView {
  conditions: Loose[] | undefined
  startTime?: string
  listUncounted?: boolean
  counted?: { succeeded: number; failed: number }
}

/** The status as it goes on the wire: fields in their order, zeros left out where Go leaves them out. */
export function jobStatus(job: KubeObject, parts: StatusParts): Loose {
  const before = job.status ?? {}
  const startTime = parts.startTime ?? before.startTime
  const succeeded = (before.succeeded ?? 0) + (parts.counted?.succeeded ?? 0)
  const failed = (before.failed ?? 0) + (parts.counted?.failed ?? 0)
  return {
    ...(parts.conditions?.length ? { conditions: parts.conditions } : {}),
    ...(startTime ? { startTime } : {}),
    ...(parts.active > 0 ? { active: parts.active } : {}),
    ...(succeeded > 0 ? { succeeded } : {}),
    ...(failed > 0 ? { failed } : {}),
    terminating: parts.terminating,
    ...(parts.listUncounted ? { uncountedTerminatedPods: nonEmpty(parts.uncounted) } : {}),
    ready: parts.ready,
  }
}

const nonEmpty = (lists: Record<string, string[]>): Loose =>
  Object.fromEntries(Object.entries(lists).filter(([, list]) => list.length > 0))

/** Why the Job has failed, if it has: out of retries, or out of time. */
export function failureOf(
  job: KubeObject,
  view: JobView,
  now: number,
): { reason: string; message: string } | undefined {
  if (view.enough) return undefined
  if (view.failed > job.spec.backoffLimit) {
    return { reason: 'BackoffLimitExceeded', message: 'Job has reached the specified backoff limit' }
  }
  const left = activeDeadlineLeft(job, now)
  if (left !== undefined && left <= 0) {
    return { reason: 'DeadlineExceeded', message: 'Job was active longer than specified deadline' }
  }
  return undefined
}

/** Milliseconds until activeDeadlineSeconds are over; undefined without deadline or before the start. */
export function activeDeadlineLeft(job: KubeObject, now: number): number | undefined {
  const seconds = job.spec.activeDeadlineSeconds
  const start = job.status?.startTime
  return seconds === undefined || start === undefined ? undefined : Date.parse(start) + seconds * 1000 - now
}

/** When the next pod may be made: some time after a failure was counted, later with each (doubling). */
export function retryAt(job: KubeObject, failedAt: number, backoffMs: number): number {
  const failures = job.status?.failed ?? 0
  return failures === 0 ? 0 : failedAt + backoffMs * 2 ** Math.min(failures - 1, 6)
}
