import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Client, DEPLOYMENTS, deployment, type Json, PODS, pod, sandboxFor, until } from './client.ts'

const still = { kubelet: 'none', controllers: false } as const

const watchFrom = (client: Client, version: number | string = client.sandbox.store.version) =>
  client.watch(`${DEPLOYMENTS}?watch=true&resourceVersion=${version}&allowWatchBookmarks=true`)

const names = (events: Json[]): string[] => events.map(event => `${event.type} ${event.object.metadata.name}`)

test('fail: a status with Retry-After so many times, then the real answer; only what matches', async t => {
  const client = await sandboxFor(t, still)
  const fault = client.sandbox.faults.fail(
    { verb: 'list', resource: 'deployments' },
    { status: 429, retryAfter: 3, times: 2 },
  )
  const first = await client.get(DEPLOYMENTS)
  assert.equal(first.code, 429)
  assert.equal(first.headers.get('retry-after'), '3')
  assert.equal(first.body.reason, 'TooManyRequests')
  assert.equal(first.body.details.retryAfterSeconds, 3)
  assert.equal((await client.get(PODS)).code, 200)
  assert.equal((await client.get(DEPLOYMENTS)).code, 429)
  assert.equal((await client.get(DEPLOYMENTS)).code, 200)
  assert.equal(fault.hits, 2)
})

test('fail: another body, a path by pattern, until removed', async t => {
  const client = await sandboxFor(t, still)
  const fault = client.sandbox.faults.fail({ path: /deployments/ }, { status: 502, body: '<html>bad gateway</html>' })
  const reply = await client.get(DEPLOYMENTS)
  assert.equal(reply.code, 502)
  assert.equal(reply.text, '<html>bad gateway</html>')
  fault.remove()
  assert.equal((await client.get(DEPLOYMENTS)).code, 200)
})

test('fail: hang never answers, reset breaks the connection, slow only delays', async t => {
  const client = await sandboxFor(t, still)
  const { faults } = client.sandbox
  faults.fail({ verb: 'get' }, { hang: true, times: 1 })
  await assert.rejects(fetch(`${client.sandbox.url}${DEPLOYMENTS}/x`, { signal: AbortSignal.timeout(150) }), {
    name: 'TimeoutError',
  })
  faults.fail({ verb: 'get' }, { reset: true, times: 1 })
  await assert.rejects(client.get(`${DEPLOYMENTS}/x`))
  faults.fail({ verb: 'get' }, { slowMs: 120, times: 1 })
  const begin = Date.now()
  assert.equal((await client.get(`${DEPLOYMENTS}/x`)).code, 404)
  assert.ok(Date.now() - begin >= 110)
})

test('fail performed: the write is done, its answer lost', async t => {
  const client = await sandboxFor(t, still)
  client.sandbox.faults.fail({ verb: 'create' }, { performed: true, reset: true, times: 1 })
  await assert.rejects(client.post(DEPLOYMENTS, deployment('web')))
  assert.ok(client.sandbox.store.get('deployments', 'default', 'web'))
  assert.equal((await client.post(DEPLOYMENTS, deployment('web'))).code, 409)
})

test('muteStreams: no byte until unmuted; a stream opened meanwhile speaks', async t => {
  const client = await sandboxFor(t, still)
  const muted = await watchFrom(client)
  client.sandbox.faults.muteStreams()
  await client.post(DEPLOYMENTS, deployment('a'))
  const fresh = await client.watch(`${DEPLOYMENTS}?watch=true`)
  await until('the fresh stream', () => fresh.lines.length === 1)
  assert.deepEqual(muted.lines, [])
  client.sandbox.faults.unmuteStreams()
  await until('the rest', () => muted.lines.length === 1)
})

test('closeStreams ends or resets what is open', async t => {
  const client = await sandboxFor(t, still)
  for (const how of ['end', 'reset'] as const) {
    const watch = await watchFrom(client)
    client.sandbox.faults.closeStreams(how)
    await until('the end', () => watch.over)
  }
  assert.equal(client.sandbox.faults.streams.size, 0)
})

test('hideFromWatch: lists show what the watch does not', async t => {
  const client = await sandboxFor(t, still)
  const watch = await watchFrom(client)
  const show = client.sandbox.faults.hideFromWatch(change => change.object.metadata.name === 'hidden')
  await client.post(DEPLOYMENTS, deployment('hidden'))
  await client.post(DEPLOYMENTS, deployment('shown'))
  await until('the shown', () => watch.lines.length === 1)
  assert.deepEqual(names(watch.events), ['ADDED shown'])
  assert.equal((await client.get(DEPLOYMENTS)).body.items.length, 2)
  show()
  await client.delete(`${DEPLOYMENTS}/hidden`, { propagationPolicy: 'Background' })
  await until('its end', () => names(watch.events).includes('DELETED hidden'))
})

test('corruptLine replaces the next event only', async t => {
  const client = await sandboxFor(t, still)
  const watch = await watchFrom(client)
  client.sandbox.faults.corruptLine('{"type":"MODI')
  await client.post(DEPLOYMENTS, deployment('a'))
  await client.post(DEPLOYMENTS, deployment('b'))
  await until('two lines', () => watch.lines.length === 2)
  assert.equal(watch.lines[0], '{"type":"MODI')
  assert.equal(JSON.parse(watch.lines[1]!).object.metadata.name, 'b')
})

test('travelBack: objects and versions as they were, streams cut, a watch from the lost future is silent', async t => {
  const client = await sandboxFor(t, still)
  await client.post(DEPLOYMENTS, deployment('old'))
  const then = client.sandbox.store.version
  await client.scale('old', 4)
  await client.post(DEPLOYMENTS, deployment('lost'))
  const now = client.sandbox.store.version
  const watch = await watchFrom(client)
  client.sandbox.faults.travelBack(then)
  await until('the stream is cut', () => watch.over)
  const list = (await client.get(DEPLOYMENTS)).body
  assert.equal(list.metadata.resourceVersion, String(then))
  assert.deepEqual(
    list.items.map((item: Json) => [item.metadata.name, item.spec.replicas]),
    [['old', 1]],
  )
  const future = await watchFrom(client, now)
  await client.post(DEPLOYMENTS, deployment('new'))
  assert.equal(client.sandbox.store.version, then + 1)
  const present = await watchFrom(client, then)
  await until('the new one', () => present.lines.length === 1)
  assert.deepEqual(future.lines, [])
})

test('serveStale: lists and gets show the past until told otherwise', async t => {
  const client = await sandboxFor(t, still)
  await client.post(DEPLOYMENTS, deployment('a'))
  const then = client.sandbox.store.version
  await client.post(DEPLOYMENTS, deployment('b'))
  client.sandbox.faults.serveStale(then)
  const stale = (await client.get(DEPLOYMENTS)).body
  assert.deepEqual([stale.metadata.resourceVersion, stale.items.length], [String(then), 1])
  assert.equal((await client.get(`${DEPLOYMENTS}/b`)).code, 404)
  client.sandbox.faults.serveStale(undefined)
  assert.equal((await client.get(`${DEPLOYMENTS}/b`)).code, 200)
})

test('enforceRole: 403 with the words of RBAC for what the rules do not grant', async t => {
  const client = await sandboxFor(t, { ...still, namespaces: ['answers'] })
  const path = '/apis/apps/v1/namespaces/answers/deployments'
  await client.post(path, deployment('web'))
  const rules = [{ apiGroups: ['apps'], resources: ['deployments'], verbs: ['list', 'watch'], namespaces: ['answers'] }]
  client.sandbox.faults.enforceRole(rules, 'system:kube-proxy')
  assert.equal((await client.get(path)).code, 200)
  assert.deepEqual((await client.get(`${path}/web`)).body, {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    message:
      'deployments.apps "web" is forbidden: User "system:kube-proxy" cannot get resource "deployments" in API group "apps" in the namespace "answers"',
    reason: 'Forbidden',
    details: { name: 'web', group: 'apps', kind: 'deployments' },
    code: 403,
  })
  const scale = await client.patch(`${path}/web/scale`, { spec: { replicas: 0 } })
  assert.equal(
    scale.body.message,
    'deployments.apps "web" is forbidden: User "system:kube-proxy" cannot patch resource "deployments/scale" in API group "apps" in the namespace "answers"',
  )
  assert.match(
    (await client.get('/apis/apps/v1/deployments')).body.message,
    /^deployments\.apps is forbidden: .* at the cluster scope$/,
  )
  assert.match(
    (await client.get(PODS)).body.message,
    /cannot list resource "pods" in API group "" in the namespace "default"$/,
  )
  client.sandbox.faults.enforceRole(undefined)
  assert.equal((await client.get(`${path}/web`)).code, 200)
})

test('tokens: 401 without the right one; changeable while it runs', async t => {
  const client = await sandboxFor(t, { ...still, tokens: ['one'] })
  const withToken = (token: string) => client.call('GET', PODS, undefined, { authorization: `Bearer ${token}` })
  assert.deepEqual((await client.get(PODS)).body, {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    message: 'Unauthorized',
    reason: 'Unauthorized',
    code: 401,
  })
  assert.equal((await withToken('one')).code, 200)
  assert.equal(JSON.parse(client.sandbox.kubeconfig()).users[0].user.token, 'one')
  client.sandbox.faults.setTokens(['two'])
  assert.equal((await withToken('one')).code, 401)
  assert.equal((await withToken('two')).code, 200)
})

test('the journal: every request with method, path, query and user agent; writes counted', async t => {
  const client = await sandboxFor(t, still)
  await client.call('GET', `${DEPLOYMENTS}?limit=5`, undefined, { 'user-agent': 'tester/1' })
  await client.post(DEPLOYMENTS, deployment('web'))
  await client.scale('web', 2)
  await client.scale('web', 3)
  await client.get(`${PODS}/nope`)
  const { faults } = client.sandbox
  const [list] = faults.requests({ verb: 'list' })
  assert.deepEqual(
    [list!.method, list!.path, list!.query, list!.userAgent, list!.status],
    ['GET', DEPLOYMENTS, 'limit=5', 'tester/1', 200],
  )
  assert.deepEqual(faults.writeCounts(), { 'create deployments': 1, 'patch deployments/scale': 2 })
  assert.equal(faults.requests({ name: 'nope' })[0]!.status, 404)
})

test('onWrite: runs before or after the answer of the n-th write', async t => {
  const client = await sandboxFor(t, still)
  const { faults, store } = client.sandbox
  const marks: string[] = []
  faults.onWrite(2, 'before', () => void marks.push(`before ${store.count('deployments')}`))
  faults.onWrite(3, 'after', () => void marks.push(`after ${store.count('deployments')}`))
  for (const name of ['a', 'b', 'c', 'd']) {
    await client.post(DEPLOYMENTS, deployment(name))
    marks.push(`answered ${name}`)
  }
  await until('the last mark', () => marks.length === 6)
  assert.deepEqual(
    marks.filter(mark => mark !== 'after 3'),
    ['answered a', 'before 2', 'answered b', 'answered c', 'answered d'],
  )
  assert.ok(marks.includes('after 3') || marks.includes('after 4'))
})

test('pauseControllers: nothing moves, processes and API go on; resumed, all is made up for', async t => {
  const client = await sandboxFor(t)
  client.sandbox.faults.pauseControllers()
  await client.post(DEPLOYMENTS, deployment('web'))
  await client.post(PODS, pod('one', ['true']))
  await new Promise(resolve => setTimeout(resolve, 100))
  assert.deepEqual(client.sandbox.store.get('deployments', 'default', 'web')!.status, {})
  assert.equal(client.sandbox.store.get('pods', 'default', 'one')!.spec.nodeName, undefined)
  client.sandbox.faults.resumeControllers()
  await until('readiness', () => client.sandbox.store.get('deployments', 'default', 'web')!.status.readyReplicas === 1)
})
