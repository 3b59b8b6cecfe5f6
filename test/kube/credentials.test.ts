import assert from 'node:assert/strict'
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { isRuntimeError } from '../../src/errors.ts'
import { KubeClient } from '../../src/kube/client.ts'
import { Credentials } from '../../src/kube/credentials.ts'
import type { ClusterAccess } from '../../src/kube/kube-config.ts'
import { access, json, serve, statusBody, transportTo, within } from './serve.ts'
import { one, two } from './tls-fixture.ts'

const folder = (t: TestContext): string => {
  const path = mkdtempSync(join(tmpdir(), 'runtimed-'))
  t.after(() => rmSync(path, { recursive: true }))
  return path
}

/** An API server that takes one token. */
async function guarded(t: TestContext, token: () => string) {
  return await serve(t, ({ headers }, response) =>
    headers.authorization === `Bearer ${token()}`
      ? json(response, 200, { gitVersion: 'v1' })
      : json(response, 401, statusBody(401, 'Unauthorized')),
  )
}

test('B-23: a rotated token file is read again when its time is over', async t => {
  const file = join(folder(t), 'token')
  writeFileSync(file, 'old\n')
  let now = 0
  const credentials = new Credentials(access('http://x', { credential: { kind: 'tokenFile', file } }), {
    now: () => now,
  })
  const token = async () => (await credentials.get()).headers.authorization
  assert.equal(await token(), 'Bearer old')
  writeFileSync(file, 'new\n')
  now = 59_999
  assert.equal(await token(), 'Bearer old')
  now = 60_001
  assert.equal(await token(), 'Bearer new')
  rmSync(file) // the volume is being swapped: what we have may still do
  now = 200_000
  assert.equal(await token(), 'Bearer new')
})

test('B-23: a refused token is read again at once, by one retry that the caller does not see', async t => {
  const file = join(folder(t), 'token')
  writeFileSync(file, 'old')
  let valid = 'old'
  const api = await guarded(t, () => valid)
  const client = new KubeClient(transportTo(t, access(api.url, { credential: { kind: 'tokenFile', file } })))
  await client.version()
  valid = 'new'
  writeFileSync(file, 'new')
  assert.equal(await client.version(), 'v1')
  assert.equal(api.seen.length, 3)
  valid = 'other'
  const refused = await client.version().catch((error: unknown) => error)
  assert.ok(isRuntimeError(refused, 'BACKEND_UNAVAILABLE'))
  assert.equal(api.seen.length, 4) // the file says the same: no second try
})

/** A credential plugin that counts its runs and answers what the test wrote. */
function plugin(t: TestContext, status: object, script = '') {
  const home = folder(t)
  const command = join(home, 'plugin')
  writeFileSync(join(home, 'answer'), JSON.stringify({ kind: 'ExecCredential', status }))
  writeFileSync(
    command,
    `#!/bin/sh\necho run >> ${home}/runs\necho "$KUBERNETES_EXEC_INFO" > ${home}/info\n${script}\nsleep 0.05\ncat ${home}/answer\n`,
  )
  chmodSync(command, 0o755)
  const apiVersion = 'client.authentication.k8s.io/v1'
  const credential = { kind: 'exec', plugin: { command, args: [], env: {}, apiVersion, cluster: null } } as const
  return {
    credential,
    runs: () => readFileSync(join(home, 'runs'), 'utf8').trim().split('\n').length,
    info: () => JSON.parse(readFileSync(join(home, 'info'), 'utf8')),
    answer: (next: object) =>
      writeFileSync(join(home, 'answer'), JSON.stringify({ kind: 'ExecCredential', status: next })),
  }
}

test('a credential plugin runs once for all who wait, is told what it is for, and not again while its answer lasts', async t => {
  const exec = plugin(t, { token: 'T' })
  const api = await guarded(t, () => 'T')
  const client = new KubeClient(transportTo(t, access(api.url, { credential: exec.credential }), { rereadMs: 1 }))
  await Promise.all(Array.from({ length: 20 }, () => client.version()))
  await new Promise(resolve => setTimeout(resolve, 5))
  await client.version()
  assert.equal(exec.runs(), 1)
  assert.deepEqual(exec.info(), {
    apiVersion: 'client.authentication.k8s.io/v1',
    kind: 'ExecCredential',
    spec: { interactive: false },
  })
})

test('a credential plugin runs again 30 s before its answer expires, and when that was refused', async t => {
  let now = Date.now()
  const soon = new Date(now + 60_000).toISOString()
  const exec = plugin(t, { token: 'A', expirationTimestamp: soon })
  const credentials = new Credentials(access('http://x', { credential: exec.credential }), { now: () => now })
  const first = await credentials.get()
  now += 29_000
  await credentials.get()
  assert.equal(exec.runs(), 1)
  exec.answer({ token: 'B', clientCertificateData: 'C', clientKeyData: 'K' })
  now += 2000
  const second = await credentials.get()
  assert.equal(second.headers.authorization, 'Bearer B')
  assert.deepEqual([second.tls.cert, second.tls.key], ['C', 'K'])
  credentials.refuse(first.version) // late: that one is no longer in use
  await credentials.get()
  assert.equal(exec.runs(), 2)
  credentials.refuse(second.version)
  await credentials.get()
  assert.equal(exec.runs(), 3)
})

for (const [name, status, script] of [
  ['fails', { token: 'T' }, 'exit 3'],
  ['hangs', { token: 'T' }, 'exec sleep 20'],
  ['talks nonsense', 'nothing', ''],
] as const) {
  test(`a credential plugin that ${name} is a cluster that cannot be reached, in bounded time and without a word of it`, async t => {
    const exec = plugin(t, status as object, script)
    const client = new KubeClient(
      transportTo(t, access('http://127.0.0.1:1', { credential: exec.credential }), { deadlineMs: 300 }),
    )
    const error = await within(
      450,
      client.version().catch((reason: unknown) => reason),
    )
    assert.ok(isRuntimeError(error, 'BACKEND_UNAVAILABLE'))
    assert.equal(error.message, 'cannot read the version of the cluster: the cluster cannot be reached; try again')
  })
}

async function serveTls(t: TestContext, pair: { cert: string; key: string }) {
  const server = createServer(pair, (request, response) => {
    json(response, 200, { gitVersion: `v1-${request.httpVersion}-${request.headers['impersonate-user'] ?? ''}` })
  })
  server.on('tlsClientError', () => {})
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  return { server, url: `https://127.0.0.1:${(server.address() as AddressInfo).port}` }
}

test('TLS: the CA is checked, a new CA is taken up by new connections, HTTP/1.1 is spoken', async t => {
  const file = join(folder(t), 'ca.crt')
  writeFileSync(file, one.cert)
  const { server, url } = await serveTls(t, one)
  const at: ClusterAccess = access(url, { ca: { file }, impersonate: { user: 'u', groups: [] } })
  const client = new KubeClient(transportTo(t, at, { rereadMs: 20, deadlineMs: 2000 }))
  assert.equal(await client.version(), 'v1-1.1-u')
  server.setSecureContext(two)
  server.closeAllConnections()
  const refused = await client.version({ deadlineMs: 200 }).catch((error: unknown) => error)
  assert.ok(isRuntimeError(refused, 'BACKEND_UNAVAILABLE'))
  writeFileSync(file, two.cert)
  assert.equal(await client.version(), 'v1-1.1-u')
})

test('TLS: another CA is refused unless verification is off', async t => {
  const { url } = await serveTls(t, one)
  const strict = new KubeClient(transportTo(t, access(url, { ca: { pem: two.cert } }), { deadlineMs: 200 }))
  assert.ok(isRuntimeError(await strict.version().catch((error: unknown) => error), 'BACKEND_UNAVAILABLE'))
  assert.equal(await new KubeClient(transportTo(t, access(url, { skipVerify: true }))).version(), 'v1-1.1-')
})
