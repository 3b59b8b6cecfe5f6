import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  type Client,
  DEPLOYMENTS,
  deployment,
  JOBS,
  type Json,
  job,
  PODS,
  POLITE,
  pod,
  STUBBORN,
  sandboxFor,
  until,
} from './client.ts'

const SERVICES = '/api/v1/namespaces/default/services'

const service = (name: string, owner: Json, blockOwnerDeletion = false): Json => ({
  metadata: {
    name,
    ownerReferences: [
      {
        apiVersion: 'apps/v1',
        kind: 'Deployment',
        name: owner.metadata.name,
        uid: owner.metadata.uid,
        blockOwnerDeletion,
      },
    ],
  },
  spec: { selector: { app: 'web' }, ports: [{ port: 80 }] },
})

const gone = (client: Client, resource: string): Promise<true> =>
  until(`no ${resource}`, () => client.sandbox.store.count(resource) === 0)

test('foreground: pods, then the ReplicaSet, then the Deployment; the tombstone lists the finalizer (recording d-delete)', async t => {
  const client = await sandboxFor(t)
  const order: string[] = []
  client.sandbox.store.subscribe(({ resource, type, object }) => {
    if (type === 'DELETED' && resource !== 'events')
      order.push(`${resource} ${object.metadata.finalizers ?? ''}`.trim())
  })
  await client.post(DEPLOYMENTS, deployment('web', POLITE))
  await client.pod(({ status }) => status.containerStatuses?.[0].ready)
  const reply = await client.delete(`${DEPLOYMENTS}/web`, { propagationPolicy: 'Foreground' })
  assert.deepEqual(reply.body.metadata.finalizers, ['foregroundDeletion'])
  assert.equal(reply.body.metadata.deletionGracePeriodSeconds, 0)
  await gone(client, 'deployments')
  assert.deepEqual(order, ['pods', 'replicasets foregroundDeletion', 'deployments foregroundDeletion'])
})

test('a foreign finalizer holds a foreground delete; it still serves a scale (recording d-delete-finalizer)', async t => {
  const client = await sandboxFor(t)
  await client.post(DEPLOYMENTS, deployment('web', POLITE))
  await client.patch(`${DEPLOYMENTS}/web`, { metadata: { finalizers: ['example.com/hold'] } })
  const reply = await client.delete(`${DEPLOYMENTS}/web`, { propagationPolicy: 'Foreground' })
  assert.deepEqual(reply.body.metadata.finalizers, ['example.com/hold', 'foregroundDeletion'])
  assert.equal((await client.scale('web', 0)).code, 200)
  await gone(client, 'replicasets')
  const held = await until('only the foreign one', () => {
    const web = client.sandbox.store.get('deployments', 'default', 'web')!
    return web.metadata.finalizers?.length === 1 ? web : undefined
  })
  assert.deepEqual(held.metadata.finalizers, ['example.com/hold'])
  await client.patch(`${DEPLOYMENTS}/web`, { metadata: { finalizers: [] } })
  assert.equal((await client.get(`${DEPLOYMENTS}/web`)).code, 404)
})

test('an owned Service goes with its Deployment; one that blocks is waited for', async t => {
  const client = await sandboxFor(t)
  const web = (await client.post(DEPLOYMENTS, deployment('web', POLITE))).body
  assert.equal((await client.post(SERVICES, service('web-svc', web))).code, 201)
  await client.delete(`${DEPLOYMENTS}/web`, { propagationPolicy: 'Background' })
  await gone(client, 'services')
  const next = (await client.post(DEPLOYMENTS, deployment('web', POLITE))).body
  const blocking = service('web-svc', next, true)
  blocking.metadata.finalizers = ['example.com/hold']
  await client.post(SERVICES, blocking)
  await client.delete(`${DEPLOYMENTS}/web`, { propagationPolicy: 'Foreground' })
  await gone(client, 'replicasets')
  await until(
    'the Service is going',
    () => client.sandbox.store.get('services', 'default', 'web-svc')?.metadata.deletionTimestamp,
  )
  assert.equal((await client.get(`${DEPLOYMENTS}/web`)).code, 200)
  await client.patch(`${SERVICES}/web-svc`, { metadata: { finalizers: null } })
  await gone(client, 'deployments')
})

test('an object whose owner never was is collected', async t => {
  const client = await sandboxFor(t)
  const owner = { metadata: { name: 'ghost', uid: '00000000-0000-0000-0000-000000000001' } }
  await client.post(SERVICES, service('lost', owner))
  await gone(client, 'services')
})

test('a quota counts: 403 with its numbers for pods and for count/jobs.batch', async t => {
  const client = await sandboxFor(t, { kubelet: 'none', controllers: false })
  await client.post('/api/v1/namespaces/default/resourcequotas', {
    metadata: { name: 'counts' },
    spec: { hard: { pods: '1', 'count/jobs.batch': '0' } },
  })
  assert.equal((await client.post(PODS, pod('a', ['x']))).code, 201)
  const second = await client.post(PODS, pod('b', ['x']))
  assert.equal(second.code, 403)
  assert.equal(
    second.body.message,
    'pods "b" is forbidden: exceeded quota: counts, requested: pods=1, used: pods=1, limited: pods=1',
  )
  assert.deepEqual((await client.post(JOBS, job('batch', ['x']))).body, {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    message:
      'jobs.batch "batch" is forbidden: exceeded quota: counts, requested: count/jobs.batch=1, used: count/jobs.batch=0, limited: count/jobs.batch=0',
    reason: 'Forbidden',
    details: { name: 'batch', group: 'batch', kind: 'jobs' },
    code: 403,
  })
})

test('a namespace goes: creates are 403, pods first, workloads without a deletionTimestamp, then itself (recording ns-deleted)', async t => {
  const client = await sandboxFor(t)
  await client.post('/api/v1/namespaces', { metadata: { name: 'team' } })
  const workloads = '/apis/apps/v1/namespaces/team/deployments'
  await client.post(workloads, deployment('web', STUBBORN))
  await client.post('/apis/batch/v1/namespaces/team/jobs', job('batch', STUBBORN))
  await client.post('/api/v1/namespaces/team/pods', pod('one', STUBBORN))
  await until(
    'three pods run',
    () => client.sandbox.store.list('pods', 'team').filter(({ status }) => status.phase === 'Running').length === 3,
  )
  const marks: string[] = []
  const order: string[] = []
  client.sandbox.store.subscribe(({ resource, type, object }) => {
    if (['jobs', 'deployments'].includes(resource) && object.metadata.deletionTimestamp) marks.push(resource)
    if (type === 'DELETED' && resource !== 'events') order.push(resource)
  })
  const reply = await client.delete('/api/v1/namespaces/team')
  assert.equal(reply.body.status.phase, 'Terminating')
  assert.deepEqual((await client.post(workloads, deployment('late'))).body, {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    message:
      'deployments.apps "late" is forbidden: unable to create new content in namespace team because it is being terminated',
    reason: 'Forbidden',
    details: {
      name: 'late',
      group: 'apps',
      kind: 'deployments',
      causes: [
        { reason: 'NamespaceTerminating', message: 'namespace team is being terminated', field: 'metadata.namespace' },
      ],
    },
    code: 403,
  })
  await until('the namespace is gone', () => !client.sandbox.store.get('namespaces', undefined, 'team'))
  assert.deepEqual(marks, [])
  assert.deepEqual(order, ['pods', 'pods', 'pods', 'replicasets', 'jobs', 'deployments', 'namespaces'])
  assert.equal((await client.post(workloads, deployment('late'))).code, 404)
  assert.equal((await client.post('/api/v1/namespaces', { metadata: { name: 'team' } })).code, 201)
})
