import type { Readable } from 'node:stream'
import type { NewEvent, RuntimeEvent } from '../domain/event.ts'
import type { Life } from '../domain/life.ts'
import type { Observation, Seen } from '../domain/observation.ts'
import type { Kind, RuntimeId, RuntimeName } from '../domain/runtime-id.ts'
import type { WorkloadSpec } from '../domain/workload-spec.ts'

/** Milliseconds since the epoch, and timers; injected so that no test waits for luck. */
export interface Clock {
  now(): number
  /** Runs `work` once after `ms`; the returned function cancels it. Never keeps the process alive. */
  after(ms: number, work: () => void): () => void
}

/** How deep to look: the object by one GET; its pods by a live LIST as well; the newest Warning Event of its uid as well. */
export type Look = 'object' | 'pods' | 'warnings'

/** The cluster's answer to a write. */
export interface Written {
  readonly uid: string
  readonly version: string
  /** null where the answer has none (a Scale). */
  readonly generation: number | null
}

/** Where a decision is told, once. pino's shape. */
export interface Log {
  debug(fields: object, message: string): void
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
  error(fields: object, message: string): void
}

/**
 * One cluster or Engine as the reconciler needs it. Every method throws RuntimeError: `notDone` tells a refusal (or a
 * write that was never sent) from no answer. A missing object is not an error for `look`, `down` and `remove`.
 */
export interface Workloads {
  /** From the synced cache, without any call. null = cannot tell (not synced, owner not known yet): no fact. */
  observe(life: Life): Observation | null
  /** By live calls. A life without uid is looked up by its nonce: another object under the name is `gone`. */
  look(life: Life, depth: Look): Promise<Observation>
  /** Makes the workload (and its Service) carrying the life's nonce; `active` false: at 0, suspended. One made already by this nonce is taken. */
  make(life: Life, active: boolean): Promise<Written>
  /** Scale to 1, unsuspend. `seen` is what was just read; its version guards the write. null = it is gone. */
  up(life: Life, seen: Seen): Promise<Written | null>
  /** Scale to 0, suspend. null = it is gone. */
  down(life: Life, seen: Seen): Promise<Written | null>
  /** Service first, then the workload, foreground, precondition uid. null = it is gone already. */
  remove(life: Life): Promise<Written | null>
}

/** A workload that carries our labels, whether or not a row knows it. */
export interface Labelled {
  readonly id: RuntimeId
  readonly uid: string
  readonly nonce: string | null
  readonly instance: string | null
  readonly runtime: string | null
  readonly image: string | null
  readonly labels: Readonly<Record<string, string>>
  readonly deleting: boolean
}

/** What is there, for adoption: from the cache, and one by a live GET. */
export interface Inventory {
  /** All labelled workloads in the synced caches. */
  labelled(): Iterable<Labelled>
  cached(id: RuntimeId): Labelled | null
  /** One live GET; null = 404 or without our label. */
  find(id: RuntimeId): Promise<Labelled | null>
  /** Puts our instance and runtime labels on a workload that is taken up. */
  mark(found: Labelled): Promise<Written>
}

export interface LogOptions {
  readonly tail: number | null
  readonly follow: boolean
  readonly sinceSeconds: number | null
  readonly sinceTime: string | null
  readonly timestamps: boolean
  readonly container: string | null
  readonly previous: boolean
  readonly limitBytes: number | null
  readonly signal: AbortSignal
}

export interface Logs {
  /**
   * Bytes as written, of the newest pod. Throws LOGS_NOT_READY (with the waiting reason) for a container that has not
   * started, unless `follow`, which waits; POD_NOT_FOUND when there is no pod. Ends when the signal aborts.
   */
  read(life: Life, options: LogOptions): Promise<Readable>
}

export interface InformerHealth {
  readonly kind: string
  readonly namespace: string | null
  readonly synced: boolean
  readonly objects: number
  readonly lastContactSeconds: number | null
  readonly reason: string | null
  /** Since the start: full lists, watches opened, watches that broke, events taken, lines that could not be read. */
  readonly counters: {
    readonly lists: number
    readonly watches: number
    readonly restarts: number
    readonly events: number
    readonly badLines: number
  }
}

export interface Health {
  /** Synced and heard from within min(150 s, 2 × watch timeout). */
  readonly fresh: boolean
  readonly reason: string | null
  readonly version: string | null
  readonly informers: readonly InformerHealth[]
}

/** Told of each call to the cluster: its method, HTTP status or the kind of failure, and how long it took in seconds. */
export type CallObserver = (method: string, outcome: string, seconds: number) => void

export interface Lifecycle {
  /** Opens the watches; returns at once. `onChange` gets the runtime ID whose workload (or a pod of it) changed. */
  start(onChange: (id: RuntimeId) => void): void
  /** Resolves when the first full lists are in; rejects only when the signal aborts. */
  synced(signal: AbortSignal): Promise<void>
  health(): Health
  /** Of the kind and namespace of this ID alone. */
  freshFor(id: RuntimeId): boolean
  stop(): Promise<void>
}

/** Everything a configured runtime offers, by consumer. */
export interface Backend {
  readonly name: RuntimeName
  readonly type: 'kubernetes' | 'docker'
  readonly workloads: Workloads
  readonly inventory: Inventory
  readonly logs: Logs
  readonly lifecycle: Lifecycle
  /** The objects a create would make, for `?dryRun=render`; no call. */
  render(id: RuntimeId, spec: WorkloadSpec): readonly unknown[]
  /** DNS name of the Service of a runtime, null where there is none. */
  address(life: Life): string | null
}

/** One change of the store: all or nothing. */
export interface Change {
  /** Rows to insert (`life` 0) or update, each with the events it gives; in order. */
  readonly rows: ReadonlyArray<{ readonly life: Life; readonly events: readonly NewEvent[] }>
  /** Rows to take away as if they had never been (a withdrawn create). */
  readonly withdraw?: readonly number[]
  /** Idempotency key to record with the last row, or to free. */
  readonly key?: KeyClaim
  readonly freeKey?: { readonly token: string; readonly key: string }
}

export interface KeyClaim {
  readonly token: string
  readonly key: string
  readonly hash: string
}

export interface KeyRecord {
  readonly life: number
  readonly hash: string
}

export interface Committed {
  readonly lives: readonly Life[]
  readonly events: readonly RuntimeEvent[]
}

export interface ListQuery {
  readonly runtime?: string | undefined
  readonly namespaces: readonly string[] | '*'
  readonly kind?: Kind | undefined
  readonly states?: readonly string[] | undefined
  /** Row filter in code, applied within the page walk. */
  readonly accept?: ((life: Life) => boolean) | undefined
  /** Runtime ID text, exclusive. */
  readonly after?: string | undefined
  readonly limit: number
}

/** Rows of runtimes. Reads are synchronous and see every commit that was acknowledged. */
export interface RuntimeTable {
  /** Durable when it resolves. Changes queued in one turn share a transaction; each stands or falls alone. Throws STORAGE_UNAVAILABLE. */
  commit(change: Change): Promise<Committed>
  newest(id: string): Life | null
  /** Of any state; a create's nonce names one life for ever. */
  byNonce(nonce: string): Life | null
  byLife(life: number): Life | null
  /** Ordered by ID bytes. Without `states`, deleted rows are left out. */
  list(query: ListQuery): { lives: Life[]; next: string | null }
  /** Every row that is not deleted, streamed; a row that cannot be read goes to `onBroken` and is left aside. */
  alive(onBroken: (id: string, error: unknown) => void): Iterable<Life>
  /** IDs of rows with an open run or a verb in hand, in order of bytes. */
  monitored(): string[]
  key(token: string, key: string): KeyRecord | null
}

export interface EventQuery {
  /** Exclusive. */
  readonly after: number
  readonly limit: number
  readonly runtimeIds?: readonly string[] | undefined
}

export interface EventTable {
  readonly epoch: string
  /** Sequence numbers of the oldest kept and the newest ever, null when none is kept. */
  bounds(): { oldest: number | null; newest: number | null; pruned: boolean }
  /** In order of seq, all that was acknowledged. */
  read(query: EventQuery): RuntimeEvent[]
  newestOf(runtimeId: string, limit: number): readonly RuntimeEvent[]
}

/** The last bytes of a run's log, kept after its own end. */
export interface TailTable {
  keepTail(life: number, run: number, bytes: Buffer): void
  tail(life: number): Buffer | null
}

export interface Maintenance {
  /** Removes events and rows past their time; never a row whose object lives. Returns how many. */
  prune(limits: { now: number; retentionSeconds: number; retentionCount: number }): { events: number; rows: number }
  writable(): { ok: boolean; reason: string | null }
  /** Rows that are not deleted, by state. */
  countByState(): ReadonlyMap<string, number>
}

export interface Store extends RuntimeTable, EventTable, TailTable, Maintenance {
  close(): void
}
