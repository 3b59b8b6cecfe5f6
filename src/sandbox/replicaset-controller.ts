import { setCondition } from './conditions.ts'
import {
  type ControllerContext,
  controlledBy,
  controlledObjects,
  controllerOf,
  hasEnded,
  isDeleting,
  isReadyPod,
  type Stop,
  withoutZeros,
} from './controller.ts'
import { equal } from './json.ts'
import { KeyedLoop, keyOfObject, splitKey } from './keyed-loop.ts'
import { matchesSelector } from './selectors.ts'
import { StatusError } from './status-error.ts'
import type { KubeObject, Loose } from './types.ts'

/** The ReplicaSet controller: keeps the number of pods, adopts matching ones, tells of failures by a condition and Events. */
export function startReplicaSetController(context: ControllerContext): Stop {
  const loop = new KeyedLoop({
    lagMs: context.timing.controllerLagMs,
    retryMaxMs: context.timing.controllerRetryMaxMs,
    faults: context.faults,
    reconcile: key => {
      sync(context, key)
      return undefined
    },
  })
  const unsubscribe = context.registry.store.subscribe(({ resource, object, type }) => {
    if (resource === 'replicasets' && type !== 'DELETED') loop.add(keyOfObject(object))
    if (resource !== 'pods') return
    const owner = controllerOf(object)
    if (owner?.kind === 'ReplicaSet') loop.add(`${object.metadata.namespace}/${owner.name}`)
  })
  return () => {
    unsubscribe()
    loop.close()
  }
}

function sync(context: ControllerContext, key: string): void {
  const [namespace, name] = splitKey(key)
  const set = context.registry.store.get('replicasets', namespace, name)
  if (!set) return
  if (!isDeleting(set)) adopt(context, set)
  const pods = controlledObjects(context, set, 'pods')
  const active = pods.filter(pod => !hasEnded(pod) && !isDeleting(pod))
  let failure: StatusError | undefined
  if (!isDeleting(set)) {
    try {
      manage(context, set, active)
    } catch (error) {
      if (!(error instanceof StatusError)) throw error
      failure = error
    }
  }
  writeStatus(context, set, statusOf(set, { active, pods, failure }))
  if (failure) throw failure
}

/** Pods without an owner that match become this set's. */
function adopt(context: ControllerContext, set: KubeObject): void {
  const namespace = set.metadata.namespace!
  for (const pod of context.registry.store.orphans('pods', namespace)) {
    if (isDeleting(pod) || hasEnded(pod) || !matchesSelector(set.spec.selector, pod.metadata.labels)) continue
    context.registry.update('pods', namespace, pod.metadata.name, draft => {
      draft.metadata.ownerReferences = [controlledBy('replicasets', set)]
    })
  }
}

function manage(context: ControllerContext, set: KubeObject, active: KubeObject[]): void {
  const missing = set.spec.replicas - active.length
  for (let made = 0; made < missing; made++) createPod(context, set)
  if (missing >= 0) return
  const surplus = [...active].sort(byWorth).slice(0, -missing)
  for (const pod of surplus) {
    context.registry.delete('pods', pod.metadata.namespace, pod.metadata.name)
    record(context, set, { type: 'Normal', reason: 'SuccessfulDelete', message: `Deleted pod: ${pod.metadata.name}` })
  }
}

function createPod(context: ControllerContext, set: KubeObject): void {
  const { metadata, spec } = set.spec.template
  try {
    const pod = context.registry.create('pods', set.metadata.namespace, {
      metadata: {
        generateName: `${set.metadata.name}-`,
        labels: metadata?.labels,
        annotations: metadata?.annotations,
        ownerReferences: [controlledBy('replicasets', set)],
      },
      spec,
    })
    record(context, set, { type: 'Normal', reason: 'SuccessfulCreate', message: `Created pod: ${pod.metadata.name}` })
  } catch (error) {
    if (!(error instanceof StatusError)) throw error
    if (isTerminating(error)) return
    record(context, set, { type: 'Warning', reason: 'FailedCreate', message: `Error creating: ${error.message}` })
    throw error
  }
}

/** Is the failure only that the namespace goes? For real controllers that is no failure: no Event, no condition. */
export const isTerminating = (error: StatusError): boolean =>
  error.details?.causes?.some(cause => cause.reason === 'NamespaceTerminating') ?? false

function record(
  context: ControllerContext,
  set: KubeObject,
  event: { type: 'Normal' | 'Warning'; reason: string; message: string },
): void {
  context.events.record({ resource: 'replicasets', object: set, component: 'replicaset-controller', ...event })
}

/** Which pod goes first: without node, pending, not ready, newest. */
function byWorth(a: KubeObject, b: KubeObject): number {
  const worth = (pod: KubeObject): number =>
    (pod.spec.nodeName ? 4 : 0) + (pod.status?.phase === 'Running' ? 2 : 0) + (isReadyPod(pod) ? 1 : 0)
  return worth(a) - worth(b) || Number(b.metadata.resourceVersion) - Number(a.metadata.resourceVersion)
}

function statusOf(
  set: KubeObject,
  seen: { active: KubeObject[]; pods: KubeObject[]; failure: StatusError | undefined },
): Loose {
  const ready = seen.active.filter(isReadyPod).length
  const counts = {
    replicas: seen.active.length,
    fullyLabeledReplicas: seen.active.filter(pod =>
      matchesSelector({ matchLabels: set.spec.template.metadata?.labels }, pod.metadata.labels),
    ).length,
    readyReplicas: ready,
    availableReplicas: ready,
    terminatingReplicas: seen.pods.filter(pod => isDeleting(pod) && !hasEnded(pod)).length,
    observedGeneration: set.metadata.generation,
  }
  const conditions = failureConditions(set, seen.failure)
  return {
    ...withoutZeros(counts, ['replicas', 'terminatingReplicas']),
    ...(conditions.length > 0 ? { conditions } : {}),
  }
}

function failureConditions(set: KubeObject, failure: StatusError | undefined): Loose[] {
  const before: Loose[] = set.status?.conditions ?? []
  if (!failure) return before.filter(condition => condition.type !== 'ReplicaFailure')
  return setCondition(before, {
    type: 'ReplicaFailure',
    status: 'True',
    reason: 'FailedCreate',
    message: failure.message,
  })
}

function writeStatus(context: ControllerContext, set: KubeObject, status: Loose): void {
  if (equal(set.status, status)) return
  context.registry.updateStatus('replicasets', set.metadata.namespace, set.metadata.name, draft => {
    draft.status = status
  })
}
