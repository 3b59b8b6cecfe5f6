import { setCondition } from './conditions.ts'
import { type ControllerContext, isDeleting, type Stop } from './controller.ts'
import { KeyedLoop, keyOfObject, splitKey } from './keyed-loop.ts'
import { parseQuantity } from './quantity.ts'
import { matchesExpressions } from './selectors.ts'
import type { KubeObject, Loose } from './types.ts'

/** The one node of the sandbox. */
export const NODE_NAME = 'sandbox'
const CORES = 64
const MEMORY_BYTES = 256 * 2 ** 30

/** The Node object shown by the API. */
export const NODE = {
  metadata: {
    name: NODE_NAME,
    labels: {
      'kubernetes.io/hostname': NODE_NAME,
      'kubernetes.io/os': 'linux',
      'kubernetes.io/arch': 'amd64',
    } as Record<string, string>,
  },
  spec: {},
  status: {
    capacity: { cpu: String(CORES), memory: '256Gi', pods: '100000' },
    allocatable: { cpu: String(CORES), memory: '256Gi', pods: '100000' },
    conditions: [{ type: 'Ready', status: 'True', reason: 'KubeletReady' }],
    addresses: [{ type: 'InternalIP', address: '127.0.0.1' }],
    nodeInfo: { kubeletVersion: 'v1.36.3+sandbox' },
  },
}

/** Puts each pod on the node, unless the pod alone asks for more than it has, or for another node. Pods do not add up. */
export function startScheduler(context: ControllerContext): Stop {
  const { registry, timing, faults } = context
  const loop = new KeyedLoop({
    lagMs: timing.controllerLagMs,
    retryMaxMs: timing.controllerRetryMaxMs,
    faults,
    reconcile: key => {
      const pod = registry.store.get('pods', ...splitKey(key))
      if (pod && !pod.spec.nodeName && !isDeleting(pod)) schedule(context, pod)
      return undefined
    },
  })
  const unsubscribe = registry.store.subscribe(({ resource, object, type }) => {
    if (resource === 'pods' && type !== 'DELETED' && !object.spec.nodeName) loop.add(keyOfObject(object))
  })
  return () => {
    unsubscribe()
    loop.close()
  }
}

function schedule({ registry, events }: ControllerContext, pod: KubeObject): void {
  const { namespace, name } = pod.metadata
  const misfit = whyNot(pod.spec)
  if (misfit === undefined) {
    registry.bind(pod, NODE_NAME, setCondition(pod.status?.conditions, { type: 'PodScheduled', status: 'True' }))
    events.record({
      resource: 'pods',
      object: pod,
      type: 'Normal',
      reason: 'Scheduled',
      message: `Successfully assigned ${namespace}/${name} to ${NODE_NAME}`,
      component: 'default-scheduler',
    })
    return
  }
  const message = `0/1 nodes are available: 1 ${misfit}. no new claims to deallocate, preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling.`
  const conditions = setCondition(pod.status?.conditions, {
    type: 'PodScheduled',
    status: 'False',
    reason: 'Unschedulable',
    message,
  })
  if (conditions === pod.status?.conditions) return
  events.record({
    resource: 'pods',
    object: pod,
    type: 'Warning',
    reason: 'FailedScheduling',
    message,
    component: 'default-scheduler',
  })
  registry.updateStatus('pods', namespace, name, draft => {
    draft.status = { ...draft.status, conditions }
  })
}

/** What keeps a pod off the node, in the scheduler's words; undefined when it fits. */
function whyNot(spec: Loose): string | undefined {
  const labels = NODE.metadata.labels
  const selected = Object.entries(spec.nodeSelector ?? {}).every(([key, value]) => labels[key] === value)
  const terms: Loose[] | undefined =
    spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms
  const wanted = terms === undefined || terms.some(term => matchesExpressions(term.matchExpressions, labels))
  if (!selected || !wanted) return "node(s) didn't match Pod's node affinity/selector"
  const asked = (name: string): number =>
    (spec.containers as Loose[]).reduce(
      (total, container) => total + (parseQuantity(container.resources?.requests?.[name] ?? 0) ?? 0),
      0,
    )
  const lacking = [
    asked('cpu') > CORES ? 'Insufficient cpu' : '',
    asked('memory') > MEMORY_BYTES ? 'Insufficient memory' : '',
  ].filter(Boolean)
  return lacking.length > 0 ? lacking.join(', 1 ') : undefined
}
