import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Life } from '../../src/domain/life.ts'
import { newLife } from '../../src/domain/lifecycle.ts'
import type { WaitQuery } from '../../src/service/api.ts'
import { ChangeSignals } from '../../src/service/recorder.ts'
import { reached, waitFor } from '../../src/service/waiter.ts'
import { FakeClock } from '../helpers/clock.ts'
import { specOf } from '../helpers/specs.ts'

const lifeOf = (kind: 'deployment' | 'job', patch: Partial<Life>): Life => ({
  ...newLife({ spec: specOf({ image: 'a', kind }), nonce: 'n', now: 0, lastEventAt: 0 }),
  verb: null,
  ...patch,
})

const running = { state: 'running', run: 2, open: true } as const
const ended = { state: 'stopped', run: 2, open: false } as const
const cases: Array<[string, Life, WaitQuery['for'], number, string]> = [
  ['running in that run', lifeOf('deployment', running), 'running', 2, 'reached'],
  ['running in a later run', lifeOf('deployment', running), 'running', 1, 'reached'],
  ['running in an earlier run', lifeOf('deployment', running), 'running', 3, 'open'],
  ['a stopped Deployment can be started', lifeOf('deployment', ended), 'running', 2, 'open'],
  ['an ended Job cannot run again', lifeOf('job', ended), 'running', 2, 'unreachable'],
  ['a Job that we suspended can', lifeOf('job', { ...ended, suspendedByUs: true }), 'running', 2, 'open'],
  [
    'one that is being deleted cannot',
    lifeOf('deployment', { state: 'deleting', open: true }),
    'running',
    1,
    'unreachable',
  ],
  ['a deleted one cannot', lifeOf('deployment', { state: 'deleted', open: false }), 'running', 1, 'unreachable'],
  ['ended: this run has', lifeOf('job', ended), 'ended', 2, 'reached'],
  ['ended: this run has not', lifeOf('job', running), 'ended', 2, 'open'],
  ['ended: an earlier run has', lifeOf('deployment', running), 'ended', 1, 'reached'],
  ['ended: never started', lifeOf('deployment', { state: 'created', run: 0, open: false }), 'ended', 0, 'open'],
  ['ended: the life is over', lifeOf('deployment', { state: 'deleted', open: false }), 'ended', 9, 'reached'],
  ['deleted', lifeOf('job', { state: 'deleted', open: false }), 'deleted', 1, 'reached'],
  ['not deleted yet', lifeOf('job', { state: 'deleting', open: true }), 'deleted', 1, 'open'],
]
for (const [name, life, aim, run, expected] of cases) {
  test(`B-68: wait: ${name}`, () => assert.equal(reached(life, aim, run), expected))
}

function waiting(first: Life, query: Partial<WaitQuery>) {
  const clock = new FakeClock()
  const changes = new ChangeSignals()
  let row: Life | null = first
  const controller = new AbortController()
  const result = waitFor(
    { id: 'k8s-default|deployment|web', read: () => row },
    { for: 'ended', timeoutSeconds: 60, signal: controller.signal, ...query },
    { changes, clock, first },
  )
  const set = (next: Life): void => {
    row = next
    changes.listener({
      lives: [{ ...next, id: { runtime: 'k8s', namespace: 'default', kind: 'deployment', name: 'web' } }],
      events: [],
    })
  }
  return { clock, result, set, abort: () => controller.abort() }
}

test('B-68: wait answers as soon as it is reached, and leaves no timer behind', async () => {
  const { clock, result, set } = waiting(lifeOf('deployment', running), {})
  set(lifeOf('deployment', running))
  await Promise.resolve()
  set(lifeOf('deployment', ended))
  assert.equal((await result).reached, true)
  assert.equal(clock.pending, 0)
})

test('B-68: timeout=0 answers at once, a time-out answers reached:false', async () => {
  assert.equal((await waiting(lifeOf('deployment', running), { timeoutSeconds: 0 }).result).reached, false)
  const { clock, result } = waiting(lifeOf('deployment', running), { timeoutSeconds: 600 })
  clock.advance(600_000)
  assert.equal((await result).reached, false)
})

test('B-68: a client that goes away ends its wait', async () => {
  const { clock, result, abort } = waiting(lifeOf('deployment', running), {})
  abort()
  assert.equal((await result).reached, false)
  assert.equal(clock.pending, 0)
})
