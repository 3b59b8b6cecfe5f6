import { type ControllerContext, isDeleting, type Stop } from './controller.ts'
import { KeyedLoop } from './keyed-loop.ts'

/** What goes after the pods, in this order. */
const CONTENT = ['replicasets', 'jobs', 'deployments', 'services', 'poddisruptionbudgets', 'resourcequotas', 'events']
/** Pause between two looks at a namespace whose content has not gone yet. */
const AGAIN_MS = 20

/** Empties a namespace that was deleted: pods first, with their grace, then the rest, then the namespace itself. */
export function startNamespaceController(context: ControllerContext): Stop {
  const { registry, timing, faults } = context
  const loop = new KeyedLoop({
    lagMs: timing.namespaceLagMs,
    retryMaxMs: timing.controllerRetryMaxMs,
    faults,
    reconcile: name => {
      const namespace = registry.store.get('namespaces', undefined, name)
      if (!namespace || !isDeleting(namespace)) return undefined
      if (!empty(context, 'pods', name)) return AGAIN_MS
      for (const resource of CONTENT) empty(context, resource, name)
      if (CONTENT.some(resource => registry.store.list(resource, name).length > 0)) return AGAIN_MS
      registry.store.remove('namespaces', namespace)
      return undefined
    },
  })
  const unsubscribe = registry.store.subscribe(({ resource, object, type }) => {
    if (resource === 'namespaces' && type === 'MODIFIED' && isDeleting(object)) loop.add(object.metadata.name)
  })
  return () => {
    unsubscribe()
    loop.close()
  }
}

/** Deletes what is there and not yet being deleted; true when nothing is left. */
function empty({ registry }: ControllerContext, resource: string, namespace: string): boolean {
  for (const object of registry.store.list(resource, namespace)) {
    if (!isDeleting(object))
      registry.delete(resource, namespace, object.metadata.name, { propagationPolicy: 'Background' })
  }
  return registry.store.list(resource, namespace).length === 0
}
