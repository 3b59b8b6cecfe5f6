import type { EventRecorder } from './event-recorder.ts'
import type { Faults } from './faults.ts'
import type { Registry } from './registry.ts'
import { apiVersionOf, resourceOf } from './resources.ts'
import type { KubeObject, OwnerReference, Timing } from './types.ts'

/** What every controller works with. */
export interface ControllerContext {
  registry: Registry
  events: EventRecorder
  faults: Faults
  timing: Timing
}

/** Ends a controller; it touches nothing afterwards. */
export type Stop = () => void

/** The reference a controller puts on what it makes. */
export function controlledBy(resource: string, owner: KubeObject): OwnerReference {
  const { kind } = resourceOf(resource)
  const { name, uid } = owner.metadata
  return { apiVersion: apiVersionOf(resourceOf(resource)), kind, name, uid, controller: true, blockOwnerDeletion: true }
}

export const controllerOf = (object: KubeObject): OwnerReference | undefined =>
  object.metadata.ownerReferences?.find(owner => owner.controller)

export const isDeleting = (object: KubeObject): boolean => object.metadata.deletionTimestamp !== undefined

/** Has the pod ended for good? */
export const hasEnded = (pod: KubeObject): boolean =>
  pod.status?.phase === 'Succeeded' || pod.status?.phase === 'Failed'

export const isReadyPod = (pod: KubeObject): boolean =>
  (pod.status?.conditions ?? []).some(
    (condition: { type: string; status: string }) => condition.type === 'Ready' && condition.status === 'True',
  )

/** Objects of the resource that belong to the owner. */
export function controlledObjects(context: ControllerContext, owner: KubeObject, resource: string): KubeObject[] {
  return context.registry.store
    .dependents(owner.metadata.uid, resource)
    .filter(object => controllerOf(object)?.uid === owner.metadata.uid)
}

/** An object without the fields whose value is zero, as Go leaves them out; `keep` names those that stay. */
export function withoutZeros(status: Record<string, unknown>, keep: string[]): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(status).filter(([key, value]) => value !== undefined && (value !== 0 || keep.includes(key))),
  )
}
