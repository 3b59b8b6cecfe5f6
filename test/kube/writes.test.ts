import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Life } from '../../src/domain/life.ts'
import type { Seen } from '../../src/domain/observation.ts'
import type { RuntimeError } from '../../src/errors.ts'
import type { Backend } from '../../src/service/ports.ts'
import { claim, cluster, eventually, made, refusal } from './cluster.ts'

async function seenBy(backend: Backend, life: Life): Promise<Seen> {
  const seen = await backend.workloads.look(life, 'object')
  assert.equal(seen.type, 'seen')
  return seen as Seen
}

test('F1, F-29: scaling names the version it was decided on; a write of others in between is read and decided again', async t => {
  const { sandbox, backend } = await cluster(t)
  const life = await made(backend, claim(), false)
  const seen = await seenBy(backend, life)
  sandbox.registry.update('deployments', 'default', 'web', draft => {
    draft.metadata.labels = { ...draft.metadata.labels, touched: 'yes' }
  })
  const up = await backend.workloads.up(life, seen)
  assert.equal(sandbox.store.get('deployments', 'default', 'web')?.spec.replicas, 1)
  assert.equal(up?.uid, life.uid)
  assert.equal(up?.generation, null)
  assert.deepEqual(sandbox.faults.writeCounts()['patch deployments/scale'], 2)
  const down = await backend.workloads.down(life, await seenBy(backend, life))
  assert.equal(sandbox.store.get('deployments', 'default', 'web')?.spec.replicas, 0)
  assert.ok(Number(down?.version) > Number(up?.version))
  assert.equal(sandbox.store.get('deployments', 'default', 'web')?.metadata.labels?.touched, 'yes')
})

test('F7: what others have brought about already is not written again', async t => {
  const { sandbox, backend } = await cluster(t)
  const life = await made(backend, claim(), false)
  const seen = await seenBy(backend, life)
  sandbox.registry.update('deployments', 'default', 'web', draft => {
    draft.spec.replicas = 3
  })
  await backend.workloads.up(life, seen)
  assert.equal(sandbox.store.get('deployments', 'default', 'web')?.spec.replicas, 3)
})

test('F-29: who is beaten five times gives up with an error that says it was not done', async t => {
  const { sandbox, backend } = await cluster(t)
  const life = await made(backend, claim(), false)
  const seen = await seenBy(backend, life)
  const conflict = sandbox.faults.fail(
    { verb: 'patch', resource: 'deployments', subresource: 'scale' },
    { status: 409, reason: 'Conflict' },
  )
  const error: RuntimeError = await refusal(backend.workloads.up(life, seen))
  assert.equal(error.code, 'KUBERNETES_ERROR')
  assert.equal(error.notDone, true)
  assert.equal(conflict.hits, 5)
})

test('F3, G8: a Job is unsuspended and suspended, guarded likewise', async t => {
  const { sandbox, backend } = await cluster(t)
  const life = await made(backend, claim({ kind: 'job' }), false)
  const seen = await seenBy(backend, life)
  sandbox.registry.update('jobs', 'default', 'web', draft => {
    draft.metadata.labels = { ...draft.metadata.labels, touched: 'yes' }
  })
  assert.ok(await backend.workloads.up(life, seen))
  assert.equal(sandbox.store.get('jobs', 'default', 'web')?.spec.suspend, false)
  assert.ok(await backend.workloads.down(life, await seenBy(backend, life)))
  assert.equal(sandbox.store.get('jobs', 'default', 'web')?.spec.suspend, true)
})

test('G4, H5, I11: what is gone, or is another under the name, answers null and is left alone', async t => {
  const { sandbox, backend } = await cluster(t)
  for (const kind of ['deployment', 'job'] as const) {
    const first = await made(backend, claim({ name: kind, kind }), false)
    const seen = await seenBy(backend, first)
    sandbox.registry.delete(`${kind}s`, 'default', kind, {})
    await eventually('it is gone', () => !sandbox.store.get(`${kind}s`, 'default', kind))
    assert.equal(await backend.workloads.up(first, seen), null)
    assert.equal(await backend.workloads.down(first, seen), null)
    assert.equal(await backend.workloads.remove(first), null)
    const second = await made(backend, claim({ name: kind, kind }), false)
    assert.equal(await backend.workloads.up(first, seen), null)
    assert.equal(await backend.workloads.remove(first), null)
    const left = sandbox.store.get(`${kind}s`, 'default', kind)
    assert.equal(left?.metadata.uid, second.uid)
    assert.equal(left?.metadata.deletionTimestamp, undefined)
  }
})

test('H1, H2: the Service goes first, then the Deployment, foreground; a missing Service is no matter', async t => {
  const { sandbox, backend } = await cluster(t)
  const exposed = { port: 80, exposeService: true }
  const life = await made(backend, claim(exposed))
  await eventually('its pod is up', () => sandbox.store.list('pods', 'default').length === 1)
  sandbox.faults.pauseControllers()
  assert.equal((await backend.workloads.remove(life))?.uid, life.uid)
  const deletes = sandbox.faults.requests({ verb: 'delete' }).map(({ resource }) => resource)
  assert.deepEqual(deletes, ['services', 'deployments'])
  const left = sandbox.store.get('deployments', 'default', 'web')
  assert.deepEqual(left?.metadata.finalizers, ['foregroundDeletion'])
  sandbox.faults.resumeControllers()
  await eventually('all is gone', () =>
    ['deployments', 'replicasets', 'pods', 'services'].every(
      resource => !sandbox.store.list(resource, 'default').length,
    ),
  )
  const other = await made(backend, claim({ ...exposed, name: 'other' }))
  sandbox.registry.delete('services', 'default', 'other-svc', {})
  assert.ok(await backend.workloads.remove(other))
  await eventually('it is gone', () => !sandbox.store.get('deployments', 'default', 'other'))
})

test('H3: a Service that cannot be deleted leaves the Deployment there; the delete can be repeated', async t => {
  const { sandbox, backend } = await cluster(t)
  const life = await made(backend, claim({ port: 80, exposeService: true }))
  const fault = sandbox.faults.fail(
    { verb: 'delete', resource: 'services' },
    { status: 403, message: 'User "u" cannot' },
  )
  assert.equal((await refusal(backend.workloads.remove(life))).code, 'CLUSTER_FORBIDDEN')
  assert.equal(sandbox.store.get('deployments', 'default', 'web')?.metadata.deletionTimestamp, undefined)
  fault.remove()
  assert.ok(await backend.workloads.remove(life))
  await eventually('both are gone', () => !sandbox.store.list('services', 'default').length)
})

test('B-40: a Service of that name which it does not own is left when it goes', async t => {
  const { sandbox, backend } = await cluster(t)
  const life = await made(backend, claim())
  sandbox.registry.create('services', 'default', { metadata: { name: 'web-svc' }, spec: { ports: [{ port: 1 }] } })
  assert.ok(await backend.workloads.remove(life))
  assert.ok(sandbox.store.get('services', 'default', 'web-svc'))
})

test('H4, O12: a Job goes with its pods, an agent Pod with its Service', async t => {
  const { sandbox, backend } = await cluster(t)
  const job = await made(backend, claim({ name: 'job', kind: 'job' }))
  const agent = await made(backend, claim({ name: 'agent', port: 80, exposeService: true }, 'pod'))
  await eventually('their pods are there', () => sandbox.store.list('pods', 'default').length === 2)
  assert.ok(await backend.workloads.remove(job))
  assert.ok(await backend.workloads.remove(agent))
  await eventually('all is gone', () =>
    ['jobs', 'pods', 'services'].every(resource => sandbox.store.list(resource, 'default').length === 0),
  )
})

test('C12, §2.10: a life whose uid is not known is removed by its nonce, and nothing else is', async t => {
  const { sandbox, backend } = await cluster(t)
  const life = claim({ kind: 'job' })
  await backend.workloads.make(life, true)
  assert.equal(await backend.workloads.remove(claim({ kind: 'job' })), null)
  assert.ok(sandbox.store.get('jobs', 'default', 'web'))
  assert.ok(await backend.workloads.remove(life))
  await eventually('it is gone', () => !sandbox.store.get('jobs', 'default', 'web'))
})

test('F-49: a name that is none never reaches a path', async t => {
  const { sandbox, backend } = await cluster(t)
  const before = sandbox.faults.journal.length
  for (const name of ['.', '..', '', 'x/../../namespaces/kube-system/secrets?a=', 'A', 'a\nb', '%2e%2e']) {
    for (const kind of ['deployment', 'job', 'pod'] as const) {
      const life = { ...claim({ kind: kind === 'pod' ? 'job' : kind }), uid: 'u1' }
      const bad = { ...life, id: { ...life.id, kind, name } }
      const worse = { ...life, id: { ...life.id, kind, namespace: name } }
      for (const one of [bad, worse]) {
        for (const work of [
          backend.workloads.look(one, 'warnings'),
          backend.workloads.remove(one),
          backend.inventory.find(one.id),
        ]) {
          assert.equal((await refusal(work)).code, 'RUNTIME_ID_INVALID')
        }
      }
    }
  }
  assert.equal(sandbox.faults.journal.length, before)
})
