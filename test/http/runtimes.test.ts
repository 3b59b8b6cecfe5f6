import assert from 'node:assert/strict'
import { test } from 'node:test'
import { RuntimeError } from '../../src/errors.ts'
import { startServer, type TestServer } from '../helpers/http-server.ts'

const WEB = 'k8s-default|deployment|web'
const pathOf = (id: string): string => `/v1/runtimes/${encodeURIComponent(id)}`

async function call(
  server: TestServer,
  method: string,
  path: string,
  body?: unknown,
  headers: Record<string, string> = {},
) {
  const init: RequestInit = { method, headers }
  if (body !== undefined) {
    init.body = typeof body === 'string' ? body : JSON.stringify(body)
    init.headers = { 'content-type': 'application/json', ...headers }
  }
  const reply = await fetch(server.url + path, init)
  const text = await reply.text()
  const isJson = (reply.headers.get('content-type') ?? '').includes('json')
  return { status: reply.status, headers: reply.headers, text, json: isJson && text !== '' ? JSON.parse(text) : null }
}

test('U1, C1: create answers 201 with Location, and every verb by the ID alone answers the fresh resource', async t => {
  const server = await startServer(t)
  const made = await call(server, 'POST', '/v1/runtimes', { image: 'busybox', name: 'web', labels: { team: 'a' } })
  assert.equal(made.status, 201)
  assert.equal(made.headers.get('location'), pathOf(WEB))
  assert.equal(made.json.id, WEB)
  assert.equal(made.json.createdAt, '2026-01-02T03:04:05.006Z')
  assert.equal(made.json.endedAt, null)
  for (const [verb, state] of Object.entries({
    stop: 'stopped',
    start: 'running',
    pause: 'stopped',
    resume: 'running',
  })) {
    const reply = await call(server, 'POST', `${pathOf(WEB)}/${verb}`)
    assert.equal(reply.status, 202, verb)
    assert.equal(reply.json.state, state, verb)
    assert.equal(reply.headers.get('location'), pathOf(WEB))
  }
  const seen = await call(server, 'GET', pathOf(WEB))
  assert.equal(seen.json.spec.image, 'busybox')
  assert.deepEqual(seen.json.events, [])
  const gone = await call(server, 'DELETE', pathOf(WEB))
  assert.equal(gone.status, 202)
  assert.equal(gone.json.state, 'deleted')
  assert.equal((await call(server, 'GET', pathOf(WEB))).json.code, 'RUNTIME_NOT_FOUND')
})

test('C14: dryRun=render shows objects and creates nothing', async t => {
  const server = await startServer(t)
  const reply = await call(server, 'POST', '/v1/runtimes?dryRun=render', { image: 'busybox', name: 'web' })
  assert.equal(reply.status, 200)
  assert.equal(reply.json.objects[0].kind, 'Deployment')
  assert.equal(server.services.rows.size, 0)
  assert.equal((await call(server, 'POST', '/v1/runtimes?dryRun=true', { image: 'busybox' })).status, 400)
})

test('C10: the Idempotency-Key reaches the service as sent, and only 1 to 255 visible ASCII is one', async t => {
  const server = await startServer(t)
  const body = { image: 'busybox', name: 'web' }
  const key = { 'idempotency-key': 'k!~'.padEnd(255, 'x') }
  assert.equal((await call(server, 'POST', '/v1/runtimes', body, key)).status, 201)
  assert.equal((await call(server, 'POST', '/v1/runtimes', body, key)).status, 201)
  assert.equal((await call(server, 'POST', '/v1/runtimes', body)).json.code, 'RUNTIME_EXISTS')
  const other = await call(server, 'POST', '/v1/runtimes', { ...body, port: 1 }, key)
  assert.equal(other.json.code, 'IDEMPOTENCY_KEY_REUSED')
  for (const bad of ['a b', 'x'.repeat(256), 'é', '']) {
    const reply = await call(server, 'POST', '/v1/runtimes', body, { 'idempotency-key': bad })
    assert.equal(reply.status, 400, `"${bad}"`)
    assert.equal(reply.json.errors[0].path, 'idempotency-key')
  }
})

const REFUSED: ReadonlyArray<[what: string, body: unknown, path: string]> = [
  ['an unknown field', { image: 'a', privileged: true }, '/privileged'],
  [
    'an unknown field within a volume',
    { image: 'a', volumes: [{ source: '/data/a', target: '/a', x: 1 }] },
    '/volumes/0/x',
  ],
  [
    'an unknown field within a constraint',
    { image: 'a', schedulingConstraints: [{ type: 'node', key: 'a', operator: 'In', hostNetwork: 1 }] },
    '/schedulingConstraints/0/hostNetwork',
  ],
  ['an unknown field with a slash', { image: 'a', 'a/b~c': 1 }, '/a~1b~0c'],
  ['a number as env value', { image: 'a', env: { PORT: 8080 } }, '/env/PORT'],
  ['a text as port', { image: 'a', port: '8080' }, '/port'],
  ['port 70000', { image: 'a', port: 70_000 }, '/port'],
  ['a negative port', { image: 'a', port: -1 }, '/port'],
  ['a fraction as port', { image: 'a', port: 80.5 }, '/port'],
  ['null', { image: 'a', workdir: null }, '/workdir'],
  ['null within', { image: 'a', env: { A: null } }, '/env/A'],
  ['a text as boolean', { image: 'a', start: 'true' }, '/start'],
  ['kind pod', { image: 'a', kind: 'pod' }, '/kind'],
  ['kind daemonset', { image: 'a', kind: 'daemonset' }, '/kind'],
  ['an unknown pull policy', { image: 'a', imagePullPolicy: 'Sometimes' }, '/imagePullPolicy'],
  ['a list as cpu', { image: 'a', cpu: [] }, '/cpu'],
  ['no image', {}, '/image'],
  ['a list', [], ''],
  ['no object', '"text"', ''],
]
for (const [what, body, path] of REFUSED) {
  test(`C2, C15, D10, F-50: a create with ${what} is 400, names the field and makes nothing`, async t => {
    const server = await startServer(t)
    const reply = await call(server, 'POST', '/v1/runtimes', body)
    assert.equal(reply.status, 400)
    assert.equal(reply.json.code, 'REQUEST_INVALID')
    assert.deepEqual(
      reply.json.errors.map((error: { path: string }) => error.path),
      [path],
    )
    assert.deepEqual(server.services.calls, [])
  })
}

test('F-50: __proto__ and a constructor with a prototype are 400; an own label key "constructor" is data', async t => {
  const server = await startServer(t)
  for (const text of ['{"image":"a","__proto__":{"x":1}}', '{"image":"a","env":{"constructor":{"prototype":{}}}}']) {
    assert.equal((await call(server, 'POST', '/v1/runtimes', text)).json.code, 'REQUEST_INVALID', text)
  }
  const fine = await call(server, 'POST', '/v1/runtimes', { image: 'a', name: 'web', labels: { constructor: 'x' } })
  assert.equal(fine.json.labels.constructor, 'x')
})

test('D10, C1, D15: port 0, blanks and any case of the pull policy are accepted', async t => {
  const server = await startServer(t)
  const body = {
    image: 'a',
    name: 'web',
    port: 0,
    kind: ' ',
    runtime: '',
    namespace: ' ',
    workdir: '',
    user: ' ',
    imagePullPolicy: 'ALWAYS',
  }
  const reply = await call(server, 'POST', '/v1/runtimes', body)
  assert.equal(reply.status, 201)
  assert.equal(reply.json.id, WEB)
  const { spec } = (await call(server, 'GET', pathOf(WEB))).json
  assert.equal(spec.port, null)
  assert.equal(spec.imagePullPolicy, 'Always')
})

test('design 11.25: a JSON key given twice: the last wins', async t => {
  const server = await startServer(t)
  const reply = await call(server, 'POST', '/v1/runtimes', '{"image":"a","name":"one","name":"two"}')
  assert.equal(reply.json.name, 'two')
})

test('list: filters, page after page, and nothing of another namespace', async t => {
  const server = await startServer(t, { auth: { namespaces: ['default', 'ai'] } })
  for (const name of ['c', 'a', 'b']) server.services.add(`k8s-default|job|${name}`, { n: name })
  server.services.add('k8s-ai|job|a')
  server.services.add('k8s-other|job|a')
  const ids: string[] = []
  let cursor: string | null = ''
  while (cursor !== null) {
    const after: string = cursor === '' ? '' : `&cursor=${encodeURIComponent(cursor)}`
    const page = await call(server, 'GET', `/v1/runtimes?limit=1&kind=job${after}`)
    assert.equal(page.json.items.length, 1)
    ids.push(page.json.items[0].id)
    cursor = page.json.nextCursor
  }
  assert.deepEqual(ids, ['k8s-ai|job|a', 'k8s-default|job|a', 'k8s-default|job|b', 'k8s-default|job|c'])
  assert.equal((await call(server, 'GET', '/v1/runtimes?namespace=ai')).json.items.length, 1)
  assert.equal((await call(server, 'GET', '/v1/runtimes?state=running&state=failed')).json.items.length, 4)
  assert.equal((await call(server, 'GET', '/v1/runtimes?namespace=other')).json.code, 'NAMESPACE_NOT_ALLOWED')
  assert.equal((await call(server, 'GET', '/v1/runtimes?cursor=%21')).json.code, 'REQUEST_INVALID')
  assert.equal((await call(server, 'GET', '/v1/runtimes?labelSelector=a%20in')).json.code, 'SELECTOR_INVALID')
})

test('B-76: a label value in a selector is percent-encoded once, + and % and unicode included', async t => {
  const server = await startServer(t)
  server.services.add('k8s-default|job|a', { team: 'a.b-c_d' })
  server.services.add('k8s-default|job|b', { team: 'x' })
  const list = (selector: string) => call(server, 'GET', `/v1/runtimes?labelSelector=${selector}`)
  for (const selector of ['team%3Da.b-c_d', 'team=a.b-c_d', 'team+in+%28a.b-c_d%2Cz%29', 'team%20in%20(a.b-c_d)']) {
    assert.deepEqual(
      (await list(selector)).json.items.map((item: { name: string }) => item.name),
      ['a'],
      selector,
    )
  }
  for (const illegal of ['team%3D%25', 'team%3D%2B', 'team%3D%C3%A9', 'team%253Da']) {
    const reply = await list(illegal)
    assert.equal(reply.json.code, 'SELECTOR_INVALID', illegal)
  }
})

const BAD_QUERIES: readonly string[] = [
  '/v1/runtimes?limit=0',
  '/v1/runtimes?limit=1001',
  '/v1/runtimes?limit=1e2',
  '/v1/runtimes?limit=0x10',
  '/v1/runtimes?limit=',
  '/v1/runtimes?limit=%201',
  '/v1/runtimes?limit=1&limit=2',
  '/v1/runtimes?namespace=',
  '/v1/runtimes?state=Running',
  '/v1/runtimes?kind=Job',
  '/v1/runtimes?unknown=1',
  `${pathOf(WEB)}?x=1`,
  `${pathOf(WEB)}/wait`,
  `${pathOf(WEB)}/wait?for=stopped`,
  `${pathOf(WEB)}/wait?for=running&timeout=601`,
  `${pathOf(WEB)}/wait?for=running&timeout=-1`,
  `${pathOf(WEB)}/logs?tail=-1`,
  `${pathOf(WEB)}/logs?tail=text`,
  `${pathOf(WEB)}/logs?tail=`,
  `${pathOf(WEB)}/logs?follow=yes`,
  `${pathOf(WEB)}/logs?limitBytes=0`,
  `${pathOf(WEB)}/logs?limitBytes=67108865`,
  `${pathOf(WEB)}/logs?since=yesterday`,
  `${pathOf(WEB)}/logs?since=-1`,
  `${pathOf(WEB)}/logs?container=../x`,
  '/v1/events?after=x',
  '/v1/events?limit=5001',
  '/v1/events?type=Unknown',
  '/v1/events/stream?limit=1',
  '/v1/monitoring?x=1',
  '/v1/backends?x=1',
  '/metrics?x=1',
]
test('L1, B-68, S3: every malformed query is 400, names the parameter, and asks no service', async t => {
  const server = await startServer(t)
  server.services.add(WEB)
  for (const path of BAD_QUERIES) {
    const reply = await call(server, 'GET', path)
    assert.equal(reply.status, 400, path)
    assert.equal(reply.json.code, 'REQUEST_INVALID', path)
    assert.notEqual(reply.json.errors[0].path, '', path)
  }
  assert.equal((await call(server, 'POST', `${pathOf(WEB)}/start?force=true`)).status, 400)
  assert.deepEqual(server.services.calls, [])
})

test('B-68: wait answers at once with timeout=0, takes 0 to 600, and reached tells', async t => {
  const server = await startServer(t)
  server.services.add(WEB)
  const no = await call(server, 'GET', `${pathOf(WEB)}/wait?for=ended&timeout=0`)
  assert.deepEqual([no.status, no.json.reached, no.json.runtime.id], [200, false, WEB])
  const yes = await call(server, 'GET', `${pathOf(WEB)}/wait?for=running&timeout=600&run=1`)
  assert.equal(yes.json.reached, true)
})

test('wait is given up as soon as its caller is gone', async t => {
  const server = await startServer(t)
  server.services.add(WEB)
  const leave = new AbortController()
  const waiting = fetch(`${server.url}${pathOf(WEB)}/wait?for=ended`, { signal: leave.signal }).catch(() => 'left')
  while (server.services.signals.length === 0) await new Promise(resolve => setImmediate(resolve))
  const [signal] = server.services.signals
  assert.equal(signal?.aborted, false)
  const aborted = new Promise(resolve => signal?.addEventListener('abort', resolve))
  leave.abort()
  assert.equal(await waiting, 'left')
  await aborted
})

test('N4, U1: exec is 501, after the ID and the namespace were looked at', async t => {
  const server = await startServer(t, { auth: { namespaces: ['default'] } })
  assert.equal((await call(server, 'POST', `${pathOf(WEB)}/exec`, { command: ['ls'] })).json.code, 'NOT_IMPLEMENTED')
  assert.equal((await call(server, 'POST', `${pathOf('k8s-ai|job|a')}/exec`)).json.code, 'NAMESPACE_NOT_ALLOWED')
  assert.equal((await call(server, 'POST', '/v1/runtimes/x/exec')).json.code, 'RUNTIME_ID_INVALID')
})

test('N1, N2: preflight', async t => {
  const server = await startServer(t)
  const preflight = (body: unknown) => call(server, 'POST', '/v1/images/preflight', body)
  assert.deepEqual((await preflight({ image: 'a' })).json, { accepted: true, imagePullPolicy: 'IfNotPresent' })
  assert.equal((await preflight({ image: 'a', imagePullPolicy: 'always' })).json.imagePullPolicy, 'Always')
  assert.equal((await preflight({ image: 'a', imagePullPolicy: 'Never' })).json.code, 'IMAGE_REFUSED')
  assert.equal((await preflight({ image: 'a', imagePullPolicy: 'Sometimes' })).status, 400)
  assert.equal((await preflight({ image: ' ' })).status, 400)
})

test('HTTP habits: HEAD as GET, trailing slash 404, 405 with Allow, 415, empty bodies, any Accept', async t => {
  const server = await startServer(t)
  server.services.add(WEB)
  const json = { 'content-type': 'application/json' }
  const head = await fetch(server.url + pathOf(WEB), { method: 'HEAD' })
  assert.deepEqual([head.status, await head.text()], [200, ''])
  for (const path of ['/v1/runtimes/', `${pathOf(WEB)}/`, '/v1/events/', '/livez/', '/nothing']) {
    assert.equal((await call(server, 'GET', path)).json.code, 'ROUTE_NOT_FOUND', path)
  }
  const put = await call(server, 'PUT', '/v1/runtimes', '{broken', json)
  assert.deepEqual(
    [put.status, put.json.code, put.headers.get('allow')],
    [405, 'METHOD_NOT_ALLOWED', 'GET, HEAD, POST'],
  )
  assert.equal((await call(server, 'GET', `${pathOf(WEB)}/start`)).headers.get('allow'), 'POST')
  assert.equal((await call(server, 'OPTIONS', pathOf(WEB))).headers.get('allow'), 'DELETE, GET, HEAD')
  for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'application/xml']) {
    const reply = await call(server, 'POST', '/v1/runtimes', '{"image":"a"}', { 'content-type': type })
    assert.equal(reply.json.code, 'MEDIA_TYPE_UNSUPPORTED', type)
    assert.equal((await call(server, 'POST', `${pathOf(WEB)}/stop`, '', { 'content-type': type })).status, 202, type)
  }
  const gzip = await call(server, 'POST', '/v1/runtimes', '{"image":"a"}', { ...json, 'content-encoding': 'gzip' })
  assert.equal(gzip.json.code, 'MEDIA_TYPE_UNSUPPORTED')
  assert.equal((await call(server, 'DELETE', pathOf(WEB), undefined, json)).status, 202)
  assert.equal((await call(server, 'POST', `${pathOf(WEB)}/start`, {})).status, 202)
  assert.equal((await call(server, 'POST', `${pathOf(WEB)}/start`, { force: true })).status, 400)
  assert.equal((await call(server, 'POST', '/v1/runtimes', undefined, json)).json.code, 'REQUEST_INVALID')
  for (const accept of ['application/problem+json', 'text/html', '*/*', 'nonsense', '']) {
    assert.equal((await call(server, 'GET', pathOf(WEB), undefined, { accept })).status, 200, accept)
  }
})

test('S1, S3: a RuntimeError of a service is its code and status, with what it carries and not its cause', async t => {
  const server = await startServer(t)
  server.services.fail = new RuntimeError('QUOTA_EXCEEDED', 'cannot create: the quota is used up', {
    runtimeId: WEB,
    reason: 'Forbidden',
    errors: [{ path: '/cpu', message: 'too much' }],
    cause: new Error('a cause'),
  })
  const reply = await call(server, 'POST', '/v1/runtimes', { image: 'a', name: 'web' })
  assert.equal(reply.status, 409)
  assert.equal(reply.headers.get('content-type'), 'application/problem+json; charset=utf-8')
  const { requestId, ...problem } = reply.json
  assert.equal(reply.headers.get('x-request-id'), requestId)
  assert.deepEqual(problem, {
    type: 'https://runtimed.dev/problems#QUOTA_EXCEEDED',
    title: 'Quota exceeded',
    status: 409,
    code: 'QUOTA_EXCEEDED',
    detail: 'cannot create: the quota is used up',
    errors: [{ path: '/cpu', message: 'too much' }],
    runtimeId: WEB,
    reason: 'Forbidden',
  })
})

test('Retry-After stands on every 429 and 503, and on what asks for it', async t => {
  const server = await startServer(t)
  server.services.add(WEB)
  const cases = [
    [new RuntimeError('STORAGE_UNAVAILABLE', 'cannot write'), '5'],
    [new RuntimeError('BACKEND_UNAVAILABLE', 'cannot reach it', { retryAfterSeconds: 2.2 }), '3'],
    [new RuntimeError('TOO_MANY_REQUESTS', 'cannot take more'), '1'],
    [new RuntimeError('RUNTIME_BUSY', 'cannot now'), null],
  ] as const
  for (const [error, expected] of cases) {
    server.services.fail = error
    const reply = await call(server, 'GET', pathOf(WEB))
    assert.deepEqual([reply.status, reply.headers.get('retry-after')], [error.status, expected])
  }
})

test('A6, T2: readyz is 503 with its checks, livez stays 200; backends and monitoring answer', async t => {
  const server = await startServer(t)
  server.services.add(WEB)
  server.services.ready = false
  const ready = await call(server, 'GET', '/readyz')
  assert.deepEqual([ready.status, ready.json.status, ready.json.checks[0].reason], [503, 'unavailable', 'not synced'])
  assert.equal((await call(server, 'GET', '/livez')).status, 200)
  assert.equal((await call(server, 'GET', '/v1/backends')).json.items[0].informers[0].kind, 'Deployment')
  assert.deepEqual((await call(server, 'GET', '/v1/monitoring')).json, { items: [WEB], total: 1 })
})

test('K9, T3: adoption report and acts', async t => {
  const server = await startServer(t)
  const report = await call(server, 'GET', '/v1/adoption')
  assert.deepEqual([report.json.at, report.json.adopted], ['2026-01-02T03:04:05.006Z', ['k8s-default|job|a']])
  const done = await call(server, 'POST', '/v1/adoption', { ids: ['k8s-default|job|a'], action: 'adopt' })
  assert.deepEqual(done.json.items, [{ id: 'k8s-default|job|a', done: false, code: 'RUNTIME_NOT_FOUND' }])
  for (const body of [{ ids: [], action: 'adopt' }, { ids: ['a'], action: 'take' }, { ids: ['a'] }]) {
    assert.equal((await call(server, 'POST', '/v1/adoption', body)).status, 400)
  }
})
