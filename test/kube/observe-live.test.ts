import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Life } from '../../src/domain/life.ts'
import type { Gone, JobFacts, Observation, Seen } from '../../src/domain/observation.ts'
import type { Sandbox } from '../../src/sandbox/index.ts'
import { systemClock } from '../../src/service/clock.ts'
import type { Backend } from '../../src/service/ports.ts'
import { bound, claim, cluster, eventually, made, refusal } from './cluster.ts'

const seen = (observation: Observation | null): Seen => {
  assert.equal(observation?.type, 'seen')
  return observation as Seen
}
const gone = (observation: Observation | null): Gone => {
  assert.equal(observation?.type, 'gone')
  return observation as Gone
}
const cachedRunning = (backend: Backend, life: Life) =>
  eventually('its pod runs in the cache', () => {
    const observation = backend.workloads.observe(life)
    return observation?.type === 'seen' && observation.facts.pods.some(pod => pod.ready) ? observation : null
  })

const mine = { app: 'web', 'gobrave-workload': 'web', 'runtimed.dev/kind': 'deployment' }
const stray = (sandbox: Sandbox, ownerReferences: object[] = []) =>
  sandbox.registry.create('pods', 'default', {
    metadata: { name: `stray-${ownerReferences.length}`, labels: mine, ownerReferences },
    spec: { containers: [{ name: 'main', image: 'x' }] },
  })

test('L2, B-56, B-58: pods are its own by owner, not by label; one read for each ReplicaSet', async t => {
  const { sandbox, backend } = await cluster(t)
  const life = await made(backend, claim())
  await cachedRunning(backend, life)
  const theirs = sandbox.registry.create('replicasets', 'default', {
    metadata: { name: 'theirs' },
    spec: {
      replicas: 0,
      selector: { matchLabels: { other: 'x' } },
      template: { metadata: { labels: { other: 'x' } }, spec: { containers: [{ name: 'c', image: 'x' }] } },
    },
  })
  const { name, uid: theirUid } = theirs.metadata
  const foreign = { apiVersion: 'apps/v1', kind: 'ReplicaSet', name, uid: theirUid, controller: true }
  stray(sandbox)
  stray(sandbox, [foreign])
  const reads = () => sandbox.faults.requests({ resource: 'replicasets', verb: 'get' }).length
  await eventually('both ReplicaSets were read', () => {
    backend.workloads.observe(life)
    return reads() === 2
  })
  for (let n = 0; n < 50; n++) assert.equal(seen(backend.workloads.observe(life)).facts.pods.length, 1)
  for (const depth of ['object', 'pods', 'warnings'] as const) {
    const { facts, live, livePods, uid } = seen(await backend.workloads.look(life, depth))
    assert.deepEqual([facts.pods.length, live, livePods, uid], [1, true, depth !== 'object', life.uid])
  }
  assert.equal(reads(), 2)
})

test('M1, M3: node and address of the newest pod; blank without one', async t => {
  const { backend } = await cluster(t)
  const life = await made(backend, claim({ kind: 'job' }))
  const { display } = await cachedRunning(backend, life)
  assert.ok(display.nodeName && display.podIp && display.podName?.startsWith('web-'))
  const idle = await made(backend, claim({ name: 'idle' }), false)
  const { podName, podIp, nodeName } = seen(await backend.workloads.look(idle, 'pods')).display
  assert.deepEqual([podName, podIp, nodeName], [null, null, null])
})

test('§3: a pod whose ReplicaSet is not known yet is not its own; once it is, the row is decided again', async t => {
  const { sandbox, backend, changed } = await cluster(t)
  const slow = sandbox.faults.fail({ resource: 'replicasets', verb: 'get' }, { slowMs: 300 })
  const life = await made(backend, claim())
  await eventually('its pod runs', () => sandbox.store.list('pods', 'default')[0]?.status?.phase === 'Running')
  const id = 'k8s-default|deployment|web'
  await eventually('it is asked for', () => {
    backend.workloads.observe(life)
    return slow.hits === 1
  })
  assert.equal(seen(backend.workloads.observe(life)).facts.pods.length, 0)
  const before = changed.filter(one => one === id).length
  await eventually('it is decided again', () => changed.filter(one => one === id).length > before)
  assert.equal(seen(backend.workloads.observe(life)).facts.pods.length, 1)
})

test('B-59, I11: a new life does not see the pods of the one before, nor the one before the new object', async t => {
  const { sandbox, backend } = await cluster(t, { kubelet: 'none' })
  const first = await made(backend, claim({ terminationGracePeriodSeconds: 30 }))
  await eventually('its pod is there', () => sandbox.store.list('pods', 'default')[0])
  const pod = sandbox.store.list('pods', 'default')[0]
  sandbox.registry.bind(pod!, 'node', [])
  sandbox.registry.delete('deployments', 'default', 'web', { propagationPolicy: 'Background' })
  await eventually('the Deployment is gone', () => !sandbox.store.get('deployments', 'default', 'web'))
  const second = await made(backend, claim(), false)
  const look = await backend.workloads.look(second, 'pods')
  assert.equal(seen(look).facts.pods.length, 0)
  const old = gone(await backend.workloads.look(first, 'pods'))
  assert.equal(old.otherUid, second.uid)
  assert.equal(old.podsLeft, 1)
  const cached = await eventually('the cache has the new one', () => {
    const observation = backend.workloads.observe(first)
    return observation?.type === 'gone' && observation.otherUid === second.uid ? observation : null
  })
  assert.equal(cached.live, false)
})

test('I8, B-42, §5 row 12: what is gone from the cache waits for a look, and is shown as it was last seen, pods too', async t => {
  const { sandbox, backend } = await cluster(t, { kubelet: 'process' })
  const life = await made(backend, claim({ kind: 'job', entrypoint: ['/bin/sh', '-c'], command: ['exit 7'] }))
  await eventually('it has failed', () => {
    const facts = backend.workloads.observe(life)
    return facts?.type === 'seen' && (facts.facts as JobFacts).failure
  })
  await backend.workloads.remove(life)
  await eventually('it is gone', () => !sandbox.store.get('jobs', 'default', 'web'))
  const cached = await eventually('the cache knows', () => {
    const observation = backend.workloads.observe(life)
    return observation?.type === 'gone' ? observation : null
  })
  assert.equal(cached.live, false)
  const looked = gone(await backend.workloads.look(life, 'pods'))
  assert.deepEqual([looked.live, looked.livePods, looked.podsLeft, looked.otherUid], [true, true, 0, null])
  for (const { last } of [cached, looked]) {
    const facts = last?.facts as JobFacts
    assert.equal(facts.failure?.reason, 'BackoffLimitExceeded')
    assert.deepEqual(
      facts.pods.map(pod => [pod.gone, pod.exitCode]),
      [[true, 7]],
    )
  }
})

test('C12, §2.5: a life whose uid is not known is found by its nonce alone', async t => {
  const { backend } = await cluster(t)
  const life = claim()
  const { uid } = await backend.workloads.make(life, true)
  assert.equal(seen(await backend.workloads.look(life, 'object')).uid, uid)
  const other = claim()
  const look = gone(await backend.workloads.look(other, 'pods'))
  assert.equal(look.otherUid, uid)
  assert.equal(look.podsLeft, 0)
})

test('§6.3 write then read: what was just made and is not seen yet is no fact; after 5 s it is to be looked for', async t => {
  const timers: { ms: number; work: () => void }[] = []
  const clock = {
    now: systemClock.now,
    after: (ms: number, work: () => void) => {
      timers.push({ ms, work })
      return () => {}
    },
  }
  const { sandbox, backend, changed } = await cluster(t, { controllers: false }, { clock })
  const show = sandbox.faults.hideFromWatch(() => true)
  const life = bound(claim(), await backend.workloads.make(claim(), true))
  assert.equal(backend.workloads.observe(life), null)
  const late = timers.find(({ ms }) => ms === 5000)
  late?.work()
  assert.deepEqual(changed, ['k8s-default|deployment|web'])
  assert.equal(gone(backend.workloads.observe(life)).live, false)
  show()
})

test('B-25, I5, P8: a look that fails is an error and no fact', async t => {
  const { sandbox, backend } = await cluster(t, {}, { transport: { deadlineMs: 400 } })
  const life = await made(backend, claim())
  await cachedRunning(backend, life)
  for (const status of [500, 403, 401]) {
    const fault = sandbox.faults.fail({ verb: 'get', resource: 'deployments' }, { status, message: 'User "u" cannot' })
    assert.equal((await refusal(backend.workloads.look(life, 'object'))).notDone, true)
    fault.remove()
  }
  sandbox.faults.fail({ verb: 'list', resource: 'pods' }, { status: 500 })
  await refusal(backend.workloads.look(life, 'pods'))
  seen(await backend.workloads.look(life, 'object'))
})

test('§8, B-54: Warning Events are looked up once a minute a runtime; failing, there are none', async t => {
  let ahead = 0
  const clock = { ...systemClock, now: () => Date.now() + ahead }
  const { sandbox, backend } = await cluster(t, { controllers: false }, { clock })
  const life = await made(backend, claim({ kind: 'job' }))
  sandbox.registry.create('events', 'default', {
    metadata: { name: 'e1' },
    type: 'Warning',
    reason: 'FailedCreate',
    message: 'exceeded quota',
    involvedObject: { kind: 'Job', namespace: 'default', name: 'web', uid: life.uid },
    lastTimestamp: new Date().toISOString(),
  })
  const reasons = async () => seen(await backend.workloads.look(life, 'warnings')).facts.troubles.map(one => one.reason)
  const asked = () => sandbox.faults.requests({ resource: 'events' }).length
  assert.deepEqual(await reasons(), ['FailedCreate'])
  assert.deepEqual(await reasons(), ['FailedCreate'])
  assert.equal(asked(), 1)
  ahead = 61_000
  sandbox.faults.fail({ resource: 'events' }, { status: 403, message: 'User "u" cannot' })
  assert.deepEqual(await reasons(), [])
  assert.equal(asked(), 2)
})

test('F-32: when its deletion was asked for is known of a live pod too, as the cache first saw it', async t => {
  const { sandbox, backend } = await cluster(t, { kubelet: 'none' })
  const life = await made(backend, claim({ terminationGracePeriodSeconds: 600 }, 'pod'))
  sandbox.registry.bind(sandbox.store.get('pods', 'default', 'web')!, 'node', [])
  await backend.workloads.remove(life)
  const first = await eventually('it is being deleted', () => {
    const observation = backend.workloads.observe(life)
    return observation?.type === 'seen' && observation.deleting ? observation : null
  })
  assert.ok(Math.abs((first.deletionAskedAt ?? 0) - Date.now()) < 5000)
  const live = seen(await backend.workloads.look(life, 'object'))
  assert.equal(live.deletionAskedAt, first.deletionAskedAt)
  assert.equal(live.livePods, true)
})
