import { MAIN_CONTAINER } from './build-pod-spec.ts'
import type { Pod } from './objects.ts'

type ContainerStatus = NonNullable<NonNullable<Pod['status']>['containerStatuses']>[number]

/** One container of one pod, and whether there can be a log of it. */
export interface LogTarget {
  readonly pod: Pod
  readonly container: string
  /** waiting: it may come. never: its pod has ended without it. */
  readonly state: 'readable' | 'waiting' | 'never'
  /** Of what is not readable. */
  readonly reason: string | null
  readonly message: string | null
  /** Tells one run of the container from the next. */
  readonly instance: string
}

const DEFAULT_CONTAINER = 'kubectl.kubernetes.io/default-container'

/** `asked` of a container that the pod does not have counts as readable: the cluster has the words for it. `asked` null: `main`; a workload not of our making may have none, then its own default, then its first. */
export function targetOf(pod: Pod, asked: string | null): LogTarget {
  const container = asked ?? defaultContainer(pod)
  const status = statusOf(pod, container)
  const common = { pod, container, instance: instanceOf(status) }
  const { running, terminated, waiting } = status?.state ?? {}
  if (running || terminated || status?.lastState?.terminated || !has(pod, container)) {
    return { ...common, state: 'readable', reason: null, message: null }
  }
  const unscheduled = pod.status?.conditions?.find(({ type, status }) => type === 'PodScheduled' && status === 'False')
  const reason = waiting?.reason ?? pod.status?.reason ?? unscheduled?.reason ?? pod.status?.phase ?? null
  const message = waiting?.message ?? pod.status?.message ?? unscheduled?.message ?? null
  return { ...common, state: hasEnded(pod) ? 'never' : 'waiting', reason, message }
}

/** Which of `instance`'s logs is left: `current` while it runs, `last` when it has just ended, `previous` once another has begun. */
export function remainsOf(target: LogTarget, instance: string): 'current' | 'last' | 'previous' | 'none' {
  const status = statusOf(target.pod, target.container)
  const isCurrent = target.instance === instance
  if (isCurrent && status?.state?.running && !hasEnded(target.pod)) return 'current'
  if (isCurrent) return 'last'
  return status?.lastState?.terminated?.containerID === instance ? 'previous' : 'none'
}

const hasEnded = (pod: Pod): boolean => pod.status?.phase === 'Succeeded' || pod.status?.phase === 'Failed'

function has({ spec }: Pod, container: string): boolean {
  const all = [spec?.containers, spec?.initContainers, spec?.ephemeralContainers]
  return all.some(some => some?.some(({ name }) => name === container))
}

function defaultContainer(pod: Pod): string {
  const names = (pod.spec?.containers ?? []).map(({ name }) => name)
  if (names.includes(MAIN_CONTAINER)) return MAIN_CONTAINER
  const named = pod.metadata?.annotations?.[DEFAULT_CONTAINER]
  return named !== undefined && names.includes(named) ? named : (names[0] ?? MAIN_CONTAINER)
}

function statusOf({ status }: Pod, container: string): ContainerStatus | undefined {
  const all = [status?.containerStatuses, status?.initContainerStatuses, status?.ephemeralContainerStatuses]
  return all.flatMap(some => some ?? []).find(({ name }) => name === container)
}

/** Of the container whose log the kubelet serves: the running one, else the last that ended. */
function instanceOf(status: ContainerStatus | undefined): string {
  const id = status?.state?.running
    ? status.containerID
    : (status?.state?.terminated?.containerID ?? status?.lastState?.terminated?.containerID)
  return id || String(status?.restartCount ?? 0)
}
