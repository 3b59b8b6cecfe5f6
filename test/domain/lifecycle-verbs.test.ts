import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Intended, Outcome, Plan } from '../../src/domain/decision.ts'
import type { Life } from '../../src/domain/life.ts'
import { decide, intend, plan, replaced, settle } from '../../src/domain/lifecycle.ts'
import type { Observation } from '../../src/domain/observation.ts'
import {
  agent,
  bound,
  claimed,
  deployment,
  endedPod,
  goneOf,
  job,
  NOW,
  podSeen,
  running,
  seen,
  UID,
} from '../helpers/facts.ts'

type UserVerb = 'start' | 'stop' | 'delete'

const context = (observation: Observation | null = null) => ({ now: NOW, cause: null, observation })

function intended(life: Life, verb: UserVerb, observation: Observation | null = null): Life {
  const answer = intend(life, verb, context(observation))
  assert.equal(answer.type, 'effect', JSON.stringify(answer))
  return (answer as Extract<Intended, { type: 'effect' }>).life
}

const written = (version = '200') => ({ uid: UID, version, generation: null })
const done = (planned: Plan, observation: Observation | null, version: string | null = '200'): Outcome => ({
  type: 'done',
  plan: planned,
  seen: observation,
  written: version === null ? null : written(version),
})

/** The verb, its effect by this read, and the accepted result. */
function carriedOut(life: Life, verb: UserVerb, observation: Observation) {
  const intent = intended(life, verb, observation)
  const planned = plan(intent, observation)
  const wrote = planned.write === 'none' ? null : '200'
  return { planned, decision: settle(intent, done(planned, observation, wrote), { now: NOW }) }
}

const stopped = (life: Life): Life => ({ ...life, state: 'stopped', open: false, started: true })
const texts = (events: readonly { type: string; reason: string | null; run: number }[]): string[] =>
  events.map(({ type, reason, run }) => `${run} ${type}(${reason})`)

const AT_ONE = seen(deployment({ ready: 1, pods: [podSeen()] }))
const AT_ZERO = seen(deployment({ desired: 0, replicas: 0 }))

test('C11, K1: a create opens run 1 at once and says nothing; at zero it is created, run 0', () => {
  assert.deepEqual(
    [bound('deployment').state, bound('deployment').run, bound('deployment').verb],
    ['creating', 1, null],
  )
  const atZero = bound('job', { start: false })
  assert.deepEqual([atZero.state, atZero.run, atZero.open], ['created', 0, false])
})

test('K2: a forbidden verb is refused with 409 and says what to do; nothing else is', () => {
  const ended = stopped(bound('job'))
  const deleting = intended(bound('deployment'), 'delete')
  const asked = seen(deployment(), { deleting: true })
  const cases: [string, Life, UserVerb, Observation | null, string][] = [
    ['start of an ended Job', ended, 'start', null, 'JOB_NOT_RESTARTABLE'],
    ['start of a Job whose record is kept', { ...ended, gone: true }, 'start', null, 'JOB_NOT_RESTARTABLE'],
    ['start over a stop by deletion', intended(running('job'), 'stop'), 'start', null, 'JOB_NOT_RESTARTABLE'],
    ['start of an ended agent Pod', stopped(bound('pod')), 'start', null, 'JOB_NOT_RESTARTABLE'],
    ['start while a delete is in hand', deleting, 'start', null, 'RUNTIME_BUSY'],
    ['stop while a delete is in hand', deleting, 'stop', null, 'RUNTIME_BUSY'],
    ['start of an object that is being deleted', bound('deployment'), 'start', asked, 'RUNTIME_BUSY'],
    ['stop of an object that is being deleted', bound('deployment'), 'stop', asked, 'RUNTIME_BUSY'],
  ]
  for (const [name, life, verb, observation, code] of cases) {
    const answer = intend(life, verb, context(observation))
    assert.equal(answer.type === 'refused' ? answer.code : answer.type, code, name)
    assert.match(answer.type === 'refused' ? answer.message : '', /^cannot (start|stop) .+[;,] /, name)
  }
})

test('H7, B-61: delete is accepted in every state', () => {
  const lives = [
    claimed('deployment'),
    bound('job'),
    running('pod'),
    stopped(bound('job')),
    intended(running('job'), 'stop'),
  ]
  for (const life of lives) assert.equal(intended(life, 'delete').state, 'deleting')
})

test('F7, F3: start of what runs joins it, and writes only where somebody scaled it down', () => {
  const joined = intended(running('deployment'), 'start')
  assert.deepEqual([joined.state, joined.verb?.joins], ['running', true])
  assert.deepEqual(plan(joined, AT_ONE), { write: 'none' })
  assert.deepEqual(plan(joined, AT_ZERO), { write: 'up' })
  const after = settle(joined, done({ write: 'up' }, AT_ZERO), { now: NOW })
  assert.deepEqual([after.life.run, after.life.verb, after.events.length], [1, null, 0])
})

test('F1, F2, F6: start of what is stopped opens the next run once it is accepted, not before', () => {
  const life = intended(stopped(running('deployment')), 'start')
  assert.deepEqual([life.state, life.run, life.open], ['creating', 1, false])
  const { decision } = carriedOut(stopped(running('deployment')), 'start', AT_ZERO)
  assert.deepEqual([decision.life.run, decision.life.open, decision.life.endedAt], [2, true, null])
  assert.equal(carriedOut(stopped(running('deployment')), 'start', AT_ONE).planned.write, 'none')
})

test('G6, B-51: start over a stop ends the old run and opens the next when it is accepted', () => {
  const stopping = settle(intended(running('deployment'), 'stop'), done({ write: 'down' }, AT_ONE), { now: NOW }).life
  assert.deepEqual([stopping.state, stopping.verb?.accepted], ['stopping', true])
  const { decision } = carriedOut(stopping, 'start', AT_ZERO)
  assert.deepEqual(texts(decision.events), ['1 ContainerExited(StoppedByRequest)'])
  assert.deepEqual([decision.life.run, decision.life.state, decision.life.verb], [2, 'creating', null])
})

test('G6: a stop over a start without answer goes on with the stop that the start had replaced, and writes again', () => {
  const stopping = settle(intended(running('deployment'), 'stop'), done({ write: 'down' }, AT_ONE), { now: NOW }).life
  const starting = settle(intended(stopping, 'start'), { type: 'noAnswer' }, { now: NOW }).life
  const again = intended(starting, 'stop')
  assert.deepEqual([again.state, again.verb?.verb, again.verb?.accepted], ['stopping', 'stop', false])
  assert.deepEqual(plan(again, AT_ONE), { write: 'down' }, 'the start may have landed')
})

test('G5, B-45: stop of what is stopped, never started or finished changes nothing and says nothing', () => {
  const failed: Life = { ...stopped(bound('job')), state: 'failed', reason: 'BackoffLimitExceeded' }
  for (const life of [failed, stopped(bound('job')), bound('job', { start: false }), stopped(bound('pod'))]) {
    assert.deepEqual(intend(life, 'stop', context()), { type: 'nothing' })
  }
  const zero = stopped(running('deployment'))
  const { planned, decision } = carriedOut(zero, 'stop', AT_ZERO)
  assert.equal(planned.write, 'none')
  assert.deepEqual([decision.life.state, decision.life.verb, decision.events], ['stopped', null, []])
})

test('G5, B-45: a Job whose own end the stop sees first keeps that end, and nothing is written', () => {
  const complete = seen(job({ succeeded: 1, complete: { at: NOW, reason: 'Complete', message: null } }))
  const { planned, decision } = carriedOut(running('job'), 'stop', complete)
  assert.equal(planned.write, 'none')
  assert.equal(decision.life.verb, null)
  assert.deepEqual(texts(decide(decision.life, complete, { now: NOW }).events), ['1 ContainerExited(null)'])
})

test('G5: an agent Pod that has ended by itself is not deleted by a stop', () => {
  assert.deepEqual(plan(intended(running('pod'), 'stop'), seen(agent(endedPod(0)))), { write: 'none' })
})

test('G4: a stop whose first look finds 404 says so once; a repeat ends as asked', () => {
  const first = intended(running('job'), 'stop')
  assert.deepEqual(plan(first, goneOf()), { write: 'none' })
  const settled = settle(first, done({ write: 'none' }, goneOf(), null), { now: NOW })
  assert.deepEqual(texts(settled.events), ['1 ContainerExited(NotFound)'])
  assert.deepEqual([settled.events[0]?.message, settled.life.state, settled.life.gone], ['not found', 'stopped', true])
  const web = settle(intended(running('deployment'), 'stop'), done({ write: 'none' }, goneOf(), null), { now: NOW })
  assert.deepEqual(texts(web.events), ['1 ContainerExited(NotFound)', '1 ContainerDeleted(NotFound)'])
  const repeated = settle(first, { type: 'noAnswer' }, { now: NOW }).life
  const end = settle(repeated, done({ write: 'none' }, goneOf(), null), { now: NOW })
  assert.deepEqual(texts(end.events), ['1 ContainerExited(StoppedByRequest)'])
})

test('F4, F8: a start whose read shows a finished Job is refused; one of a Job we suspended opens the next run', () => {
  const suspended: Life = { ...stopped(running('job', { jobStop: 'suspend' })), suspendedByUs: true }
  const start = intended(suspended, 'start')
  const finished = seen(job({ suspended: true, failure: { at: NOW, reason: 'DeadlineExceeded', message: null } }))
  const answer = plan(start, finished)
  assert.equal(answer.write === 'refuse' ? answer.code : answer.write, 'JOB_NOT_RESTARTABLE')
  const shallow = seen(job({ suspended: true }), { livePods: false })
  assert.deepEqual(plan(start, shallow), { write: 'look', depth: 'pods' })
  assert.deepEqual(plan(start, seen(job({ suspended: true }))), { write: 'up' })
})

test('F5: start of what is gone from the cluster is 404', () => {
  const answer = plan(intended(stopped(running('deployment')), 'start'), goneOf())
  assert.equal(answer.write === 'refuse' ? answer.code : answer.write, 'RUNTIME_NOT_FOUND')
})

test('H5: delete of what is gone already says Deleted once; of a record that was kept, too', () => {
  const settled = settle(intended(running('deployment'), 'delete'), done({ write: 'remove' }, goneOf(), null), {
    now: NOW,
  })
  assert.deepEqual(texts(settled.events), ['1 ContainerDeleted(DeletedByRequest)'])
  const kept = settle(
    intended({ ...stopped(bound('job')), gone: true }, 'delete'),
    done({ write: 'remove' }, goneOf(), null),
    { now: NOW },
  )
  assert.equal(kept.life.state, 'deleted')
})

test('F9, E5, H3: a refusal gives back what was; no answer keeps the verb, and only a final refusal ends it then', () => {
  const before = running('deployment')
  const stop = intended(before, 'stop')
  assert.deepEqual(settle(stop, { type: 'refused', final: false }, { now: NOW }).life, before)
  const hung = settle(stop, { type: 'noAnswer' }, { now: NOW })
  assert.deepEqual([hung.life.verb?.tried, hung.effect], [true, true])
  assert.equal(settle(hung.life, { type: 'refused', final: false }, { now: NOW }).life.verb?.verb, 'stop')
  assert.equal(settle(hung.life, { type: 'refused', final: true }, { now: NOW }).life.verb, null)
})

test('C13: a refused create takes its claim away; one made half keeps a delete that ends without event', () => {
  assert.equal(settle(claimed('deployment'), { type: 'refused', final: true }, { now: NOW }).withdraw, true)
  const half = settle(claimed('deployment'), { type: 'halfMade' }, { now: NOW }).life
  const found = settle(half, done(plan(half, seen(deployment())), seen(deployment()), null), { now: NOW })
  assert.deepEqual([found.life.uid, found.effect], [UID, true])
  const over = decide(found.life, goneOf(), { now: NOW })
  assert.deepEqual([over.withdraw, over.events], [true, []])
})

test('C12: a verb over a create without answer finishes the create first', () => {
  const hung = settle(claimed('deployment'), { type: 'noAnswer' }, { now: NOW }).life
  const stop = intended(hung, 'stop')
  assert.deepEqual(plan(stop, goneOf()), { write: 'make', active: false })
  const made = settle(stop, done({ write: 'make', active: false }, goneOf()), { now: NOW })
  assert.deepEqual([made.life.uid, made.life.verb?.verb, made.effect], [UID, 'stop', true])
  const pod = intended(settle(claimed('pod'), { type: 'noAnswer' }, { now: NOW }).life, 'stop')
  assert.deepEqual(plan(pod, goneOf()), { write: 'none' })
  assert.deepEqual(texts(settle(pod, done({ write: 'none' }, goneOf(), null), { now: NOW }).events), [
    '1 ContainerExited(StoppedByRequest)',
  ])
})

test('C9, H9: a kept record makes room for a new life, and says Replaced', () => {
  const kept: Life = { ...stopped(bound('job')), gone: true }
  assert.deepEqual(texts(replaced(kept, NOW)?.events ?? []), ['1 ContainerDeleted(Replaced)'])
  for (const life of [stopped(bound('job')), running('job'), stopped(bound('deployment'))])
    assert.equal(replaced(life, NOW), null)
})

test('K2: every other start and stop is taken, joined, or has nothing to do; none is refused', () => {
  const kinds = ['deployment', 'job', 'pod'] as const
  for (const kind of kinds) {
    const stopOverIt = intend(running(kind), 'stop', context())
    const lives: [string, Life][] = [
      ['claimed', claimed(kind)],
      ['creating', bound(kind)],
      ['running', running(kind)],
      ['unknown', { ...running(kind), state: 'unknown' }],
      ...(kind === 'pod' ? [] : [['created', bound(kind, { start: false })] as [string, Life]]),
      ...(kind === 'deployment' ? [['stopped', stopped(running(kind))] as [string, Life]] : []),
      ...(kind === 'deployment' ? [['failed', { ...stopped(running(kind)), state: 'failed' }] as [string, Life]] : []),
    ]
    for (const [name, life] of lives) {
      for (const verb of ['start', 'stop'] as const) {
        assert.notEqual(intend(life, verb, context()).type, 'refused', `${verb} of a ${kind} that is ${name}`)
      }
    }
    assert.equal(stopOverIt.type, 'effect')
  }
})

test('F10: a start joined while the run ends becomes one that opens the next', () => {
  const joined = settle(intended(running('deployment'), 'start'), { type: 'noAnswer' }, { now: NOW }).life
  const ended = decide(joined, { ...AT_ZERO, version: '300' }, { now: NOW })
  assert.deepEqual(texts(ended.events), ['1 ContainerExited(ScaledToZero)'])
  assert.deepEqual([ended.life.verb?.verb, ended.life.verb?.joins, ended.effect], ['start', false, true])
  const next = settle(ended.life, done({ write: 'up' }, AT_ZERO, '301'), { now: NOW })
  assert.deepEqual([next.life.run, next.life.open, next.life.state], [2, true, 'creating'])
})
