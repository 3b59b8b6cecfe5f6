import { intern, internLabels, shared } from './intern.ts'
import type { Deployment, Job, KubeObjects, ObjectMeta, Pod } from './objects.ts'

/**
 * Objects as they are cached: 100,000 Deployments and as many Pods are to fit into 300 MB, so what repeats is kept once.
 */

/** What every cached object has. */
export type KnownMeta = ObjectMeta & { name: string; namespace: string; uid: string; resourceVersion: string }

/** A cached object: the shape of the real one, fields that nobody here reads left out. Never change one. */
export type Trimmed<T> = T & { readonly metadata: KnownMeta }
export type DeploymentRecord = Trimmed<Deployment>
export type JobRecord = Trimmed<Job>

/**
 * `runtimedDeletionAskedAt`: when the pod's deletion was asked for (ms), as told by the first deletionTimestamp seen on it
 * less its grace. The kubelet's last delete rewrites both, so it is carried from record to record (lifecycle.md §3).
 * Absent while nobody deletes it, and when it was only ever seen with a grace of 0, which tells nothing.
 */
export type PodRecord = Trimmed<Pod> & { readonly runtimedDeletionAskedAt?: number }

/** Records by kind, for the kinds that are watched. */
export interface Records {
  Deployment: DeploymentRecord
  Job: JobRecord
  Pod: PodRecord
}

export function trimDeployment(object: Deployment): DeploymentRecord {
  const { spec } = object
  const containers = spec?.template?.spec?.containers ?? []
  return {
    metadata: trimMeta(object),
    spec: shared(`deployment spec ${spec?.replicas} ${keyOf(containers)}`, () => {
      return { replicas: spec?.replicas, template: trimTemplate(containers) }
    }),
    status: trimDeploymentStatus(object.status),
  } as DeploymentRecord
}

/** Deployments that are well are well in the same way: they share one status. */
function trimDeploymentStatus(status: Deployment['status']): Deployment['status'] {
  const conditions = status?.conditions?.map(trimCondition)
  const trimmed = {
    observedGeneration: status?.observedGeneration,
    replicas: status?.replicas,
    updatedReplicas: status?.updatedReplicas,
    readyReplicas: status?.readyReplicas,
    availableReplicas: status?.availableReplicas,
    unavailableReplicas: status?.unavailableReplicas,
    ...(status?.terminatingReplicas === undefined ? {} : { terminatingReplicas: status.terminatingReplicas }),
    conditions,
  } as Deployment['status']
  if (!conditions?.every(({ lastTransitionTime }) => lastTransitionTime === undefined)) return trimmed
  return shared(`deployment status ${JSON.stringify(trimmed)}`, () => trimmed as object) as Deployment['status']
}

export function trimJob(object: Job): JobRecord {
  const { spec, status } = object
  return {
    metadata: trimMeta(object),
    spec: {
      suspend: spec?.suspend,
      parallelism: spec?.parallelism,
      completions: spec?.completions,
      backoffLimit: spec?.backoffLimit,
      template: trimTemplate(spec?.template?.spec?.containers),
    },
    status: {
      active: status?.active,
      ready: status?.ready,
      succeeded: status?.succeeded,
      failed: status?.failed,
      terminating: status?.terminating,
      startTime: intern(status?.startTime),
      completionTime: intern(status?.completionTime),
      conditions: status?.conditions?.map(trimCondition),
    },
  } as JobRecord
}

/** `previous` is the cached record of the same uid, if there is one. */
export function trimPod(object: Pod, previous?: PodRecord): PodRecord {
  const { spec, status } = object
  const askedAt = previous?.runtimedDeletionAskedAt ?? deletionAskedAt(object.metadata)
  const record = {
    metadata: trimMeta(object),
    spec: trimPodSpec(spec),
    status: {
      phase: intern(status?.phase),
      podIP: status?.podIP,
      startTime: intern(status?.startTime),
      conditions: status?.conditions?.filter(isPodNews).map(trimCondition),
      containerStatuses: status?.containerStatuses?.map(trimContainerStatus),
      ...rareStatus(status),
    },
  } as PodRecord
  return askedAt === undefined ? record : { ...record, runtimedDeletionAskedAt: askedAt }
}

function trimPodSpec(spec: Pod['spec']) {
  const { nodeName, terminationGracePeriodSeconds, restartPolicy, containers = [] } = spec ?? {}
  const key = `pod spec ${nodeName} ${terminationGracePeriodSeconds} ${restartPolicy} ${keyOf(containers)}`
  return shared(key, () => {
    return { nodeName, terminationGracePeriodSeconds, restartPolicy, containers: trimContainers(containers) }
  })
}

/** The transform of each watched kind, as an informer wants it. */
export const TRIM = { Deployment: trimDeployment, Job: trimJob, Pod: trimPod } as const satisfies {
  [K in keyof Records]: (object: KubeObjects[K], previous?: Records[K]) => Records[K]
}

function deletionAskedAt(metadata: ObjectMeta | undefined): number | undefined {
  const grace = metadata?.deletionGracePeriodSeconds ?? 0
  if (!metadata?.deletionTimestamp || grace === 0) return undefined
  const at = Date.parse(metadata.deletionTimestamp)
  return Number.isNaN(at) ? undefined : at - grace * 1000
}

function rareStatus(status: Pod['status']) {
  return {
    ...(status?.reason ? { reason: intern(status.reason) } : {}),
    ...(status?.message ? { message: intern(status.message) } : {}),
    ...(status?.observedGeneration === undefined ? {} : { observedGeneration: status.observedGeneration }),
    ...(status?.initContainerStatuses
      ? { initContainerStatuses: status.initContainerStatuses.map(trimContainerStatus) }
      : {}),
  }
}

function trimMeta({ metadata }: { metadata?: ObjectMeta }): KnownMeta {
  const from = metadata as KnownMeta
  const meta: KnownMeta = {
    name: from.name,
    namespace: intern(from.namespace),
    uid: from.uid,
    resourceVersion: from.resourceVersion,
    generation: from.generation,
    creationTimestamp: intern(from.creationTimestamp),
    labels: internLabels(from.labels, from.name),
    annotations: ownAnnotations(from.annotations),
    ownerReferences: from.ownerReferences?.map(({ kind, name, uid, controller }) => {
      return { kind: intern(kind), name, uid, controller } as OwnerReference
    }),
  }
  if (from.deletionTimestamp !== undefined) {
    meta.deletionTimestamp = from.deletionTimestamp
    meta.deletionGracePeriodSeconds = from.deletionGracePeriodSeconds
  }
  if (from.finalizers !== undefined) meta.finalizers = from.finalizers.map(intern)
  return meta
}

type OwnerReference = NonNullable<ObjectMeta['ownerReferences']>[number]

const OWN_ANNOTATION = 'runtimed.dev/'
/** Which container a log is of, where nobody says. */
const DEFAULT_CONTAINER = 'kubectl.kubernetes.io/default-container'

function ownAnnotations(all: ObjectMeta['annotations']): ObjectMeta['annotations'] {
  if (all === undefined) return undefined
  let own: Record<string, string> | undefined
  for (const name in all) {
    if (!name.startsWith(OWN_ANNOTATION) && name !== DEFAULT_CONTAINER) continue
    own ??= {}
    own[name] = all[name] as string
  }
  return own
}

interface Condition {
  type: string
  status: string
  reason?: string
  message?: string
  lastTransitionTime?: string
}

/** Said of every pod that came up, and read by nobody. */
const isPodNews = ({ type }: Condition): boolean => type !== 'Initialized' && type !== 'PodReadyToStartContainers'

/** While these are True all is well: message and time are left out, and one object serves all. */
const QUIET = new Set(['PodScheduled', 'ContainersReady', 'Available', 'Progressing'])

function trimCondition({ type, status, reason, message, lastTransitionTime }: Condition): Condition {
  if (status === 'True' && QUIET.has(type))
    return shared(`${type} ${reason}`, () => ({ type, status, reason }) as Condition)
  return {
    type: intern(type),
    status: intern(status),
    reason: intern(reason),
    message: intern(message),
    lastTransitionTime: intern(lastTransitionTime),
  }
}

type Containers = NonNullable<Pod['spec']>['containers']
type ContainerStatus = NonNullable<NonNullable<Pod['status']>['containerStatuses']>[number]
type ContainerState = NonNullable<ContainerStatus['state']>

const keyOf = (containers: Containers): string => containers.map(({ name, image }) => `${name} ${image}`).join('\n')

function trimContainers(containers: Containers | undefined): { name: string; image: string | undefined }[] {
  const all = containers ?? []
  return shared(`containers ${keyOf(all)}`, () => all.map(({ name, image }) => ({ name, image })))
}

function trimTemplate(containers: Containers | undefined) {
  const all = containers ?? []
  return shared(`template ${keyOf(all)}`, () => ({ spec: { containers: trimContainers(all) } }))
}

function trimContainerStatus({ name, image, state, lastState, ready, restartCount }: ContainerStatus) {
  return {
    name: intern(name),
    image: intern(image),
    ready,
    restartCount,
    state: trimState(state),
    lastState: lastState && Object.keys(lastState).length > 0 ? trimState(lastState) : undefined,
  }
}

function trimState(state: ContainerState | undefined): ContainerState | undefined {
  if (state?.running) {
    const { startedAt } = state.running
    return shared(`running ${startedAt}`, () => ({ running: { startedAt } }))
  }
  if (state?.waiting)
    return { waiting: { reason: intern(state.waiting.reason), message: intern(state.waiting.message) } }
  if (!state?.terminated) return undefined
  const { exitCode, reason, message, signal, startedAt, finishedAt } = state.terminated
  return {
    terminated: {
      exitCode,
      signal,
      reason: intern(reason),
      message,
      startedAt: intern(startedAt),
      finishedAt: intern(finishedAt),
    },
  }
}
