import { type ControllerContext, isDeleting } from './controller.ts'
import { timestamp } from './json.ts'
import { KeyedLoop, keyOfObject, splitKey } from './keyed-loop.ts'
import type { LogSource } from './pod-logs.ts'
import { podStatus } from './pod-status.ts'
import type { KubeObject, Loose } from './types.ts'

/** A kubelet without processes: a pod is Running and Ready as soon as it is bound, and gone as soon as it is deleted. */
export function startInstantKubelet(context: ControllerContext): LogSource & { close(): Promise<void> } {
  const { registry, timing, faults } = context
  const loop = new KeyedLoop({
    lagMs: timing.controllerLagMs,
    retryMaxMs: timing.controllerRetryMaxMs,
    faults,
    reconcile: key => {
      const pod = registry.store.get('pods', ...splitKey(key))
      if (!pod?.spec.nodeName) return undefined
      const { namespace, name } = pod.metadata
      if (isDeleting(pod)) registry.delete('pods', namespace, name, { gracePeriodSeconds: 0 })
      else if (pod.status?.phase === 'Pending') {
        registry.updateStatus('pods', namespace, name, draft => {
          draft.status = running(pod)
        })
      }
      return undefined
    },
  })
  const unsubscribe = registry.store.subscribe(({ resource, object, type }) => {
    if (resource === 'pods' && type !== 'DELETED' && object.spec.nodeName) loop.add(keyOfObject(object))
  })
  return {
    instances: () => [],
    close: async () => {
      unsubscribe()
      loop.close()
    },
  }
}

function running(pod: KubeObject): Loose {
  const now = Date.now()
  const startedAt = timestamp(now)
  const containers = pod.spec.containers.map((container: Loose) => ({
    name: container.name,
    image: container.image,
    state: { running: { startedAt } },
    lastState: undefined,
    ready: true,
    started: true,
    restartCount: 0,
  }))
  return podStatus(
    { pod, containers, startTime: startedAt, sandboxReady: true, terminating: false, holdPhase: false },
    now,
  )
}
