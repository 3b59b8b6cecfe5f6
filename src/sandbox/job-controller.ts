import { findCondition, isTrue, setCondition } from './conditions.ts'
import { type ControllerContext, controllerOf, hasEnded, isDeleting, type Stop } from './controller.ts'
import { activePodsOf, deletePod, dropPod, managePods, podsOf, recordOn } from './job-pods.ts'
import {
  activeDeadlineLeft,
  failureOf,
  isFinished,
  JOB_TRACKING,
  type JobView,
  jobStatus,
  retryAt,
  viewOf,
} from './job-status.ts'
import { equal, timestamp } from './json.ts'
import { KeyedLoop, keyOfObject, splitKey } from './keyed-loop.ts'
import type { KubeObject, Loose } from './types.ts'

/**
 * The Job controller: pods with the tracking finalizer, counting in three writes (uncounted, finalizer off, counted),
 * retries with back-off, deadline, suspend, time to live. Verdicts come only when nothing terminates any more.
 */
export function startJobController(context: ControllerContext): Stop {
  const { timing, registry } = context
  const failedAt = new Map<string, number>()
  const loop = new KeyedLoop({
    lagMs: timing.controllerLagMs,
    retryMaxMs: timing.controllerRetryMaxMs,
    faults: context.faults,
    reconcile: key => new JobSync(context, key, failedAt).run(),
  })
  const freed = new KeyedLoop({
    lagMs: timing.controllerLagMs,
    retryMaxMs: timing.controllerRetryMaxMs,
    faults: context.faults,
    reconcile: key => freeOrphan(context, key),
  })
  const unsubscribe = registry.store.subscribe(({ resource, object, type }) => {
    if (resource === 'jobs' && type !== 'DELETED') loop.add(keyOfObject(object))
    if (resource === 'jobs' && type === 'DELETED') failedAt.delete(object.metadata.uid)
    if (resource !== 'pods') return
    const owner = controllerOf(object)
    if (owner?.kind === 'Job')
      loop.add(`${object.metadata.namespace}/${owner.name}`, type === 'ADDED' ? undefined : timing.jobSyncMs)
    if (object.metadata.finalizers?.includes(JOB_TRACKING) && isDeleting(object)) freed.add(keyOfObject(object))
  })
  return () => {
    unsubscribe()
    loop.close()
    freed.close()
  }
}

/** A deleted pod whose Job is gone need not be counted any more. */
function freeOrphan(context: ControllerContext, key: string): undefined {
  const pod = context.registry.store.get('pods', ...splitKey(key))
  const owner = pod && controllerOf(pod)
  if (!pod || (owner?.kind === 'Job' && context.registry.store.has(owner.uid))) return
  context.registry.removeFinalizer('pods', pod, JOB_TRACKING)
}

/** One look at one Job. */
class JobSync {
  readonly #context: ControllerContext
  readonly #namespace: string
  readonly #name: string
  /** when a failure of each Job, by uid, was counted last */
  readonly #failedAt: Map<string, number>

  constructor(context: ControllerContext, key: string, failedAt: Map<string, number>) {
    this.#context = context
    this.#failedAt = failedAt
    ;[this.#namespace, this.#name] = splitKey(key)
  }

  run(): number | undefined {
    const job = this.#context.registry.store.get('jobs', this.#namespace, this.#name)
    if (!job) return undefined
    const pods = podsOf(this.#context, job)
    if (isFinished(job)) return this.#cleanUp(job, pods)
    if (isDeleting(job)) {
      for (const pod of pods) this.#context.registry.removeFinalizer('pods', pod, JOB_TRACKING)
      const view = viewOf(job, pods)
      this.#write(
        job,
        jobStatus(job, { ...view, conditions: job.status?.conditions, uncounted: { succeeded: [], failed: [] } }),
      )
      return undefined
    }
    if (job.spec.suspend) return this.#suspend(job)
    return this.#work(job, pods)
  }

  #suspend(job: KubeObject): undefined {
    for (const pod of activePodsOf(this.#context, job)) dropPod(this.#context, job, pod)
    const counted = this.#count(job, this.#podsOf(job))
    if (counted) return
    const view = viewOf(job, this.#podsOf(job))
    const conditions = setCondition(job.status?.conditions, {
      type: 'Suspended',
      status: 'True',
      reason: 'JobSuspended',
      message: 'Job suspended',
    })
    const changed = conditions !== job.status?.conditions
    const { startTime: _startTime, ...status } = jobStatus(job, { ...view, conditions })
    this.#write(job, status)
    if (changed) this.#record(job, 'Normal', 'Suspended', 'Job suspended')
  }

  #work(job: KubeObject, pods: KubeObject[]): number | undefined {
    const now = Date.now()
    const failure = failureOf(job, viewOf(job, pods), now)
    if (failure) for (const pod of activePodsOf(this.#context, job)) deletePod(this.#context, job, pod)
    if (this.#count(job, this.#podsOf(job), failure)) return undefined
    const view = viewOf(job, this.#podsOf(job))
    if (isTrue(job.status?.conditions, 'FailureTarget') || isTrue(job.status?.conditions, 'SuccessCriteriaMet')) {
      return this.#conclude(job, view)
    }
    const wait = Math.max(
      0,
      retryAt(job, this.#failedAt.get(job.metadata.uid) ?? 0, this.#context.timing.jobBackoffMs) - now,
    )
    const error = wait > 0 ? undefined : managePods(this.#context, job, view)
    this.#writeRunning(job, error === undefined)
    if (error) throw error
    const deadline = activeDeadlineLeft(this.#context.registry.get('jobs', this.#namespace, this.#name), now)
    const looks = [wait > 0 ? wait : undefined, deadline].filter(delay => delay !== undefined)
    return looks.length > 0 ? Math.min(...looks) : undefined
  }

  #writeRunning(job: KubeObject, resumed: boolean): void {
    const view = viewOf(job, this.#podsOf(job))
    const suspended = findCondition(job.status?.conditions, 'Suspended')?.status === 'True'
    const conditions = suspended
      ? setCondition(job.status?.conditions, {
          type: 'Suspended',
          status: 'False',
          reason: 'JobResumed',
          message: 'Job resumed',
        })
      : job.status?.conditions
    const startTime = suspended ? timestamp(Date.now()) : (job.status?.startTime ?? timestamp(Date.now()))
    this.#write(job, jobStatus(job, { ...view, conditions, startTime }))
    if (suspended && resumed) this.#record(job, 'Normal', 'Resumed', 'Job resumed')
  }

  /** Counts ended pods: first their uids go into the status, then their finalizers go, then the counters rise. True while under way. */
  #count(job: KubeObject, pods: KubeObject[], failure?: { reason: string; message: string }): boolean {
    const view = viewOf(job, pods)
    const known = job.status?.uncountedTerminatedPods
    if (known) {
      const listed: string[] = [...(known.succeeded ?? []), ...(known.failed ?? [])]
      for (const pod of pods.filter(({ metadata }) => listed.includes(metadata.uid))) {
        this.#context.registry.removeFinalizer('pods', pod, JOB_TRACKING)
      }
      this.#settle(job, known)
      return true
    }
    if (view.uncounted.succeeded.length + view.uncounted.failed.length === 0) {
      if (!failure || isTrue(job.status?.conditions, 'FailureTarget')) return false
      this.#write(job, jobStatus(job, { ...view, conditions: this.#target(job, view, failure) }))
      return true
    }
    this.#write(job, jobStatus(job, { ...view, conditions: this.#target(job, view, failure), listUncounted: true }))
    return true
  }

  #target(
    job: KubeObject,
    view: JobView,
    failure: { reason: string; message: string } | undefined,
  ): Loose[] | undefined {
    const before: Loose[] | undefined = job.status?.conditions
    if (isTrue(before, 'FailureTarget') || isTrue(before, 'SuccessCriteriaMet')) return before
    if (failure) return setCondition(before, { type: 'FailureTarget', status: 'True', ...failure })
    return view.enough
      ? setCondition(before, {
          type: 'SuccessCriteriaMet',
          status: 'True',
          reason: 'CompletionsReached',
          message: 'Reached expected number of succeeded pods',
        })
      : before
  }

  #settle(job: KubeObject, known: { succeeded?: string[]; failed?: string[] }): void {
    const { registry } = this.#context
    if (known.failed?.length) this.#failedAt.set(job.metadata.uid, Date.now())
    const view = viewOf(job, this.#podsOf(job))
    const status = jobStatus(job, {
      ...view,
      conditions: job.status?.conditions,
      counted: { succeeded: known.succeeded?.length ?? 0, failed: known.failed?.length ?? 0 },
    })
    const settled = registry.updateStatus('jobs', this.#namespace, this.#name, draft => {
      draft.status = this.#verdict(job, status, view) ?? status
    })
    this.#recordVerdict(settled)
  }

  #conclude(job: KubeObject, view: JobView): undefined {
    for (const pod of activePodsOf(this.#context, job)) deletePod(this.#context, job, pod)
    const status = jobStatus(job, { ...view, conditions: job.status?.conditions })
    const verdict = equal(status, job.status) ? this.#verdict(job, status, view) : undefined
    this.#write(job, verdict ?? status)
    if (verdict) this.#recordVerdict(this.#context.registry.get('jobs', this.#namespace, this.#name))
  }

  /** The status with Complete or Failed, once the target is set and nothing is active or terminating, before and now. */
  #verdict(job: KubeObject, status: Loose, view: JobView): Loose | undefined {
    if (view.terminating > 0 || view.active > 0 || (job.status?.terminating ?? 0) > 0) return undefined
    const target =
      findCondition(status.conditions, 'FailureTarget') ?? findCondition(status.conditions, 'SuccessCriteriaMet')
    if (!target) return undefined
    const type = target.type === 'FailureTarget' ? 'Failed' : 'Complete'
    const conditions = setCondition(status.conditions, {
      type,
      status: 'True',
      reason: target.reason,
      message: target.message,
    })
    const { startTime, conditions: _conditions, ...rest } = status
    const completion = type === 'Complete' ? { completionTime: timestamp(Date.now()) } : {}
    return { conditions, ...(startTime ? { startTime } : {}), ...completion, ...rest }
  }

  #recordVerdict(job: KubeObject): void {
    const failed = findCondition(job.status?.conditions, 'Failed')
    if (failed) this.#record(job, 'Warning', failed.reason, failed.message)
    else if (isTrue(job.status?.conditions, 'Complete')) this.#record(job, 'Normal', 'Completed', 'Job completed')
  }

  /** After the end: late finalizers go, and the Job itself after its time to live. */
  #cleanUp(job: KubeObject, pods: KubeObject[]): number | undefined {
    for (const pod of pods)
      if (hasEnded(pod) || isDeleting(pod)) this.#context.registry.removeFinalizer('pods', pod, JOB_TRACKING)
    const ttl = job.spec.ttlSecondsAfterFinished
    if (ttl === undefined || isDeleting(job)) return undefined
    const end = (job.status.conditions as Loose[]).find(
      condition => condition.type === 'Complete' || condition.type === 'Failed',
    )
    const left = Date.parse(end.lastTransitionTime) + ttl * 1000 - Date.now()
    if (left > 0) return left
    this.#context.registry.delete('jobs', this.#namespace, this.#name, { propagationPolicy: 'Foreground' })
    return undefined
  }

  #podsOf(job: KubeObject): KubeObject[] {
    return podsOf(this.#context, job)
  }

  #write(job: KubeObject, status: Loose): void {
    if (equal(job.status, status)) return
    this.#context.registry.updateStatus('jobs', this.#namespace, this.#name, draft => {
      draft.status = status
    })
  }

  #record(job: KubeObject, type: 'Normal' | 'Warning', reason: string, message: string): void {
    recordOn(this.#context, job, { type, reason, message })
  }
}
