import { type ControllerContext, controlledBy, controlledObjects, hasEnded, isDeleting } from './controller.ts'
import { JOB_TRACKING, type JobView } from './job-status.ts'
import { isTerminating } from './replicaset-controller.ts'
import { StatusError } from './status-error.ts'
import type { KubeObject } from './types.ts'

export const podsOf = (context: ControllerContext, job: KubeObject): KubeObject[] =>
  controlledObjects(context, job, 'pods')

export const activePodsOf = (context: ControllerContext, job: KubeObject): KubeObject[] =>
  podsOf(context, job).filter(pod => !hasEnded(pod) && !isDeleting(pod))

/** Brings the number of active pods to what the Job still needs. Gives back, not throws, what kept it from that. */
export function managePods(context: ControllerContext, job: KubeObject, view: JobView): StatusError | undefined {
  const wanted = wantedActive(job, view)
  try {
    for (let made = view.active; made < wanted; made++) createPod(context, job)
    for (const pod of activePodsOf(context, job).slice(Math.max(0, wanted))) dropPod(context, job, pod)
    return undefined
  } catch (error) {
    if (error instanceof StatusError) return error
    throw error
  }
}

function wantedActive(job: KubeObject, view: JobView): number {
  const { parallelism, completions } = job.spec
  if (completions === undefined || completions === null) return view.succeeded > 0 ? view.active : parallelism
  return Math.min(parallelism, completions - view.succeeded)
}

/** Deletes a pod that is not to be counted: its finalizer goes first. */
export function dropPod(context: ControllerContext, job: KubeObject, pod: KubeObject): void {
  context.registry.removeFinalizer('pods', pod, JOB_TRACKING)
  deletePod(context, job, pod)
}

/** Deletes a pod that will be counted as failed. */
export function deletePod(context: ControllerContext, job: KubeObject, pod: KubeObject): void {
  const { namespace, name } = pod.metadata
  if (!context.registry.store.get('pods', namespace, name)) return
  context.registry.delete('pods', namespace, name, { propagationPolicy: 'Background' })
  recordOn(context, job, { type: 'Normal', reason: 'SuccessfulDelete', message: `Deleted pod: ${name}` })
}

function createPod(context: ControllerContext, job: KubeObject): void {
  const { metadata, spec } = job.spec.template
  try {
    const pod = context.registry.create('pods', job.metadata.namespace, {
      metadata: {
        generateName: `${job.metadata.name}-`,
        labels: metadata?.labels,
        annotations: metadata?.annotations,
        ownerReferences: [controlledBy('jobs', job)],
        finalizers: [JOB_TRACKING],
      },
      spec,
    })
    recordOn(context, job, { type: 'Normal', reason: 'SuccessfulCreate', message: `Created pod: ${pod.metadata.name}` })
  } catch (error) {
    if (error instanceof StatusError && !isTerminating(error)) {
      recordOn(context, job, { type: 'Warning', reason: 'FailedCreate', message: `Error creating: ${error.message}` })
    }
    throw error
  }
}

export function recordOn(
  context: ControllerContext,
  job: KubeObject,
  event: { type: 'Normal' | 'Warning'; reason: string; message: string },
): void {
  context.events.record({ resource: 'jobs', object: job, component: 'job-controller', ...event })
}
