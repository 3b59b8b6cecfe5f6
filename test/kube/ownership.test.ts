import assert from 'node:assert/strict'
import { test } from 'node:test'
import { KubeClient } from '../../src/kube/client.ts'
import type { Pod } from '../../src/kube/objects.ts'
import { Ownership } from '../../src/kube/ownership.ts'
import { FakeClock } from '../helpers/clock.ts'
import { refusal } from './cluster.ts'
import { json, serve, statusBody, transportTo, until } from './serve.ts'

const podOf = (name: string, replicaSet: string): Pod => ({
  metadata: {
    name,
    namespace: 'default',
    uid: name,
    ownerReferences: [
      { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: replicaSet, uid: replicaSet, controller: true },
    ],
  },
})
const replicaSet = (uid: string, owner: string | null) => ({
  metadata: {
    uid,
    ownerReferences:
      owner === null ? [] : [{ apiVersion: 'apps/v1', kind: 'Deployment', name: 'web', uid: owner, controller: true }],
  },
})
const owner = { kind: 'deployment', uid: 'd1' } as const

test('B-58: a ReplicaSet is read once, however many ask at once; what is not ours stays not ours', async t => {
  const api = await serve(t, ({ path }, response) => {
    const uid = path.split('/').at(-1) ?? ''
    if (uid === 'gone') return json(response, 404, statusBody(404, 'NotFound'))
    json(
      response,
      200,
      replicaSet(uid === 'renamed' ? 'another' : uid, uid === 'bare' ? null : uid === 'rs' ? 'd1' : 'd2'),
    )
  })
  const ownership = new Ownership({
    client: new KubeClient(transportTo(t, api.url)),
    clock: new FakeClock(),
    onResolved() {},
  })
  const pods = ['rs', 'rs', 'rs', 'bare', 'gone', 'renamed', 'other'].map((uid, n) => podOf(`p${n}`, uid))
  const answers = await Promise.all([ownership.narrow(pods, owner), ownership.narrow(pods, owner)])
  for (const ours of [...answers, ownership.known(pods, owner)]) {
    assert.deepEqual(
      ours.map(({ metadata }) => metadata?.name),
      ['p0', 'p1', 'p2'],
    )
  }
  assert.equal(api.seen.length, 5)
  assert.deepEqual(
    pods.filter(pod => ownership.isOrphan(pod)).map(({ metadata }) => metadata?.name),
    ['p4', 'p5'],
  )
})

test('L3: a Job’s pod is its own by uid, a Pod is itself', () => {
  const ownership = new Ownership({ client: { get: () => assert.fail() }, clock: new FakeClock(), onResolved() {} })
  const controller = { apiVersion: 'batch/v1', kind: 'Job', name: 'web', uid: 'j1', controller: true }
  const pod: Pod = { metadata: { name: 'p', uid: 'p', ownerReferences: [controller] } }
  assert.equal(ownership.of(pod, { kind: 'job', uid: 'j1' }), 'ours')
  assert.equal(ownership.of(pod, { kind: 'job', uid: 'j2' }), 'others')
  assert.equal(ownership.of(pod, { kind: 'deployment', uid: 'j1' }), 'others')
  assert.equal(ownership.of(pod, { kind: 'pod', uid: 'p' }), 'ours')
  assert.equal(ownership.of(pod, { kind: 'pod', uid: 'q' }), 'others')
  assert.equal(ownership.of({ metadata: { name: 'bare', uid: 'b' } }, owner), 'others')
})

test('§3, I5: a ReplicaSet that cannot be read is no fact; it is asked again later, not at each event', async t => {
  let broken = true
  const api = await serve(t, (_seen, response) =>
    broken
      ? json(response, 403, statusBody(403, 'Forbidden', 'User "u" cannot'))
      : json(response, 200, replicaSet('rs', 'd1')),
  )
  const clock = new FakeClock()
  const resolved: string[] = []
  const ownership = new Ownership({
    client: new KubeClient(transportTo(t, api.url)),
    clock,
    onResolved: pod => resolved.push(pod.metadata?.name ?? ''),
  })
  const pod = podOf('p', 'rs')
  for (let n = 0; n < 20; n++) assert.deepEqual(ownership.known([pod], owner), [])
  await until('the retry is planned', () => clock.pending === 1)
  for (let n = 0; n < 20; n++) assert.deepEqual(ownership.known([pod], owner), [])
  assert.equal(api.seen.length, 1)
  assert.equal((await refusal(ownership.narrow([pod], owner))).code, 'CLUSTER_FORBIDDEN')
  broken = false
  clock.advance(30_000)
  await until('it is resolved', () => resolved.length === 1)
  assert.deepEqual(ownership.known([pod], owner), [pod])
  ownership.stop()
})
