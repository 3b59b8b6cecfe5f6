import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Decision } from '../../src/domain/decision.ts'
import type { Life } from '../../src/domain/life.ts'
import { decide, intend, settle, takenUp } from '../../src/domain/lifecycle.ts'
import type { Condition, Observation } from '../../src/domain/observation.ts'
import {
  bound,
  deployment,
  endedPod,
  goneOf,
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
const condition = (at: number): Condition => ({ at, reason: 'ProgressDeadlineExceeded', message: 'too slow' })

const READY = deployment({ ready: 1, pods: [podSeen()] })
const ZERO = deployment({ desired: 0, replicas: 0, pods: [endedPod(0)] })

function stopping(life: Life): Life {
  const intent = intend(life, 'stop', { now: NOW, cause: null, observation: null })
  assert.equal(intent.type, 'effect')
  const written = { uid: UID, version: '100', generation: null }
  const outcome = { type: 'done', plan: { write: 'down' }, seen: seen(READY), written } as const
  return settle(intent.life, outcome, { now: NOW }).life
}

test('J7, I7, K8: a ready pod starts the run, once; the same again changes nothing', () => {
  const first = look(bound('deployment'), seen(READY))
  assert.deepEqual(texts(first), ['1 ContainerStarted(null)'])
  assert.deepEqual([first.life.state, first.life.ready, first.life.startedAt], ['running', true, NOW])
  const again = look(first.life, seen(READY))
  assert.equal(again.life, first.life)
  assert.deepEqual(again.events, [])
})

test('J7: a replica counted as ready without a ready pod that stays is no start', () => {
  for (const pods of [[], [podSeen({ terminating: true })], [podSeen({ ready: false })]]) {
    assert.deepEqual(texts(look(bound('deployment'), seen(deployment({ ready: 1, pods })))), [])
  }
})

test('I12, F-30, B-52: what speaks of an older generation is not believed', () => {
  for (const facts of [READY, ZERO]) {
    const decision = look(bound('deployment'), seen(facts, { current: false }))
    assert.deepEqual([texts(decision), decision.life.state], [[], 'creating'])
  }
})

test('F-29, G6: what is older than our own write, or than what was believed, is not believed', () => {
  const written: Life = { ...bound('deployment'), writtenVersion: '99', seenVersion: '100' }
  for (const version of ['9', '98', '99']) assert.equal(look(written, seen(READY, { version })).life, written)
  assert.equal(look(written, seen(READY, { version: '1000' })).life.state, 'running')
})

test('F-28, I5, B-25, P8: cannot look means no fact', () => {
  const life = running('deployment')
  assert.equal(look(life, null).life, life)
})

test('G6, B-51: from run 2 on only a live LIST proves the start', () => {
  const second: Life = { ...bound('deployment'), run: 2 }
  assert.equal(look(second, seen(READY, { live: false, livePods: false })).look, 'pods')
  assert.deepEqual(texts(look(second, seen(READY))), ['2 ContainerStarted(null)'])
})

test('J10, G1, G7: zero needs spec, status, and no pod left in a live LIST', () => {
  const life = stopping(running('deployment'))
  const cases: [string, Partial<typeof ZERO>, boolean][] = [
    ['status still 1', { replicas: 1 }, false],
    ['a pod is terminating', { pods: [podSeen({ terminating: true })] }, false],
    ['only pods that ended', {}, true],
    ['an evicted pod whose object stays', { pods: [endedPod(137, { reason: 'Evicted' })] }, true],
    ['a pod whose object is gone', { pods: [podSeen({ gone: true })] }, true],
  ]
  for (const [name, patch, ends] of cases) {
    const facts = { ...ZERO, ...patch }
    assert.deepEqual(texts(look(life, seen(facts))), ends ? ['1 ContainerExited(StoppedByRequest)'] : [], name)
    const cached = look(life, seen(facts, { live: false, livePods: false }))
    assert.equal(cached.look, ends ? 'pods' : null, name)
  }
  assert.deepEqual(texts(look(running('deployment'), seen(ZERO))), ['1 ContainerExited(ScaledToZero)'])
})

test('G1, K1: the end of a stop keeps the exit code and says "0"', () => {
  const { life, events } = look(stopping(running('deployment')), seen(deployment({ ...ZERO, pods: [endedPod(137)] })))
  assert.deepEqual([events[0]?.message, events[0]?.exitCode, life.exitCode, life.state], ['0', 137, 137, 'stopped'])
})

test('J8, B-49: a failed rollout fails the run while nothing is ready; its message is the condition’s', () => {
  const failing = seen(deployment({ deadline: condition(NOW) }))
  const { life, events } = look(bound('deployment'), failing)
  assert.deepEqual(
    [events[0]?.type, events[0]?.reason, events[0]?.message],
    ['ContainerFailed', 'ProgressDeadlineExceeded', 'too slow'],
  )
  assert.deepEqual([life.state, life.reason, life.message], ['failed', 'ProgressDeadlineExceeded', 'too slow'])
})

test('J8, B-54: ReplicaFailure fails the run only when it has lasted ten seconds', () => {
  const facts = deployment({ replicaFailure: { at: NOW, reason: 'FailedCreate', message: 'exceeded quota' } })
  const first = look(bound('deployment'), seen(facts))
  assert.deepEqual([texts(first), first.wakeAt], [[], NOW + 10_000])
  assert.deepEqual(texts(look(first.life, seen(facts), NOW + 9_999)), [])
  assert.deepEqual(texts(look(first.life, seen(facts), NOW + 10_000)), ['1 ContainerFailed(FailedCreate)'])
  const healed = look(first.life, seen(deployment()), NOW + 5_000).life
  assert.deepEqual(texts(look(healed, seen(facts), NOW + 12_000)), [])
})

test('J8: a condition that stood when the run was allotted proves nothing of it', () => {
  const old = seen(deployment({ desired: 0, replicas: 0, deadline: condition(NOW - 9_000) }))
  const failed: Life = { ...bound('deployment'), state: 'stopped', open: false }
  const intent = intend(failed, 'start', { now: NOW, cause: null, observation: null })
  assert.equal(intent.type, 'effect')
  const written = { uid: UID, version: '90', generation: null }
  const life = settle(intent.life, { type: 'done', plan: { write: 'up' }, seen: old, written }, { now: NOW }).life
  assert.deepEqual(texts(look(life, seen(deployment({ deadline: condition(NOW - 9_000) })))), [])
  assert.deepEqual(texts(look(life, seen(deployment({ deadline: condition(NOW) })))), [
    '2 ContainerFailed(ProgressDeadlineExceeded)',
  ])
})

test('F-31: the recovery of what had failed is a new run with one Started; never two endings for one run', () => {
  let life = look(bound('deployment'), seen(deployment({ deadline: condition(NOW) }))).life
  const said: string[] = []
  for (let flap = 1; flap <= 20; flap++) {
    const up = look(life, seen(READY, { version: String(100 + flap * 2) }))
    const down = look(
      up.life,
      seen(deployment({ deadline: condition(NOW + flap * 1000) }), { version: String(101 + flap * 2) }),
    )
    said.push(...texts(up), ...texts(down))
    life = down.life
  }
  assert.equal(life.run, 21)
  assert.equal(new Set(said).size, said.length)
  assert.equal(said.length, 40)
})

test('B-48, B-60: what was ready once and is not any more stays running, not ready, with the reason of its pod', () => {
  const evicted = troubleOf({ cause: 'evicted', reason: 'Evicted' })
  const { life, events } = look(running('deployment'), seen(deployment({ pods: [pendingPod()], troubles: [evicted] })))
  assert.deepEqual([life.state, life.ready, life.reason], ['running', false, 'Evicted'])
  assert.deepEqual(
    events.map(({ type, cause }) => [type, cause]),
    [['ContainerWarning', 'evicted']],
  )
})

test('J13: a Warning once per cause and run; quiet ones are shown only', () => {
  const image = troubleOf()
  const first = look(bound('deployment'), seen(deployment({ troubles: [image] })))
  assert.deepEqual(
    [texts(first), first.life.state, first.life.reason],
    [['1 ContainerWarning(ErrImagePull)'], 'creating', 'ErrImagePull'],
  )
  const again = troubleOf({ reason: 'ImagePullBackOff' })
  const second = look(first.life, seen(deployment({ troubles: [again] }), { version: '101' }))
  assert.deepEqual([texts(second), second.life.reason], [[], 'ImagePullBackOff'])
  const quiet = troubleOf({ cause: 'other', reason: 'PodHasNoFriends', quiet: true })
  const third = look(bound('deployment'), seen(deployment({ troubles: [quiet] })))
  assert.deepEqual([texts(third), third.life.reason], [[], 'PodHasNoFriends'])
})

test('J13, B-30, B-32: the start timer stops what never started, after one live look, and the run fails when it is gone', () => {
  const image = troubleOf()
  const facts = deployment({ troubles: [image] })
  const life = look(bound('deployment', { startTimeoutSeconds: 30 }), seen(facts)).life
  assert.equal(look(life, seen(facts)).wakeAt, NOW + 30_000)
  const due = NOW + 30_000
  assert.equal(look(life, seen(facts, { live: false, livePods: false }), due).look, 'pods')
  const timed = look(life, seen(facts), due)
  assert.deepEqual(
    [timed.life.state, timed.life.reason, timed.effect, texts(timed)],
    ['stopping', 'StartTimeout', true, []],
  )
  assert.equal(look(life, seen(READY), due).life.state, 'running')
  const end = look(timed.life, seen(ZERO, { version: '101' }), due)
  assert.deepEqual(
    [texts(end), end.life.state, end.events[0]?.message],
    [['1 ContainerFailed(StartTimeout)'], 'failed', 'no such image'],
  )
})

test('G7, F-24: scaled up by others after our scale, the stop is dropped with its timer, with one Warning', () => {
  const life = stopping(running('deployment'))
  const dropped = look(life, seen(READY, { version: '101' }))
  assert.deepEqual(
    [texts(dropped), dropped.life.state, dropped.life.verb],
    [['1 ContainerWarning(ScaledByOthers)'], 'running', null],
  )
})

test('B-53, J10: scaled to zero and up again by others: Exited, then a new run', () => {
  const ended = look(running('deployment'), seen(ZERO)).life
  const up = look(ended, seen(deployment(), { version: '101' }))
  assert.deepEqual([up.life.state, up.life.run, up.life.open], ['creating', 2, true])
  const second = look(up.life, seen(deployment({ ready: 1, pods: [podSeen({ uid: 'pod-2' })] }), { version: '102' }))
  assert.deepEqual(texts(second), ['2 ContainerStarted(null)'])
})

test('J11, I4, H6: gone counts only when one GET says so; Deleted once, last, by whose hand it was', () => {
  assert.equal(look(running('deployment'), goneOf({ live: false, livePods: false })).look, 'object')
  const gone = look(running('deployment'), goneOf())
  assert.deepEqual([texts(gone), gone.life.state], [['1 ContainerDeleted(NotFound)'], 'deleted'])
  assert.deepEqual(look(gone.life, goneOf()).events, [])
  const intent = intend(running('deployment'), 'delete', { now: NOW, cause: 'Expired', observation: null })
  assert.equal(intent.type, 'effect')
  assert.equal(look(intent.life, goneOf({ livePods: false })).look, 'pods')
  assert.deepEqual(texts(look(intent.life, goneOf({ podsLeft: 1 }))), [])
  assert.deepEqual(texts(look(intent.life, goneOf())), ['1 ContainerDeleted(Expired)'])
})

test('J11, G4: gone while being stopped: the stop’s ending first, once no pod is left', () => {
  assert.deepEqual(texts(look(stopping(running('deployment')), goneOf())), [
    '1 ContainerExited(StoppedByRequest)',
    '1 ContainerDeleted(NotFound)',
  ])
})

test('H8, F-34: deleting names the finalizers that hold it', () => {
  const held = seen(READY, { deleting: true, finalizers: ['foregroundDeletion', 'example.com/hold'] })
  const { life } = look(running('deployment'), held)
  assert.deepEqual([life.state, life.reason], ['deleting', 'Terminating'])
  assert.equal(life.message, 'held by foregroundDeletion (its pods are ending), example.com/hold')
})

test('I11, F-9, B-11: another uid under the name ends the old life and says nothing of the new', () => {
  assert.deepEqual(texts(look(running('deployment'), goneOf({ otherUid: 'uid-2' }))), ['1 ContainerDeleted(NotFound)'])
  const life = running('deployment')
  assert.equal(look(life, seen(READY, { uid: 'uid-2', version: '999' })).life, life)
})

test('F-33: without our label the row rests; with it again it goes on', () => {
  const rests = look(running('deployment'), seen(READY, { labelled: false }))
  assert.deepEqual([rests.life.foreign, rests.life.state, rests.events], [true, 'running', []])
  assert.equal(look(rests.life, seen(READY, { version: '101' })).life.foreign, false)
})

test('J12, B-105: event times come from the object and never go back', () => {
  const late: Life = { ...bound('deployment'), lastEventAt: NOW + 60_000 }
  assert.equal(look(late, seen(READY)).events[0]?.time, NOW + 60_000)
  const early = seen(deployment({ ready: 1, pods: [podSeen({ readyAt: NOW + 5_000 })] }))
  assert.equal(look(bound('deployment'), early).events[0]?.time, NOW + 5_000)
})

test('K9: a workload without row is taken up with run 1; at zero as stopped, run 0', () => {
  const found = { id: bound('deployment').id, uid: UID, nonce: 'n', image: null, labels: {}, now: NOW, lastEventAt: 0 }
  const up = takenUp({ ...found, seen: seen(READY) })
  assert.deepEqual(texts(look(up, seen(READY))), ['1 ContainerStarted(null)'])
  const zero = takenUp({ ...found, seen: seen(ZERO) })
  assert.deepEqual([zero.state, zero.run, zero.open], ['stopped', 0, false])
  const ending = seen(deployment({ desired: 0, replicas: 0, pods: [podSeen({ terminating: true })] }))
  assert.equal(takenUp({ ...found, seen: ending }).open, true)
})
