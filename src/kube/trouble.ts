import type { Trouble, TroubleCause } from '../domain/observation.ts'
import { TROUBLE_CAUSES } from '../domain/observation.ts'
import type { ClusterEvent, Pod } from './objects.ts'
import { type Conditions, type ContainerStatus, conditionsOf, mainAndInit, millis } from './status.ts'

/** lifecycle.md §8, word for word. */
const WAITING: Readonly<Record<string, TroubleCause>> = {
  ErrImagePull: 'image',
  ImagePullBackOff: 'image',
  InvalidImageName: 'image',
  ErrImageNeverPull: 'image',
  ImageInspectError: 'image',
  RegistryUnavailable: 'image',
  CreateContainerConfigError: 'config',
  CreateContainerError: 'config',
  RunContainerError: 'config',
  CrashLoopBackOff: 'crash',
}
const TERMINATED: Readonly<Record<string, TroubleCause>> = {
  StartError: 'config',
  ContainerCannotRun: 'config',
  OOMKilled: 'oom',
}
const POD_REASON: Readonly<Record<string, TroubleCause>> = {
  Evicted: 'evicted',
  Preempting: 'evicted',
  OutOfcpu: 'rejected',
  OutOfmemory: 'rejected',
  OutOfpods: 'rejected',
  NodeAffinity: 'rejected',
  Shutdown: 'rejected',
  NodeShutdown: 'rejected',
  Terminated: 'rejected',
  UnexpectedAdmissionError: 'rejected',
  NodeLost: 'node',
}
const UNSCHEDULED = ['Unschedulable', 'SchedulingGated']
/** On the way, no trouble. */
const ON_THE_WAY = ['ContainerCreating', 'PodInitializing']
/** How long past its deletionTimestamp a pod is before its node is doubted. */
const OVERDUE_MS = 60_000

const HINTS: Readonly<Record<TroubleCause, string>> = {
  image: 'See whether the image name and tag exist, and whether the registry needs imagePullSecrets.',
  config:
    'See whether the command exists in the image, and that what the container refers to (user, volumes) is there.',
  oom: 'It used more memory than its limit; raise "memory", or have the program use less.',
  crash: 'The program ends again and again; its logs with previous=true show its last words.',
  scheduling: 'No node fits: lower "cpu" or "memory", loosen "schedulingConstraints", or add a node.',
  evicted: 'The cluster took it off its node; see the node for pressure, a drain or a preemption.',
  rejected: 'The node refused the pod; see its free resources and its state, then start it again.',
  node: 'The node has not been heard of; see whether it is up and reaches the API server.',
  create: 'The cluster refuses to make its pods; see quotas, LimitRanges and admission webhooks of the namespace.',
  podStart: 'The node cannot make the container yet; see volumes, secrets and the network of the node.',
  others: 'Others changed the workload; see what controls it besides this daemon.',
  other: '',
}

interface Text {
  readonly reason: string
  readonly message?: string | null | undefined
  readonly at?: number | null
  readonly pod?: string | null
  readonly quiet?: boolean
}

/** A trouble with the hint of its cause. */
export function trouble(cause: TroubleCause, { reason, message, at, pod, quiet }: Text): Trouble {
  return {
    cause,
    reason,
    message: message || null,
    hint: HINTS[cause] || null,
    quiet: quiet === true || cause === 'other',
    at: at ?? null,
    pod: pod ?? null,
  }
}

/** In the order of §8; one of each cause, the one of the newest pod. */
export function inOrder(found: readonly Trouble[]): Trouble[] {
  return TROUBLE_CAUSES.flatMap(
    cause => found.find(one => one.cause === cause && !one.quiet) ?? found.find(one => one.cause === cause) ?? [],
  )
}

/**
 * What keeps the pods of a workload from running (§8), newest pod first. Terminating pods count only for what was done
 * to them by others; ended ones only until a newer pod is ready.
 */
export function podTroubles(pods: readonly Pod[], now: number): Trouble[] {
  const newestFirst = [...pods].sort((a, b) => madeAt(b) - madeAt(a))
  const ready = newestFirst.findIndex(pod => conditionsOf(pod).isTrue('Ready') && !pod.metadata?.deletionTimestamp)
  return newestFirst.flatMap((pod, index) => {
    const passed = isEnded(pod) && ready !== -1 && index > ready
    return passed ? [] : troublesOfPod(pod, now)
  })
}

const madeAt = (pod: Pod): number => millis(pod.metadata?.creationTimestamp) ?? 0
const isEnded = ({ status }: Pod): boolean => status?.phase === 'Succeeded' || status?.phase === 'Failed'

function troublesOfPod(pod: Pod, now: number): Trouble[] {
  const conditions = conditionsOf(pod)
  const byOthers = [...evicted(pod, conditions), ...nodeLost(pod, conditions, now)]
  if (pod.metadata?.deletionTimestamp) return byOthers
  const containers = mainAndInit(pod).flatMap(status => troublesOfContainer(status, pod))
  return [...containers, ...scheduling(pod, conditions), ...podReason(pod), ...byOthers]
}

function troublesOfContainer(status: ContainerStatus, pod: Pod): Trouble[] {
  const uid = pod.metadata?.uid ?? null
  const { state, lastState, restartCount = 0, ready } = status
  const found: Trouble[] = []
  const waiting = state?.waiting
  if (waiting?.reason && !ON_THE_WAY.includes(waiting.reason)) {
    found.push(
      trouble(WAITING[waiting.reason] ?? 'other', { reason: waiting.reason, message: waiting.message, pod: uid }),
    )
  }
  for (const ended of [state?.terminated, lastState?.terminated]) {
    const cause = TERMINATED[ended?.reason ?? '']
    if (cause === undefined || !ended?.reason) continue
    found.push(trouble(cause, { reason: ended.reason, message: ended.message, at: millis(ended.finishedAt), pod: uid }))
  }
  const betweenTries = restartCount > 0 && (state?.terminated || (state?.running && !ready && lastState?.terminated))
  if (betweenTries && pod.status?.phase !== 'Succeeded') {
    const last = state?.terminated ?? lastState?.terminated
    found.push(trouble('crash', { reason: last?.reason || 'Error', message: last?.message, pod: uid, quiet: true }))
  }
  return found
}

function scheduling(pod: Pod, conditions: Conditions): Trouble[] {
  const { status, reason = '', message, lastTransitionTime } = conditions.get('PodScheduled') ?? {}
  if (status !== 'False' || !UNSCHEDULED.includes(reason)) return []
  return [trouble('scheduling', { reason, message, at: millis(lastTransitionTime), pod: pod.metadata?.uid ?? null })]
}

function podReason({ metadata, status }: Pod): Trouble[] {
  const reason = status?.reason
  if (!reason) return []
  const cause = POD_REASON[reason] ?? 'other'
  return cause === 'evicted' || cause === 'node'
    ? []
    : [trouble(cause, { reason, message: status?.message, pod: metadata?.uid ?? null })]
}

function evicted({ metadata, status }: Pod, conditions: Conditions): Trouble[] {
  const pod = metadata?.uid ?? null
  const target = conditions.get('DisruptionTarget')
  const { reason, message } = status ?? {}
  if (reason && POD_REASON[reason] === 'evicted') return [trouble('evicted', { reason, message, pod })]
  if (target?.status !== 'True') return []
  const at = millis(target.lastTransitionTime)
  return [trouble('evicted', { reason: target.reason || 'DisruptionTarget', message: target.message, at, pod })]
}

function nodeLost(pod: Pod, conditions: Conditions, now: number): Trouble[] {
  const { metadata, status } = pod
  const uid = metadata?.uid ?? null
  if (isEnded(pod)) return []
  if (status?.reason === 'NodeLost' || status?.phase === 'Unknown') {
    return [trouble('node', { reason: 'NodeLost', message: status.message, pod: uid })]
  }
  const ready = conditions.get('Ready')
  if (ready?.status === 'False' && !ready.reason && conditions.isTrue('ContainersReady')) {
    const at = millis(ready.lastTransitionTime)
    return [trouble('node', { reason: 'NodeNotReady', message: ready.message, at, pod: uid })]
  }
  const due = millis(metadata?.deletionTimestamp)
  if (due === null || now < due + OVERDUE_MS) return []
  return [trouble('node', { reason: 'NodeNotReady', message: 'the pod should have ended long ago', at: due, pod: uid })]
}

/** The newest Warning Event of a workload without pods (`create`), or of a pod that is not made (`podStart`). */
export function eventTroubles(
  events: readonly ClusterEvent[],
  cause: 'create' | 'podStart',
  pod: string | null,
): Trouble[] {
  const warnings = events.filter(event => event.type === 'Warning' && event.reason)
  const newest = warnings.sort((a, b) => (eventTime(b) ?? 0) - (eventTime(a) ?? 0))[0]
  if (newest?.reason === undefined) return []
  return [trouble(cause, { reason: newest.reason, message: newest.message, at: eventTime(newest), pod })]
}

const eventTime = ({ lastTimestamp, eventTime, firstTimestamp, metadata }: ClusterEvent): number | null =>
  millis(lastTimestamp) ?? millis(eventTime) ?? millis(firstTimestamp) ?? millis(metadata.creationTimestamp)
