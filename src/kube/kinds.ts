import { ANNOTATION_NONCE, LABEL_KIND, LABEL_WORKLOAD } from '../domain/labels.ts'
import { isKind, type Kind, type RuntimeId } from '../domain/runtime-id.ts'
import type { Deployment, Job, ObjectMeta, Pod } from './objects.ts'

export type WorkloadKind = 'Deployment' | 'Job' | 'Pod'
export type WorkloadObject = Deployment | Job | Pod

const KUBE_KIND: Readonly<Record<Kind, WorkloadKind>> = { deployment: 'Deployment', job: 'Job', pod: 'Pod' }

export const kubeKindOf = (id: RuntimeId): WorkloadKind => KUBE_KIND[id.kind]

/** The nonce of the create that made it (lifecycle.md §2.4). */
export const nonceOf = (object: WorkloadObject): string | null =>
  object.metadata?.annotations?.[ANNOTATION_NONCE] ?? null

/** Narrows a search to the pods of one name; whose they are only owner references tell. */
export const podSelector = (id: RuntimeId): string => `${LABEL_WORKLOAD}=${id.name}`

export interface Controller {
  readonly kind: string
  readonly name: string
  readonly uid: string
}

/** The one owner that acts on the object; other owners are only for garbage collection. */
export function controllerOf(metadata: ObjectMeta | undefined): Controller | null {
  const found = metadata?.ownerReferences?.find(reference => reference.controller === true)
  return found === undefined ? null : { kind: found.kind, name: found.name, uid: found.uid }
}

/** A Pod that is a workload of its own, not one made by a Deployment or Job: labelled as such and without a controller. */
export const isOwnWorkload = (metadata: ObjectMeta | undefined): boolean =>
  metadata?.labels?.[LABEL_KIND] === 'pod' && controllerOf(metadata) === null

/**
 * Kind and name of the workload a pod says it belongs to. Its controller's name where that is the workload, else its
 * labels; good for waking the right key, no proof of ownership. Null = it names none.
 */
export function workloadOfPod(metadata: ObjectMeta | undefined): { kind: Kind; name: string } | null {
  const controller = controllerOf(metadata)
  if (controller?.kind === 'Job') return { kind: 'job', name: controller.name }
  const labels = metadata?.labels ?? {}
  const said = labels[LABEL_KIND] ?? ''
  const kind = controller?.kind === 'ReplicaSet' ? 'deployment' : isKind(said) ? said : null
  const name = kind === 'pod' ? metadata?.name : labels[LABEL_WORKLOAD]
  return kind === null || name === undefined || name === '' ? null : { kind, name }
}
