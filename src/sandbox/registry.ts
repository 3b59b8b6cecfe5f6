import { applyDefaults, defaultSpec, labelJob, randomSuffix } from './defaults.ts'
import { clone, equal, timestamp } from './json.ts'
import type { ObjectStore } from './object-store.ts'
import { checkQuota } from './quota.ts'
import { type Resource, resourceOf } from './resources.ts'
import {
  alreadyExists,
  badRequest,
  conflict,
  forbidden,
  invalid,
  notFound,
  preconditionFailed,
} from './status-error.ts'
import type { KubeObject, Loose } from './types.ts'
import { checkTypes, validateChange, validateNew } from './validation.ts'

export interface DeleteOptions {
  propagationPolicy?: 'Foreground' | 'Background' | 'Orphan'
  gracePeriodSeconds?: number
  preconditions?: { uid?: string; resourceVersion?: string }
  dryRun?: string[]
}

/** What a DELETE led to: the object as it is now, and whether it is gone. */
export interface Deletion {
  object: KubeObject
  gone: boolean
}

const FOREGROUND = 'foregroundDeletion'
const ORPHAN = 'orphan'

/**
 * The rules of the API over the store: defaults, validation, generations, preconditions, finalizers, graceful deletion.
 * HTTP and controllers write through it alike. Every method throws StatusError as the API server would answer.
 */
export class Registry {
  readonly store: ObjectStore
  readonly #now: () => number

  constructor(store: ObjectStore, now: () => number = Date.now) {
    this.store = store
    this.#now = now
  }

  get(plural: string, namespace: string | undefined, name: string): KubeObject {
    const object = this.store.get(plural, namespace, name)
    if (!object) throw notFound(resourceOf(plural), name)
    return object
  }

  create(plural: string, namespace: string | undefined, body: Loose, dryRun = false): KubeObject {
    const resource = resourceOf(plural)
    checkTypes(resource, body)
    const draft = this.#draft(resource, namespace, body)
    const { name } = draft.metadata
    if (resource.namespaced) this.#checkNamespace(resource, namespace!, name)
    const spec = draft.spec
    applyDefaults(plural, draft)
    validateNew(resource, draft)
    const existing = this.store.get(plural, namespace, name)
    if (existing) throw alreadyExists(resource, name, existing.metadata.deletionTimestamp !== undefined)
    if (namespace !== undefined) checkQuota(this.store, resource, namespace, name)
    if (dryRun)
      return {
        ...draft,
        metadata: {
          ...draft.metadata,
          uid: '00000000-0000-0000-0000-000000000000',
          creationTimestamp: timestamp(this.#now()),
        },
      }
    return this.store.create(plural, draft, plural === 'jobs' && !spec.selector ? labelJob : undefined)
  }

  /** Replaces an object but for its status; a body with a resourceVersion must name the current one. */
  update(
    plural: string,
    namespace: string | undefined,
    name: string,
    change: (draft: KubeObject) => Loose,
  ): KubeObject {
    const resource = resourceOf(plural)
    const current = this.get(plural, namespace, name)
    const next = this.#changed(resource, current, change)
    next.status = current.status
    if (next.status === undefined) delete next.status
    defaultSpec(plural, next)
    validateChange(resource, current, next)
    if (resource.generation && !sameSpec(plural, current, next))
      next.metadata.generation = (current.metadata.generation ?? 0) + 1
    if (next.metadata.deletionTimestamp !== undefined && releasable(plural, next)) {
      return this.store.remove(plural, current)
    }
    return this.store.replace(plural, current, next)
  }

  /** Replaces the status of an object, and the annotations and finalizers of its metadata; never its spec. */
  updateStatus(
    plural: string,
    namespace: string | undefined,
    name: string,
    change: (draft: KubeObject) => Loose,
  ): KubeObject {
    const current = this.get(plural, namespace, name)
    const next = this.#changed(resourceOf(plural), current, change)
    next.spec = current.spec
    if (next.spec === undefined) delete next.spec
    next.metadata = { ...next.metadata, labels: current.metadata.labels ?? {} }
    return this.store.replace(plural, current, next)
  }

  /** Gives a pod its node, as the scheduler does: no new generation. */
  bind(pod: KubeObject, nodeName: string, conditions: Loose[]): void {
    const draft = clone(pod)
    draft.spec.nodeName = nodeName
    draft.status = { ...draft.status, conditions }
    this.store.replace('pods', pod, draft)
  }

  /** Sets `spec.replicas`; the same number is no change. */
  scale(plural: string, namespace: string, name: string, replicas: number): KubeObject {
    return this.update(plural, namespace, name, draft => {
      draft.spec.replicas = replicas
    })
  }

  delete(plural: string, namespace: string | undefined, name: string, options: DeleteOptions = {}): Deletion {
    const resource = resourceOf(plural)
    const current = this.get(plural, namespace, name)
    checkPreconditions(resource, current, options)
    if (options.dryRun?.length) return { object: current, gone: false }
    if (plural === 'namespaces') return { object: this.#terminateNamespace(current), gone: false }
    const draft = clone(current)
    const grace = plural === 'pods' ? podGrace(current, options.gracePeriodSeconds) : 0
    const finalizers = finalizersFor(resource, this.store, current, options)
    draft.metadata.finalizers = finalizers
    const immediate = grace === 0 && finalizers.length === 0
    if (immediate && plural !== 'pods') return { object: this.store.remove(plural, current), gone: true }
    this.#stampDeletion(draft, current, grace)
    const marked = this.store.replace(plural, current, draft)
    if (!immediate) return { object: marked, gone: false }
    return { object: this.store.remove(plural, marked), gone: true }
  }

  /** Takes a finalizer off; an object that only waited for it is gone. */
  removeFinalizer(plural: string, object: KubeObject, finalizer: string): void {
    const { namespace, name, uid } = object.metadata
    const current = this.store.get(plural, namespace, name)
    if (current?.metadata.uid !== uid || !current.metadata.finalizers?.includes(finalizer)) return
    this.update(plural, namespace, name, draft => {
      draft.metadata.finalizers = draft.metadata.finalizers?.filter(existing => existing !== finalizer) ?? []
    })
  }

  #draft(resource: Resource, namespace: string | undefined, body: Loose): KubeObject {
    if (body === null || typeof body !== 'object' || Array.isArray(body))
      throw badRequest(
        `${resource.kind} in version "${resource.version}" cannot be handled as a ${resource.kind}: json: cannot unmarshal into Go value`,
      )
    const { kind: _kind, apiVersion: _apiVersion, ...rest } = clone(body)
    const metadata = { ...rest.metadata }
    if (resource.namespaced && metadata.namespace !== undefined && metadata.namespace !== namespace) {
      throw badRequest(`the namespace of the provided object does not match the namespace sent on the request`)
    }
    if (!metadata.name && metadata.generateName) metadata.name = `${metadata.generateName}${randomSuffix()}`
    for (const field of [
      'uid',
      'resourceVersion',
      'creationTimestamp',
      'deletionTimestamp',
      'deletionGracePeriodSeconds',
      'generation',
      'managedFields',
    ]) {
      delete metadata[field]
    }
    if (resource.namespaced) metadata.namespace = namespace
    if (resource.generation) metadata.generation = 1
    const draft: KubeObject = { ...rest, metadata }
    if (resource.plural !== 'events') draft.spec ??= {}
    return draft
  }

  #checkNamespace(resource: Resource, namespace: string, name: string): void {
    const found = this.store.get('namespaces', undefined, namespace)
    if (!found) throw notFound(resourceOf('namespaces'), namespace)
    if (found.metadata.deletionTimestamp === undefined) return
    const text = `unable to create new content in namespace ${namespace} because it is being terminated`
    throw forbidden(resource, name, text, [
      {
        reason: 'NamespaceTerminating',
        message: `namespace ${namespace} is being terminated`,
        field: 'metadata.namespace',
      },
    ])
  }

  #changed(resource: Resource, current: KubeObject, change: (draft: KubeObject) => Loose): KubeObject {
    const draft = clone(current)
    const next: KubeObject = change(draft) ?? draft
    const { name, uid, resourceVersion } = next.metadata ?? {}
    if (name !== current.metadata.name)
      throw badRequest(`the name of the object (${name}) does not match the name on the URL (${current.metadata.name})`)
    if (resourceVersion !== undefined && resourceVersion !== '' && resourceVersion !== current.metadata.resourceVersion)
      throw conflict(resource, name)
    if (uid !== undefined && uid !== '' && uid !== current.metadata.uid) {
      throw invalid(resource, name, [
        { reason: 'FieldValueInvalid', message: `Invalid value: "${uid}": field is immutable`, field: 'metadata.uid' },
      ])
    }
    const { kind: _kind, apiVersion: _apiVersion, ...rest } = next
    const fixed = current.metadata
    return {
      ...rest,
      metadata: {
        ...next.metadata,
        namespace: fixed.namespace,
        uid: fixed.uid,
        resourceVersion: fixed.resourceVersion,
        generation: fixed.generation,
        creationTimestamp: fixed.creationTimestamp,
        deletionTimestamp: fixed.deletionTimestamp,
        deletionGracePeriodSeconds: fixed.deletionGracePeriodSeconds,
      } as KubeObject['metadata'],
    }
  }

  #stampDeletion(draft: KubeObject, current: KubeObject, grace: number): void {
    const already = current.metadata.deletionTimestamp !== undefined
    if (already && grace >= (current.metadata.deletionGracePeriodSeconds ?? 0)) return
    draft.metadata.deletionTimestamp = timestamp(this.#now() + grace * 1000)
    draft.metadata.deletionGracePeriodSeconds = grace
    if (!already && draft.metadata.generation !== undefined) draft.metadata.generation += 1
  }

  #terminateNamespace(current: KubeObject): KubeObject {
    if (current.metadata.deletionTimestamp !== undefined) return current
    const draft = clone(current)
    draft.metadata.deletionTimestamp = timestamp(this.#now())
    draft.status = { ...draft.status, phase: 'Terminating' }
    return this.store.replace('namespaces', current, draft)
  }
}

function sameSpec(plural: string, before: KubeObject, after: KubeObject): boolean {
  if (plural === 'deployments' && !equal(before.metadata.annotations ?? {}, after.metadata.annotations ?? {}))
    return false
  return equal(before.spec, after.spec)
}

/** Nothing holds a deleted object any more: no finalizer, and a pod's containers have had their time. */
function releasable(plural: string, object: KubeObject): boolean {
  if (object.metadata.finalizers?.length) return false
  return plural !== 'pods' || object.metadata.deletionGracePeriodSeconds === 0
}

function podGrace(pod: KubeObject, asked: number | undefined): number {
  if (!pod.spec?.nodeName || pod.status?.phase === 'Succeeded' || pod.status?.phase === 'Failed') return 0
  const grace = Math.max(0, asked ?? pod.spec.terminationGracePeriodSeconds ?? 30)
  const current = pod.metadata.deletionGracePeriodSeconds
  return pod.metadata.deletionTimestamp !== undefined && current !== undefined ? Math.min(current, grace) : grace
}

function checkPreconditions(resource: Resource, current: KubeObject, { preconditions }: DeleteOptions): void {
  const { name, uid, resourceVersion } = current.metadata
  if (preconditions?.uid !== undefined && preconditions.uid !== uid) {
    throw preconditionFailed(
      resource,
      name,
      `the UID in the precondition (${preconditions.uid}) does not match the UID in record (${uid}). The object might have been deleted and then recreated`,
    )
  }
  if (preconditions?.resourceVersion !== undefined && preconditions.resourceVersion !== resourceVersion) {
    throw preconditionFailed(
      resource,
      name,
      `the ResourceVersion in the precondition (${preconditions.resourceVersion}) does not match the ResourceVersion in record (${resourceVersion}). The object might have been modified`,
    )
  }
}

/** The finalizers after a DELETE: foreground and orphan are added for the garbage collector, each replaces the other. */
function finalizersFor(resource: Resource, store: ObjectStore, current: KubeObject, options: DeleteOptions): string[] {
  const existing = current.metadata.finalizers ?? []
  const asked = options.propagationPolicy
  const policy =
    asked ??
    (existing.includes(FOREGROUND) ? 'Foreground' : existing.includes(ORPHAN) ? 'Orphan' : resource.defaultPropagation)
  const foreign = existing.filter(finalizer => finalizer !== FOREGROUND && finalizer !== ORPHAN)
  if (policy === 'Foreground') return [...foreign, FOREGROUND]
  if (policy === 'Orphan' && (asked === 'Orphan' || store.dependentKeys(current.metadata.uid).length > 0))
    return [...foreign, ORPHAN]
  return foreign
}
