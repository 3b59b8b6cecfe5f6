import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { DeploymentFacts, JobFacts } from '../../src/domain/observation.ts'
import type { Deployment, Job, Pod } from '../../src/kube/objects.ts'
import {
  deletionAskedAt,
  newestPod,
  observeAgentPod,
  observeDeployment,
  observeGone,
  observeJob,
  warningSubject,
} from '../../src/kube/observe.ts'
import { observePod } from '../../src/kube/observe-pod.ts'

const LOOK = { at: Date.parse('2026-11-29T17:00:00Z'), live: false, livePods: false, warnings: null }
const time = (second: number): string => `2026-11-29T16:00:${String(second).padStart(2, '0')}Z`

const meta = (patch: object = {}) => ({
  uid: 'u',
  name: 'x',
  resourceVersion: '7',
  generation: 1,
  labels: { 'gobrave-workload': 'x' },
  ...patch,
})
const deploymentOf = (spec: object, status: object, patch: object = {}): Deployment =>
  ({ metadata: meta(patch), spec, status }) as unknown as Deployment
const jobOf = (spec: object, status: object): Job => ({ metadata: meta(), spec, status }) as unknown as Job
const podOf = (main: object, patch: { meta?: object; status?: object } = {}): Pod =>
  ({
    metadata: meta({ uid: 'p', creationTimestamp: time(0), ...patch.meta }),
    status: { phase: 'Running', containerStatuses: [{ name: 'main', ...main }], ...patch.status },
  }) as unknown as Pod

test('J7, J10, I12: absent numbers are 0, absent spec.replicas is 1, an absent observedGeneration is not current', () => {
  const { facts, current } = observeDeployment(deploymentOf({}, {}), [], LOOK)
  const { desired, replicas, ready } = facts as DeploymentFacts
  assert.deepEqual([desired, replicas, ready, current], [1, 0, 0, false])
  assert.equal(observeDeployment(deploymentOf({}, { observedGeneration: 1 }), [], LOOK).current, true)
  assert.equal(
    observeDeployment(deploymentOf({}, { observedGeneration: 1 }, { generation: 2 }), [], LOOK).current,
    false,
  )
})

test('J8, J9, B-49: only Progressing=False with ProgressDeadlineExceeded is a failed rollout', () => {
  const conditions = (reason: string) => ({
    conditions: [{ type: 'Progressing', status: 'False', reason, message: 'm', lastTransitionTime: time(1) }],
  })
  const deadline = (reason: string) =>
    (observeDeployment(deploymentOf({}, conditions(reason)), [], LOOK).facts as DeploymentFacts).deadline
  assert.equal(deadline('ReplicaSetCreateError'), null)
  assert.deepEqual(deadline('ProgressDeadlineExceeded'), {
    at: Date.parse(time(1)),
    reason: 'ProgressDeadlineExceeded',
    message: 'm',
  })
})

test('J8, J13, B-54: a failure condition while a replica is ready is a trouble, once for each', () => {
  const conditions = [
    { type: 'Progressing', status: 'False', reason: 'ProgressDeadlineExceeded', lastTransitionTime: time(1) },
    { type: 'ReplicaFailure', status: 'True', reason: 'FailedCreate', lastTransitionTime: time(1) },
  ]
  const reasons = (readyReplicas: number) =>
    observeDeployment(deploymentOf({}, { readyReplicas, conditions }), [], LOOK).facts.troubles.map(
      ({ reason }) => reason,
    )
  assert.deepEqual(reasons(1), ['ReplicaFailure', 'ProgressDeadlineExceeded'])
  assert.deepEqual(reasons(0), ['FailedCreate'])
})

test('J2, J3, B-27: a Job’s counters and conditions; backoffLimit absent = 6, completions absent = 1', () => {
  const facts = observeJob(jobOf({}, { failed: 1, conditions: [{ type: 'FailureTarget', status: 'True' }] }), [], LOOK)
    .facts as JobFacts
  assert.deepEqual(
    [facts.backoffLimit, facts.completions, facts.failed, facts.deciding, facts.failure],
    [6, 1, 1, true, null],
  )
  const failed = observeJob(
    jobOf(
      {},
      { conditions: [{ type: 'Failed', status: 'True', reason: 'BackoffLimitExceeded', lastTransitionTime: time(3) }] },
    ),
    [],
    LOOK,
  )
  assert.equal((failed.facts as JobFacts).failure?.at, Date.parse(time(3)))
})

test('J1: has run, or never did', () => {
  const terminated = (patch: object) => ({
    state: { terminated: { exitCode: 1, startedAt: time(1), finishedAt: time(2), ...patch } },
  })
  const cases: [string, Pod, boolean][] = [
    ['no status', podOf({}), false],
    ['waiting', podOf({ state: { waiting: { reason: 'ContainerCreating' } } }), false],
    ['running', podOf({ state: { running: { startedAt: time(1) } } }), true],
    [
      'ran before',
      podOf({ state: { waiting: {} }, lastState: { terminated: { exitCode: 1, startedAt: time(1) } } }),
      true,
    ],
    ['terminated', podOf(terminated({ reason: 'Error' })), true],
    ['terminated, started 1970', podOf(terminated({ startedAt: '1970-01-01T00:00:00Z' })), false],
    ['StartError', podOf(terminated({ reason: 'StartError' })), false],
    ['ContainerCannotRun', podOf(terminated({ reason: 'ContainerCannotRun' })), false],
    ['ContainerStatusUnknown', podOf(terminated({ reason: 'ContainerStatusUnknown' })), false],
  ]
  for (const [name, pod, ran] of cases) assert.equal(observePod({ pod }).ran, ran, name)
})

test('J12, B-37, B-38: the exit code is main’s last one, whatever a sidecar says; ContainerStatusUnknown is none', () => {
  const unknown = podOf({ state: { terminated: { exitCode: 137, reason: 'ContainerStatusUnknown' } } })
  assert.equal(observePod({ pod: unknown }).exitCode, null)
  assert.equal(
    observePod({ pod: podOf({ state: { running: {} }, lastState: { terminated: { exitCode: 3 } } }) }).exitCode,
    3,
  )
  const sidecar = { name: 'sidecar', state: { terminated: { exitCode: 9 } } }
  const main = { name: 'main', state: { terminated: { exitCode: 0 } } }
  const pod = podOf({}, { status: { containerStatuses: [sidecar, main] } })
  assert.equal(observePod({ pod }).exitCode, 0)
})

test('B-42, F-32: an ending counts if main finished in an earlier second than the deletion was asked for', () => {
  const finished = (second: number) => ({ state: { terminated: { exitCode: 0, finishedAt: time(second) } } })
  const asked = { deletionTimestamp: time(40), deletionGracePeriodSeconds: 30 }
  const last = (observedGeneration: number) => ({
    meta: { deletionTimestamp: time(12), deletionGracePeriodSeconds: 0, generation: 2 },
    status: { observedGeneration },
  })
  const cases: [string, Pod, number | null, boolean][] = [
    ['not deleted', podOf(finished(10)), null, true],
    ['before', podOf(finished(9), { meta: asked }), null, true],
    ['in the same second', podOf(finished(10), { meta: asked }), null, false],
    ['after', podOf(finished(11), { meta: asked }), null, false],
    ['rewritten by the kubelet, first form known', podOf(finished(11), last(2)), Date.parse(time(10)), false],
    ['known only in its last form', podOf(finished(9), last(2)), null, false],
    ['last form, never seen by the kubelet', podOf(finished(9), last(1)), null, true],
  ]
  for (const [name, pod, first, counts] of cases) {
    assert.equal(observePod({ pod, deletionAskedAt: first }).endingCounts, counts, name)
  }
  assert.equal(deletionAskedAt(asked as never), Date.parse(time(10)))
})

test('L2: the newest pod is the newest Running, else the newest that has run, else the newest', () => {
  const made = (uid: string, second: number, phase: string, main: object = {}) => ({
    pod: podOf(main, { meta: { uid, name: uid, creationTimestamp: time(second) }, status: { phase } }),
  })
  const ran = made('ran', 1, 'Failed', { state: { terminated: { exitCode: 1, startedAt: time(2) } } })
  const pending = made('pending', 9, 'Pending')
  const runs = made('runs', 0, 'Running', { state: { running: {} } })
  assert.equal(newestPod([ran, pending, runs])?.metadata?.uid, 'runs')
  assert.equal(newestPod([ran, pending])?.metadata?.uid, 'ran')
  assert.equal(newestPod([pending])?.metadata?.uid, 'pending')
  assert.equal(newestPod([{ ...runs, gone: true }]), null)
})

test('B-35, M4: restarts count main’s and, for a Job, its failed pods; replicas of a suspended or ended Job are 0', () => {
  const pod = { pod: podOf({ restartCount: 2, state: { running: {} } }) }
  const { display } = observeJob(jobOf({ parallelism: 1 }, { active: 1, ready: 1, failed: 3 }), [pod], LOOK)
  assert.deepEqual([display.restarts, display.replicas], [5, { desired: 1, current: 1, ready: 1 }])
  assert.equal(observeJob(jobOf({ suspend: true }, {}), [], LOOK).display.replicas.desired, 0)
})

test('J10, J11: pods left are those that have not ended', () => {
  const pods = [{ pod: podOf({}) }, { pod: podOf({}, { status: { phase: 'Failed' } }) }, { pod: podOf({}), gone: true }]
  assert.equal(observeGone({ otherUid: null, pods, last: null }, LOOK).podsLeft, 1)
})

test('B-21: Warning Events are those of the pod that is being made, else of the workload', () => {
  const making = podOf({ state: { waiting: { reason: 'ContainerCreating' } } })
  assert.equal(warningSubject(observeJob(jobOf({}, {}), [{ pod: making }], LOOK)), 'p')
  assert.equal(warningSubject(observeJob(jobOf({}, {}), [], LOOK)), 'u')
})

test('O15: an agent Pod is its own only pod', () => {
  const seen = observeAgentPod({ pod: podOf({ state: { running: {} }, ready: true }) }, LOOK)
  assert.deepEqual([seen.uid, seen.facts.kind, seen.facts.pods.length, seen.current], ['p', 'pod', 1, true])
})
