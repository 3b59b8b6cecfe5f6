import { findCondition, isTrue, setCondition } from './conditions.ts'
import { withoutZeros } from './controller.ts'
import { timestamp } from './json.ts'
import type { KubeObject, Loose } from './types.ts'

/** How far a rollout may stray from the wanted number of pods. */
export interface Bounds {
  maxSurge: number
  maxUnavailable: number
}

/** Percentages made numbers: surge rounded up, unavailable down, never both zero. */
export function boundsOf({ spec }: KubeObject): Bounds {
  if (spec.strategy?.type === 'Recreate' || spec.replicas === 0) return { maxSurge: 0, maxUnavailable: 0 }
  const { maxSurge, maxUnavailable } = spec.strategy?.rollingUpdate ?? {}
  const surge = portion(maxSurge ?? '25%', spec.replicas, Math.ceil)
  const unavailable = portion(maxUnavailable ?? '25%', spec.replicas, Math.floor)
  const fenced = surge === 0 && unavailable === 0 ? 1 : unavailable
  return { maxSurge: surge, maxUnavailable: Math.min(fenced, spec.replicas) }
}

function portion(value: Loose, of: number, round: (value: number) => number): number {
  return typeof value === 'number' ? value : round((Number.parseFloat(value) * of) / 100)
}

export const sum = (sets: KubeObject[], read: (set: KubeObject) => number | undefined): number =>
  sets.reduce((total, set) => total + (read(set) ?? 0), 0)

/** Counters and the condition Available, from the ReplicaSets as the controller saw them. */
export function countStatus(deployment: KubeObject, sets: KubeObject[], newSet: KubeObject | undefined): Loose {
  const available = sum(sets, set => set.status?.availableReplicas)
  const wanted = deployment.spec.replicas - boundsOf(deployment).maxUnavailable
  const conditions = setDeploymentCondition(
    deployment.status?.conditions,
    available >= wanted
      ? {
          type: 'Available',
          status: 'True',
          reason: 'MinimumReplicasAvailable',
          message: 'Deployment has minimum availability.',
        }
      : {
          type: 'Available',
          status: 'False',
          reason: 'MinimumReplicasUnavailable',
          message: 'Deployment does not have minimum availability.',
        },
  )
  const counts = {
    observedGeneration: deployment.metadata.generation,
    replicas: sum(sets, set => set.status?.replicas),
    updatedReplicas: newSet?.status?.replicas ?? 0,
    readyReplicas: sum(sets, set => set.status?.readyReplicas),
    availableReplicas: available,
    unavailableReplicas: Math.max(0, sum(sets, set => set.spec.replicas) - available),
    terminatingReplicas: sum(sets, set => set.status?.terminatingReplicas),
    collisionCount: deployment.status?.collisionCount,
  }
  const { collisionCount, ...rest } = withoutZeros(counts, ['terminatingReplicas']) as Loose
  return { ...rest, conditions, ...(collisionCount ? { collisionCount } : {}) }
}

/** The whole status after a sync that is no scaling: counters, Available, Progressing, ReplicaFailure. */
export function rolloutStatus(deployment: KubeObject, sets: KubeObject[], newSet: KubeObject, now: number): Loose {
  const status = countStatus(deployment, sets, newSet)
  status.conditions = progress(deployment, status, newSet, now)
  const failed = [newSet, ...sets].flatMap(set => findCondition(set.status?.conditions, 'ReplicaFailure') ?? [])[0]
  if (failed) {
    status.conditions = setDeploymentCondition(status.conditions, failed)
  } else status.conditions = status.conditions.filter((condition: Loose) => condition.type !== 'ReplicaFailure')
  return status
}

function progress(deployment: KubeObject, status: Loose, newSet: KubeObject, now: number): Loose[] {
  const current = findCondition(deployment.status?.conditions, 'Progressing')
  const done = (status.replicas ?? 0) === (status.updatedReplicas ?? 0) && current?.reason === 'NewReplicaSetAvailable'
  if (done) return status.conditions
  const name = newSet.metadata.name
  if (isComplete(deployment, status)) {
    return setDeploymentCondition(status.conditions, {
      type: 'Progressing',
      status: 'True',
      reason: 'NewReplicaSetAvailable',
      message: `ReplicaSet "${name}" has successfully progressed.`,
    })
  }
  if (hasProgressed(deployment.status ?? {}, status)) {
    const moved = {
      type: 'Progressing',
      status: 'True',
      reason: 'ReplicaSetUpdated',
      message: `ReplicaSet "${name}" is progressing.`,
    } as const
    const others = status.conditions.filter((condition: Loose) => condition.type !== 'Progressing')
    const since = current?.status === 'True' ? current.lastTransitionTime : timestamp(now)
    return [...others, entry(moved, since)]
  }
  if (!isTimedOut(deployment, current, now)) return status.conditions
  return setDeploymentCondition(status.conditions, {
    type: 'Progressing',
    status: 'False',
    reason: 'ProgressDeadlineExceeded',
    message: `ReplicaSet "${name}" has timed out progressing.`,
  })
}

/** Is the newest template everywhere, and available? */
export function isComplete({ spec }: KubeObject, status: Loose): boolean {
  return [status.updatedReplicas, status.replicas, status.availableReplicas].every(
    count => (count ?? 0) === spec.replicas,
  )
}

function hasProgressed(before: Loose, after: Loose): boolean {
  const old = (status: Loose): number => (status.replicas ?? 0) - (status.updatedReplicas ?? 0)
  const grew = (field: string): boolean => (after[field] ?? 0) > (before[field] ?? 0)
  return grew('updatedReplicas') || old(after) < old(before) || grew('readyReplicas') || grew('availableReplicas')
}

function isTimedOut(deployment: KubeObject, current: Loose, now: number): boolean {
  if (!current || current.reason === 'NewReplicaSetAvailable') return false
  if (current.reason === 'ProgressDeadlineExceeded') return true
  return now >= deadlineOf(deployment, current)
}

function deadlineOf(deployment: KubeObject, progressing: Loose): number {
  return Date.parse(progressing.lastUpdateTime) + deployment.spec.progressDeadlineSeconds * 1000
}

/** Milliseconds until the progress deadline is worth a look; undefined when none runs. */
export function untilDeadline(deployment: KubeObject, now: number): number | undefined {
  const progressing = findCondition(deployment.status?.conditions, 'Progressing')
  if (!progressing || !isTrue(deployment.status?.conditions, 'Progressing')) return undefined
  if (progressing.reason === 'NewReplicaSetAvailable') return undefined
  return Math.max(10, deadlineOf(deployment, progressing) - now)
}

/** `setCondition` with the lastUpdateTime that only Deployments have. */
export function setDeploymentCondition(list: Loose[] | undefined, wanted: Loose): Loose[] {
  const before = list ?? []
  const { type, status, reason, message } = wanted
  const after = setCondition(before, { type, status, reason, message })
  return after === before ? before : [...after.slice(0, -1), entry(wanted, after.at(-1)!.lastTransitionTime)]
}

function entry({ type, status, reason, message }: Loose, lastTransitionTime: string): Loose {
  return { type, status, lastUpdateTime: timestamp(Date.now()), lastTransitionTime, reason, message }
}
