import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Client, DEPLOYMENTS, deployment, PODS, pod, sandboxFor, until } from './client.ts'

const still = { kubelet: 'none', controllers: false } as const

async function fill(client: Client, count: number): Promise<void> {
  for (let n = 0; n < count; n++) {
    const name = `w-${String(n).padStart(3, '0')}`
    const body = deployment(name)
    body.metadata.labels = { app: name, half: n % 2 ? 'odd' : 'even' }
    assert.equal((await client.post(DEPLOYMENTS, body)).code, 201)
  }
}

test('a LIST in pages is the list as it was at its first page, all pages carry one version', async t => {
  const client = await sandboxFor(t, still)
  await fill(client, 7)
  const first = (await client.get(`${DEPLOYMENTS}?limit=3`)).body
  assert.equal(first.kind, 'DeploymentList')
  assert.equal(first.metadata.remainingItemCount, 4)
  assert.equal(first.items[0].kind, undefined, 'items of a list carry no kind')
  await client.delete(`${DEPLOYMENTS}/w-004`)
  await client.post(DEPLOYMENTS, deployment('w-0035'))
  const second = (await client.get(`${DEPLOYMENTS}?limit=3&continue=${first.metadata.continue}`)).body
  const third = (await client.get(`${DEPLOYMENTS}?limit=3&continue=${second.metadata.continue}`)).body
  const names = [first, second, third].flatMap(page =>
    page.items.map((item: { metadata: { name: string } }) => item.metadata.name),
  )
  assert.deepEqual(names, ['w-000', 'w-001', 'w-002', 'w-003', 'w-004', 'w-005', 'w-006'])
  assert.equal(new Set([first, second, third].map(page => page.metadata.resourceVersion)).size, 1)
  assert.equal(third.metadata.continue, undefined)
})

test('resourceVersion=0 ignores the limit', async t => {
  const client = await sandboxFor(t, still)
  await fill(client, 4)
  const list = (await client.get(`${DEPLOYMENTS}?limit=1&resourceVersion=0`)).body
  assert.equal(list.items.length, 4)
})

test('a continue token from before a compaction is 410 Expired with a new, inconsistent token', async t => {
  const client = await sandboxFor(t, still)
  await fill(client, 4)
  const first = (await client.get(`${DEPLOYMENTS}?limit=2`)).body
  await client.delete(`${DEPLOYMENTS}/w-003`)
  client.sandbox.faults.compact()
  const late = await client.get(`${DEPLOYMENTS}?limit=2&continue=${first.metadata.continue}`)
  assert.equal(late.code, 410)
  assert.equal(late.body.reason, 'Expired')
  assert.match(late.body.message, /continue parameter is too old/)
  const rest = await client.get(`${DEPLOYMENTS}?continue=${late.body.metadata.continue}`)
  assert.deepEqual(
    rest.body.items.map((item: { metadata: { name: string } }) => item.metadata.name),
    ['w-002'],
  )
})

test('a LIST from the future is 504 with the cause ResourceVersionTooLarge', async t => {
  const client = await sandboxFor(t, still)
  const reply = await client.get(`${DEPLOYMENTS}?resourceVersion=999999`)
  assert.equal(reply.code, 504)
  assert.equal(reply.body.details.causes[0].reason, 'ResourceVersionTooLarge')
})

test('a watch resumes after its version: each change once, in order', async t => {
  const client = await sandboxFor(t, still)
  await fill(client, 2)
  const from = (await client.get(DEPLOYMENTS)).body.metadata.resourceVersion
  await client.scale('w-000', 5)
  await client.delete(`${DEPLOYMENTS}/w-001`, { propagationPolicy: 'Background' })
  const watch = await client.watch(`${DEPLOYMENTS}?watch=true&resourceVersion=${from}`)
  await client.post(DEPLOYMENTS, deployment('late'))
  await watch.event(event => event.object.metadata.name === 'late')
  const seen = watch.events.map(event => `${event.type} ${event.object.metadata.name}`)
  assert.deepEqual(seen, ['MODIFIED w-000', 'DELETED w-001', 'ADDED late'])
  assert.equal(watch.events[0].object.kind, 'Deployment')
  assert.equal(watch.events[0].object.apiVersion, 'apps/v1')
  const versions = watch.events.map(event => Number(event.object.metadata.resourceVersion))
  assert.deepEqual(
    versions,
    [...versions].sort((a, b) => a - b),
  )
})

test('a watch without version begins with what is there; sendInitialEvents ends that with a marked bookmark', async t => {
  const client = await sandboxFor(t, still)
  await fill(client, 2)
  const plain = await client.watch(`${DEPLOYMENTS}?watch=1`)
  await until('both objects', () => plain.lines.length === 2)
  const streaming = await client.watch(
    `${DEPLOYMENTS}?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true`,
  )
  await until('objects and bookmark', () => streaming.lines.length === 3)
  assert.deepEqual(
    streaming.events.map(event => event.type),
    ['ADDED', 'ADDED', 'BOOKMARK'],
  )
  assert.equal(streaming.events[2].object.metadata.annotations['k8s.io/initial-events-end'], 'true')
})

test('a quiet watch gets bookmarks, one shortly before timeoutSeconds, and ends then', async t => {
  const client = await sandboxFor(t, { ...still, timing: { bookmarkMs: 200 } })
  const watch = await client.watch(
    `${PODS}?watch=true&resourceVersion=${client.sandbox.store.version}&allowWatchBookmarks=true&timeoutSeconds=1`,
  )
  await fill(client, 3)
  const begin = Date.now()
  await watch.ended
  assert.ok(Date.now() - begin < 1500)
  assert.ok(watch.lines.length >= 4)
  assert.ok(watch.events.every(event => event.type === 'BOOKMARK'))
  assert.equal(watch.events.at(-1).object.metadata.resourceVersion, String(client.sandbox.store.version))
})

test('a watch from a version that is forgotten: HTTP 200, one ERROR line with 410 Expired, the end', async t => {
  const client = await sandboxFor(t, still)
  await fill(client, 1)
  client.sandbox.faults.compact()
  const watch = await client.watch(`${DEPLOYMENTS}?watch=1&resourceVersion=1&timeoutSeconds=1`)
  await watch.ended
  assert.equal(watch.response.status, 200)
  assert.equal(watch.lines.length, 1)
  assert.deepEqual(watch.events[0], {
    type: 'ERROR',
    object: {
      kind: 'Status',
      apiVersion: 'v1',
      metadata: {},
      status: 'Failure',
      message: `too old resource version: 1 (${client.sandbox.store.oldestVersion})`,
      reason: 'Expired',
      code: 410,
    },
  })
})

test('a watch from the future is silent; a watch with a bad version is 500', async t => {
  const client = await sandboxFor(t, still)
  const watch = await client.watch(
    `${DEPLOYMENTS}?watch=1&resourceVersion=5000000&timeoutSeconds=1&allowWatchBookmarks=false`,
  )
  await fill(client, 1)
  await watch.ended
  assert.deepEqual(watch.lines, [])
  assert.equal((await client.get(`${DEPLOYMENTS}?watch=1&resourceVersion=x`)).code, 500)
})

test('a watch with a selector: leaving the view is DELETED with the old labels, coming into it ADDED', async t => {
  const client = await sandboxFor(t, still)
  await fill(client, 2)
  const from = client.sandbox.store.version
  const watch = await client.watch(`${DEPLOYMENTS}?watch=1&resourceVersion=${from}&labelSelector=half%3Deven`)
  await client.patch(`${DEPLOYMENTS}/w-000`, { metadata: { labels: { half: 'odd' } } })
  await client.patch(`${DEPLOYMENTS}/w-001`, { metadata: { labels: { half: 'even' } } })
  await until('two events', () => watch.lines.length === 2)
  assert.deepEqual(
    watch.events.map(event => [event.type, event.object.metadata.name, event.object.metadata.labels.half]),
    [
      ['DELETED', 'w-000', 'even'],
      ['ADDED', 'w-001', 'even'],
    ],
  )
  assert.equal((await client.get(`${DEPLOYMENTS}/w-000`)).code, 200)
})

test('label selectors', async t => {
  const client = await sandboxFor(t, still)
  await fill(client, 4)
  const names = async (selector: string): Promise<string[]> =>
    (await client.get(`${DEPLOYMENTS}?labelSelector=${encodeURIComponent(selector)}`)).body.items.map(
      (item: { metadata: { name: string } }) => item.metadata.name,
    )
  assert.deepEqual(await names('half=even'), ['w-000', 'w-002'])
  assert.deepEqual(await names('half==even,app!=w-000'), ['w-002'])
  assert.deepEqual(await names('app in (w-001, w-003)'), ['w-001', 'w-003'])
  assert.deepEqual(await names('app notin (w-001,w-003),half'), ['w-000', 'w-002'])
  assert.deepEqual(await names('!half'), [])
  assert.deepEqual(await names(''), ['w-000', 'w-001', 'w-002', 'w-003'])
  const bad = await client.get(`${PODS}?labelSelector=a%3D%3D%3Db`)
  assert.equal(bad.code, 400)
  assert.equal(bad.body.message, "unable to parse requirement: found '=', expected: identifier")
})

test('field selectors: name and phase of pods; an unknown field is 400', async t => {
  const client = await sandboxFor(t, still)
  for (const name of ['a', 'b']) await client.post(PODS, pod(name, ['true']))
  await client.patch(`${PODS}/b/status`, { status: { phase: 'Failed' } })
  const names = async (selector: string): Promise<string[]> =>
    (await client.get(`${PODS}?fieldSelector=${encodeURIComponent(selector)}`)).body.items.map(
      (item: { metadata: { name: string } }) => item.metadata.name,
    )
  assert.deepEqual(await names('metadata.name=a'), ['a'])
  assert.deepEqual(await names('status.phase!=Failed'), ['a'])
  assert.equal((await client.get(`${PODS}?fieldSelector=spec.color%3Dred`)).code, 400)
})

test('a list over 128 KiB is gzipped for who accepts it', async t => {
  const client = await sandboxFor(t, still)
  await fill(client, 250)
  const response = await fetch(`${client.sandbox.url}/apis/apps/v1/deployments`, {
    headers: { 'accept-encoding': 'gzip' },
  })
  assert.equal(response.headers.get('content-encoding'), 'gzip')
  assert.equal(((await response.json()) as { items: unknown[] }).items.length, 250)
})
