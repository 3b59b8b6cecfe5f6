import assert from 'node:assert/strict'
import { test } from 'node:test'
import { formatRuntimeId } from '../../src/domain/runtime-id.ts'
import { backendOn, claim, cluster, eventually, made, refusal } from './cluster.ts'

test('K9, B10: labelled workloads of any instance are listed, pods of Deployments and Jobs are not', async t => {
  const { sandbox, backend } = await cluster(t)
  const { backend: other } = await backendOn(t, sandbox, { instance: 'other' })
  const mine = [
    await made(backend, claim({ name: 'web', labels: { team: 'a' } })),
    await made(backend, claim({ name: 'job', kind: 'job' })),
    await made(backend, claim({ name: 'agent' }, 'pod')),
  ]
  await made(other, claim({ name: 'theirs' }))
  await eventually('all pods are there', () => sandbox.store.list('pods', 'default').length === 4)
  const all = await eventually('all are cached', () => {
    const found = [...backend.inventory.labelled()]
    return found.length === 4 ? found : null
  })
  assert.deepEqual(all.map(({ id, instance }) => `${formatRuntimeId(id)} ${instance}`).sort(), [
    'k8s-default|deployment|theirs other',
    'k8s-default|deployment|web default',
    'k8s-default|job|job default',
    'k8s-default|pod|agent default',
  ])
  for (const life of mine) {
    const cached = backend.inventory.cached(life.id)
    const found = await backend.inventory.find(life.id)
    for (const one of [cached, found]) {
      assert.equal(one?.uid, life.uid)
      assert.equal(one?.nonce, life.nonce)
      assert.equal(one?.image, 'registry/web:1.2')
      assert.equal(one?.runtime, 'k8s')
      assert.equal(one?.deleting, false)
    }
  }
  assert.deepEqual(backend.inventory.cached(mine[0]?.id ?? all[0]!.id)?.labels, { team: 'a' })
})

test('B10: without our label, or not there, nothing is found; a pod of a Deployment is no workload', async t => {
  const { sandbox, backend } = await cluster(t)
  const { id } = await made(backend, claim())
  const pod = await eventually('its pod is there', () => sandbox.store.list('pods', 'default')[0])
  sandbox.registry.update('deployments', 'default', 'web', draft => {
    draft.metadata.labels = {}
  })
  assert.equal(await backend.inventory.find(id), null)
  assert.equal(await backend.inventory.find({ ...id, name: 'none' }), null)
  assert.equal(await backend.inventory.find({ ...id, kind: 'pod', name: pod.metadata.name }), null)
})

test('§9: taking up puts our labels on the very object that was found', async t => {
  const { sandbox, backend } = await cluster(t)
  const by = { app: 'hand', 'gobrave-workload': 'hand' }
  const job = (name: string) => ({
    metadata: { name, labels: by },
    spec: {
      template: {
        metadata: { labels: by },
        spec: { restartPolicy: 'Never', containers: [{ name: 'a', image: 'x:1' }] },
      },
    },
  })
  sandbox.registry.create('jobs', 'default', job('hand'))
  const found = await backend.inventory.find({ runtime: 'k8s', namespace: 'default', kind: 'job', name: 'hand' })
  assert.ok(found)
  assert.deepEqual([found.instance, found.runtime, found.image], [null, null, 'x:1'])
  const written = await backend.inventory.mark(found)
  const after = sandbox.store.get('jobs', 'default', 'hand')
  assert.equal(after?.metadata.labels?.['runtimed.dev/instance'], 'default')
  assert.equal(after?.metadata.labels?.['runtimed.dev/runtime'], 'k8s')
  assert.equal(after?.metadata.labels?.app, 'hand')
  assert.equal(written.uid, found.uid)
  assert.ok(Number(written.version) <= Number(after?.metadata.resourceVersion))
  await refusal(backend.inventory.mark({ ...found, uid: 'another' }))
})
