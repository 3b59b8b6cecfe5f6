import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  DEPLOYMENT,
  POD,
  REPLICA_SET,
  type Render,
  renderer,
  STARTING_DEPLOYMENT,
  STARTING_POD,
} from './api-objects.ts'
import { answer } from './child.ts'
import { now } from './figures.ts'

/**
 * A fast API server, run as a child: `count` Deployments with one ReplicaSet and one Pod each, ready or, with `starting`,
 * not yet. Reads only; it answers what the informers and looks of the daemon ask, and counts it.
 */
const count = Number(process.argv[2])
const startsReady = process.argv[3] !== 'starting'

const kinds = {
  deployments: {
    kind: 'Deployment',
    api: 'apps/v1',
    ready: renderer(DEPLOYMENT),
    starting: renderer(STARTING_DEPLOYMENT),
    name: (id: number) => `web-${id}`,
  },
  pods: {
    kind: 'Pod',
    api: 'v1',
    ready: renderer(POD),
    starting: renderer(STARTING_POD),
    name: (id: number) => `web-${id}-6cbc7bf67c-x2k4p`,
  },
}
type Plural = keyof typeof kinds
const isPlural = (text: string): text is Plural => text in kinds
const replicaSet: Render = renderer(REPLICA_SET)

const FIRST_VERSION = 1_000_000
let version = FIRST_VERSION
const isReady = new Uint8Array(count).fill(startsReady ? 1 : 0)
const watches = {
  deployments: new Set<ServerResponse>(),
  pods: new Set<ServerResponse>(),
  jobs: new Set<ServerResponse>(),
}
const calls: Record<string, number> = {}
let lastListEnded = 0

const textOf = (plural: Plural, id: number, at: number): string =>
  kinds[plural][isReady[id] === 1 ? 'ready' : 'starting'](id, at)

/** As the API server has it: kind and apiVersion come first in a watch, and in what is read alone. */
const whole = (plural: Plural, id: number, at: number): string =>
  `{"kind":"${kinds[plural].kind}","apiVersion":"${kinds[plural].api}",${textOf(plural, id, at).slice(1)}`

const changed = (plural: Plural, id: number): string => {
  version += 1
  return `{"type":"MODIFIED","object":${whole(plural, id, version)}}\n`
}

/** A page of all, or the one of the workload that the label selector names. */
function list(plural: string, query: URLSearchParams): string {
  const selected = /^gobrave-workload=web-(\d+)$/.exec(query.get('labelSelector') ?? '')?.[1]
  const total = isPlural(plural) && plural !== undefined ? count : 0
  const from = selected === undefined ? Number(query.get('continue') ?? 0) : Number(selected)
  const limit = selected === undefined ? Number(query.get('limit') ?? total) : 1
  const to = Math.min(total, from + limit)
  const items: string[] = []
  for (let id = from; id < to && isPlural(plural); id += 1) items.push(textOf(plural, id, id + 1))
  const more = selected === undefined && to < total
  const metadata = JSON.stringify({ resourceVersion: String(version), ...(more ? { continue: String(to) } : {}) })
  if (!more) lastListEnded = now()
  const { kind, api } = isPlural(plural) ? kinds[plural] : { kind: 'Job', api: 'batch/v1' }
  return `{"kind":"${kind}List","apiVersion":"${api}","metadata":${metadata},"items":[${items.join(',')}]}`
}

/** One object by its name; the status 404 for others. */
function read(plural: string, name: string, response: ServerResponse): void {
  const id = Number(/^web-(\d+)/.exec(name)?.[1] ?? -1)
  if (id < 0 || id >= count || !(isPlural(plural) || plural === 'replicasets')) {
    response.statusCode = 404
    response.end('{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}')
  } else response.end(isPlural(plural) ? whole(plural, id, version) : replicaSet(id, id + 1))
}

async function emit(plural: Plural, events: number): Promise<void> {
  const [watch] = watches[plural]
  if (!watch) throw new Error(`nobody watches ${plural}`)
  for (let n = 0; n < events; ) {
    let text = ''
    for (let line = 0; line < 64 && n < events; line += 1, n += 1) text += changed(plural, (n * 7919) % count)
    if (!watch.write(text)) await once(watch, 'drain')
  }
}

/** Its pod, then the Deployment, as a cluster goes about it. Answers when the latter was written. */
function makeReady(id: number): number {
  isReady[id] = 1
  for (const plural of ['pods', 'deployments'] as const) {
    const line = changed(plural, id)
    for (const watch of watches[plural]) watch.write(line)
  }
  return now()
}

/** Answers the time of each change. Late timers are made up for, so the rate holds in the mean. */
async function makeAllReady({
  from,
  to,
  perSecond,
}: {
  from: number
  to: number
  perSecond: number
}): Promise<number[]> {
  const times: number[] = []
  const started = now()
  for (let id = from; id < to; ) {
    const due = Math.min(to, from + Math.floor(((now() - started) * perSecond) / 1000))
    for (; id < due; id += 1) times.push(makeReady(id))
    await sleep(1)
  }
  return times
}

function openWatch(plural: string, response: ServerResponse): void {
  response.flushHeaders()
  const open = watches[plural as keyof typeof watches]
  open?.add(response)
  response.once('close', () => open?.delete(response))
}

function handle(request: IncomingMessage, response: ServerResponse): void {
  const { pathname, searchParams } = new URL(request.url ?? '/', 'http://x')
  if (pathname === '/emit') {
    void emit(searchParams.get('kind') as Plural, Number(searchParams.get('events'))).then(() => response.end())
    return
  }
  const [, plural = '', name] = /\/(deployments|pods|jobs|replicasets|events)(?:\/([^/]+))?$/.exec(pathname) ?? []
  const verb = name !== undefined ? 'get' : searchParams.has('watch') ? 'watch' : 'list'
  const call = plural === '' ? pathname : `${verb} ${plural}`
  calls[call] = (calls[call] ?? 0) + 1
  response.setHeader('content-type', 'application/json')
  if (plural === '') response.end('{"major":"1","minor":"36","gitVersion":"v1.36.2"}')
  else if (verb === 'get') read(plural, name ?? '', response)
  else if (verb === 'watch') openWatch(plural, response)
  else response.end(list(plural, searchParams))
}

const server = createServer(handle)
server.keepAliveTimeout = 600_000
await once(server.listen(0, '127.0.0.1'), 'listening')

answer({
  url: () => `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
  calls: () => calls,
  watches: () => Math.min(...Object.values(watches).map(open => open.size)),
  lastListEnded: () => lastListEnded,
  makeReady: makeAllReady,
})
