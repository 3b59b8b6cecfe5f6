import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Deployment, Job, Pod } from '../../src/kube/objects.ts'
import { trimDeployment, trimJob, trimPod } from '../../src/kube/trim.ts'

/** As JSON has it: an absent field and an undefined one are the same. */
const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value))

const metadata = {
  name: 'web',
  namespace: 'ai',
  uid: 'u1',
  resourceVersion: '7',
  generation: 2,
  creationTimestamp: '2026-11-29T17:22:45Z',
  labels: { app: 'web', 'gobrave-workload': 'web', 'runtimed.dev/kind': 'deployment' },
}
const kept = { ...metadata, annotations: { 'runtimed.dev/create-nonce': 'n' }, finalizers: ['foregroundDeletion'] }
const whole = {
  ...kept,
  annotations: { ...kept.annotations, 'deployment.kubernetes.io/revision': '1' },
  managedFields: [{ manager: 'kubectl' }],
  deletionTimestamp: '2026-11-29T17:36:00Z',
  deletionGracePeriodSeconds: 0,
}
const condition = {
  type: 'Ready',
  status: 'True',
  reason: 'R',
  message: 'M',
  lastTransitionTime: '2026-11-29T17:22:48Z',
}
const container = { name: 'main', image: 'web:1' }
const template = {
  metadata: { labels: { app: 'web' } },
  spec: { containers: [{ ...container, env: [{ name: 'S', value: 'secret' }] }] },
}

test('a Deployment keeps what states are decided by, and no environment', () => {
  const status = { observedGeneration: 2, replicas: 1, readyReplicas: 1, terminatingReplicas: 1 }
  const object = {
    metadata: whole,
    spec: { replicas: 1, selector: { matchLabels: {} }, strategy: { type: 'RollingUpdate' }, template },
    status: { ...status, collisionCount: 3, conditions: [{ ...condition, lastUpdateTime: 'x' }] },
  } as Deployment
  assert.deepEqual(plain(trimDeployment(object)), {
    metadata: { ...kept, deletionTimestamp: '2026-11-29T17:36:00Z', deletionGracePeriodSeconds: 0 },
    spec: { replicas: 1, template: { spec: { containers: [container] } } },
    status: { ...status, conditions: [condition] },
  })
})

test('a Deployment without status or replicas has none afterwards', () => {
  const record = plain(trimDeployment({ metadata, spec: { template: {} } } as unknown as Deployment)) as Deployment
  assert.equal(record.spec?.replicas, undefined)
  assert.equal(record.status?.replicas, undefined)
  assert.equal(record.metadata?.annotations, undefined)
})

test('a Job keeps its counters, its conditions and whether it is suspended', () => {
  const spec = { suspend: false, parallelism: 1, completions: 1, backoffLimit: 0 }
  const status = { active: 0, ready: 0, succeeded: 1, failed: 2, terminating: 1, startTime: 'a', completionTime: 'b' }
  const object = {
    metadata,
    spec: { ...spec, template, selector: {}, podReplacementPolicy: 'x' },
    status: { ...status, uncountedTerminatedPods: {}, conditions: [{ ...condition, lastProbeTime: 'x' }] },
  } as unknown as Job
  assert.deepEqual(plain(trimJob(object)), {
    metadata,
    spec: { ...spec, template: { spec: { containers: [container] } } },
    status: { ...status, conditions: [condition] },
  })
})

const terminated = { exitCode: 137, reason: 'OOMKilled', startedAt: 'a', finishedAt: 'b', signal: 9, message: 'm' }
const podStatus = {
  phase: 'Running',
  reason: 'Evicted',
  message: 'low on memory',
  podIP: '10.0.0.7',
  startTime: 'a',
  observedGeneration: 1,
  conditions: [condition],
  containerStatuses: [
    { ...container, ready: true, restartCount: 2, state: { running: { startedAt: 'a' } }, lastState: { terminated } },
    {
      ...container,
      name: 'other',
      ready: false,
      restartCount: 0,
      state: { waiting: { reason: 'ImagePullBackOff', message: 'm' } },
    },
  ],
  initContainerStatuses: [{ ...container, name: 'init', ready: true, restartCount: 0, state: { terminated } }],
}

test('a Pod keeps where it is, its owner, and each container\u2019s present and last state', () => {
  const owner = { kind: 'Job', name: 'web', uid: 'j1', controller: true }
  const spec = { nodeName: 'n1', restartPolicy: 'Always', terminationGracePeriodSeconds: 30 }
  const statuses = podStatus.containerStatuses.map(status => ({
    ...status,
    imageID: 'sha256:1',
    containerID: 'c',
    started: true,
  }))
  const object = {
    metadata: { ...metadata, ownerReferences: [{ ...owner, apiVersion: 'batch/v1', blockOwnerDeletion: true }] },
    spec: { ...spec, containers: [{ ...container, env: [] }], volumes: [{}] },
    status: { ...podStatus, containerStatuses: statuses, hostIP: 'x', qosClass: 'Burstable' },
  } as unknown as Pod
  assert.deepEqual(plain(trimPod(object)), {
    metadata: { ...metadata, ownerReferences: [owner] },
    spec: { ...spec, containers: [container] },
    status: podStatus,
  })
})

test('what was trimmed once is not changed by being trimmed again', () => {
  const pod = trimPod({ metadata, spec: { containers: [container] }, status: podStatus } as unknown as Pod)
  assert.deepEqual(plain(trimPod(pod)), plain(pod))
})

const dying = (deletionTimestamp: string, deletionGracePeriodSeconds: number): Pod =>
  ({ metadata: { ...metadata, deletionTimestamp, deletionGracePeriodSeconds }, spec: { containers: [] } }) as Pod
const asked = Date.parse('2026-11-29T17:36:00Z')

test('when a pod\u2019s deletion was asked for outlives the kubelet\u2019s last delete, which rewrites it', () => {
  const alive = trimPod({ metadata, spec: { containers: [] } } as Pod)
  assert.equal('runtimedDeletionAskedAt' in alive, false)
  const first = trimPod(dying('2026-11-29T17:36:30Z', 30), alive)
  assert.equal(first.runtimedDeletionAskedAt, asked)
  const last = trimPod(dying('2026-11-29T17:36:12Z', 0), first)
  assert.equal(last.runtimedDeletionAskedAt, asked)
  assert.equal(last.metadata.deletionGracePeriodSeconds, 0)
})

test('seen only in its last form, it is not known when the deletion was asked for', () => {
  assert.equal(trimPod(dying('2026-11-29T17:36:12Z', 0)).runtimedDeletionAskedAt, undefined)
})

test('conditions that are True and say that all is well are shared, without message and time', () => {
  const well = { type: 'Progressing', status: 'True', reason: 'NewReplicaSetAvailable' }
  const ill = {
    type: 'Progressing',
    status: 'False',
    reason: 'ProgressDeadlineExceeded',
    message: 'm',
    lastTransitionTime: 'a',
  }
  const of = (conditions: object[]) =>
    trimDeployment({ metadata, status: { conditions } } as unknown as Deployment).status?.conditions
  const told = { ...well, message: 'ReplicaSet "web-1" has successfully progressed.', lastTransitionTime: 'a' }
  assert.deepEqual(plain(of([told, ill])), [well, ill])
  assert.equal(of([told])?.[0], of([{ ...told, lastTransitionTime: 'b' }])?.[0])
})

test('what a pod says of its way up is left out', () => {
  const conditions = ['Initialized', 'PodReadyToStartContainers'].map(type => ({ ...condition, type }))
  const record = trimPod({ metadata, status: { conditions } } as unknown as Pod)
  assert.deepEqual(record.status?.conditions, [])
})
