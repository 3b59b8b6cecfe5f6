import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Decision } from '../../src/domain/decision.ts'
import type { Life } from '../../src/domain/life.ts'
import { decide, intend, settle, takenUp } from '../../src/domain/lifecycle.ts'
import type { Condition, JobFacts, Observation } from '../../src/domain/observation.ts'
import {
  bound,
  endedPod,
  goneOf,
  job,
  NOW,
  pendingPod,
  podSeen,
  running,
  seen,
  troubleOf,
  UID,
} from '../helpers/facts.ts'

const look = (life: Life, observation: Observation | null, now = NOW): Decision => decide(life, observation, { now })
const texts = ({ events }: Decision): string[] => events.map(({ type, reason, run }) => `${run} ${type}(${reason})`)
const met = (reason = 'CompletionsReached', at = NOW): Condition => ({ at, reason, message: null })

const UP = job({ active: 1, hasStartTime: true, pods: [podSeen()] })

function stopping(life: Life): Life {
  const intent = intend(life, 'stop', { now: NOW, cause: null, observation: null })
  assert.equal(intent.type, 'effect')
  const write = life.jobStop === 'delete' ? 'remove' : 'down'
  const written = { uid: UID, version: '100', generation: null }
  return settle(intent.life, { type: 'done', plan: { write }, seen: seen(UP), written }, { now: NOW }).life
}

test('J1, B-31: a Job starts when its container has run; Pending pods, counters and start errors are no proof', () => {
  const cases: [string, Partial<JobFacts>, boolean][] = [
    ['no pod', { pods: [] }, false],
    ['a Pending pod', { pods: [pendingPod()] }, false],
    ['a pod that is Running without ever having run', { pods: [pendingPod({ phase: 'Running' })] }, false],
    ['a pod that runs while it is being killed', { pods: [podSeen({ terminating: true })] }, false],
    ['a running pod', {}, true],
    ['a pod that ran and failed', { pods: [endedPod(3)] }, true],
    ['a success that was counted', { pods: [], succeeded: 1, completions: 2 }, true],
    ['a failure that was counted', { pods: [], failed: 1, backoffLimit: 3 }, false],
    ['a running pod, suspended', { suspended: true }, false],
    ['a running pod, neither active nor startTime', { active: 0, hasStartTime: false }, false],
  ]
  for (const [name, patch, starts] of cases) {
    const said = texts(look(bound('job'), seen({ ...UP, ...patch }))).filter(text => !text.includes('Warning'))
    assert.deepEqual(said, starts ? ['1 ContainerStarted(null)'] : [], name)
  }
})

test('J2, J3, J4, B-27, B-28, F-32: verdicts', () => {
  const cases: [string, Partial<JobFacts>, string | null][] = [
    ['Complete', { complete: met() }, 'ContainerExited(null)'],
    ['all completions, nothing active', { succeeded: 1 }, 'ContainerExited(null)'],
    ['not all completions', { succeeded: 1, completions: 2 }, null],
    ['all completions, one active', { succeeded: 1, active: 1 }, null],
    ['SuccessCriteriaMet is no verdict yet', { succeeded: 1, deciding: true }, null],
    ['Failed', { failure: met('DeadlineExceeded') }, 'ContainerFailed(DeadlineExceeded)'],
    [
      'Failed beats Complete',
      { failure: met('PodFailurePolicy'), complete: met() },
      'ContainerFailed(PodFailurePolicy)',
    ],
    ['Complete beats the counters', { complete: met(), failed: 9 }, 'ContainerExited(null)'],
    ['no retry left', { failed: 1 }, 'ContainerFailed(BackoffLimitExceeded)'],
    ['FailureTarget is no verdict yet', { failed: 1, deciding: true }, null],
    ['a retry left', { failed: 1, backoffLimit: 1 }, null],
    ['one still terminating', { failed: 1, terminating: 1 }, null],
    ['counters of a suspended Job', { failed: 1, suspended: true }, null],
  ]
  for (const [name, patch, ending] of cases) {
    const facts = job({ hasStartTime: true, pods: [endedPod(3)], ...patch })
    const said = texts(look(running('job'), seen(facts))).filter(text => !text.includes('Warning'))
    assert.deepEqual(said, ending === null ? [] : [`1 ${ending}`], name)
  }
})

test('J3: the message is the condition’s, else the failed count, never an exit code', () => {
  const counted = look(running('job'), seen(job({ failed: 1, pods: [endedPod(3)] })))
  assert.deepEqual([counted.events[0]?.message, counted.events[0]?.exitCode, counted.life.exitCode], ['1', 3, 3])
  const failure = { at: NOW, reason: 'DeadlineExceeded', message: 'Job was active longer than specified deadline' }
  assert.equal(look(running('job'), seen(job({ failure }))).events[0]?.message, failure.message)
})

test('J2, K1: a success has exit code 0 and message "0"', () => {
  const { life, events } = look(running('job'), seen(job({ complete: met(), pods: [] })))
  assert.deepEqual([life.state, life.exitCode, events[0]?.message, life.reason], ['stopped', 0, '0', null])
})

test('B-37, B-38: the exit code is kept as soon as it is seen; a failure without one asks for a live LIST', () => {
  const oom = endedPod(137, { oomKilled: true })
  const life = look(running('job'), seen(job({ active: 1, hasStartTime: true, pods: [oom] }))).life
  assert.equal(life.exitCode, 137)
  const failed = seen(job({ failure: met('BackoffLimitExceeded') }), { live: false, livePods: false, version: '101' })
  assert.equal(look(life, failed).life.exitCode, 137)
  assert.equal(look(running('job'), failed).look, 'pods')
})

test('J6, K6, F-8: first seen as ended it has started first, where something proves it', () => {
  assert.deepEqual(texts(look(bound('job'), seen(job({ complete: met() })))), [
    '1 ContainerStarted(null)',
    '1 ContainerExited(null)',
  ])
  const ran = seen(job({ failure: met('BackoffLimitExceeded'), pods: [endedPod(3)] }))
  assert.deepEqual(texts(look(bound('job'), ran)), [
    '1 ContainerStarted(null)',
    '1 ContainerFailed(BackoffLimitExceeded)',
  ])
  const never = seen(job({ failure: met('DeadlineExceeded'), pods: [pendingPod()] }))
  assert.deepEqual(texts(look(bound('job'), never)), ['1 ContainerFailed(DeadlineExceeded)'])
})

test('I6, B-42, F-32: after its end the record stays when the object goes, and nothing more is said', () => {
  const ended = look(running('job'), seen(job({ complete: met() }))).life
  const gone = look(ended, goneOf())
  assert.deepEqual([texts(gone), gone.life.state, gone.life.gone], [[], 'stopped', true])
  assert.equal(look(gone.life, goneOf({ live: false })).life, gone.life)
  assert.deepEqual(texts(look(gone.life, goneOf({ otherUid: 'uid-2' }))), ['1 ContainerDeleted(NotFound)'])
})

test('J5, B-42, F-32: removed unseen, the last of object and pods is read for an ending, else it is Deleted', () => {
  const cases: [string, Partial<JobFacts> | null, string][] = [
    ['nothing was seen', null, 'ContainerDeleted(NotFound)'],
    ['it still ran', UP, 'ContainerDeleted(NotFound)'],
    ['Complete', { complete: met() }, 'ContainerExited(null)'],
    ['all pods succeeded', { active: 1, pods: [endedPod(0, { gone: true })] }, 'ContainerExited(null)'],
    ['no retry left', { active: 1, pods: [endedPod(3)] }, 'ContainerFailed(BackoffLimitExceeded)'],
    ['a retry left', { active: 1, backoffLimit: 1, pods: [endedPod(3)] }, 'ContainerDeleted(NotFound)'],
    [
      'its pod was killed',
      { active: 1, pods: [endedPod(137, { terminating: true, endingCounts: false })] },
      'ContainerDeleted(NotFound)',
    ],
  ]
  for (const [name, patch, ending] of cases) {
    const last = patch === null ? null : seen(job({ hasStartTime: true, ...patch }))
    assert.deepEqual(texts(look(running('job'), goneOf({ last }))), [`1 ${ending}`], name)
  }
})

test('F-32, J5: under a deletionTimestamp a condition counts if it is not later, or all pods finished before', () => {
  const deleting = (facts: JobFacts) => seen(facts, { deleting: true, deletionAskedAt: NOW })
  const said = (facts: JobFacts) => texts(look(running('job'), deleting(facts)))
  assert.deepEqual(said(job({ complete: met('x', NOW) })), ['1 ContainerExited(null)'])
  assert.deepEqual(said(job({ failure: met('x', NOW + 1_000) })), [])
  const before = [endedPod(0, { finishedAt: NOW - 1_000 })]
  assert.deepEqual(said(job({ complete: met('x', NOW + 1_000), pods: before })), ['1 ContainerExited(null)'])
  assert.deepEqual(said(job({ failed: 1, pods: [endedPod(3)] })), [])
  assert.equal(look(running('job'), deleting(UP)).life.state, 'deleting')
})

test('G2, J5: stopped by deletion: no verdict on the way, one Exited when it and its pods are gone, the record stays', () => {
  const life = stopping(running('job'))
  const killed = seen(job({ failure: met('BackoffLimitExceeded') }), { deleting: true, version: '101' })
  assert.deepEqual([texts(look(life, killed)), look(life, killed).life.state], [[], 'stopping'])
  assert.deepEqual(texts(look(life, goneOf({ podsLeft: 1 }))), [])
  const end = look(life, goneOf())
  assert.deepEqual(
    [texts(end), end.life.state, end.life.gone],
    [['1 ContainerExited(StoppedByRequest)'], 'stopped', true],
  )
})

test('G8: stopped by suspend: its own end comes first; else zero needs the controller’s word', () => {
  const life = stopping(running('job', { jobStop: 'suspend' }))
  const suspended = job({ suspended: true, pods: [] })
  assert.deepEqual(texts(look(life, seen(suspended, { version: '101' }))), [])
  const told = seen({ ...suspended, suspendedSeen: true }, { version: '101' })
  const end = look(life, told)
  assert.deepEqual([texts(end), end.life.suspendedByUs], [['1 ContainerExited(StoppedByRequest)'], true])
  assert.equal(look(life, { ...told, livePods: false }).look, 'pods')
  const complete = seen(job({ ...suspended, complete: met() }), { version: '101' })
  assert.deepEqual(texts(look(life, complete)), ['1 ContainerExited(null)'])
  const again = look(end.life, seen(job({ ...suspended, suspended: false }), { version: '102' }))
  assert.deepEqual([again.life.state, again.life.run], ['creating', 2], 'F-24: unsuspended by others')
})

test('B-22, J13: suspended by others it is creating, not failed, and its start timer waits', () => {
  const life = bound('job', { startTimeoutSeconds: 30 })
  const held = look(life, seen(job({ suspended: true })))
  assert.deepEqual(
    [held.life.state, held.life.reason, texts(held)],
    ['creating', 'JobSuspended', ['1 ContainerWarning(JobSuspended)']],
  )
  assert.deepEqual(look(held.life, seen(job({ suspended: true })), NOW + 60_000).events, [])
  const freed = look(held.life, seen(job({ active: 1, pods: [pendingPod()] }), { version: '101' }), NOW + 60_000)
  assert.deepEqual([freed.life.state, freed.life.startBy], ['creating', NOW + 90_000])
})

test('B-21, J13: a Job without a pod for ten seconds asks for its Warning Events, at most once a minute', () => {
  const bare = job({ hasStartTime: true })
  const first = look(bound('job'), seen(bare, { liveWarnings: false }))
  assert.deepEqual([first.life.state, first.wakeAt], ['creating', NOW + 10_000])
  assert.equal(look(first.life, seen(bare), NOW + 10_000).look, 'warnings')
  const quota = troubleOf({ cause: 'create', reason: 'FailedCreate' })
  const at = NOW + 10_000
  const told = look(first.life, seen({ ...bare, troubles: [quota] }, { liveWarnings: true, at }), at)
  assert.deepEqual(
    [texts(told), told.life.reason, told.wakeAt],
    [['1 ContainerWarning(FailedCreate)'], 'FailedCreate', at + 60_000],
  )
  const after = look(told.life, seen(bare, { version: '101' }), at + 1_000)
  assert.deepEqual([after.look, after.life.reason], [null, 'FailedCreate'])
})

test('B-30, B-32, J13: the start timer stops a Job that never started, and it fails as StartTimeout', () => {
  const pending = job({ active: 1, hasStartTime: true, pods: [pendingPod()], troubles: [troubleOf()] })
  const life = look(bound('job', { startTimeoutSeconds: 30 }), seen(pending)).life
  const timed = look(life, seen(pending), NOW + 30_000)
  assert.deepEqual([timed.life.state, timed.life.verb?.cause, timed.effect], ['stopping', 'StartTimeout', true])
  const end = look(timed.life, goneOf())
  assert.deepEqual([texts(end), end.life.state, end.life.gone], [['1 ContainerFailed(StartTimeout)'], 'failed', true])
})

test('B-35: from run 2 on the pods of earlier runs are no evidence, nor is the cache', () => {
  const second: Life = {
    ...bound('job', { jobStop: 'suspend' }),
    run: 2,
    standing: { succeeded: 0, failures: [], pods: ['pod-1'] },
  }
  const old = job({ active: 1, hasStartTime: true, pods: [endedPod(3)] })
  assert.deepEqual(texts(look(second, seen(old))), [])
  const fresh = job({ ...old, pods: [podSeen({ uid: 'pod-2' })] })
  assert.equal(look(second, seen(fresh, { live: false, livePods: false })).look, 'pods')
  assert.deepEqual(texts(look(second, seen(fresh))), ['2 ContainerStarted(null)'])
  assert.deepEqual(
    texts(look(second, seen(job({ ...old, pods: [podSeen()] })))),
    ['2 ContainerStarted(null)'],
    'it still runs',
  )
})

test('K9, J6: a finished Job that is taken up gives Started and its ending; a suspended one is created', () => {
  const found = { id: bound('job').id, uid: UID, nonce: 'n', image: null, labels: {}, now: NOW, lastEventAt: 0 }
  const finished = seen(job({ complete: met() }))
  assert.deepEqual(texts(look(takenUp({ ...found, seen: finished }), finished)), [
    '1 ContainerStarted(null)',
    '1 ContainerExited(null)',
  ])
  const suspended = takenUp({ ...found, seen: seen(job({ suspended: true })) })
  assert.deepEqual([suspended.state, suspended.run], ['created', 0])
})
