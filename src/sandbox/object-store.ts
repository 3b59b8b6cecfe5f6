import { randomUUID } from 'node:crypto'
import { clone, equal, ordered, timestamp } from './json.ts'
import { resourceOf } from './resources.ts'
import { expired } from './status-error.ts'
import type { Change, KubeObject } from './types.ts'

/** Changes kept for watchers that come back; beyond it the oldest half goes, and their versions become "too old". */
const HISTORY_LIMIT = 40_000

interface Shelf {
  objects: Map<string, KubeObject>
  /** keys in the order of a LIST; undefined when it must be made anew */
  sorted: string[] | undefined
}

const keyOf = (namespace: string | undefined, name: string): string => `${namespace ?? ''}/${name}`

/**
 * Versioned objects and the changes that led to them. One counter numbers all writes. A stored object is never changed,
 * only replaced, so readers may keep references. Knows nothing of the rules of the API: those are the registry's.
 */
export class ObjectStore {
  readonly #shelves = new Map<string, Shelf>()
  readonly #owned = new Map<string, Map<string, KubeObject>>()
  readonly #uids = new Set<string>()
  readonly #listeners = new Set<(change: Change) => void>()
  readonly #now: () => number
  /** changes made by listeners wait here, so that everybody hears all changes in order */
  readonly #untold: Change[] = []
  #telling = false
  #history: Change[] = []
  #version = 1000
  #oldest = 1000
  /** test hook: limit of the history */
  historyLimit = HISTORY_LIMIT

  constructor(now: () => number = Date.now) {
    this.#now = now
  }

  get version(): number {
    return this.#version
  }

  /** Changes up to this version are forgotten; a watch may start at it, not before. */
  get oldestVersion(): number {
    return this.#oldest
  }

  get(resource: string, namespace: string | undefined, name: string): KubeObject | undefined {
    return this.#shelf(resource).objects.get(keyOf(namespace, name))
  }

  /** All objects of a resource, or those of one namespace, in the order of a LIST (namespace, then name, by bytes). */
  list(resource: string, namespace?: string): KubeObject[] {
    const shelf = this.#shelf(resource)
    shelf.sorted ??= [...shelf.objects.keys()].sort()
    const keys = namespace === undefined ? shelf.sorted : range(shelf.sorted, `${namespace}/`)
    return keys.map(key => shelf.objects.get(key)!)
  }

  count(resource: string): number {
    return this.#shelf(resource).objects.size
  }

  /** Objects of a resource that name the uid as an owner. */
  dependents(uid: string, resource: string): KubeObject[] {
    const found: KubeObject[] = []
    for (const [key, object] of this.#owned.get(uid) ?? []) if (key.startsWith(`${resource}/`)) found.push(object)
    return found
  }

  /** Objects of a resource in a namespace that have no owner. */
  orphans(resource: string, namespace: string): KubeObject[] {
    return [...(this.#owned.get(orphanKey(resource, namespace))?.values() ?? [])]
  }

  /** Is there an object with this uid? */
  has(uid: string): boolean {
    return this.#uids.has(uid)
  }

  /** All objects that name the uid as an owner, with the resource of each. */
  dependentKeys(uid: string): { resource: string; object: KubeObject }[] {
    return [...(this.#owned.get(uid) ?? [])].map(([key, object]) => ({
      resource: key.slice(0, key.indexOf('/')),
      object,
    }))
  }

  /** Stores a new object and gives it uid, version and time; `finish` may change the draft once its uid is known. The key must be free. */
  create(resource: string, object: KubeObject, finish?: (draft: KubeObject, uid: string) => void): KubeObject {
    const draft = clone(object)
    const uid = randomUUID()
    finish?.(draft, uid)
    Object.assign(draft.metadata, {
      uid,
      resourceVersion: String(++this.#version),
      creationTimestamp: timestamp(this.#now()),
    })
    const stored = ordered(draft)
    this.#put(resource, stored, undefined)
    return stored
  }

  /** Replaces an object; a draft equal to what is stored changes nothing and keeps its version. */
  replace(resource: string, current: KubeObject, draft: KubeObject): KubeObject {
    const next = ordered(draft)
    next.metadata.resourceVersion = current.metadata.resourceVersion
    if (equal(next, current)) return current
    next.metadata.resourceVersion = String(++this.#version)
    this.#put(resource, next, current)
    return next
  }

  /** Removes an object; the tombstone is its last stored state. */
  remove(resource: string, current: KubeObject): KubeObject {
    const version = ++this.#version
    const tombstone = { ...current, metadata: { ...current.metadata, resourceVersion: String(version) } }
    this.#unlink(resource, current)
    this.#shelf(resource).objects.delete(keyOf(current.metadata.namespace, current.metadata.name))
    this.#shelf(resource).sorted = undefined
    this.#commit({ version, type: 'DELETED', resource, object: tombstone, previous: current })
    return tombstone
  }

  /** Called after each committed write, in order. Returns how to end it. */
  subscribe(listener: (change: Change) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /** The changes after a version. Throws 410 Expired when some of them are forgotten. */
  since(version: number): Change[] {
    if (version < this.#oldest) throw expired(version, this.#oldest)
    let low = 0
    let high = this.#history.length
    while (low < high) {
      const middle = (low + high) >> 1
      if (this.#history[middle]!.version <= version) low = middle + 1
      else high = middle
    }
    return this.#history.slice(low)
  }

  /** Forgets all changes so far: watches and continue tokens from before become too old. */
  compact(): void {
    this.#history = []
    this.#oldest = this.#version
  }

  /** The objects of a resource as they were at a version that is not forgotten. */
  listAt(version: number, resource: string, namespace?: string): KubeObject[] {
    const objects = new Map(this.#shelf(resource).objects)
    for (const change of this.since(version).reverse()) if (change.resource === resource) undo(objects, change)
    const keys = [...objects.keys()].sort()
    return (namespace === undefined ? keys : range(keys, `${namespace}/`)).map(key => objects.get(key)!)
  }

  /** Everything becomes as it was at that version, and so does the counter: a database restored from a backup. */
  restore(version: number): void {
    const changes = this.since(version)
    for (const change of [...changes].reverse()) {
      const shelf = this.#shelf(change.resource)
      if (change.type !== 'DELETED') this.#unlink(change.resource, change.object)
      undo(shelf.objects, change)
      shelf.sorted = undefined
      if (change.previous) this.#link(change.resource, change.previous)
    }
    this.#history = this.#history.filter(change => change.version <= version)
    this.#version = version
  }

  #shelf(resource: string): Shelf {
    let shelf = this.#shelves.get(resource)
    if (!shelf) {
      resourceOf(resource)
      shelf = { objects: new Map(), sorted: undefined }
      this.#shelves.set(resource, shelf)
    }
    return shelf
  }

  #put(resource: string, next: KubeObject, previous: KubeObject | undefined): void {
    const shelf = this.#shelf(resource)
    if (previous) this.#unlink(resource, previous)
    else shelf.sorted = undefined
    shelf.objects.set(keyOf(next.metadata.namespace, next.metadata.name), next)
    this.#link(resource, next)
    this.#commit({
      version: this.#version,
      type: previous ? 'MODIFIED' : 'ADDED',
      resource,
      object: next,
      ...(previous ? { previous } : {}),
    })
  }

  #commit(change: Change): void {
    this.#history.push(change)
    if (this.#history.length > this.historyLimit) {
      this.#history = this.#history.slice(this.#history.length >> 1)
      this.#oldest = this.#history[0]!.version - 1
    }
    this.#untold.push(change)
    if (this.#telling) return
    this.#telling = true
    try {
      for (let next = this.#untold.shift(); next; next = this.#untold.shift()) {
        for (const listener of this.#listeners) listener(next)
      }
    } finally {
      this.#telling = false
    }
  }

  #link(resource: string, object: KubeObject): void {
    this.#uids.add(object.metadata.uid)
    for (const uid of ownersOf(resource, object)) {
      let owned = this.#owned.get(uid)
      if (!owned) {
        owned = new Map()
        this.#owned.set(uid, owned)
      }
      owned.set(`${resource}/${keyOf(object.metadata.namespace, object.metadata.name)}`, object)
    }
  }

  #unlink(resource: string, object: KubeObject): void {
    this.#uids.delete(object.metadata.uid)
    for (const uid of ownersOf(resource, object)) {
      const owned = this.#owned.get(uid)
      owned?.delete(`${resource}/${keyOf(object.metadata.namespace, object.metadata.name)}`)
      if (owned?.size === 0) this.#owned.delete(uid)
    }
  }
}

const orphanKey = (resource: string, namespace: string | undefined): string => `orphan/${resource}/${namespace ?? ''}`

function ownersOf(resource: string, { metadata }: KubeObject): string[] {
  const owners = metadata.ownerReferences
  return owners?.length ? owners.map(owner => owner.uid) : [orphanKey(resource, metadata.namespace)]
}

function undo(objects: Map<string, KubeObject>, change: Change): void {
  const { namespace, name } = change.object.metadata
  if (change.previous) objects.set(keyOf(namespace, name), change.previous)
  else objects.delete(keyOf(namespace, name))
}

function range(sorted: string[], prefix: string): string[] {
  let low = 0
  let high = sorted.length
  while (low < high) {
    const middle = (low + high) >> 1
    if (sorted[middle]! < prefix) low = middle + 1
    else high = middle
  }
  let end = low
  while (end < sorted.length && sorted[end]!.startsWith(prefix)) end++
  return sorted.slice(low, end)
}
