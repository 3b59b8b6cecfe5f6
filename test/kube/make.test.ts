import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { RuntimeError } from '../../src/errors.ts'
import { backendOn, bound, claim, cluster, eventually, made, refusal } from './cluster.ts'

const exposed = { port: 8080, exposeService: true } as const

test('E1: a Deployment and then its Service, which it owns and which selects exactly its pods', async t => {
  const { sandbox, backend } = await cluster(t)
  const life = await made(backend, claim(exposed))
  const service = sandbox.store.get('services', 'default', 'web-svc')
  assert.deepEqual(service?.spec.ports, [{ port: 8080, targetPort: 8080, protocol: 'TCP' }])
  assert.deepEqual(service?.spec.selector, { app: 'web', 'gobrave-workload': 'web', 'runtimed.dev/kind': 'deployment' })
  assert.equal(service?.metadata.ownerReferences?.[0]?.uid, life.uid)
  assert.deepEqual(sandbox.faults.writeCounts(), { 'create deployments': 1, 'create services': 1 })
  assert.equal(backend.address(life), 'web-svc.default.svc.cluster.local')
})

test('E2, M2, M3: without a port, without the wish, or for a Job there is no Service and no name of one', async t => {
  const { sandbox, backend } = await cluster(t)
  const lives = [
    claim({ name: 'a', port: 80 }),
    claim({ name: 'b', exposeService: true }),
    claim({ ...exposed, name: 'c', kind: 'job' }),
  ]
  for (const life of lives) {
    await backend.workloads.make(life, true)
    assert.equal(backend.address(life), null)
  }
  assert.equal(sandbox.store.list('services', 'default').length, 0)
})

test('C11: made inactive, a Deployment has no replicas and a Job is suspended', async t => {
  const { sandbox, backend } = await cluster(t)
  await backend.workloads.make(claim({ name: 'a' }), false)
  await backend.workloads.make(claim({ name: 'b', kind: 'job' }), false)
  assert.equal(sandbox.store.get('deployments', 'default', 'a')?.spec.replicas, 0)
  assert.equal(sandbox.store.get('jobs', 'default', 'b')?.spec.suspend, true)
})

test('D2, C12, B-65: a create whose answer was lost is known again by its nonce, Service and all', async t => {
  const { sandbox, backend } = await cluster(t)
  const life = claim(exposed)
  sandbox.faults.fail({ verb: 'create', resource: 'deployments' }, { times: 1, reset: true, performed: true })
  const lost: RuntimeError = await refusal(backend.workloads.make(life, true))
  assert.equal(lost.code, 'BACKEND_TIMEOUT')
  assert.equal(lost.notDone, false)
  const written = await backend.workloads.make(life, true)
  assert.equal(written.uid, sandbox.store.get('deployments', 'default', 'web')?.metadata.uid)
  assert.ok(sandbox.store.get('services', 'default', 'web-svc'))
  assert.equal(sandbox.store.list('deployments', 'default').length, 1)
})

test('F-20: a 500 of a create that was carried out all the same is our own create', async t => {
  const { sandbox, backend } = await cluster(t)
  sandbox.faults.fail({ verb: 'create', resource: 'jobs' }, { times: 1, status: 500, performed: true })
  const written = await backend.workloads.make(claim({ kind: 'job' }), true)
  assert.equal(written.uid, sandbox.store.get('jobs', 'default', 'web')?.metadata.uid)
})

test('C9, B-41, B-81: a name that is taken is told by whose it is, and what is there stays as it is', async t => {
  const { sandbox, backend } = await cluster(t)
  const { backend: other } = await backendOn(t, sandbox, { instance: 'other' })
  const codeOf = async (work: Promise<unknown>) => (await refusal(work)).code
  await made(backend, claim({ name: 'orphan' }))
  await made(other, claim({ name: 'theirs' }))
  sandbox.registry.create('deployments', 'default', {
    metadata: { name: 'foreign' },
    spec: {
      selector: { matchLabels: { app: 'x' } },
      template: { metadata: { labels: { app: 'x' } }, spec: { containers: [{ name: 'c', image: 'x' }] } },
    },
  })
  const before = sandbox.store.list('deployments', 'default').map(({ metadata }) => metadata.uid)
  const orphan: RuntimeError = await refusal(backend.workloads.make(claim({ name: 'orphan' }), true))
  assert.equal(orphan.code, 'RUNTIME_EXISTS')
  assert.match(orphan.message, /\/v1\/adoption/)
  assert.equal(await codeOf(backend.workloads.make(claim({ name: 'theirs' }), true)), 'FOREIGN_WORKLOAD')
  assert.equal(await codeOf(backend.workloads.make(claim({ name: 'foreign' }), true)), 'FOREIGN_WORKLOAD')
  assert.deepEqual(
    sandbox.store.list('deployments', 'default').map(({ metadata }) => metadata.uid),
    before,
  )
})

test('H9: while the one of this name is being deleted a create is busy, afterwards it works', async t => {
  const { sandbox, backend } = await cluster(t)
  const first = await made(backend, claim({ name: 'again', kind: 'job' }))
  sandbox.faults.pauseControllers()
  assert.ok(await backend.workloads.remove(first))
  assert.equal(
    (await refusal(backend.workloads.make(claim({ name: 'again', kind: 'job' }), true))).code,
    'RUNTIME_BUSY',
  )
  sandbox.faults.resumeControllers()
  await eventually('the first is gone', () => !sandbox.store.get('jobs', 'default', 'again'))
  const second = await made(backend, claim({ name: 'again', kind: 'job' }))
  assert.notEqual(second.uid, first.uid)
})

test('C13: what the cluster refuses comes with its words and fields, and nothing is left', async t => {
  const { sandbox, backend } = await cluster(t)
  const refuse = { verb: 'create', resource: 'deployments' } as const
  const life = claim()
  sandbox.faults.fail(refuse, {
    times: 1,
    status: 403,
    reason: 'Forbidden',
    message: 'x is forbidden: exceeded quota: q',
  })
  assert.equal((await refusal(backend.workloads.make(life, true))).code, 'QUOTA_EXCEEDED')
  sandbox.faults.fail(refuse, { times: 1, status: 400, message: 'admission webhook "w" denied the request: no' })
  const denied: RuntimeError = await refusal(backend.workloads.make(life, true))
  assert.equal(denied.code, 'SPEC_REFUSED')
  assert.match(denied.message, /denied the request: no/)
  sandbox.faults.fail(refuse, { times: 1, status: 403, message: 'x is forbidden: User "u" cannot create' })
  assert.equal((await refusal(backend.workloads.make(life, true))).code, 'CLUSTER_FORBIDDEN')
  const elsewhere = { ...life, id: { ...life.id, namespace: 'nowhere' }, spec: { ...life.spec, namespace: 'nowhere' } }
  assert.equal((await refusal(backend.workloads.make(elsewhere as typeof life, true))).code, 'SPEC_REFUSED')
  assert.equal(sandbox.store.list('deployments', 'default').length, 0)
})

test('E4: a Service of its own is taken; a foreign one is 409 and the Deployment is not left behind', async t => {
  const { sandbox, backend } = await cluster(t)
  const life = claim(exposed)
  const first = bound(life, await backend.workloads.make(life, true))
  assert.equal((await backend.workloads.make(life, true)).uid, first.uid)
  sandbox.registry.create('services', 'default', {
    metadata: { name: 'other-svc' },
    spec: { ports: [{ port: 1 }], selector: { app: 'x' } },
  })
  const error: RuntimeError = await refusal(backend.workloads.make(claim({ ...exposed, name: 'other' }), true))
  assert.equal(error.code, 'FOREIGN_WORKLOAD')
  assert.equal(error.leftBehind, false)
  await eventually('the Deployment is gone', () => !sandbox.store.get('deployments', 'default', 'other'))
  assert.ok(sandbox.store.get('services', 'default', 'other-svc'))
})

test('E4, P5: a Service left by an earlier one of this name gives way', async t => {
  const { sandbox, backend } = await cluster(t)
  const first = await made(backend, claim({ ...exposed, name: 'agent' }, 'pod'))
  assert.equal(backend.address(first), 'agent.default.svc.cluster.local')
  sandbox.faults.pauseControllers() // the garbage collector has not come round yet
  sandbox.registry.delete('pods', 'default', 'agent', { gracePeriodSeconds: 0 })
  assert.ok(sandbox.store.get('services', 'default', 'agent'))
  const second = await made(backend, claim({ ...exposed, name: 'agent' }, 'pod'))
  assert.equal(sandbox.store.get('services', 'default', 'agent')?.metadata.ownerReferences?.[0]?.uid, second.uid)
  assert.equal(backend.address(second), backend.address(first))
})

test('E5, B-65: a Service that is refused takes the Deployment with it; undone without an answer says so', async t => {
  const { sandbox, backend } = await cluster(t)
  const refused = { status: 422, reason: 'Invalid', message: 'no' }
  sandbox.faults.fail({ verb: 'create', resource: 'services' }, refused)
  const error: RuntimeError = await refusal(backend.workloads.make(claim(exposed), true))
  assert.equal(error.code, 'SPEC_REFUSED')
  assert.equal(error.leftBehind, false)
  await eventually('the Deployment is gone', () => !sandbox.store.get('deployments', 'default', 'web'))
  sandbox.faults.fail({ verb: 'delete', resource: 'deployments' }, { reset: true })
  const half: RuntimeError = await refusal(backend.workloads.make(claim({ ...exposed, name: 'half' }), true))
  assert.equal(half.code, 'SPEC_REFUSED')
  assert.equal(half.leftBehind, true)
})

test('B-65: no answer to the Service leaves the create to be repeated, which finishes it', async t => {
  const { sandbox, backend } = await cluster(t)
  sandbox.faults.fail({ verb: 'create', resource: 'services' }, { times: 1, reset: true })
  const life = claim(exposed)
  const error: RuntimeError = await refusal(backend.workloads.make(life, true))
  assert.equal(error.notDone, false)
  const { uid } = await backend.workloads.make(life, true)
  assert.equal(sandbox.store.get('services', 'default', 'web-svc')?.metadata.ownerReferences?.[0]?.uid, uid)
  assert.equal(sandbox.faults.writeCounts()['delete deployments'], undefined)
})
