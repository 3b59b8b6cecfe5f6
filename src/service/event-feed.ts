import { setImmediate as nextTurn } from 'node:timers/promises'
import type { RuntimeEvent } from '../domain/event.ts'
import { type LabelSelector, parseLabelSelector } from '../domain/label-selector.ts'
import { formatRuntimeId, parseRuntimeId } from '../domain/runtime-id.ts'
import { RuntimeError } from '../errors.ts'
import type { EventApi, EventBatch, EventFilter, EventPage } from './api.ts'
import type { Backends } from './backends.ts'
import { eventId, readCursor } from './cursor.ts'
import type { Clock, EventTable, RuntimeTable } from './ports.ts'
import type { CommitListener } from './recorder.ts'
import { allows, requireNamespace, type Scope } from './scope.ts'

export interface EventFeedOptions {
  readonly table: EventTable & Pick<RuntimeTable, 'newest'>
  readonly backends: Pick<Backends, 'get'>
  readonly clock: Clock
  /** Readers are woken at most this often, so that a burst is handed out in batches; many of them less often. */
  readonly wakeEveryMs?: number
}

/** Waking costs the same for one event as for many: 500 readers are woken each 60 ms, and none waits longer than 100 ms. */
const WAKE_EVERY_MS = 10
const WAKE_MS_A_READER = 0.1
const WAKE_LATEST_MS = 100

/** Newest events kept in memory, so that live readers do not each ask the database. */
const RECENT = 4096
const BATCH = 500

type Matches = (event: RuntimeEvent) => boolean

/** The numbered feed: pages and streams of what is durable, never of what is not. */
export class EventFeed implements EventApi {
  readonly #options: EventFeedOptions
  #recent: RuntimeEvent[] = []
  #newest: number
  #waiting = new Set<() => void>()
  #wakeDue = false
  #closed = false

  constructor(options: EventFeedOptions) {
    this.#options = options
    this.#newest = options.table.bounds().newest ?? 0
  }

  get epoch(): string {
    return this.#options.table.epoch
  }

  /** Seq of the newest durable event, 0 if there never was one. */
  get newest(): number {
    return this.#newest
  }

  get readers(): number {
    return this.#waiting.size
  }

  readonly listener: CommitListener = ({ events }) => {
    if (events.length === 0) return
    for (const event of events) this.#recent.push(event)
    if (this.#recent.length > 2 * RECENT) this.#recent = this.#recent.slice(-RECENT)
    this.#newest = Math.max(this.#newest, events.at(-1)?.seq ?? 0)
    this.#wakeSoon()
  }

  async page(scope: Scope, filter: EventFilter, after: string | undefined, limit: number): Promise<EventPage> {
    const matches = this.#matcher(scope, filter)
    const start = readCursor(after, this.epoch, this.#options.table.bounds())
    return await this.#collect(start, limit, matches, idsOf(filter))
  }

  async pageOf(scope: Scope, id: string, after: string | undefined, limit: number): Promise<EventPage> {
    const runtimeId = parseRuntimeId(id)
    requireNamespace(scope, runtimeId.namespace)
    this.#options.backends.get(runtimeId.runtime)
    const text = formatRuntimeId(runtimeId)
    if (this.#options.table.newest(text) === null && this.#options.table.newestOf(text, 1).length === 0) {
      throw new RuntimeError('RUNTIME_NOT_FOUND', `cannot show events: there never was a runtime ${text}`, {
        runtimeId: text,
      })
    }
    return await this.page(scope, { runtimeIds: [text] }, after, limit)
  }

  stream(scope: Scope, filter: EventFilter, after: string | undefined, signal: AbortSignal): AsyncIterable<EventBatch> {
    const matches = this.#matcher(scope, filter)
    const start = readCursor(after, this.epoch, this.#options.table.bounds())
    return this.#follow(start, matches, signal)
  }

  /** Ends every stream; the daemon shuts down. */
  close(): void {
    this.#closed = true
    this.#wakeAll()
  }

  async *#follow(start: number, matches: Matches, signal: AbortSignal): AsyncGenerator<EventBatch> {
    let cursor = start
    let live = false
    for (let n = 0; !signal.aborted && !this.#closed; n++) {
      // History may be a million events of which the reader, as fast as it is, wants none: others get their turns.
      if (n > 0 && this.#isHistory(cursor)) await nextTurn()
      const batch = this.#after(cursor)
      this.#requireUnbroken(cursor, batch)
      cursor = batch.at(-1)?.seq ?? cursor
      const nowLive: boolean = live || cursor >= this.#newest
      const events = batch.filter(matches)
      if (events.length > 0 || nowLive !== live) yield { events, live: nowLive }
      live = nowLive
      if (batch.length === 0) await this.#next(signal)
    }
  }

  /** History that was pruned while a reader was on its way through it is told, never skipped (P7). */
  #requireUnbroken(cursor: number, batch: readonly RuntimeEvent[]): void {
    const first = batch[0]?.seq
    if (first === undefined || first <= cursor + 1) return
    readCursor(String(cursor), this.epoch, this.#options.table.bounds())
  }

  /** What follows is no longer in memory. */
  #isHistory(cursor: number): boolean {
    const first = this.#recent[0]
    return cursor < this.#newest && (first === undefined || cursor < first.seq - 1)
  }

  #after(cursor: number): readonly RuntimeEvent[] {
    if (cursor >= this.#newest) return []
    if (this.#isHistory(cursor)) return this.#options.table.read({ after: cursor, limit: BATCH })
    const at = firstAfter(this.#recent, cursor)
    return this.#recent.slice(at, at + BATCH)
  }

  /** Others get a turn after each batch: a filter may look through all that is kept to find nothing. */
  async #collect(
    start: number,
    limit: number,
    matches: Matches,
    runtimeIds: readonly string[] | undefined,
  ): Promise<EventPage> {
    const { table } = this.#options
    const items: RuntimeEvent[] = []
    let cursor = start
    for (;;) {
      const batch = table.read({ after: cursor, limit: BATCH, runtimeIds })
      for (const event of batch) {
        cursor = event.seq
        if (matches(event)) items.push(event)
        if (items.length === limit) return { items, cursor: eventId(this.epoch, cursor) }
      }
      if (batch.length < BATCH) break
      await nextTurn()
      readCursor(String(cursor), this.epoch, table.bounds()) // pruned meanwhile: told, never skipped
    }
    return { items, cursor: eventId(this.epoch, Math.max(cursor, start, this.#newest)) }
  }

  #matcher(scope: Scope, filter: EventFilter): Matches {
    const ids = idsOf(filter)
    const namespaces = filter.namespaces
    for (const namespace of namespaces ?? []) requireNamespace(scope, namespace)
    for (const id of ids ?? []) requireNamespace(scope, parseRuntimeId(id).namespace)
    const selector: LabelSelector | null =
      filter.labelSelector === undefined ? null : parseLabelSelector(filter.labelSelector)
    return event =>
      allows(scope, event.namespace) &&
      (ids === undefined || ids.includes(event.runtimeId)) &&
      (namespaces === undefined || namespaces.includes(event.namespace)) &&
      (filter.types === undefined || filter.types.includes(event.type)) &&
      (selector === null || selector.matches(event.labels))
  }

  #next(signal: AbortSignal): Promise<void> {
    return new Promise(resolve => {
      const wake = (): void => {
        this.#waiting.delete(wake)
        signal.removeEventListener('abort', wake)
        resolve()
      }
      this.#waiting.add(wake)
      signal.addEventListener('abort', wake, { once: true })
      if (signal.aborted || this.#closed) wake()
    })
  }

  #wakeSoon(): void {
    if (this.#wakeDue || this.#waiting.size === 0) return
    this.#wakeDue = true
    const { wakeEveryMs = WAKE_EVERY_MS } = this.#options
    const ms = Math.min(WAKE_LATEST_MS, wakeEveryMs + Math.floor(this.#waiting.size * WAKE_MS_A_READER))
    this.#options.clock.after(ms, () => {
      this.#wakeDue = false
      this.#wakeAll()
    })
  }

  #wakeAll(): void {
    for (const wake of [...this.#waiting]) wake()
  }
}

const idsOf = (filter: EventFilter): readonly string[] | undefined =>
  filter.runtimeIds?.map(id => formatRuntimeId(parseRuntimeId(id)))

/** Index of the first event with a seq above the cursor; the list is in order of seq. */
function firstAfter(events: readonly RuntimeEvent[], cursor: number): number {
  let low = 0
  let high = events.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((events[middle]?.seq ?? 0) <= cursor) low = middle + 1
    else high = middle
  }
  return low
}
