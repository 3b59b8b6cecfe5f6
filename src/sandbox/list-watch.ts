import type { ServerResponse } from 'node:http'
import type { Faults } from './faults.ts'
import { textOf } from './json.ts'
import type { ObjectStore } from './object-store.ts'
import type { RequestFacts } from './request.ts'
import { apiVersionOf, type Resource, resourceOf } from './resources.ts'
import { type Predicate, parseFieldSelector, parseLabelSelector } from './selectors.ts'
import { badRequest, StatusError, tooLargeVersion } from './status-error.ts'
import { ResponseStream } from './stream.ts'
import type { Change, KubeObject } from './types.ts'

/** Seconds a watch lasts when it does not say (a real API server: 30 to 60 minutes). */
const WATCH_SECONDS = 2400
/** Consistent pages need the list as it was at its first page; so many of them are kept. */
const SNAPSHOTS = 16
const EXPIRED_CONTINUE =
  'The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list.'

interface Scope {
  resource: Resource
  namespace: string | undefined
  query: URLSearchParams
  select: Predicate | undefined
}

/** LIST and WATCH over the store: pages, selectors, resume, bookmarks, 410, as the API server does them. */
export class ListWatch {
  readonly #store: ObjectStore
  readonly #faults: Faults
  readonly #bookmarkMs: number
  readonly #snapshots = new Map<string, KubeObject[]>()

  constructor(store: ObjectStore, faults: Faults, bookmarkMs: number) {
    this.#store = store
    this.#faults = faults
    this.#bookmarkMs = bookmarkMs
  }

  /** The JSON text of a LIST. Throws 400, 410 Expired (an old continue token), 504 (a version from the future). */
  list(facts: RequestFacts): string {
    const scope = scopeOf(facts)
    const { query, resource } = scope
    const token = query.get('continue')
    const asked = query.get('resourceVersion')
    if (token === null && asked) this.#checkNotFuture(asked)
    const limit = asked === '0' && token === null ? 0 : Number(query.get('limit') ?? 0)
    const page =
      token === null ? { version: this.#faults.staleAt ?? this.#store.version, start: '' } : this.#decode(token)
    const all = this.#itemsAt(scope, page.version)
    const from = page.start === '' ? 0 : all.findIndex(object => sortKey(object) > page.start)
    const rest = from < 0 ? [] : all.slice(from)
    const items = limit > 0 ? rest.slice(0, limit) : rest
    const remaining = rest.length - items.length
    const metadata: Record<string, unknown> = { resourceVersion: String(page.version) }
    if (remaining > 0) {
      this.#keep(scope, page.version, all)
      metadata.continue = encodeToken(page.version, sortKey(items.at(-1)!))
      if (!scope.select) metadata.remainingItemCount = remaining
    }
    const head = `{"kind":"${resource.kind}List","apiVersion":"${apiVersionOf(resource)}","metadata":${JSON.stringify(metadata)},"items":[`
    return `${head}${items.map(textOf).join(',')}]}`
  }

  /** Answers a WATCH: headers at once, then events until timeoutSeconds, a fault or the client ends it. */
  watch(facts: RequestFacts, response: ServerResponse): void {
    const scope = scopeOf(facts)
    const asked = scope.query.get('resourceVersion') ?? ''
    if (!/^\d*$/.test(asked)) {
      throw new StatusError(500, 'InternalError', `strconv.ParseUint: parsing "${asked}": invalid syntax`, {
        causes: [{ reason: '', message: `strconv.ParseUint: parsing "${asked}": invalid syntax` }],
      })
    }
    const initial = scope.query.get('sendInitialEvents') === 'true'
    if (initial && scope.query.get('resourceVersionMatch') !== 'NotOlderThan') {
      throw new StatusError(
        422,
        'Invalid',
        'ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided',
        {},
      )
    }
    response.writeHead(200, { 'content-type': 'application/json', 'cache-control': 'no-cache, private' })
    response.flushHeaders()
    new Watch(
      { scope, store: this.#store, faults: this.#faults, bookmarkMs: this.#bookmarkMs },
      new ResponseStream(facts, response, this.#faults),
    ).start(asked, initial)
  }

  #itemsAt(scope: Scope, version: number): KubeObject[] {
    const { resource, namespace, select } = scope
    const kept = this.#snapshots.get(snapshotKey(scope, version))
    if (kept) return kept
    const all =
      version === this.#store.version
        ? this.#store.list(resource.plural, namespace)
        : this.#store.listAt(version, resource.plural, namespace)
    return select ? all.filter(select) : all
  }

  #keep(scope: Scope, version: number, items: KubeObject[]): void {
    this.#snapshots.set(snapshotKey(scope, version), items)
    if (this.#snapshots.size > SNAPSHOTS) this.#snapshots.delete(this.#snapshots.keys().next().value!)
  }

  #decode(token: string): { version: number; start: string } {
    let page: { version: number; start: string }
    try {
      const parsed = JSON.parse(Buffer.from(token, 'base64url').toString('utf8'))
      page = { version: Number(parsed.rv), start: String(parsed.start) }
    } catch {
      throw badRequest('continue key is not valid: illegal base64 data')
    }
    if (page.version === -1) return { version: this.#store.version, start: page.start }
    if (page.version >= this.#store.oldestVersion) return page
    const error = new StatusError(410, 'Expired', EXPIRED_CONTINUE)
    error.continueToken = encodeToken(-1, page.start)
    throw error
  }

  #checkNotFuture(asked: string): void {
    if (!/^\d+$/.test(asked))
      throw badRequest(
        `resourceVersion: Invalid value: "${asked}": strconv.ParseUint: parsing "${asked}": invalid syntax`,
      )
    if (Number(asked) > this.#store.version) throw tooLargeVersion(Number(asked), this.#store.version)
  }
}

interface WatchParts {
  scope: Scope
  store: ObjectStore
  faults: Faults
  bookmarkMs: number
}

/** One open watch: what it has sent so far, and its timers. */
class Watch {
  readonly #parts: WatchParts
  readonly #stream: ResponseStream
  #sent = 0

  constructor(parts: WatchParts, stream: ResponseStream) {
    this.#parts = parts
    this.#stream = stream
  }

  start(asked: string, initial: boolean): void {
    const { store, scope } = this.#parts
    if (initial && Number(asked) > store.version) {
      const timer = setTimeout(() => this.#fail(tooLargeVersion(Number(asked), store.version)), 3000)
      this.#stream.onClose(() => clearTimeout(timer))
      return
    }
    try {
      if (initial || asked === '' || asked === '0') this.#sendAll(initial)
      else {
        this.#sent = Number(asked)
        if (this.#sent <= store.version) for (const change of store.since(this.#sent)) this.#send(change)
      }
    } catch (error) {
      if (!(error instanceof StatusError)) throw error
      this.#fail(error)
      return
    }
    this.#stream.onClose(store.subscribe(change => this.#send(change)))
    this.#startTimers(Number(scope.query.get('timeoutSeconds') ?? 0) || WATCH_SECONDS)
  }

  #startTimers(seconds: number): void {
    const timers = [setTimeout(() => this.#stream.end(), seconds * 1000)]
    if (this.#parts.scope.query.get('allowWatchBookmarks') === 'true') {
      const every = setInterval(() => this.#bookmark(), this.#parts.bookmarkMs)
      timers.push(
        every,
        setTimeout(() => this.#bookmark(), seconds * 1000 - Math.min(2000, seconds * 250)),
      )
    }
    this.#stream.onClose(() => timers.forEach(clearTimeout))
  }

  #sendAll(mark: boolean): void {
    const { scope, store } = this.#parts
    for (const object of store.list(scope.resource.plural, scope.namespace)) {
      if (!scope.select || scope.select(object)) this.#line('ADDED', object)
    }
    this.#sent = store.version
    if (mark) this.#bookmark({ 'k8s.io/initial-events-end': 'true' })
  }

  #send(change: Change): void {
    if (change.version <= this.#sent) return
    this.#sent = change.version
    const { scope, faults } = this.#parts
    if (change.resource !== scope.resource.plural) return
    if (scope.namespace !== undefined && change.object.metadata.namespace !== scope.namespace) return
    const event = seenThrough(scope.select, change)
    if (event && !faults.hides(change)) this.#line(event.type, event.object)
  }

  #line(type: string, object: KubeObject): void {
    const { resource } = this.#parts.scope
    const corruption = this.#parts.faults.nextCorruption()
    if (corruption !== undefined) this.#stream.write(`${corruption}\n`)
    else {
      const head = `{"type":"${type}","object":{"kind":"${resource.kind}","apiVersion":"${apiVersionOf(resource)}",`
      this.#stream.write(`${head}${textOf(object).slice(1)}}\n`)
    }
  }

  /** A version that is safe to resume from. A watch from the future (the store went back) hears nothing, as at a real server. */
  #bookmark(annotations?: Record<string, string>): void {
    const { resource } = this.#parts.scope
    const { version } = this.#parts.store
    if (version < this.#sent) return
    const metadata = {
      resourceVersion: String(version),
      creationTimestamp: null,
      ...(annotations ? { annotations } : {}),
    }
    const object = { kind: resource.kind, apiVersion: apiVersionOf(resource), metadata, spec: {}, status: {} }
    this.#stream.write(`${JSON.stringify({ type: 'BOOKMARK', object })}\n`)
  }

  #fail(error: StatusError): void {
    this.#stream.write(`${JSON.stringify({ type: 'ERROR', object: error.body })}\n`)
    this.#stream.end()
  }
}

/** How a change looks to a watch with a selector: coming into view is ADDED, going out of view DELETED with what was last seen. */
function seenThrough(select: Predicate | undefined, change: Change): { type: string; object: KubeObject } | undefined {
  if (!select || change.type === 'ADDED') return !select || select(change.object) ? change : undefined
  const before = select(change.previous!)
  if (change.type === 'DELETED') return before ? change : undefined
  const after = select(change.object)
  if (before && after) return change
  if (after) return { type: 'ADDED', object: change.object }
  if (!before) return undefined
  const { resourceVersion } = change.object.metadata
  return {
    type: 'DELETED',
    object: { ...change.previous!, metadata: { ...change.previous!.metadata, resourceVersion } },
  }
}

function scopeOf(facts: RequestFacts): Scope {
  const resource = resourceOf(facts.resource!)
  const query = new URLSearchParams(facts.query)
  const byLabel = parseLabelSelector(query.get('labelSelector') ?? '')
  const byField = parseFieldSelector(query.get('fieldSelector') ?? '', resource)
  const byName: Predicate | undefined =
    facts.name === undefined ? undefined : object => object.metadata.name === facts.name
  const predicates = [byLabel, byField, byName].filter(predicate => predicate !== undefined)
  const select =
    predicates.length === 0 ? undefined : (object: KubeObject) => predicates.every(predicate => predicate(object))
  return { resource, namespace: facts.namespace, query, select }
}

const sortKey = (object: KubeObject): string => `${object.metadata.namespace ?? ''}/${object.metadata.name}`

const encodeToken = (version: number, start: string): string =>
  Buffer.from(JSON.stringify({ v: 'meta.k8s.io/v1', rv: version, start })).toString('base64url')

const snapshotKey = ({ resource, namespace, query }: Scope, version: number): string =>
  [resource.plural, namespace, version, query.get('labelSelector'), query.get('fieldSelector')].join('|')
