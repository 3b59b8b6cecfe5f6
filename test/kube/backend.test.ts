import assert from 'node:assert/strict'
import { createServer } from 'node:net'
import { test } from 'node:test'
import { startSandbox, TEST_TIMING } from '../../src/sandbox/index.ts'
import { systemClock } from '../../src/service/clock.ts'
import { backendOn, backendTo, claim, cluster, eventually, made } from './cluster.ts'

const labels = (name: string) => ({ app: name, 'gobrave-workload': name, 'runtimed.dev/kind': 'deployment' })
const deployment = (name: string) => ({
  metadata: { name, labels: labels(name) },
  spec: {
    selector: { matchLabels: labels(name) },
    template: { metadata: { labels: labels(name) }, spec: { containers: [{ name: 'main', image: 'x' }] } },
  },
})

test('A12: 1,000 workloads are watched by one watch per kind and namespace, paged lists before them', async t => {
  const sandbox = await startSandbox({ kubelet: 'none', controllers: false, namespaces: ['ai', 'unwatched'] })
  t.after(() => sandbox.close())
  for (let n = 0; n < 1000; n++)
    sandbox.registry.create('deployments', n % 2 ? 'ai' : 'default', deployment(`web-${n}`))
  sandbox.registry.create('deployments', 'unwatched', deployment('unseen'))
  const { backend, changed } = await backendOn(t, sandbox, { namespaces: ['default', 'ai'] })
  await eventually('watches are open', () => sandbox.faults.requests({ verb: 'watch' }).length === 6)
  assert.equal(new Set(changed).size, 1000)
  assert.equal(sandbox.faults.streams.size, 6)
  assert.equal(
    sandbox.faults.requests(({ resource, namespace }) => resource !== undefined && namespace === undefined).length,
    0,
  )
  const informers = backend.lifecycle.health().informers
  assert.deepEqual(
    informers.map(({ kind, namespace, synced, objects }) => [kind, namespace, synced, objects]),
    ['default', 'ai'].flatMap(namespace => [
      ['Deployment', namespace, true, 500],
      ['Job', namespace, true, 0],
      ['Pod', namespace, true, 0],
    ]),
  )
  assert.equal([...backend.inventory.labelled()].length, 1000)
})

test('A12: with all namespaces, one cluster-wide watch per kind', async t => {
  const { sandbox, backend } = await cluster(t, { namespaces: ['ai'] }, { namespaces: '*' })
  await eventually('watches are open', () => sandbox.faults.requests({ verb: 'watch' }).length >= 3)
  assert.equal(sandbox.faults.streams.size, 3)
  const life = await made(backend, claim({ namespace: 'ai' }))
  await eventually('it is cached', () => backend.inventory.cached(life.id))
  assert.equal(backend.lifecycle.freshFor(life.id), true)
})

const rules = [
  { apiGroups: ['apps'], resources: ['deployments'], verbs: ['get', 'list', 'watch', 'create', 'delete', 'patch'] },
  { apiGroups: ['batch'], resources: ['jobs'], verbs: ['get', 'list', 'watch', 'create', 'delete', 'patch'] },
  { apiGroups: [''], resources: ['pods'], verbs: ['get', 'list', 'watch', 'create', 'delete', 'patch'] },
  { apiGroups: ['apps'], resources: ['deployments/scale'], verbs: ['get', 'patch'] },
  { apiGroups: ['apps'], resources: ['replicasets'], verbs: ['get'] },
  { apiGroups: [''], resources: ['services'], verbs: ['get', 'create', 'delete'] },
  { apiGroups: [''], resources: ['events'], verbs: ['list'] },
  { apiGroups: [''], resources: ['pods/log'], verbs: ['get'] },
].map(rule => ({ ...rule, namespaces: ['default'] }))

test('A11: the rights of the README in one namespace are enough, and nothing beyond them is asked for', async t => {
  const sandbox = await startSandbox({ kubelet: 'process', timing: TEST_TIMING })
  t.after(() => sandbox.close())
  sandbox.faults.enforceRole(rules)
  const { backend } = await backendOn(t, sandbox)
  const { workloads, logs } = backend
  for (const [name, kind] of [
    ['web', 'deployment'],
    ['job', 'job'],
  ] as const) {
    const life = await made(backend, claim({ name, kind, port: 80, exposeService: true }))
    await eventually('its pod runs', async () => {
      const seen = await workloads.look(life, 'warnings')
      return seen.type === 'seen' && seen.facts.pods.some(pod => pod.running)
    })
    const look = await workloads.look(life, 'object')
    assert.ok(look.type === 'seen' && (await workloads.down(life, look)))
    const again = await workloads.look(life, 'pods')
    assert.ok(again.type === 'seen' && (await workloads.up(life, again)))
    await eventually('its log is there', () =>
      logs.read(life, { ...PLAIN_LOG }).then(
        body => body.destroy(),
        () => null,
      ),
    )
    const found = await backend.inventory.find(life.id)
    assert.ok(found && (await backend.inventory.mark(found)))
    assert.ok(await workloads.remove(life))
  }
  assert.deepEqual(
    sandbox.faults.journal.filter(({ status }) => status === 403 || status === 401),
    [],
  )
})

const PLAIN_LOG = {
  tail: null,
  follow: false,
  sinceSeconds: null,
  sinceTime: null,
  timestamps: false,
  container: null,
  previous: false,
  limitBytes: null,
  signal: new AbortController().signal,
}

test('A6: a cluster that cannot be reached is named with its cause, without addresses, and comes back by itself', async t => {
  const holder = createServer()
  await new Promise<void>(resolve => holder.listen(0, '127.0.0.1', resolve))
  const { port } = holder.address() as { port: number }
  await new Promise(resolve => holder.close(resolve))
  const backend = backendTo(t, `http://127.0.0.1:${port}`)
  backend.lifecycle.start(() => {})
  await assert.rejects(backend.lifecycle.synced(AbortSignal.timeout(200)))
  const ill = backend.lifecycle.health()
  assert.equal(ill.fresh, false)
  assert.match(ill.reason ?? '', /Deployments in namespace default: the cluster cannot be reached/)
  assert.doesNotMatch(JSON.stringify(ill), /127\.0\.0\.1|:\d{4,}/)
  assert.equal(backend.workloads.observe(claim()), null)
  const sandbox = await startSandbox({ port, kubelet: 'instant' })
  t.after(() => sandbox.close())
  await backend.lifecycle.synced(AbortSignal.timeout(10_000))
  assert.equal(backend.lifecycle.health().fresh, true)
  assert.equal(backend.lifecycle.health().reason, null)
})

test('B-25, I5: a cache is stale once unheard of for twice the watch, at most 150 s; the version is asked for once', async t => {
  let ahead = 0
  const clock = { ...systemClock, now: () => Date.now() + ahead }
  const { sandbox, backend } = await cluster(t, {}, { clock })
  const life = claim()
  assert.equal(backend.lifecycle.freshFor(life.id), true)
  assert.equal(backend.lifecycle.freshFor({ ...life.id, namespace: 'unwatched' }), false)
  ahead = 59_000
  assert.equal(backend.lifecycle.freshFor(life.id), true)
  ahead = 61_000
  assert.equal(backend.lifecycle.freshFor(life.id), false)
  assert.match(backend.lifecycle.health().reason ?? '', /nothing was heard/)
  ahead = 0
  await eventually('the version is known', () => backend.lifecycle.health().version)
  assert.match(backend.lifecycle.health().version ?? '', /^v1\./)
  assert.equal(sandbox.faults.requests({ path: '/version' }).length, 1)
})

test('I3, I8: changes of a workload and of its pods wake its ID, and no other', async t => {
  const { backend, changed } = await cluster(t, { namespaces: ['ai'] }, { namespaces: ['default', 'ai'] })
  await made(backend, claim({ name: 'same' }))
  await made(backend, claim({ name: 'same', kind: 'job', namespace: 'ai' }))
  await made(backend, claim({ name: 'agent' }, 'pod'))
  const times = (id: string) => changed.filter(one => one === id).length
  await eventually('each was told of', () =>
    ['k8s-default|deployment|same', 'k8s-ai|job|same', 'k8s-default|pod|agent'].every(id => times(id) > 1),
  )
  assert.deepEqual(new Set(changed).size, 3)
})

test('A9: after stop nothing is told any more and no connection is left', async t => {
  const { sandbox, backend, changed } = await cluster(t)
  await eventually('watches are open', () => sandbox.faults.streams.size === 3)
  await backend.lifecycle.stop()
  const before = changed.length
  sandbox.registry.create('deployments', 'default', deployment('late'))
  await eventually('the watches are closed', () => sandbox.faults.streams.size === 0)
  assert.equal(changed.length, before)
})
