import { areSame, intern, internLabels, same } from './intern.ts'
import type { ObjectMeta } from './objects.ts'

/** What every cached object has. */
export type KnownMeta = ObjectMeta & { name: string; namespace: string; uid: string; resourceVersion: string }

/** What is kept of an object's metadata; `previous` is that of the cached record of the same uid. */
export function trimMeta({ metadata }: { metadata?: ObjectMeta }, previous?: KnownMeta): KnownMeta {
  const from = metadata as KnownMeta
  const name = same(from.name, previous?.name)
  const owners = from.ownerReferences
  const meta: KnownMeta = {
    name,
    namespace: intern(from.namespace),
    uid: same(from.uid, previous?.uid),
    resourceVersion: from.resourceVersion,
    generation: from.generation,
    creationTimestamp: intern(from.creationTimestamp),
    labels: trimLabels(from.labels, name, previous?.labels),
    annotations: ownAnnotations(from.annotations, previous?.annotations),
    ownerReferences: areSame(previous?.ownerReferences, owners, isOwner)
      ? previous?.ownerReferences
      : trimOwners(owners),
  }
  if (from.deletionTimestamp !== undefined) {
    meta.deletionTimestamp = from.deletionTimestamp
    meta.deletionGracePeriodSeconds = from.deletionGracePeriodSeconds
  }
  if (from.finalizers !== undefined) meta.finalizers = from.finalizers.map(intern)
  return meta
}

type OwnerReference = NonNullable<ObjectMeta['ownerReferences']>[number]

const isOwner = (a: OwnerReference, b: OwnerReference): boolean =>
  a.uid === b.uid && a.name === b.name && a.kind === b.kind && a.controller === b.controller

const trimOwners = (owners: OwnerReference[] | undefined): OwnerReference[] | undefined =>
  owners?.map(({ kind, name, uid, controller }) => ({ kind: intern(kind), name, uid, controller }) as OwnerReference)

/** The labels were decoded for us alone: what repeats in them is replaced in place. */
function trimLabels(labels: ObjectMeta['labels'], name: string, previous: ObjectMeta['labels']): ObjectMeta['labels'] {
  if (!labels || !previous) return internLabels(labels, name)
  let more = Object.keys(previous).length
  for (const key in labels) {
    if (labels[key] !== previous[key]) return internLabels(labels, name)
    more -= 1
  }
  return more === 0 ? previous : internLabels(labels, name)
}

const OWN_ANNOTATION = 'runtimed.dev/'
/** Which container a log is of, where nobody says. */
const DEFAULT_CONTAINER = 'kubectl.kubernetes.io/default-container'

function ownAnnotations(all: ObjectMeta['annotations'], previous: ObjectMeta['annotations']) {
  if (all === undefined) return undefined
  let own: Record<string, string> | undefined
  for (const name in all) {
    if (!name.startsWith(OWN_ANNOTATION) && name !== DEFAULT_CONTAINER) continue
    own ??= {}
    own[name] = same(all[name] as string, previous?.[name])
  }
  return own
}
