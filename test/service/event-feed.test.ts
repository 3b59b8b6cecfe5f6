import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { NewEvent } from '../../src/domain/event.ts'
import { newLife } from '../../src/domain/lifecycle.ts'
import { isRuntimeError } from '../../src/errors.ts'
import { systemClock } from '../../src/service/clock.ts'
import { EventFeed, type EventFeedOptions } from '../../src/service/event-feed.ts'
import type { Backend } from '../../src/service/ports.ts'
import { Recorder } from '../../src/service/recorder.ts'
import type { Scope } from '../../src/service/scope.ts'
import { specOf } from '../helpers/specs.ts'
import { tempStore } from '../helpers/store.ts'

const EVERYTHING: Scope = { token: null, namespaces: '*', write: true }
const ONLY_AI: Scope = { token: 'ai', namespaces: ['ai'], write: false }

const EVERY_RUNTIME: EventFeedOptions['backends'] = { get: () => ({}) as Backend }

function feedOf(t: import('node:test').TestContext) {
  const store = tempStore(t)
  const recorder = new Recorder(store)
  const feed = new EventFeed({ table: store, backends: EVERY_RUNTIME, clock: systemClock, wakeEveryMs: 1 })
  recorder.onCommit(feed.listener)
  let run = 0
  /** Adds a runtime and `count` warnings of different causes to the feed. */
  const publish = async (name: string, count: number, namespace = 'default'): Promise<void> => {
    const known = store.newest(`k8s-${namespace}|deployment|${name}`)
    const spec = specOf({ image: 'a', name, namespace, labels: { team: name } })
    const life = known ?? newLife({ spec, nonce: `${name}-${namespace}`, now: 1, lastEventAt: 0 })
    const events = Array.from({ length: count }, (): NewEvent => {
      const cause = `cause-${run++}`
      return { type: 'ContainerWarning', run: 1, cause, reason: cause, message: null, exitCode: null, time: 1 }
    })
    await recorder.commit({ rows: [{ life, events }] })
  }
  return { store, feed, publish }
}

const seqs = (events: ReadonlyArray<{ seq: number }>): number[] => events.map(event => event.seq)
const upTo = (first: number, last: number): number[] => Array.from({ length: last - first + 1 }, (_, at) => first + at)

async function read(feed: EventFeed, after: string | undefined, count: number): Promise<number[]> {
  const controller = new AbortController()
  const got: number[] = []
  for await (const { events } of feed.stream(EVERYTHING, {}, after, controller.signal)) {
    got.push(...seqs(events))
    if (got.length >= count) controller.abort()
  }
  return got
}

test('B-70: resuming after n gives n + 1, once each, from history into what comes live', async t => {
  const { feed, publish } = feedOf(t)
  await publish('web', 1200)
  const reading = read(feed, `${feed.epoch}-7`, 1393)
  for (let n = 0; n < 20; n++) await publish('web', 10)
  assert.deepEqual(await reading, upTo(8, 1400))
})

test('B-70: now starts after the newest; absent starts at the oldest', async t => {
  const { feed, publish } = feedOf(t)
  await publish('web', 5)
  const reading = read(feed, 'now', 2)
  await publish('web', 2)
  assert.deepEqual(await reading, [6, 7])
  assert.deepEqual(seqs((await feed.page(EVERYTHING, {}, undefined, 100)).items), upTo(1, 7))
})

test('B-70, U4: filters and scope leave events out, the cursor moves on all the same', async t => {
  const { feed, publish } = feedOf(t)
  await publish('web', 3)
  await publish('agent', 2, 'ai')
  const page = await feed.page(ONLY_AI, {}, '0', 100)
  assert.deepEqual(seqs(page.items), [4, 5])
  const none = await feed.page(EVERYTHING, { types: ['ContainerDeleted'] }, '0', 100)
  assert.deepEqual(none.items, [])
  assert.equal(none.cursor, `${feed.epoch}-5`)
  assert.deepEqual(seqs((await feed.page(EVERYTHING, { labelSelector: 'team in (agent)' }, '0', 100)).items), [4, 5])
  assert.deepEqual(
    seqs((await feed.page(EVERYTHING, { runtimeIds: ['k8s-default|deployment|web'] }, '1', 100)).items),
    [2, 3],
  )
  await assert.rejects(feed.page(ONLY_AI, { namespaces: ['default'] }, '0', 100), error =>
    isRuntimeError(error, 'NAMESPACE_NOT_ALLOWED'),
  )
})

test('B-70: a page that is full says where it stopped, matching or not', async t => {
  const { feed, publish } = feedOf(t)
  await publish('web', 10)
  const first = await feed.page(EVERYTHING, {}, '0', 4)
  assert.deepEqual([seqs(first.items), first.cursor], [[1, 2, 3, 4], `${feed.epoch}-4`])
  assert.deepEqual(seqs((await feed.page(EVERYTHING, {}, first.cursor, 100)).items), upTo(5, 10))
})

test('K11: history that was pruned is told with 410 and the oldest kept, never skipped', async t => {
  const { store, feed, publish } = feedOf(t)
  await publish('web', 1500)
  for (let removed = 1; removed > 0; ) {
    removed = store.prune({ now: Date.now(), retentionSeconds: 1e9, retentionCount: 100 }).events
  }
  const restarted = new EventFeed({ table: store, backends: EVERY_RUNTIME, clock: systemClock })
  await assert.rejects(
    restarted.page(EVERYTHING, {}, '500', 10),
    error => isRuntimeError(error, 'CURSOR_EXPIRED') && error.extra.oldest === `${feed.epoch}-1401`,
  )
})

test('B-71: streams that end leave nothing behind, closing ends them all', async t => {
  const { feed, publish } = feedOf(t)
  await publish('web', 1)
  for (let n = 0; n < 200; n++) await read(feed, '0', 1)
  assert.equal(feed.readers, 0)
  const open = read(feed, 'now', 1)
  await new Promise(setImmediate)
  feed.close()
  assert.deepEqual(await open, [])
  assert.equal(feed.readers, 0)
})

test('B-70: an unknown runtime has no events of its own: 404', async t => {
  const { feed } = feedOf(t)
  await assert.rejects(feed.pageOf(EVERYTHING, 'k8s-default|deployment|never', undefined, 10), error =>
    isRuntimeError(error, 'RUNTIME_NOT_FOUND'),
  )
})

/** Turns of the event loop that others are given while `work` is under way. */
async function turnsDuring(work: Promise<unknown>): Promise<number> {
  let turns = 0
  let done = false
  void work.finally(() => {
    done = true
  })
  for (; !done; turns++) await new Promise(setImmediate)
  return turns
}

test('F-53, B-70: a filter that finds nothing in a long history leaves others their turns', async t => {
  const { store, publish } = feedOf(t)
  await publish('web', 10_000)
  const restarted = new EventFeed({ table: store, backends: EVERY_RUNTIME, clock: systemClock })
  const nothing = { types: ['ContainerDeleted'] } as const
  assert.ok((await turnsDuring(restarted.page(EVERYTHING, nothing, '0', 10))) >= 15, 'page')
  const batches = restarted.stream(EVERYTHING, nothing, '0', AbortSignal.timeout(30_000))[Symbol.asyncIterator]()
  assert.ok((await turnsDuring(batches.next())) >= 15, 'stream')
  await batches.return?.()
})

test('F-53: a reader that takes a long history as fast as it comes leaves others their turns', async t => {
  const { store, publish } = feedOf(t)
  await publish('web', 10_000)
  const restarted = new EventFeed({ table: store, backends: EVERY_RUNTIME, clock: systemClock })
  assert.ok((await turnsDuring(read(restarted, '0', 10_000))) >= 15)
})
