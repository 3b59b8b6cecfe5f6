import { timestamp } from './json.ts'
import type { Loose } from './types.ts'

export interface Condition {
  type: string
  status: 'True' | 'False' | 'Unknown'
  reason?: string
  message?: string
}

/**
 * The list with that condition. The same status and reason leave the list as it is; otherwise the condition moves to the
 * end, as the controllers of Kubernetes do it. `lastTransitionTime` changes only with the status.
 */
export function setCondition(list: Loose[] | undefined, wanted: Condition, now: number = Date.now()): Loose[] {
  const conditions = list ?? []
  const current = conditions.find(condition => condition.type === wanted.type)
  if (current && current.status === wanted.status && current.reason === wanted.reason) return conditions
  return [...conditions.filter(condition => condition.type !== wanted.type), withTime(wanted, current, now)]
}

/** The condition in the order of its fields on the wire; keeps the transition time of `current` if its status is the same. */
export function withTime({ type, status, reason, message }: Condition, current: Loose | undefined, now: number): Loose {
  return {
    type,
    status,
    lastTransitionTime: current?.status === status ? current.lastTransitionTime : timestamp(now),
    ...(reason ? { reason } : {}),
    ...(message ? { message } : {}),
  }
}

export const findCondition = (list: Loose[] | undefined, type: string): Loose | undefined =>
  list?.find(condition => condition.type === type)

export const isTrue = (list: Loose[] | undefined, type: string): boolean => findCondition(list, type)?.status === 'True'
