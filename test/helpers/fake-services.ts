import { Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import type { EventType, RuntimeEvent } from '../../src/domain/event.ts'
import { preflightImage } from '../../src/domain/image.ts'
import { parseLabelSelector } from '../../src/domain/label-selector.ts'
import type { State } from '../../src/domain/life.ts'
import { formatRuntimeId, parseRuntimeId, type RuntimeName } from '../../src/domain/runtime-id.ts'
import { type CreateRequest, canonicalJson, normaliseSpec, type WorkloadSpec } from '../../src/domain/workload-spec.ts'
import { RuntimeError } from '../../src/errors.ts'
import type {
  AdoptionApi,
  EventApi,
  EventBatch,
  EventFilter,
  EventPage,
  HealthApi,
  ImageApi,
  LogQuery,
  RuntimeApi,
  RuntimeListPage,
  RuntimeListQuery,
  Services,
  WaitQuery,
} from '../../src/service/api.ts'
import { eventId, readCursor } from '../../src/service/cursor.ts'
import type { InspectedRuntime, RuntimeView } from '../../src/service/runtime-view.ts'
import { allows, requireNamespace, type Scope } from '../../src/service/scope.ts'

const NOW = Date.UTC(2026, 0, 2, 3, 4, 5, 6)

interface Row {
  view: RuntimeView
  spec: WorkloadSpec
}

/**
 * The services without a cluster, for tests of http alone: rows in a map, the real domain for specs, IDs, selectors
 * and cursors, a feed that is an array. `fail` makes the next calls throw; `logs` is what every log says.
 */
export class FakeServices implements Services {
  readonly rows = new Map<string, Row>()
  readonly feed: RuntimeEvent[] = []
  /** Thrown by every call that asks a backend, while set. */
  fail: unknown = null
  log: (query: LogQuery) => Readable = () => Readable.from([Buffer.from('line\n')])
  kept = false
  ready = true
  /** Events below this seq were pruned. */
  oldest = 1
  /** Signals of the waits, streams and logs that were opened. */
  readonly signals: AbortSignal[] = []
  readonly wakers = new Set<() => void>()
  /** Names of the methods called, in order. */
  readonly calls: string[] = []

  readonly runtimes: RuntimeApi = {
    create: async (scope, request, key) => this.#create(scope, request, key),
    render: (scope, request) => {
      const spec = this.#spec(scope, request)
      return [{ kind: spec.kind === 'job' ? 'Job' : 'Deployment', metadata: { name: spec.name } }]
    },
    start: async (scope, id) => this.#verb(scope, id, 'running'),
    stop: async (scope, id) => this.#verb(scope, id, 'stopped'),
    remove: async (scope, id) => this.#verb(scope, id, 'deleted'),
    inspect: async (scope, id) => this.#inspect(scope, id),
    list: (scope, query) => this.#list(scope, query),
    wait: async (scope, id, query) => this.#wait(scope, id, query),
    logs: async (scope, id, query) => {
      this.#row(scope, id)
      this.signals.push(query.signal)
      return { body: this.log(query), kept: this.kept }
    },
    monitored: scope =>
      [...this.rows.values()]
        .filter(({ view }) => allows(scope, view.namespace) && view.monitored)
        .map(({ view }) => view.id)
        .sort(),
  }

  readonly events: EventApi = {
    epoch: 'x7k2',
    page: async (scope, filter, after, limit) => this.#page(scope, filter, after, limit),
    pageOf: async (scope, id, after, limit) => {
      const { view } = this.#row(scope, id)
      return this.#page(scope, { runtimeIds: [view.id] }, after, limit)
    },
    stream: (scope, filter, after, signal) => this.#stream(scope, filter, after, signal),
  }

  readonly health: HealthApi = {
    live: () => ({ status: 'ok', checks: [{ name: 'database', ok: true, reason: null }] }),
    ready: () => ({
      ready: this.ready,
      status: this.ready ? 'ok' : 'unavailable',
      checks: [{ name: 'k8s', ok: this.ready, reason: this.ready ? null : 'not synced' }],
    }),
    backends: () => [
      {
        name: 'k8s' as RuntimeName,
        type: 'kubernetes',
        default: true,
        healthy: true,
        reason: null,
        version: 'v1.36.2',
        informers: [
          {
            kind: 'Deployment',
            namespace: 'default',
            synced: true,
            objects: 12,
            lastContactSeconds: 3.1,
            reason: null,
            counters: { lists: 1, watches: 1, restarts: 0, events: 0, badLines: 0 },
          },
        ],
      },
    ],
  }

  readonly adoption: AdoptionApi = {
    report: () => ({ at: NOW, adopted: ['k8s-default|job|a'], vanished: [], foreign: [], orphaned: [] }),
    act: async (scope, ids) =>
      ids.map(id => {
        requireNamespace(scope, parseRuntimeId(id).namespace)
        return { id, done: false, code: 'RUNTIME_NOT_FOUND' }
      }),
  }

  readonly images: ImageApi = {
    preflight: (image, imagePullPolicy) => ({
      accepted: true,
      ...preflightImage({ image, ...(imagePullPolicy === undefined ? {} : { imagePullPolicy }) }),
    }),
  }

  /** A row that exists already, running. */
  add(id: string, labels: Record<string, string> = {}): RuntimeView {
    const parsed = parseRuntimeId(id)
    const request: CreateRequest = {
      ...parsed,
      kind: parsed.kind === 'job' ? 'job' : 'deployment',
      image: 'busybox',
      labels,
    }
    const scope: Scope = { token: null, namespaces: '*', write: true }
    const spec = { ...this.#spec(scope, request), kind: parsed.kind }
    return this.#insert(spec, 'running')
  }

  /** Puts one event into the feed, durable and visible. */
  emit(runtimeId: string, type: EventType, details: Partial<RuntimeEvent> = {}): RuntimeEvent {
    const event: RuntimeEvent = {
      seq: this.feed.length + 1,
      life: 1,
      runtimeId,
      namespace: parseRuntimeId(runtimeId).namespace,
      uid: 'uid-1',
      labels: {},
      type,
      run: 1,
      cause: null,
      reason: null,
      message: null,
      exitCode: null,
      time: NOW,
      ...details,
    }
    this.feed.push(event)
    for (const wake of [...this.wakers]) wake()
    return event
  }

  #called(name: string): void {
    this.calls.push(name)
    if (this.fail !== null) throw this.fail
  }

  #spec(scope: Scope, request: CreateRequest): WorkloadSpec {
    const spec = normaliseSpec(
      request,
      {
        runtime: 'k8s',
        namespace: 'default',
        kind: 'deployment',
        name: `generated-${this.rows.size}`,
        startTimeoutSeconds: 0,
        jobStop: 'delete',
      },
      { runtimes: ['k8s'], hostPathRoots: ['/data'], podSecurity: 'baseline' },
    )
    requireNamespace(scope, spec.namespace)
    return spec
  }

  readonly #keys = new Map<string, { hash: string; id: string }>()

  #create(scope: Scope, request: CreateRequest, key: string | null): RuntimeView {
    const spec = this.#spec(scope, request)
    this.#called('create')
    const hash = canonicalJson(request)
    const known = this.#keys.get(`${scope.token} ${key}`)
    if (key !== null && known !== undefined) {
      if (known.hash !== hash) throw new RuntimeError('IDEMPOTENCY_KEY_REUSED', 'cannot use this key for another body')
      return this.rows.get(known.id)!.view
    }
    const id = formatRuntimeId(spec)
    const there = this.rows.get(id)
    if (there !== undefined && there.view.state !== 'deleted') {
      throw new RuntimeError('RUNTIME_EXISTS', 'cannot create: it exists', { runtimeId: id })
    }
    if (key !== null) this.#keys.set(`${scope.token} ${key}`, { hash, id })
    return this.#insert(spec, spec.start ? 'creating' : 'created')
  }

  #insert(spec: WorkloadSpec, state: State): RuntimeView {
    const view: RuntimeView = {
      id: formatRuntimeId(spec),
      runtime: spec.runtime,
      namespace: spec.namespace,
      kind: spec.kind,
      name: spec.name,
      uid: 'uid-1',
      run: spec.start ? 1 : 0,
      state,
      ready: state === 'running',
      monitored: spec.start,
      reason: null,
      message: null,
      hint: null,
      exitCode: null,
      restarts: 0,
      replicas: { desired: 1, current: 1, ready: 1 },
      image: spec.image,
      labels: spec.labels,
      address: null,
      podName: null,
      podIp: null,
      nodeName: null,
      createdAt: NOW,
      startedAt: NOW,
      endedAt: null,
      observedAt: NOW,
      stale: false,
    }
    this.rows.set(view.id, { view, spec })
    return view
  }

  #row(scope: Scope, text: string): Row {
    const id = parseRuntimeId(text)
    requireNamespace(scope, id.namespace)
    if (id.runtime !== 'k8s') throw new RuntimeError('RUNTIME_ID_INVALID', 'cannot use this runtime: not configured')
    this.#called('look')
    const row = this.rows.get(formatRuntimeId(id))
    if (row) return row
    throw new RuntimeError('RUNTIME_NOT_FOUND', 'cannot find the runtime', { runtimeId: formatRuntimeId(id) })
  }

  #verb(scope: Scope, id: string, state: State): RuntimeView {
    const row = this.#row(scope, id)
    row.view = { ...row.view, state, ready: state === 'running', monitored: state === 'running' }
    return row.view
  }

  #inspect(scope: Scope, id: string): InspectedRuntime {
    const { view, spec } = this.#row(scope, id)
    if (view.state === 'deleted') throw new RuntimeError('RUNTIME_NOT_FOUND', 'cannot show it: it was deleted')
    const events = this.feed.filter(event => event.runtimeId === view.id).slice(-20)
    return { ...view, spec, events: events.reverse() }
  }

  #list(scope: Scope, query: RuntimeListQuery): RuntimeListPage {
    if (query.namespace !== undefined) requireNamespace(scope, query.namespace)
    this.#called('list')
    const selector = query.labelSelector === undefined ? null : parseLabelSelector(query.labelSelector)
    const after = query.cursor === undefined ? '' : Buffer.from(query.cursor, 'base64url').toString()
    if (query.cursor !== undefined && !this.rows.has(after)) {
      throw new RuntimeError('REQUEST_INVALID', 'cannot read the cursor: it is not one of ours')
    }
    const items = [...this.rows.values()]
      .map(row => row.view)
      .filter(view => allows(scope, view.namespace) && view.id > after)
      .filter(view => query.namespace === undefined || view.namespace === query.namespace)
      .filter(view => query.kind === undefined || view.kind === query.kind)
      .filter(view => (query.states === undefined ? view.state !== 'deleted' : query.states.includes(view.state)))
      .filter(view => selector === null || selector.matches(view.labels))
      .sort((a, b) => (a.id < b.id ? -1 : 1))
    const page = items.slice(0, query.limit)
    const more = items.length > page.length
    return { items: page, nextCursor: more ? Buffer.from(page.at(-1)!.id).toString('base64url') : null }
  }

  async #wait(scope: Scope, id: string, query: WaitQuery): Promise<{ reached: boolean; runtime: RuntimeView }> {
    const row = this.#row(scope, id)
    this.signals.push(query.signal)
    const wanted = { running: 'running', ended: 'stopped', deleted: 'deleted' }[query.for]
    const aborted = new Promise<void>(resolve =>
      query.signal.addEventListener('abort', () => resolve(), { once: true }),
    )
    const reached = row.view.state === wanted
    if (!reached) await Promise.race([sleep(query.timeoutSeconds * 1000, undefined, { ref: false }), aborted])
    return { reached, runtime: row.view }
  }

  #matcher(scope: Scope, filter: EventFilter): (event: RuntimeEvent) => boolean {
    for (const namespace of filter.namespaces ?? []) requireNamespace(scope, namespace)
    for (const id of filter.runtimeIds ?? []) requireNamespace(scope, parseRuntimeId(id).namespace)
    const selector = filter.labelSelector === undefined ? null : parseLabelSelector(filter.labelSelector)
    return event =>
      allows(scope, event.namespace) &&
      (filter.runtimeIds?.includes(event.runtimeId) ?? true) &&
      (filter.types?.includes(event.type) ?? true) &&
      (filter.namespaces?.includes(event.namespace) ?? true) &&
      (selector?.matches(event.labels) ?? true)
  }

  #start(after: string | undefined): number {
    const newest = this.feed.length
    const oldest = newest >= this.oldest ? this.oldest : null
    return readCursor(after, this.events.epoch, { oldest, newest, pruned: this.oldest > 1 })
  }

  #page(scope: Scope, filter: EventFilter, after: string | undefined, limit: number): EventPage {
    const matches = this.#matcher(scope, filter)
    let cursor = this.#start(after)
    const items: RuntimeEvent[] = []
    while (cursor < this.feed.length && items.length < limit) {
      const event = this.feed[cursor]!
      cursor = event.seq
      if (matches(event)) items.push(event)
    }
    return { items, cursor: eventId(this.events.epoch, cursor) }
  }

  #stream(
    scope: Scope,
    filter: EventFilter,
    after: string | undefined,
    signal: AbortSignal,
  ): AsyncIterable<EventBatch> {
    const matches = this.#matcher(scope, filter)
    const start = this.#start(after)
    this.signals.push(signal)
    return this.#follow(start, matches, signal)
  }

  async *#follow(
    start: number,
    matches: (event: RuntimeEvent) => boolean,
    signal: AbortSignal,
  ): AsyncGenerator<EventBatch> {
    let cursor = start
    let live = false
    let told = false
    while (!signal.aborted) {
      const events = this.feed.slice(cursor, cursor + 500)
      cursor += events.length
      live ||= cursor >= this.feed.length
      if (events.length > 0 || !told) yield { events: events.filter(matches), live }
      told = live
      if (cursor >= this.feed.length) await this.#next(signal)
    }
  }

  #next(signal: AbortSignal): Promise<void> {
    return new Promise(resolve => {
      const wake = (): void => {
        this.wakers.delete(wake)
        signal.removeEventListener('abort', wake)
        resolve()
      }
      this.wakers.add(wake)
      signal.addEventListener('abort', wake, { once: true })
      if (signal.aborted) wake()
    })
  }
}
