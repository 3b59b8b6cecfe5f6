import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  type Client,
  condition,
  DEPLOYMENTS,
  deployment,
  type Json,
  POLITE,
  STUBBORN,
  sandboxFor,
  until,
} from './client.ts'

/** What a Deployment's status says, without times: counters, then conditions in their order. */
function facts({ metadata, status }: Json): string {
  const { conditions = [], ...counters } = status
  const mark = metadata.deletionTimestamp ? ' deleting' : ''
  const shown = conditions.map((entry: Json) => `${entry.type}=${entry.status}/${entry.reason}`).join(' ')
  return `g${metadata.generation}${mark} ${JSON.stringify(counters)} ${shown}`.trim()
}

/** The different facts of a Deployment in the order they were stored. */
function follow(client: Client): string[] {
  const seen: string[] = []
  client.sandbox.store.subscribe(({ resource, object }) => {
    if (resource !== 'deployments') return
    const now = facts(object)
    if (seen.at(-1) !== now) seen.push(now)
  })
  return seen
}

const ready = (client: Client): Promise<Json> =>
  until('a ready replica', () => {
    const web = client.sandbox.store.get('deployments', 'default', 'web')
    return web?.status?.readyReplicas ? web : undefined
  })

const AVAILABLE = 'Available=True/MinimumReplicasAvailable'
const UNAVAILABLE = 'Available=False/MinimumReplicasUnavailable'
const CREATED = 'Progressing=True/NewReplicaSetCreated'
const UPDATED = 'Progressing=True/ReplicaSetUpdated'
const DONE = 'Progressing=True/NewReplicaSetAvailable'

test('up, to 0, to 1: the facts of recordings d-up, d-stop-quick and d-stop-start, in their order', async t => {
  const client = await sandboxFor(t)
  const seen = follow(client)
  await client.post(DEPLOYMENTS, deployment('web', POLITE))
  await ready(client)
  assert.deepEqual(seen, [
    'g1 {}',
    `g1 {} ${CREATED}`,
    `g1 {"observedGeneration":1,"unavailableReplicas":1,"terminatingReplicas":0} ${CREATED} ${UNAVAILABLE}`,
    `g1 {"observedGeneration":1,"replicas":1,"updatedReplicas":1,"unavailableReplicas":1,"terminatingReplicas":0} ${UNAVAILABLE} ${UPDATED}`,
    `g1 {"observedGeneration":1,"replicas":1,"updatedReplicas":1,"readyReplicas":1,"availableReplicas":1,"terminatingReplicas":0} ${AVAILABLE} ${DONE}`,
  ])
  seen.length = 0
  await client.scale('web', 0)
  await until('no pod', () => client.sandbox.store.count('pods') === 0)
  await until(
    'nothing terminates',
    () => client.sandbox.store.get('deployments', 'default', 'web')?.status.terminatingReplicas === 0,
  )
  const up = '"replicas":1,"updatedReplicas":1,"readyReplicas":1,"availableReplicas":1,"terminatingReplicas":0'
  assert.deepEqual(seen, [
    `g2 {"observedGeneration":1,${up}} ${AVAILABLE} ${DONE}`,
    `g2 {"observedGeneration":2,${up}} ${AVAILABLE} ${DONE}`,
    `g2 {"observedGeneration":2,"terminatingReplicas":1} ${AVAILABLE} ${DONE}`,
    `g2 {"observedGeneration":2,"terminatingReplicas":0} ${AVAILABLE} ${DONE}`,
  ])
  seen.length = 0
  await client.scale('web', 1)
  await ready(client)
  assert.deepEqual(seen.slice(0, 3), [
    `g3 {"observedGeneration":2,"terminatingReplicas":0} ${AVAILABLE} ${DONE}`,
    `g3 {"observedGeneration":3,"terminatingReplicas":0} ${DONE} ${UNAVAILABLE}`,
    `g3 {"observedGeneration":3,"unavailableReplicas":1,"terminatingReplicas":0} ${DONE} ${UNAVAILABLE}`,
  ])
  assert.equal(seen.at(-1), `g3 {"observedGeneration":3,${up}} ${DONE} ${AVAILABLE}`)
})

test('made at 0 it is Available and done without a pod (recording d-start-at-zero)', async t => {
  const client = await sandboxFor(t)
  const seen = follow(client)
  await client.post(DEPLOYMENTS, deployment('web', POLITE, {}, { replicas: 0 }))
  await until('a status', () => seen.length === 3)
  assert.deepEqual(seen, [
    'g1 {}',
    `g1 {} ${CREATED}`,
    `g1 {"observedGeneration":1,"terminatingReplicas":0} ${AVAILABLE} ${DONE}`,
  ])
  assert.equal(client.sandbox.store.count('pods'), 0)
})

test('a process that ignores SIGTERM lives until its grace is over, then 137', async t => {
  const client = await sandboxFor(t)
  await client.post(DEPLOYMENTS, deployment('web', STUBBORN))
  await ready(client)
  const begin = Date.now()
  await client.scale('web', 0)
  const ended = await client.pod(pod => pod.status.containerStatuses?.[0].state.terminated, 'the end')
  assert.ok(Date.now() - begin >= 950, 'not before the grace of one second')
  assert.equal(ended.status.phase, 'Failed')
  assert.equal(ended.status.containerStatuses[0].state.terminated.exitCode, 137)
  await until('the pod is gone', () => client.sandbox.store.count('pods') === 0)
})

test('a crash loop: terminated, restarted, CrashLoopBackOff; restarts and lastState count up (recording d-crash-loop)', async t => {
  const client = await sandboxFor(t)
  await client.post(DEPLOYMENTS, deployment('web', ['sh', '-c', 'sleep 0.02; exit 3']))
  const looping = await client.pod(
    pod => pod.status.containerStatuses?.[0].state.waiting?.reason === 'CrashLoopBackOff',
    'a crash loop',
  )
  const status = looping.status.containerStatuses[0]
  assert.equal(looping.status.phase, 'Running')
  assert.equal(status.lastState.terminated.exitCode, 3)
  assert.ok(status.restartCount >= 1)
  assert.match(
    status.state.waiting.message,
    /^back-off \d+s restarting failed container=main pod=web-\w+-\w+_default\([0-9a-f-]+\)$/,
  )
  await client.pod(pod => pod.status.containerStatuses?.[0].restartCount >= 3, 'more restarts')
  const event = client.sandbox.store.list('events').find(({ reason }) => reason === 'BackOff')
  assert.equal(event?.type, 'Warning')
})

test('a command that does not exist: RunContainerError, pod phase Running though nothing ran (recording d-command-not-found)', async t => {
  const client = await sandboxFor(t)
  await client.post(DEPLOYMENTS, deployment('web', ['/nope']))
  const failing = await client.pod(
    pod => pod.status.containerStatuses?.[0].state.waiting?.reason === 'RunContainerError',
    'the error',
  )
  const { state, lastState, restartCount } = failing.status.containerStatuses[0]
  assert.equal(failing.status.phase, 'Running')
  assert.equal(restartCount, 0)
  assert.match(state.waiting.message, /exec: "\/nope": stat \/nope: no such file or directory: unknown$/)
  assert.equal(lastState.terminated.reason, 'StartError')
  assert.equal(lastState.terminated.exitCode, 128)
  assert.equal(lastState.terminated.startedAt, '1970-01-01T00:00:00Z')
  await client.pod(pod => pod.status.containerStatuses?.[0].state.waiting?.reason === 'CrashLoopBackOff', 'the loop')
})

test('an image that cannot be pulled: ErrImagePull, ImagePullBackOff, progress deadline; a good image heals (d-bad-image-fixed)', async t => {
  const client = await sandboxFor(t)
  const reasons = new Set<string>()
  client.sandbox.store.subscribe(({ resource, object }) => {
    const reason = resource === 'pods' && object.status?.containerStatuses?.[0].state.waiting?.reason
    if (reason) reasons.add(reason)
  })
  await client.post(
    DEPLOYMENTS,
    deployment('web', POLITE, { image: 'registry.invalid/none:1' }, { progressDeadlineSeconds: 1 }),
  )
  await until(
    'the deadline',
    () => condition(client.sandbox.store.get('deployments', 'default', 'web'), 'Progressing')?.status === 'False',
  )
  assert.deepEqual([...reasons].sort(), ['ContainerCreating', 'ErrImagePull', 'ImagePullBackOff'])
  const failed = condition(client.sandbox.store.get('deployments', 'default', 'web'), 'Progressing')
  assert.equal(failed.reason, 'ProgressDeadlineExceeded')
  assert.match(failed.message, /^ReplicaSet "web-\w+" has timed out progressing\.$/)
  const image = { spec: { template: { spec: { containers: [{ name: 'main', image: 'good:1' }] } } } }
  await client.patch(`${DEPLOYMENTS}/web`, image, 'application/strategic-merge-patch+json')
  const healed = await until('the new pod alone', () => {
    const web = client.sandbox.store.get('deployments', 'default', 'web')!
    return web.status.availableReplicas === 1 && client.sandbox.store.count('pods') === 1 ? web : undefined
  })
  assert.equal(healed.metadata.annotations?.['deployment.kubernetes.io/revision'], '2')
  assert.equal(condition(healed, 'Progressing').reason, 'NewReplicaSetAvailable')
})

test('a rollout to a bad image keeps the old pod ready (recording d-rollout-bad)', async t => {
  const client = await sandboxFor(t)
  await client.post(DEPLOYMENTS, deployment('web', POLITE))
  await ready(client)
  const image = { spec: { template: { spec: { containers: [{ name: 'main', image: 'registry.invalid/none:1' }] } } } }
  await client.patch(`${DEPLOYMENTS}/web`, image, 'application/strategic-merge-patch+json')
  const both = await until('both pods', () => {
    const web = client.sandbox.store.get('deployments', 'default', 'web')!
    return web.status.replicas === 2 ? web : undefined
  })
  assert.equal(both.status.readyReplicas, 1)
  assert.equal(both.status.updatedReplicas, 1)
  assert.equal(both.status.unavailableReplicas, 1)
})

test('B-48: a container patched in whole gets its defaults, so the rollout makes one ReplicaSet and not one after the other', async t => {
  const client = await sandboxFor(t)
  await client.post(DEPLOYMENTS, deployment('web', POLITE))
  await ready(client)
  const bad = { spec: { template: { spec: { containers: [{ name: 'main', image: 'none.invalid/x' }] } } } }
  await client.patch(`${DEPLOYMENTS}/web`, bad)
  const pod = await client.pod(({ spec }) => spec.containers[0].image === 'none.invalid/x', 'the pod of the new image')
  assert.equal(pod.spec.containers[0].imagePullPolicy, 'Always')
  await until('its trouble', () => {
    const now = client.sandbox.store.get('pods', 'default', pod.metadata.name)
    return now?.status?.containerStatuses?.[0]?.state?.waiting?.reason === 'ImagePullBackOff'
  })
  const { generation, status } = await ready(client).then(({ metadata, status }) => ({ ...metadata, status }))
  assert.deepEqual([client.sandbox.store.count('replicasets'), status.collisionCount], [2, undefined])
  assert.equal(status.observedGeneration, generation)
})

test('a pod that asks for more than the node has is Unschedulable; at scale 0 it is gone at once (recording d-unschedulable)', async t => {
  const client = await sandboxFor(t)
  await client.post(DEPLOYMENTS, deployment('web', POLITE, { resources: { requests: { cpu: '65' } } }))
  const waiting = await client.pod(pod => condition(pod, 'PodScheduled')?.status === 'False', 'the condition')
  assert.equal(condition(waiting, 'PodScheduled').reason, 'Unschedulable')
  assert.match(condition(waiting, 'PodScheduled').message, /^0\/1 nodes are available: 1 Insufficient cpu\./)
  assert.equal(waiting.spec.nodeName, undefined)
  await client.scale('web', 0)
  await until('no pod', () => client.sandbox.store.count('pods') === 0)
})

test('a quota of pods: ReplicaFailure with the words of the 403, healed once the quota is gone (recording d-quota)', async t => {
  const client = await sandboxFor(t)
  await client.post('/api/v1/namespaces/default/resourcequotas', {
    metadata: { name: 'none' },
    spec: { hard: { pods: '0' } },
  })
  await client.post(DEPLOYMENTS, deployment('web', POLITE))
  const failed = await until('ReplicaFailure', () =>
    condition(client.sandbox.store.get('deployments', 'default', 'web'), 'ReplicaFailure'),
  )
  assert.equal(failed.reason, 'FailedCreate')
  assert.match(
    failed.message,
    /^pods "web-\w+-\w{5}" is forbidden: exceeded quota: none, requested: pods=1, used: pods=0, limited: pods=0$/,
  )
  await client.delete('/api/v1/namespaces/default/resourcequotas/none')
  const web = await ready(client)
  assert.equal(condition(web, 'ReplicaFailure'), undefined)
})

test('a deleted pod is replaced while it still terminates (recording d-pod-deleted)', async t => {
  const client = await sandboxFor(t)
  await client.post(DEPLOYMENTS, deployment('web', STUBBORN))
  await ready(client)
  const [first] = client.sandbox.store.list('pods', 'default')
  await client.delete(`/api/v1/namespaces/default/pods/${first!.metadata.name}`)
  await client.pod(
    pod => pod.metadata.uid !== first!.metadata.uid && condition(pod, 'Ready')?.status === 'True',
    'the new pod',
  )
  assert.ok(client.sandbox.store.has(first!.metadata.uid), 'the old one is still there')
})

test('a ReplicaSet of another owner in the way: collisionCount, and another name (recording d-recreate-background)', async t => {
  const client = await sandboxFor(t)
  await client.post(DEPLOYMENTS, deployment('web', POLITE))
  await ready(client)
  const { name } = client.sandbox.store.list('replicasets')[0]!.metadata
  await client.delete(`${DEPLOYMENTS}/web`, { propagationPolicy: 'Foreground' })
  await until('all is gone', () => client.sandbox.store.count('deployments') === 0)
  const labels = { app: 'other' }
  const { template } = deployment('other').spec
  const foreign = await client.post('/apis/apps/v1/namespaces/default/replicasets', {
    metadata: { name },
    spec: { replicas: 0, selector: { matchLabels: labels }, template },
  })
  assert.equal(foreign.code, 201)
  await client.post(DEPLOYMENTS, deployment('web', POLITE))
  const web = await ready(client)
  assert.equal(web.status.collisionCount, 1)
  const own = client.sandbox.store
    .list('replicasets')
    .filter(set => set.metadata.ownerReferences?.[0]?.uid === web.metadata.uid)
  assert.equal(own.length, 1)
  assert.notEqual(own[0]!.metadata.name, name)
})

test('orphaned: the ReplicaSet and its pod stay and are adopted by the next Deployment (recording d-orphaned-pods)', async t => {
  const client = await sandboxFor(t)
  await client.post(DEPLOYMENTS, deployment('web', POLITE))
  await ready(client)
  const [pod] = client.sandbox.store.list('pods')
  await client.delete(`${DEPLOYMENTS}/web`, { propagationPolicy: 'Orphan' })
  await until('the Deployment is gone', () => client.sandbox.store.count('deployments') === 0)
  assert.equal(client.sandbox.store.list('replicasets')[0]!.metadata.ownerReferences, undefined)
  await client.post(DEPLOYMENTS, deployment('web', POLITE))
  const web = await ready(client)
  assert.equal(client.sandbox.store.list('replicasets')[0]!.metadata.ownerReferences![0]!.uid, web.metadata.uid)
  assert.equal(client.sandbox.store.list('pods')[0]!.metadata.uid, pod!.metadata.uid)
})
