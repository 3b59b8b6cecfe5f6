import { setImmediate as nextTurn } from 'node:timers/promises'
import type { RawObject } from './decode.ts'
import type { KubeObjects } from './objects.ts'
import { RecordIndex } from './record-index.ts'
import { Reflector } from './reflector.ts'
import type { Clock, Log, ReflectorCounters, ReflectorSink } from './reflector-options.ts'
import type { ReflectorProfile } from './reflector-profile.ts'
import type { Transport } from './transport.ts'
import type { Records } from './trim.ts'
import { isOlderVersion } from './versions.ts'

/** `list`: of the first complete list. `relist`: found by a later one, so what lay between was not seen. */
export type ChangeSource = 'list' | 'watch' | 'relist'

/**
 * `deleted` carries the last state known (of a watch: the one of the deletion) and speaks of that uid alone.
 * `previous` is what the cache held before, null for a new uid.
 */
export interface Change<R> {
  readonly type: 'applied' | 'deleted'
  readonly record: R
  readonly previous: R | null
  readonly source: ChangeSource
}

export interface InformerOptions<K extends keyof Records> {
  readonly transport: Transport
  readonly kind: K
  /** null = all namespaces. */
  readonly namespace: string | null
  readonly labelSelector: string
  /** Object → what is kept of it; `previous` is the record of the same uid. What throws here is logged, counted, left out. */
  readonly transform: (object: KubeObjects[K], previous?: Records[K]) => Records[K]
  readonly indexes?: Readonly<Record<string, (record: Records[K]) => string | undefined>>
  readonly profile: ReflectorProfile
  readonly log: Log
  readonly clock?: Clock
  readonly newestKnown?: () => string | null
  /** The collection went back in time, and the cache with it: versions noted before are of no use any more. */
  readonly onRewind?: () => void
}

export interface InformerCounters extends ReflectorCounters {
  /** Exceptions of handlers and of the transform. */
  handlerErrors: number
  /** Objects older than what was known of them. */
  stale: number
}

/** Handlers are told of that many records of the first list before others get a turn. */
const SLICE = 1000

/**
 * One collection in memory, kept true by a reflector, keyed by namespace and name. An object of another uid under the
 * same name is another object: it is told as deleted, then applied. Of one uid nothing older than what is known is taken,
 * and the same resourceVersion is told once.
 *
 * Handlers run synchronously after the cache was changed, in the order of the changes of an object; they should only note
 * a key. Until the first list is complete nothing is told; then each record once (`list`), then `hasSynced` for ever.
 */
export class Informer<K extends keyof Records> {
  readonly kind: K
  readonly namespace: string | null
  readonly #options: InformerOptions<K>
  readonly #reflector: Reflector
  readonly #namespaces = new Map<string, Map<string, Records[K]>>()
  readonly #indexes = new Map<string, RecordIndex<Records[K]>>()
  readonly #handlers = new Set<(change: Change<Records[K]>) => void>()
  readonly #synced = Promise.withResolvers<true>()
  #size = 0
  /** While a list is read: what it showed. */
  #shown: Set<Records[K]> | null = null
  #rewound = false
  #hasSynced = false
  #handlerErrors = 0
  #stale = 0

  constructor(options: InformerOptions<K>) {
    this.kind = options.kind
    this.namespace = options.namespace
    this.#options = options
    for (const [name, key] of Object.entries(options.indexes ?? {})) this.#indexes.set(name, new RecordIndex(key))
    this.#reflector = new Reflector({ ...options, sink: this.#sink() })
  }

  /** Idempotent. */
  start(): void {
    this.#reflector.start()
  }

  /** Afterwards no handler is called; what is cached stays readable. */
  async stop(): Promise<void> {
    await this.#reflector.stop()
  }

  get hasSynced(): boolean {
    return this.#hasSynced
  }

  /** True once synced, false if the signal was aborted first. */
  async whenSynced(signal?: AbortSignal): Promise<boolean> {
    if (this.#hasSynced || signal === undefined) return await this.#synced.promise
    const aborted = Promise.withResolvers<false>()
    const abort = (): void => aborted.resolve(false)
    if (signal.aborted) abort()
    signal.addEventListener('abort', abort, { once: true })
    try {
      return await Promise.race([this.#synced.promise, aborted.promise])
    } finally {
      signal.removeEventListener('abort', abort)
    }
  }

  /** When the cluster last said something of this collection (ms); null = never. */
  get lastContact(): number | null {
    return this.#reflector.lastContact
  }

  /** The last failure while it lasts, without addresses; null = none. */
  get reason(): string | null {
    return this.#reflector.reason
  }

  get counters(): InformerCounters {
    return { ...this.#reflector.counters, handlerErrors: this.#handlerErrors, stale: this.#stale }
  }

  get size(): number {
    return this.#size
  }

  get(namespace: string, name: string): Records[K] | undefined {
    return this.#namespaces.get(namespace)?.get(name)
  }

  /** All records, in no order. */
  *list(): Generator<Records[K]> {
    for (const names of this.#namespaces.values()) {
      yield* names.values()
    }
  }

  /** Records whose index function gives this value. Throws if there is no such index. */
  byIndex(index: string, value: string): readonly Records[K][] {
    const found = this.#indexes.get(index)
    if (!found) throw new Error(`the informer of ${this.kind}s has no index "${index}"`)
    return found.get(value)
  }

  /** Answers the function that ends it. An exception of the handler is logged and counted and goes nowhere else. */
  onChange(handler: (change: Change<Records[K]>) => void): () => void {
    this.#handlers.add(handler)
    return () => this.#handlers.delete(handler)
  }

  #sink(): ReflectorSink {
    return {
      begin: rewound => {
        this.#shown = this.#size === 0 ? null : new Set() // into an empty cache nothing comes that is not shown
        this.#rewound = rewound
      },
      page: objects => {
        for (const object of objects) this.#apply(object, 'relist')
      },
      end: async () => {
        this.#sweep()
        if (this.#rewound) this.#options.onRewind?.()
        if (!this.#hasSynced) await this.#announce()
      },
      apply: object => this.#apply(object, 'watch'),
      remove: object => this.#remove(object),
    }
  }

  #apply(object: RawObject, source: ChangeSource): void {
    const { namespace = '', name = '', uid, resourceVersion = '' } = object.metadata ?? {}
    const found = this.#namespaces.get(namespace)?.get(name)
    const previous = found?.metadata.uid === uid ? found : undefined
    const shown = source === 'relist' ? this.#shown : null
    if (previous && !this.#isNews(resourceVersion, previous, source)) return void shown?.add(previous)
    const record = this.#transform(object, previous)
    if (record === null) return void (previous && shown?.add(previous))
    if (found && !previous) this.#drop(found, source)
    this.#put(record, previous)
    shown?.add(record)
    this.#tell({ type: 'applied', record, previous: previous ?? null, source })
  }

  #isNews(version: string, known: Records[K], source: ChangeSource): boolean {
    const knownVersion = known.metadata.resourceVersion
    if (version === knownVersion) return false
    const believed = source === 'relist' && this.#rewound
    if (believed || !isOlderVersion(version, knownVersion)) return true
    this.#stale += 1
    return false
  }

  #put(record: Records[K], previous: Records[K] | undefined): void {
    const { namespace, name } = record.metadata
    const names = this.#namespaces.get(namespace) ?? new Map<string, Records[K]>()
    if (names.size === 0) this.#namespaces.set(namespace, names)
    names.set(name, record)
    if (previous === undefined) this.#size += 1
    for (const index of this.#indexes.values()) {
      if (previous) index.replace(previous, record)
      else index.add(record)
    }
  }

  #remove(object: RawObject): void {
    const { namespace = '', name = '', uid } = object.metadata ?? {}
    const known = this.#namespaces.get(namespace)?.get(name)
    if (!known || known.metadata.uid !== uid) return
    this.#drop(known, 'watch', this.#transform(object, known) ?? known)
  }

  #drop(known: Records[K], source: ChangeSource, last: Records[K] = known): void {
    const { namespace, name } = known.metadata
    const names = this.#namespaces.get(namespace)
    names?.delete(name)
    if (names?.size === 0) this.#namespaces.delete(namespace)
    for (const index of this.#indexes.values()) index.remove(known)
    this.#size -= 1
    this.#tell({ type: 'deleted', record: last, previous: known, source })
  }

  /** What the list that is now complete did not show is gone. */
  #sweep(): void {
    const shown = this.#shown
    this.#shown = null
    if (shown === null) return
    for (const record of this.list()) {
      if (!shown.has(record)) this.#drop(record, 'relist')
    }
  }

  async #announce(): Promise<void> {
    const all = [...this.list()]
    this.#hasSynced = true
    for (let at = 0; at < all.length; at += SLICE) {
      for (const record of all.slice(at, at + SLICE))
        this.#tell({ type: 'applied', record, previous: null, source: 'list' })
      await nextTurn()
    }
    this.#synced.resolve(true)
  }

  #transform(object: RawObject, previous: Records[K] | undefined): Records[K] | null {
    try {
      return this.#options.transform(object as KubeObjects[K], previous)
    } catch (error) {
      this.#note(error, object, 'an object of the cluster could not be read')
      return null
    }
  }

  #tell(change: Change<Records[K]>): void {
    if (!this.#hasSynced) return
    for (const handler of this.#handlers) {
      const failed = (error: unknown): void => this.#note(error, change.record, 'a handler of changes failed')
      try {
        const result: unknown = handler(change)
        if (result instanceof Promise) result.catch(failed)
      } catch (error) {
        failed(error)
      }
    }
  }

  #note(error: unknown, object: { metadata?: { namespace?: string; name?: string } }, message: string): void {
    this.#handlerErrors += 1
    const { namespace, name } = object.metadata ?? {}
    this.#options.log.error({ err: error, kind: this.kind, namespace, name }, message)
  }
}
