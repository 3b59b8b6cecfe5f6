import type { ServerResponse } from 'node:http'
import type { TestContext } from 'node:test'
import type { KubeKind, ObjectMeta } from '../../src/kube/objects.ts'
import { type Handler, json, type Seen, type Served, serve, statusBody } from './serve.ts'

interface FakeObject {
  apiVersion: string
  kind: string
  metadata: ObjectMeta & { name: string; uid: string; resourceVersion: string }
  [field: string]: unknown
}
interface Watch {
  readonly response: ServerResponse
  /** Half-open: nothing of the server gets through any more. */
  dead: boolean
}
interface Rule {
  readonly match: (seen: Seen) => boolean
  left: number
  readonly act: Handler
}

export const isWatch = ({ query }: Seen): boolean => query.has('watch')
export const isList = (seen: Seen): boolean => !isWatch(seen)

/**
 * A list and watch endpoint of one collection, as the real API server does it where it matters here: versions, pages,
 * bookmarks, replay, 410 in the stream; and knobs for what goes wrong.
 */
export class FakeCollection {
  readonly objects = new Map<string, FakeObject>()
  readonly watches = new Set<Watch>()
  readonly served: Served
  readonly kind: KubeKind
  version = 100
  bookmarks = true
  /** While set, no change gets into any watch, nor into what a resumed one is told. */
  hidden = false
  #muted = false
  #oldest = 0
  #uids = 0
  #history: { version: number; line: string }[] = []
  #rules: Rule[] = []

  private constructor(kind: KubeKind, served: Served) {
    this.kind = kind
    this.served = served
  }

  static async start(t: TestContext, kind: KubeKind = 'Deployment'): Promise<FakeCollection> {
    const served = await serve(t, (...call) => fake.#handle(...call))
    const fake: FakeCollection = new FakeCollection(kind, served)
    const bookmarks = setInterval(() => fake.#bookmark(), 20)
    t.after(() => clearInterval(bookmarks))
    return fake
  }

  /** The next `times` requests that match are answered by `act`. */
  fail(match: (seen: Seen) => boolean, times: number, act: Handler): void {
    this.#rules.push({ match, left: times, act })
  }

  count(match: (seen: Seen) => boolean): number {
    return this.served.seen.filter(match).length
  }

  put(name: string, fields: Record<string, unknown> = {}): FakeObject {
    const known = this.objects.get(name)
    this.version += 1
    this.#uids += known ? 0 : 1
    const uid = known?.metadata.uid ?? `uid-${this.#uids}`
    const metadata = { namespace: 'ai', ...known?.metadata, name, uid, resourceVersion: String(this.version) }
    const object = { apiVersion: 'apps/v1', kind: this.kind, ...known, ...fields, metadata }
    this.objects.set(name, object)
    this.#emit(known ? 'MODIFIED' : 'ADDED', object)
    return object
  }

  remove(name: string): void {
    const known = this.objects.get(name)
    if (!known) throw new Error(`no ${name}`)
    this.version += 1
    this.objects.delete(name)
    this.#emit('DELETED', { ...known, metadata: { ...known.metadata, resourceVersion: String(this.version) } })
  }

  /** Versions pass that are not ours (other resources write). */
  pass(versions: number): void {
    this.version += versions
  }

  /** Older versions are forgotten: a watch from there is Expired. */
  compact(): void {
    this.#oldest = this.version
    this.#history = []
  }

  /** A backup was restored: the collection is as it is, at an earlier version. */
  travelBack(version: number): void {
    this.version = version
    this.#history = []
    this.#oldest = 0
    for (const object of this.objects.values()) object.metadata.resourceVersion = String(version)
  }

  /** Open watches fall silent for good, as do those opened while it is set. */
  set muted(muted: boolean) {
    this.#muted = muted
    for (const watch of this.watches) watch.dead ||= muted
  }

  /** Every open watch ends: properly, or by a reset. */
  closeWatches(how: 'end' | 'reset' = 'end'): void {
    for (const { response } of this.watches) {
      if (how === 'end') response.end()
      else response.destroy()
    }
  }

  /** Raw text into every open watch. */
  say(text: string): void {
    for (const { response, dead } of this.watches) dead || response.write(text)
  }

  #emit(type: string, object: FakeObject): void {
    const line = `${JSON.stringify({ type, object })}\n`
    if (this.hidden) return
    this.#history.push({ version: this.version, line })
    this.say(line)
  }

  #bookmark(): void {
    if (!this.bookmarks) return
    const metadata = { resourceVersion: String(this.version) }
    this.say(`${JSON.stringify({ type: 'BOOKMARK', object: { kind: this.kind, metadata } })}\n`)
  }

  #handle(...[seen, response, request]: Parameters<Handler>): void {
    const rule = this.#rules.find(({ match, left }) => left > 0 && match(seen))
    if (rule) {
      rule.left -= 1
      rule.act(seen, response, request)
    } else if (isWatch(seen)) this.#watch(seen, response)
    else this.#list(seen, response)
  }

  #list({ query }: Seen, response: ServerResponse): void {
    const limit = Number(query.get('limit') ?? 500)
    const from = Number(query.get('continue') ?? 0)
    const all = [...this.objects.values()]
    const next = from + limit < all.length ? String(from + limit) : ''
    const items = all.slice(from, from + limit).map(({ kind: _kind, apiVersion: _version, ...rest }) => rest)
    const metadata = { resourceVersion: String(this.version), continue: next }
    json(response, 200, { kind: `${this.kind}List`, metadata, items })
  }

  #watch({ query }: Seen, response: ServerResponse): void {
    const from = Number(query.get('resourceVersion'))
    response.writeHead(200, { 'content-type': 'application/json' })
    response.flushHeaders()
    response.on('error', () => {})
    if (from < this.#oldest) {
      response.end(`${JSON.stringify({ type: 'ERROR', object: statusBody(410, 'Expired', 'too old') })}\n`)
      return
    }
    const watch: Watch = { response, dead: this.#muted }
    const timer = setTimeout(() => watch.dead || response.end(), Number(query.get('timeoutSeconds')) * 1000)
    this.watches.add(watch)
    response.once('close', () => {
      clearTimeout(timer)
      this.watches.delete(watch)
    })
    if (watch.dead) return
    for (const { version, line } of this.#history) {
      if (version > from) response.write(line)
    }
  }
}
