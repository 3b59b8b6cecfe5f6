import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Decision } from '../../src/domain/decision.ts'
import type { Life } from '../../src/domain/life.ts'
import { decide, intend, settle } from '../../src/domain/lifecycle.ts'
import type { Observation, PodSeen } from '../../src/domain/observation.ts'
import {
  agent,
  bound,
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

const look = (life: Life, observation: Observation, now = NOW): Decision => decide(life, observation, { now })
const texts = ({ events }: Decision): string[] => events.map(({ type, reason, run }) => `${run} ${type}(${reason})`)
const at = (pod: PodSeen, patch = {}) => seen(agent(pod), patch)

test('R1, R2, B-46: every phase has a state; one we do not know is unknown and shows itself', () => {
  const cases: [string | null, string, string | null][] = [
    [null, 'creating', null],
    ['Pending', 'creating', null],
    ['Running', 'running', null],
    ['Succeeded', 'stopped', null],
    ['Failed', 'failed', 'Error'],
    ['Unknown', 'unknown', 'NodeLost'],
    ['Hibernating', 'unknown', 'Hibernating'],
  ]
  for (const [phase, state, reason] of cases) {
    const ended = phase === 'Succeeded' || phase === 'Failed'
    const { life } = look(bound('pod'), at(podSeen({ phase, ended, ready: false })))
    assert.deepEqual([life.state, life.reason], [state, reason], String(phase))
  }
})

test('R1: Running before Ready is running, not ready', () => {
  const { life, events } = look(bound('pod'), at(podSeen({ ready: false })))
  assert.deepEqual([life.state, life.ready, events[0]?.type], ['running', false, 'ContainerStarted'])
})

test('R2, J3, B-33, B-37: Failed names the pod’s reason, else OOMKilled, else Error; its message likewise', () => {
  const cases: [PodSeen, string, string][] = [
    [endedPod(3), 'Error', 'exit code 3'],
    [endedPod(137, { oomKilled: true }), 'OOMKilled', 'exit code 137'],
    [endedPod(143, { reason: 'Evicted', message: 'disk is full' }), 'Evicted', 'disk is full'],
    [endedPod(0, { phase: 'Failed', reason: 'DeadlineExceeded' }), 'DeadlineExceeded', 'DeadlineExceeded'],
  ]
  for (const [pod, reason, message] of cases) {
    const [failed] = look(running('pod'), at(pod)).events
    assert.deepEqual([failed?.reason, failed?.message, failed?.exitCode], [reason, message, pod.exitCode])
  }
})

test('J1, R2: a pod that failed without having run never started', () => {
  assert.deepEqual(texts(look(bound('pod'), at(endedPod(128, { ran: false })))), ['1 ContainerFailed(Error)'])
  assert.deepEqual(texts(look(bound('pod'), at(endedPod(3)))), ['1 ContainerStarted(null)', '1 ContainerFailed(Error)'])
})

test('O9, J13: never Ready and a trouble that lasts ten seconds: stopped by us, and failed with that reason', () => {
  for (const cause of ['image', 'config', 'crash', 'scheduling', 'rejected'] as const) {
    const trouble = troubleOf({ cause, reason: 'Because' })
    const pending = seen(agent(pendingPod(), [trouble]))
    const first = look(bound('pod'), pending)
    assert.deepEqual([first.life.state, first.wakeAt], ['creating', NOW + 10_000], cause)
    const stopped = look(first.life, pending, NOW + 10_000)
    assert.deepEqual(
      [stopped.life.state, stopped.life.verb?.cause, stopped.effect],
      ['stopping', 'Because', true],
      cause,
    )
    const end = look(stopped.life, goneOf())
    assert.deepEqual(
      [texts(end), end.life.state, end.events[0]?.message],
      [['1 ContainerFailed(Because)'], 'failed', 'no such image'],
      cause,
    )
  }
})

test('O9: other troubles wait for the start timer, 120 s unless told; once Ready, none stops it', () => {
  const lost = seen(agent(pendingPod(), [troubleOf({ cause: 'node', reason: 'NodeNotReady' })]))
  const life = look(bound('pod'), lost).life
  assert.equal(look(life, lost, NOW + 119_999).life.state, 'creating')
  assert.equal(look(life, lost, NOW + 120_000).life.verb?.cause, 'StartTimeout')
  const crash = seen(agent(podSeen({ ready: false }), [troubleOf({ cause: 'crash' })]), { version: '200' })
  const later = look(look(running('pod'), crash).life, crash, NOW + 3_600_000)
  assert.deepEqual([later.life.state, later.life.verb], ['running', null])
})

test('G2, O12, H6: stopped, it is Exited when it is gone and its record stays; deleted, it is Deleted', () => {
  const held = (verb: 'stop' | 'delete') => {
    const intent = intend(running('pod'), verb, { now: NOW, cause: null, observation: null })
    assert.equal(intent.type, 'effect')
    const written = { uid: UID, version: '100', generation: null }
    return settle(intent.life, { type: 'done', plan: { write: 'remove' }, seen: at(podSeen()), written }, { now: NOW })
      .life
  }
  const ending = at(endedPod(0, { terminating: true, endingCounts: false }), { deleting: true, version: '101' })
  const stopping = look(held('stop'), ending)
  assert.deepEqual([texts(stopping), stopping.life.state], [[], 'stopping'])
  const end = look(stopping.life, goneOf())
  assert.deepEqual(
    [texts(end), end.events[0]?.exitCode, end.life.gone],
    [['1 ContainerExited(StoppedByRequest)'], 0, true],
  )
  assert.deepEqual(texts(look(held('delete'), goneOf())), ['1 ContainerDeleted(DeletedByRequest)'])
})

test('J11, B-33: deleted by others it is Deleted, unless it had ended before', () => {
  const deleting = at(podSeen({ terminating: true }), { deleting: true })
  assert.equal(look(running('pod'), deleting).life.state, 'deleting')
  const killed = seen(agent(endedPod(0, { terminating: true, endingCounts: false })), { deleting: true })
  assert.deepEqual(texts(look(running('pod'), goneOf({ last: killed }))), ['1 ContainerDeleted(NotFound)'])
  const before = seen(agent(endedPod(0)))
  assert.deepEqual(texts(look(running('pod'), goneOf({ last: before }))), ['1 ContainerExited(null)'])
  const ended = look(running('pod'), before).life
  assert.deepEqual([look(ended, deleting).life.state, texts(look(ended, goneOf()))], ['stopped', []])
})

test('B-33, J13: an eviction that shows only while it terminates is still a Warning; our own stop is none', () => {
  const evicted = troubleOf({ cause: 'evicted', reason: 'EvictionByEvictionAPI' })
  const terminating = seen(agent(podSeen({ terminating: true }), [evicted]), { deleting: true })
  assert.deepEqual(texts(look(running('pod'), terminating)), ['1 ContainerWarning(EvictionByEvictionAPI)'])
  const intent = intend(running('pod'), 'stop', { now: NOW, cause: null, observation: null })
  assert.equal(intent.type, 'effect')
  assert.deepEqual(texts(look(intent.life, terminating)), [])
})
