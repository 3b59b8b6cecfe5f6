import { areSame, intern, same, shared } from './intern.ts'
import type { Deployment, Job, KubeObjects, ObjectMeta, Pod } from './objects.ts'
import { type KnownMeta, trimMeta } from './trim-meta.ts'

/**
 * Objects as they are cached: 100,000 Deployments and as many Pods are to fit into 300 MB, so what repeats is kept once.
 */

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

/** `previous` is the cached record of the same uid, if there is one: what did not change is taken from it. */
export function trimDeployment(object: Deployment, previous?: DeploymentRecord): DeploymentRecord {
  const { spec } = object
  const containers = spec?.template?.spec?.containers ?? []
  const before = previous?.spec
  const same =
    before && before.replicas === spec?.replicas && areSame(before.template?.spec?.containers, containers, isContainer)
  return {
    metadata: trimMeta(object, previous?.metadata),
    spec: same ? before : deploymentSpec(spec?.replicas, containers),
    status: trimDeploymentStatus(object.status, previous?.status),
  } as DeploymentRecord
}

const deploymentSpec = (replicas: number | undefined, containers: Containers) =>
  shared(`deployment spec ${replicas} ${keyOf(containers)}`, () => ({ replicas, template: trimTemplate(containers) }))

type DeploymentStatus = Deployment['status']

/** Deployments that are well are well in the same way: they share one status. */
function trimDeploymentStatus(status: DeploymentStatus, previous: DeploymentStatus): DeploymentStatus {
  const conditions = trimConditions(status?.conditions, previous?.conditions)
  if (previous && conditions === previous.conditions && COUNTS.every(name => previous[name] === status?.[name])) {
    return previous
  }
  const trimmed = {
    observedGeneration: status?.observedGeneration,
    replicas: status?.replicas,
    updatedReplicas: status?.updatedReplicas,
    readyReplicas: status?.readyReplicas,
    availableReplicas: status?.availableReplicas,
    unavailableReplicas: status?.unavailableReplicas,
    ...(status?.terminatingReplicas === undefined ? {} : { terminatingReplicas: status.terminatingReplicas }),
    conditions,
  } as DeploymentStatus
  if (!conditions?.every(({ lastTransitionTime }) => lastTransitionTime === undefined)) return trimmed
  return shared(`deployment status ${JSON.stringify(trimmed)}`, () => trimmed as object) as DeploymentStatus
}

const COUNTS = [
  'observedGeneration',
  'replicas',
  'updatedReplicas',
  'readyReplicas',
  'availableReplicas',
  'unavailableReplicas',
  'terminatingReplicas',
] as const

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
      conditions: trimConditions(status?.conditions, undefined),
    },
  } as JobRecord
}

/** `previous` is the cached record of the same uid, if there is one. */
export function trimPod(object: Pod, previous?: PodRecord): PodRecord {
  const { spec, status } = object
  const askedAt = previous?.runtimedDeletionAskedAt ?? deletionAskedAt(object.metadata)
  const record = {
    metadata: trimMeta(object, previous?.metadata),
    spec: trimPodSpec(spec, previous?.spec),
    status: trimPodStatus(status, previous?.status),
  } as PodRecord
  return askedAt === undefined ? record : { ...record, runtimedDeletionAskedAt: askedAt }
}

function trimPodSpec(spec: Pod['spec'], previous: Pod['spec']): Pod['spec'] {
  const { nodeName, terminationGracePeriodSeconds, restartPolicy, containers = [] } = spec ?? {}
  if (
    previous &&
    previous.nodeName === nodeName &&
    previous.terminationGracePeriodSeconds === terminationGracePeriodSeconds &&
    previous.restartPolicy === restartPolicy &&
    areSame(previous.containers, containers, isContainer)
  ) {
    return previous
  }
  const key = `pod spec ${nodeName} ${terminationGracePeriodSeconds} ${restartPolicy} ${keyOf(containers)}`
  return shared(key, () => {
    return { nodeName, terminationGracePeriodSeconds, restartPolicy, containers: trimContainers(containers) }
  }) as Pod['spec']
}

function trimPodStatus(status: Pod['status'], previous: Pod['status']): Pod['status'] {
  const trimmed = {
    phase: intern(status?.phase),
    podIP: same(status?.podIP, previous?.podIP),
    startTime: intern(status?.startTime),
    conditions: trimConditions(status?.conditions?.filter(isPodNews), previous?.conditions),
    containerStatuses: trimContainerStatuses(status?.containerStatuses, previous?.containerStatuses),
  } as NonNullable<Pod['status']>
  if (status?.reason) trimmed.reason = intern(status.reason)
  if (status?.message) trimmed.message = intern(status.message)
  if (status?.observedGeneration !== undefined) trimmed.observedGeneration = status.observedGeneration
  if (status?.initContainerStatuses) {
    trimmed.initContainerStatuses = trimContainerStatuses(status.initContainerStatuses, previous?.initContainerStatuses)
  }
  return trimmed
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

function trimConditions<T extends Condition>(all: T[] | undefined, previous: T[] | undefined): T[] | undefined {
  if (!all) return undefined
  const trimmed = all.map((condition, n) => trimCondition(condition, previous?.[n])) as T[]
  if (areSame(previous, trimmed, Object.is)) return previous
  if (!trimmed.every(isShort)) return trimmed
  return shared(`conditions ${trimmed.map(conditionKey).join('\n')}`, () => trimmed)
}

/** Without a text of its own: others will be like it. */
const isShort = ({ message }: Condition): boolean => !message

const conditionKey = ({ type, status, reason, message, lastTransitionTime }: Condition): string =>
  `${type} ${status} ${reason} ${message} ${lastTransitionTime}`

function trimCondition(condition: Condition, previous: Condition | undefined): Condition {
  const { type, status, reason, message, lastTransitionTime } = condition
  const quiet = status === 'True' && QUIET.has(type)
  if (previous && previous.type === type && previous.status === status && previous.reason === reason) {
    if (quiet) return previous
    if (previous.message === message && previous.lastTransitionTime === lastTransitionTime) return previous
  }
  if (quiet) return shared(`${type} ${reason}`, () => ({ type, status, reason }) as Condition)
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

const isContainer = (a: { name: string; image?: string }, b: { name: string; image?: string }): boolean =>
  a.name === b.name && a.image === b.image

const keyOf = (containers: Containers): string => containers.map(({ name, image }) => `${name} ${image}`).join('\n')

function trimContainers(containers: Containers | undefined): { name: string; image: string | undefined }[] {
  const all = containers ?? []
  return shared(`containers ${keyOf(all)}`, () => all.map(({ name, image }) => ({ name, image })))
}

function trimTemplate(containers: Containers | undefined) {
  const all = containers ?? []
  return shared(`template ${keyOf(all)}`, () => ({ spec: { containers: trimContainers(all) } }))
}

function trimContainerStatuses(all: ContainerStatus[] | undefined, previous: ContainerStatus[] | undefined) {
  if (!all) return undefined
  if (areSame(previous, all, isContainerStatus)) return previous
  const make = (): ContainerStatus[] => all.map(trimContainerStatus) as ContainerStatus[]
  return all.every(isRunning) ? shared(`running ${all.map(runningKey).join('\n')}`, make) : make()
}

/** Running, and never ended before. */
const isRunning = ({ state, lastState }: ContainerStatus): boolean => Boolean(state?.running) && isEmpty(lastState)

const runningKey = ({ name, image, ready, restartCount, state }: ContainerStatus): string =>
  `${name} ${image} ${ready} ${restartCount} ${state?.running?.startedAt}`

/** Of containers that run and never ended before, which most do; others are made anew. */
const isContainerStatus = (a: ContainerStatus, b: ContainerStatus): boolean =>
  isRunning(a) &&
  isRunning(b) &&
  a.state?.running?.startedAt === b.state?.running?.startedAt &&
  a.ready === b.ready &&
  a.restartCount === b.restartCount &&
  isContainer(a, b)

function isEmpty(object: object | undefined): boolean {
  for (const _ in object) return false
  return true
}

function trimContainerStatus({ name, image, state, lastState, ready, restartCount }: ContainerStatus) {
  return {
    name: intern(name),
    image: intern(image),
    ready,
    restartCount,
    state: trimState(state),
    lastState: isEmpty(lastState) ? undefined : trimState(lastState),
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
