import { setCondition } from './conditions.ts'
import { parseQuantity } from './quantity.ts'
import type { Registry } from './registry.ts'
import type { RequestFacts } from './request.ts'
import { matchesSelector } from './selectors.ts'
import { methodNotAllowed, StatusError } from './status-error.ts'
import type { KubeObject, Loose } from './types.ts'

/** The Eviction API: 429 when a PodDisruptionBudget forbids it, else the condition DisruptionTarget and a graceful delete. */
export function evictPod(registry: Registry, facts: RequestFacts, body: Loose): Loose {
  if (facts.verb !== 'create') throw methodNotAllowed()
  const pod = registry.get('pods', facts.namespace, facts.name!)
  const ended = pod.status?.phase === 'Succeeded' || pod.status?.phase === 'Failed'
  if (!ended) {
    checkBudgets(registry, pod)
    registry.updateStatus('pods', facts.namespace, facts.name!, draft => {
      draft.status.conditions = setCondition(draft.status.conditions, {
        type: 'DisruptionTarget',
        status: 'True',
        reason: 'EvictionByEvictionAPI',
        message: 'Eviction API: evicting',
      })
    })
  }
  registry.delete('pods', facts.namespace, facts.name!, body?.deleteOptions ?? {})
  return { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', code: 201 }
}

function checkBudgets(registry: Registry, pod: KubeObject): void {
  const namespace = pod.metadata.namespace!
  for (const budget of registry.store.list('poddisruptionbudgets', namespace)) {
    if (!matchesSelector(budget.spec?.selector, pod.metadata.labels)) continue
    const covered = registry.store
      .list('pods', namespace)
      .filter(other => matchesSelector(budget.spec.selector, other.metadata.labels))
    const healthy = covered.filter(isReady).length
    const needed = neededHealthy(budget.spec, covered.length)
    if (!isReady(pod) || healthy > needed) continue
    throw new StatusError(429, 'TooManyRequests', "Cannot evict pod as it would violate the pod's disruption budget.", {
      causes: [
        {
          reason: 'DisruptionBudget',
          message: `The disruption budget ${budget.metadata.name} needs ${needed} healthy pods and has ${healthy} currently`,
        },
      ],
    })
  }
}

function neededHealthy(spec: Loose, count: number): number {
  const amount = (value: Loose): number =>
    String(value).endsWith('%') ? Math.ceil((count * Number.parseFloat(value)) / 100) : (parseQuantity(value) ?? 0)
  return spec.minAvailable !== undefined ? amount(spec.minAvailable) : count - amount(spec.maxUnavailable ?? 1)
}

const isReady = (pod: KubeObject): boolean =>
  (pod.status?.conditions ?? []).some((condition: Loose) => condition.type === 'Ready' && condition.status === 'True')
