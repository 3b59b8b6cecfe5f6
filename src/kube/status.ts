import type { Pod } from './objects.ts'

/** RFC 3339 text to ms; null for what is absent or no time. Whole seconds are all the API server gives. */
export function millis(time: string | null | undefined): number | null {
  if (!time) return null
  const ms = Date.parse(time)
  return Number.isNaN(ms) ? null : ms
}

export interface StatusCondition {
  readonly type: string
  readonly status: string
  readonly reason?: string
  readonly message?: string
  readonly lastTransitionTime?: string
}

/** Conditions by type: their order changes from one status to the next. */
export interface Conditions {
  get(type: string): StatusCondition | undefined
  isTrue(type: string): boolean
}

export function conditionsOf({ status }: { status?: { conditions?: readonly StatusCondition[] } }): Conditions {
  const get = (type: string) => status?.conditions?.find(condition => condition.type === type)
  return { get, isTrue: type => get(type)?.status === 'True' }
}

export type ContainerStatus = NonNullable<NonNullable<Pod['status']>['containerStatuses']>[number]

const MAIN = 'main'

/** The container that is the workload: `main`, or the first of a pod that was not built here. */
export function mainStatus({ status }: Pod): ContainerStatus | undefined {
  return status?.containerStatuses?.find(({ name }) => name === MAIN) ?? status?.containerStatuses?.[0]
}

/** Init containers count like `main` for what keeps a pod from running; other containers do not. */
export function mainAndInit(pod: Pod): ContainerStatus[] {
  const main = mainStatus(pod)
  return [...(main === undefined ? [] : [main]), ...(pod.status?.initContainerStatuses ?? [])]
}
