import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { mkdtempSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { createAuth } from '../../src/http/auth.ts'
import { startServer, type TestServer } from '../helpers/http-server.ts'
import { fill, operationsOf, readDocument } from '../helpers/openapi.ts'
import { raw } from '../helpers/raw-http.ts'

const SECRETS = { write: 'tok-write-Zq81', read: 'tok-read-Zq82', other: 'tok-other-Zq83', all: 'tok-all-Zq84' }
const ENTRIES = [
  { name: 'writer', token: SECRETS.write, namespaces: ['ai'], access: 'write' },
  {
    name: 'reader',
    sha256: createHash('sha256').update(SECRETS.read).digest('hex'),
    namespaces: ['ai'],
    access: 'read',
  },
  { name: 'other', token: SECRETS.other, namespaces: ['elsewhere', 'beyond'], access: 'write' },
  { name: 'all', token: SECRETS.all, namespaces: ['*'], access: 'write' },
]
const ID = 'k8s-ai|deployment|web'

function tokensFile(t: TestContext, entries: unknown = ENTRIES): string {
  const folder = mkdtempSync(join(tmpdir(), 'runtimed-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'tokens.json')
  writeFileSync(file, typeof entries === 'string' ? entries : JSON.stringify(entries))
  return file
}

const bearer = (token: string) => ({ authorization: `Bearer ${token}` })
const withTokens = (t: TestContext, namespaces: readonly string[] = ['ai', 'elsewhere']) =>
  startServer(t, { auth: { tokensFile: tokensFile(t), namespaces } })

const BODIES: Readonly<Record<string, unknown>> = {
  createRuntime: { image: 'a', name: 'made', namespace: 'ai' },
  preflightImage: { image: 'a' },
  adoptRuntimes: { ids: [ID], action: 'adopt' },
}
const QUERIES: Readonly<Record<string, string>> = { waitRuntime: '?for=running&timeout=0' }

async function status(server: TestServer, operationId: string, headers: Record<string, string>): Promise<number> {
  const operation = operationsOf(readDocument()).find(({ id }) => id === operationId)!
  const body = BODIES[operationId]
  const reply = await fetch(server.url + fill(operation.path, ID) + (QUERIES[operationId] ?? ''), {
    method: operation.method,
    headers: body === undefined ? headers : { ...headers, 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  await reply.body?.cancel()
  return reply.status
}

const SUCCESS = [200, 201, 202, 501]
const OPEN = ['getLiveness', 'getReadiness']
/** Operations that name no namespace; another namespace's token sees them, empty. */
const GLOBAL = [
  'listRuntimes',
  'listEvents',
  'streamEvents',
  'getAdoption',
  'listBackends',
  'listMonitored',
  'getMetrics',
  'preflightImage',
]

for (const { id, method } of operationsOf(readDocument())) {
  test(`U4, F-52: ${id} by every role`, async t => {
    const server = await withTokens(t)
    server.services.add(ID)
    const isOpen = OPEN.includes(id)
    const loopbackPage = id === 'getMetrics'
    for (const headers of [{}, { authorization: '' }, { authorization: 'Bearer' }, { authorization: 'Basic dDp0' }]) {
      const got = await status(server, id, headers as Record<string, string>)
      if (isOpen || loopbackPage) assert.equal(got, 200)
      else assert.equal(got, 401, JSON.stringify(headers))
    }
    for (const wrong of [
      'wrong',
      `${SECRETS.write} `.repeat(2).trim(),
      'x'.repeat(5000),
      SECRETS.write.toLowerCase(),
    ]) {
      const got = await status(server, id, bearer(wrong))
      if (isOpen) assert.equal(got, 200)
      else if (loopbackPage) assert.ok([200, 401].includes(got))
      else assert.equal(got, 401, wrong)
    }
    const read = await status(server, id, bearer(SECRETS.read))
    if (method === 'GET') assert.ok(SUCCESS.includes(read), `read: ${read}`)
    else assert.equal(read, 403)
    const other = await status(server, id, bearer(SECRETS.other))
    if (isOpen || GLOBAL.includes(id)) assert.ok(SUCCESS.includes(other), `other: ${other}`)
    else assert.equal(other, 403)
    for (const token of [SECRETS.write, SECRETS.all]) {
      const got = await status(server, id, bearer(token))
      assert.ok(SUCCESS.includes(got), `write: ${got}`)
      server.services.add(ID)
      server.services.rows.delete('k8s-ai|deployment|made')
    }
    for (const secret of Object.values(SECRETS))
      assert.ok(!server.lines.join('').includes(secret), 'a token in the log')
  })
}

test('F-52: lists and feed show a token its own namespaces alone, within those of the daemon', async t => {
  const server = await withTokens(t)
  for (const namespace of ['ai', 'elsewhere', 'beyond']) {
    server.services.add(`k8s-${namespace}|job|a`)
    server.services.emit(`k8s-${namespace}|job|a`, 'ContainerStarted')
  }
  const get = async (path: string, token: string) =>
    (await (await fetch(server.url + path, { headers: bearer(token) })).json()) as {
      items: Array<Record<string, string>>
    }
  const seen = async (path: string, key: string, token: string) => (await get(path, token)).items.map(item => item[key])
  assert.deepEqual(await seen('/v1/runtimes', 'namespace', SECRETS.write), ['ai'])
  assert.deepEqual(await seen('/v1/runtimes', 'namespace', SECRETS.other), ['elsewhere'])
  assert.deepEqual(await seen('/v1/runtimes', 'namespace', SECRETS.all), ['ai', 'elsewhere'])
  assert.deepEqual(await seen('/v1/events', 'runtimeId', SECRETS.other), ['k8s-elsewhere|job|a'])
  assert.deepEqual((await get('/v1/monitoring', SECRETS.read)).items, ['k8s-ai|job|a'] as never)
  const filtered = await fetch(`${server.url}/v1/events?namespace=elsewhere`, { headers: bearer(SECRETS.write) })
  assert.equal(((await filtered.json()) as { code: string }).code, 'NAMESPACE_NOT_ALLOWED')
})

test('F-52: 401 carries WWW-Authenticate; two Authorization lines are none', async t => {
  const server = await withTokens(t)
  const line = `Authorization: Bearer ${SECRETS.write}\r\n`
  const once = await raw(server.port, `GET /v1/runtimes HTTP/1.1\r\nHost: a\r\n${line}\r\n`)
  assert.equal(once.status, 200)
  const twice = await raw(server.port, `GET /v1/runtimes HTTP/1.1\r\nHost: a\r\n${line}${line}\r\n`)
  assert.equal(twice.status, 401)
  assert.match(twice.head, /www-authenticate: Bearer/i)
})

test('U4: TOKENS_FILE is read again when it changes; a bad one leaves the old tokens in force and is told once', async t => {
  const file = tokensFile(t)
  const faults: unknown[] = []
  const server = await startServer(t, {
    auth: { tokensFile: file, namespaces: '*', recheckMs: 0, onBadFile: fault => faults.push(fault) },
  })
  const works = async (token: string) => (await fetch(`${server.url}/v1/runtimes`, { headers: bearer(token) })).status
  const rewrite = (text: string, second: number) => {
    writeFileSync(file, text)
    utimesSync(file, second, second)
  }
  assert.equal(await works(SECRETS.write), 200)
  rewrite(JSON.stringify([{ name: 'new', token: 'tok-new', namespaces: ['*'], access: 'read' }]), 1000)
  assert.deepEqual([await works(SECRETS.write), await works('tok-new')], [401, 200])
  rewrite('{ broken tok-new', 2000)
  assert.deepEqual([await works('tok-new'), await works('tok-new')], [200, 200])
  rmSync(file)
  assert.equal(await works('tok-new'), 200)
  assert.equal(faults.length, 2)
  assert.ok(!String(faults[0]).includes('tok-new'), 'the fault quotes the file')
  writeFileSync(file, JSON.stringify(ENTRIES))
  assert.deepEqual([await works('tok-new'), await works(SECRETS.write)], [401, 200])
})

const BAD_FILES: ReadonlyArray<[what: string, text: string, says: RegExp]> = [
  ['no JSON', 'x', /not JSON/],
  ['no list', '{}', /expected array/],
  ['an empty list', '[]', /lock everyone out/],
  ['neither token nor sha256', '[{"name":"a","namespaces":["*"],"access":"read"}]', /either token or sha256/],
  [
    'both',
    `[{"name":"a","token":"b","sha256":"${'a'.repeat(64)}","namespaces":["*"],"access":"read"}]`,
    /either token or/,
  ],
  ['a short sha256', '[{"name":"a","sha256":"ab","namespaces":["*"],"access":"read"}]', /64 hex/],
  ['no namespaces', '[{"name":"a","token":"b","namespaces":[],"access":"read"}]', /namespaces/],
  ['another access', '[{"name":"a","token":"b","namespaces":["*"],"access":"admin"}]', /access/],
  ['an unknown key', '[{"name":"a","token":"b","namespaces":["*"],"access":"read","x":1}]', /Unrecognized key/],
  [
    'one token twice',
    '[{"name":"a","token":"b","namespaces":["*"],"access":"read"},{"name":"c","token":"b","namespaces":["*"],"access":"write"}]',
    /same token/,
  ],
]
for (const [what, text, says] of BAD_FILES) {
  test(`U4: a TOKENS_FILE with ${what} stops the start`, t => {
    const tokensFileNow = tokensFile(t, text)
    const start = () =>
      createAuth({ tokensFile: tokensFileNow, namespaces: '*', allowAnonymous: false, onBadFile: () => {} })
    assert.throws(start, says)
  })
}

test('U4: a TOKENS_FILE that is missing stops the start', () => {
  const start = () =>
    createAuth({ tokensFile: '/nowhere/at/all', namespaces: '*', allowAnonymous: false, onBadFile: () => {} })
  assert.throws(start, /TOKENS_FILE: \/nowhere\/at\/all does not exist/)
})

const get = (port: number, path: string, headers: string) =>
  raw(port, `GET ${path} HTTP/1.1\r\n${headers}Connection: close\r\n\r\n`)

const HOSTS: ReadonlyArray<[headers: string, own: boolean]> = [
  ['Host: localhost\r\n', true],
  ['Host: LOCALHOST:8080\r\n', true],
  ['Host: 127.0.0.1:1\r\n', true],
  ['Host: 127.9.9.9\r\n', true],
  ['Host: [::1]:8080\r\n', true],
  ['Host: localhost:8080\r\nOrigin: http://localhost:8080\r\n', true],
  ['Host: evil.example\r\n', false],
  ['Host: localhost.evil.example\r\n', false],
  ['Host: 127.0.0.1.evil.example\r\n', false],
  ['Host: 10.0.0.1\r\n', false],
  ['Host: 128.0.0.1\r\n', false],
  ['Host: evil@localhost\r\n', false],
  ['Host:\r\n', false],
  ['Host: localhost\r\nOrigin: http://evil.example\r\n', false],
  ['Host: localhost\r\nOrigin: null\r\n', false],
  ['Host: localhost:8080\r\nOrigin: http://localhost:9090\r\n', false],
]
for (const [headers, own] of HOSTS) {
  test(`U4: without tokens, ${JSON.stringify(headers)} is ${own ? 'served' : '403'} on every path save probes`, async t => {
    const server = await startServer(t)
    for (const path of ['/v1/runtimes', '/v1/events/stream', '/metrics', '/openapi.json', '/docs']) {
      if (own && path.endsWith('stream')) continue
      const reply = await get(server.port, path, headers)
      assert.equal(reply.status, own ? 200 : 403, path)
      if (!own) assert.equal(JSON.parse(reply.body).code, 'FORBIDDEN')
    }
    assert.equal((await get(server.port, '/livez', headers)).status, 200)
  })
}

test('design 11.1: ALLOW_ANONYMOUS lifts the Host check, not the Origin check; tokens lift both', async t => {
  const anonymous = await startServer(t, { auth: { allowAnonymous: true } })
  assert.equal((await get(anonymous.port, '/v1/runtimes', 'Host: pod.example\r\n')).status, 200)
  assert.equal((await get(anonymous.port, '/v1/runtimes', 'Host: a\r\nOrigin: http://b\r\n')).status, 403)
  const guarded = await withTokens(t)
  const headers = `Host: a\r\nOrigin: http://b\r\nAuthorization: Bearer ${SECRETS.read}\r\n`
  assert.equal((await get(guarded.port, '/v1/runtimes', headers)).status, 200)
})
