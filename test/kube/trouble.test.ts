import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Trouble } from '../../src/domain/observation.ts'
import type { ClusterEvent, Pod } from '../../src/kube/objects.ts'
import { eventTroubles, inOrder, podTroubles } from '../../src/kube/trouble.ts'

const NOW = Date.parse('2026-11-29T17:00:00Z')

interface PodParts {
  readonly meta?: object
  readonly status?: object
  readonly main?: object
}

const pod = ({ meta = {}, status = {}, main = {} }: PodParts): Pod =>
  ({
    metadata: { uid: 'p1', name: 'p', creationTimestamp: '2026-11-29T16:00:00Z', ...meta },
    status: {
      phase: 'Pending',
      containerStatuses: [{ name: 'main', restartCount: 0, ready: false, ...main }],
      ...status,
    },
  }) as unknown as Pod

const waiting = (reason: string) => pod({ main: { state: { waiting: { reason, message: 'why' } } } })
const terminated = (reason: string, exitCode = 1) => pod({ main: { state: { terminated: { reason, exitCode } } } })
const condition = (type: string, status: string, reason?: string) => ({
  type,
  status,
  reason,
  lastTransitionTime: '2026-11-29T16:00:01Z',
})
const short = (troubles: readonly Trouble[]): string[] =>
  troubles.map(({ cause, reason, quiet }) => `${cause} ${reason}${quiet ? ' quiet' : ''}`)
const of = (...pods: Pod[]): string[] => short(inOrder(podTroubles(pods, NOW)))

test('J13, B-30, B-31, B-33, B-37, B-46, B-60: each cause from its reasons; the unknown is shown, without Warning', () => {
  const cases: [string, Pod, string[]][] = [
    ...[
      'ErrImagePull',
      'ImagePullBackOff',
      'InvalidImageName',
      'ErrImageNeverPull',
      'ImageInspectError',
      'RegistryUnavailable',
    ].map((reason): [string, Pod, string[]] => [reason, waiting(reason), [`image ${reason}`]]),
    ...['CreateContainerConfigError', 'CreateContainerError', 'RunContainerError'].map(
      (reason): [string, Pod, string[]] => [reason, waiting(reason), [`config ${reason}`]],
    ),
    ['on the way', waiting('ContainerCreating'), []],
    ['a waiting reason of tomorrow', waiting('WarpCoreBreach'), ['other WarpCoreBreach quiet']],
    ['StartError', terminated('StartError', 128), ['config StartError']],
    ['ContainerCannotRun', terminated('ContainerCannotRun', 127), ['config ContainerCannotRun']],
    ['OOMKilled, also beside code 0', terminated('OOMKilled', 0), ['oom OOMKilled']],
    [
      'OOMKilled before the restart',
      pod({
        main: {
          ready: true,
          restartCount: 1,
          state: { running: {} },
          lastState: { terminated: { reason: 'OOMKilled' } },
        },
      }),
      ['oom OOMKilled'],
    ],
    ['ended with an error is no trouble by itself', terminated('Error', 3), []],
    ['CrashLoopBackOff', waiting('CrashLoopBackOff'), ['crash CrashLoopBackOff']],
    [
      'between two tries',
      pod({ main: { restartCount: 2, state: { terminated: { reason: 'Error' } } } }),
      ['crash Error quiet'],
    ],
    [
      'Unschedulable',
      pod({ status: { conditions: [condition('PodScheduled', 'False', 'Unschedulable')] } }),
      ['scheduling Unschedulable'],
    ],
    [
      'SchedulingGated',
      pod({ status: { conditions: [condition('PodScheduled', 'False', 'SchedulingGated')] } }),
      ['scheduling SchedulingGated'],
    ],
    ['evicted by the kubelet', pod({ status: { phase: 'Failed', reason: 'Evicted' } }), ['evicted Evicted']],
    [
      'evicted by the API',
      pod({ status: { conditions: [condition('DisruptionTarget', 'True', 'EvictionByEvictionAPI')] } }),
      ['evicted EvictionByEvictionAPI'],
    ],
    ...[
      'OutOfcpu',
      'OutOfmemory',
      'OutOfpods',
      'NodeAffinity',
      'Shutdown',
      'NodeShutdown',
      'Terminated',
      'UnexpectedAdmissionError',
    ].map((reason): [string, Pod, string[]] => [
      reason,
      pod({ status: { phase: 'Failed', reason } }),
      [`rejected ${reason}`],
    ]),
    ['a pod reason of tomorrow', pod({ status: { phase: 'Failed', reason: 'Abducted' } }), ['other Abducted quiet']],
    ['NodeLost', pod({ status: { reason: 'NodeLost' } }), ['node NodeLost']],
    ['phase Unknown', pod({ status: { phase: 'Unknown' } }), ['node NodeLost']],
    [
      'node silent',
      pod({
        status: { phase: 'Running', conditions: [condition('Ready', 'False'), condition('ContainersReady', 'True')] },
      }),
      ['node NodeNotReady'],
    ],
    [
      'not ready for a reason',
      pod({
        status: {
          phase: 'Running',
          conditions: [condition('Ready', 'False', 'ContainersNotReady'), condition('ContainersReady', 'True')],
        },
      }),
      [],
    ],
  ]
  for (const [name, given, expected] of cases) assert.deepEqual(of(given), expected, name)
})

test('J13: each trouble that warns comes with a hint, its message and its pod', () => {
  const [image] = inOrder(podTroubles([waiting('ErrImagePull')], NOW))
  assert.deepEqual([image?.message, image?.pod], ['why', 'p1'])
  assert.match(image?.hint ?? '', /imagePullSecrets/)
})

test('J13: init containers count like main, other containers do not', () => {
  const broken = { restartCount: 0, ready: false, state: { waiting: { reason: 'ErrImagePull' } } }
  assert.deepEqual(of(pod({ status: { initContainerStatuses: [{ name: 'init', ...broken }] } })), [
    'image ErrImagePull',
  ])
  const main = { name: 'main', restartCount: 0, ready: true, state: { running: {} } }
  assert.deepEqual(of(pod({ status: { containerStatuses: [{ name: 'sidecar', ...broken }, main] } })), [])
})

test('J13, B-33, B-60: a terminating pod counts only for what was done to it', () => {
  const meta = { deletionTimestamp: '2026-11-29T16:59:30Z', deletionGracePeriodSeconds: 30 }
  assert.deepEqual(of(pod({ meta, main: { state: { waiting: { reason: 'ErrImagePull' } } } })), [])
  assert.deepEqual(
    of(pod({ meta, status: { conditions: [condition('DisruptionTarget', 'True', 'PreemptionByScheduler')] } })),
    ['evicted PreemptionByScheduler'],
  )
  const overdue = { ...meta, deletionTimestamp: '2026-11-29T16:58:59Z' }
  assert.deepEqual(of(pod({ meta: overdue, status: { phase: 'Running' } })), ['node NodeNotReady'])
})

test('J13: several causes come in the order of the table, one of each; the newest pod speaks', () => {
  const old = waiting('ImagePullBackOff')
  const young = pod({
    meta: { uid: 'p2', creationTimestamp: '2026-11-29T16:30:00Z' },
    main: { state: { waiting: { reason: 'ErrImagePull' } }, lastState: { terminated: { reason: 'OOMKilled' } } },
  })
  assert.deepEqual(of(old, young), ['image ErrImagePull', 'oom OOMKilled'])
})

test('B-33, B-60: what an ended pod tells is over once a newer one is ready', () => {
  const evicted = pod({ status: { phase: 'Failed', reason: 'Evicted' } })
  const young = (ready: string) =>
    pod({
      meta: { uid: 'p2', creationTimestamp: '2026-11-29T16:30:00Z' },
      status: { phase: 'Running', conditions: [condition('Ready', ready, 'x')] },
    })
  assert.deepEqual(of(evicted, young('False')), ['evicted Evicted'])
  assert.deepEqual(of(evicted, young('True')), [])
})

test('B-21, J13: the newest Warning Event tells why there is no pod; Normal ones tell nothing', () => {
  const event = (reason: string, type: string, lastTimestamp: string) =>
    ({ metadata: {}, reason, type, lastTimestamp, message: 'm' }) as unknown as ClusterEvent
  const events = [
    event('FailedCreate', 'Warning', '2026-11-29T16:00:02Z'),
    event('Older', 'Warning', '2026-11-29T16:00:01Z'),
    event('Fine', 'Normal', '2026-11-29T16:00:03Z'),
  ]
  assert.deepEqual(short(eventTroubles(events, 'create', null)), ['create FailedCreate'])
  assert.deepEqual(eventTroubles([events[2] as ClusterEvent], 'create', null), [])
})
