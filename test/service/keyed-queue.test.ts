import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Backoff } from '../../src/service/backoff.ts'
import { KeyedQueue } from '../../src/service/keyed-queue.ts'
import { FakeClock } from '../helpers/clock.ts'

const TEST_BACKOFF = { firstMs: 20, longestMs: 750 }

function queueOf(work: (key: string, fresh: boolean) => Promise<void>, workers = 8) {
  const clock = new FakeClock()
  const queue = new KeyedQueue({ work, clock, workers, backoff: new Backoff(TEST_BACKOFF, () => 0) })
  return { queue, clock }
}

const gate = () => Promise.withResolvers<void>()

test('B-6: a key added many times while it waits is worked once', async () => {
  const worked: string[] = []
  const { queue } = queueOf(async key => void worked.push(key))
  for (let n = 0; n < 1000; n++) queue.add('a')
  await queue.whenIdle()
  assert.deepEqual(worked, ['a'])
})

test('F-17: one worker a key; a key added while it is worked is worked once more', async () => {
  let inside = 0
  let most = 0
  let runs = 0
  const first = gate()
  const { queue } = queueOf(async () => {
    inside++
    most = Math.max(most, inside)
    runs++
    if (runs === 1) await first.promise
    inside--
  })
  queue.add('a')
  await new Promise(setImmediate)
  queue.add('a')
  queue.add('a')
  first.resolve()
  await queue.whenIdle()
  assert.deepEqual({ most, runs }, { most: 1, runs: 2 })
})

test('F-12, I10: a key that fails comes back with back-off, the others are not delayed', async () => {
  const tries: number[] = []
  const done = new Set<string>()
  const { queue, clock } = queueOf(async key => {
    if (key === 'poison') {
      tries.push(clock.now())
      throw new Error('poison')
    }
    done.add(key)
  })
  queue.add('poison')
  for (let n = 0; n < 99; n++) queue.add(`key-${n}`)
  await queue.whenIdle()
  assert.equal(done.size, 99)
  for (const wait of [20, 40, 80, 160, 320, 640, 750, 750]) {
    const before = tries.length
    clock.advance(wait - 1)
    await queue.whenIdle()
    assert.equal(tries.length, before, `not before ${wait} ms`)
    clock.advance(1)
    await queue.whenIdle()
    assert.equal(tries.length, before + 1, `after ${wait} ms`)
  }
})

test('F9, B-26: verbs of one key take turns, those of another key do not wait', async () => {
  const order: string[] = []
  const held = gate()
  const { queue } = queueOf(async key => void order.push(`observe ${key}`))
  const slow = queue.run('a', async () => {
    order.push('intent')
    queue.add('a')
    await held.promise
    order.push('result')
  })
  await queue.run('b', async () => void order.push('other'))
  held.resolve()
  await slow
  await queue.whenIdle()
  assert.deepEqual(order, ['intent', 'other', 'result', 'observe a'])
})

test('a verb that throws gives its error to its caller and frees the key', async () => {
  const { queue } = queueOf(async () => {})
  await assert.rejects(
    queue.run('a', async () => {
      throw new Error('refused')
    }),
    /refused/,
  )
  assert.equal(await queue.run('a', async () => 'next'), 'next')
})

test('close waits for what is being worked and takes nothing more', async () => {
  const held = gate()
  let runs = 0
  const { queue } = queueOf(async () => {
    runs++
    await held.promise
  })
  queue.add('a')
  await new Promise(setImmediate)
  const closed = queue.close()
  queue.add('b')
  held.resolve()
  await closed
  await new Promise(setImmediate)
  assert.equal(runs, 1)
})

test('F-17: keys that wait for the disk leave their worker to others, and keep their own key', async () => {
  const disk = gate()
  const begun: string[] = []
  const { queue } = queueOf(async key => {
    begun.push(key)
    await queue.aside(() => disk.promise)
  }, 1)
  for (const key of ['a', 'b', 'c']) queue.add(key)
  await new Promise(setImmediate)
  queue.add('a')
  await new Promise(setImmediate)
  assert.deepEqual(begun, ['a', 'b', 'c'])
  disk.resolve()
  await queue.whenIdle()
  assert.deepEqual(begun, ['a', 'b', 'c', 'a'])
})

test('§2.10: callers that never leave a key alone do not keep it from being observed', async () => {
  const order: string[] = []
  const { queue } = queueOf(async key => void order.push(`observe ${key}`))
  const verb = async (): Promise<void> => {
    order.push('verb')
    await new Promise(setImmediate)
  }
  // Always one waits while another is carried out.
  const verbs = Array.from({ length: 12 }, () => queue.run('a', verb))
  queue.add('a')
  await Promise.all(verbs)
  await queue.whenIdle()
  const first = order.indexOf('observe a')
  assert.ok(first > 0 && first <= 5, `observed after ${first} verbs`)
  assert.equal(order.filter(step => step === 'verb').length, 12)
  assert.equal(order.length, 13, 'and once only')
})
