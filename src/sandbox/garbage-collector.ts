import { type ControllerContext, isDeleting, type Stop } from './controller.ts'
import { KeyedLoop, keyOfObject } from './keyed-loop.ts'
import { resourceOfKind } from './resources.ts'
import type { KubeObject } from './types.ts'

const FOREGROUND = 'foregroundDeletion'
const ORPHAN = 'orphan'

/** The garbage collector: dependents follow their owner; foreground waits for them, orphan lets them go. */
export function startGarbageCollector(context: ControllerContext): Stop {
  const { store } = context.registry
  const loop = new KeyedLoop({
    lagMs: context.timing.controllerLagMs,
    retryMaxMs: context.timing.controllerRetryMaxMs,
    faults: context.faults,
    reconcile: key => {
      const [resource, rest] = split(key)
      const object = store.get(resource, ...split(rest))
      if (object) collect(context, resource, object)
      return undefined
    },
  })
  const add = (resource: string, object: KubeObject): void => loop.add(`${resource}/${keyOfObject(object)}`)
  const unsubscribe = store.subscribe(({ resource, object, type }) => {
    if (resource === 'events') return
    if (type === 'DELETED')
      for (const dependent of store.dependentKeys(object.metadata.uid)) add(dependent.resource, dependent.object)
    else if (isDeleting(object) || (type === 'ADDED' && object.metadata.ownerReferences)) add(resource, object)
    for (const owner of object.metadata.ownerReferences ?? []) {
      const plural = resourceOfKind(owner.kind)?.plural
      if (plural && isDeleting(object)) loop.add(`${plural}/${object.metadata.namespace ?? ''}/${owner.name}`)
      else if (plural && type === 'DELETED') loop.add(`${plural}/${object.metadata.namespace ?? ''}/${owner.name}`)
    }
  })
  return () => {
    unsubscribe()
    loop.close()
  }
}

function split(key: string): [string, string] {
  const cut = key.indexOf('/')
  return [key.slice(0, cut), key.slice(cut + 1)]
}

function collect(context: ControllerContext, resource: string, object: KubeObject): void {
  const { store } = context.registry
  const finalizers = isDeleting(object) ? (object.metadata.finalizers ?? []) : []
  if (finalizers.includes(ORPHAN)) orphan(context, resource, object)
  else if (finalizers.includes(FOREGROUND)) foreground(context, resource, object)
  else if (!isDeleting(object)) {
    const owners = object.metadata.ownerReferences ?? []
    if (owners.length > 0 && owners.every(owner => !store.has(owner.uid))) {
      context.registry.delete(resource, object.metadata.namespace, object.metadata.name, {
        propagationPolicy: 'Background',
      })
    }
  }
}

function foreground(context: ControllerContext, resource: string, owner: KubeObject): void {
  const { registry } = context
  for (const { resource: kind, object } of registry.store.dependentKeys(owner.metadata.uid)) {
    if (isDeleting(object)) continue
    const hasDependents = registry.store.dependentKeys(object.metadata.uid).length > 0
    registry.delete(kind, object.metadata.namespace, object.metadata.name, {
      propagationPolicy: hasDependents ? 'Foreground' : 'Background',
    })
  }
  const blocking = registry.store
    .dependentKeys(owner.metadata.uid)
    .some(({ object }) =>
      object.metadata.ownerReferences?.some(ref => ref.uid === owner.metadata.uid && ref.blockOwnerDeletion),
    )
  if (!blocking) registry.removeFinalizer(resource, owner, FOREGROUND)
}

function orphan(context: ControllerContext, resource: string, owner: KubeObject): void {
  const { registry } = context
  for (const { resource: kind, object } of registry.store.dependentKeys(owner.metadata.uid)) {
    registry.update(kind, object.metadata.namespace, object.metadata.name, draft => {
      draft.metadata.ownerReferences =
        draft.metadata.ownerReferences?.filter(ref => ref.uid !== owner.metadata.uid) ?? []
    })
  }
  registry.removeFinalizer(resource, owner, ORPHAN)
}
