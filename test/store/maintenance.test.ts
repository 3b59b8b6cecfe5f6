import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Life } from '../../src/domain/life.ts'
import { createStore } from '../../src/store/store.ts'
import { tempStore } from '../helpers/store.ts'
import { change, deletedLife, newEvent, newLife, T0 } from './lives.ts'

const DAY = 86_400_000
const KEEP = { retentionSeconds: 7 * 86_400, retentionCount: 1_000_000 }

type Store = ReturnType<typeof tempStore>

async function addEvents(store: Store, name: string, count: number): Promise<void> {
  const events = Array.from({ length: count }, (_, i) => newEvent('ContainerStarted', { run: i + 1 }))
  await store.commit(change(newLife(`k8s-default|job|${name}`), ...events))
}

const ended = (name: string, more: Partial<Life> = {}): Life =>
  newLife(`k8s-default|job|${name}`, {
    state: 'stopped',
    open: false,
    gone: true,
    goneAt: T0,
    endedAt: T0,
    ...more,
  })

/** Prunes to the end, as the daemon's timer does. */
function pruneAll(store: Store, limits: Parameters<Store['prune']>[0]): { events: number; rows: number } {
  const total = { events: 0, rows: 0 }
  while (true) {
    const { events, rows } = store.prune(limits)
    assert.ok(events <= 500 && rows <= 100, 'a step is bounded')
    if (events + rows === 0) return total
    total.events += events
    total.rows += rows
  }
}

test('K11: events go by age, oldest first, and those kept are whole', async t => {
  let now = T0
  const store = tempStore(t, { now: () => now })
  await addEvents(store, 'a', 1_200)
  now += 8 * DAY
  await addEvents(store, 'b', 10)
  assert.deepEqual(pruneAll(store, { now, ...KEEP }), { events: 1_200, rows: 0 })
  assert.deepEqual(store.bounds(), { oldest: 1_201, newest: 1_210, pruned: true })
})

test('K11: events go by count', async t => {
  const store = tempStore(t, { now: () => T0 })
  await addEvents(store, 'a', 1_300)
  assert.deepEqual(pruneAll(store, { now: T0, ...KEEP, retentionCount: 50 }), { events: 1_250, rows: 0 })
  assert.deepEqual(store.bounds(), { oldest: 1_251, newest: 1_300, pruned: true })
  assert.equal(pruneAll(store, { now: T0, ...KEEP, retentionCount: 50 }).events, 0)
})

test('K11, F-45: an event that was written before the clock went back never makes a gap', async t => {
  let now = T0
  const store = tempStore(t, { now: () => now })
  await addEvents(store, 'a', 2)
  now -= 9 * DAY
  await addEvents(store, 'b', 2)
  assert.equal(pruneAll(store, { now: T0, ...KEEP }).events, 0)
  assert.equal(pruneAll(store, { now: T0 + 8 * DAY, ...KEEP }).events, 4)
})

test('J12, K11: what happened long before it was seen is kept for the whole retention', async t => {
  const store = tempStore(t, { now: () => T0 })
  const old = newEvent('ContainerExited', { time: T0 - 30 * DAY })
  await store.commit(change(newLife('k8s-default|job|adopted'), old))
  assert.equal(pruneAll(store, { now: T0 + DAY, ...KEEP }).events, 0)
})

test('K11: rows go that were deleted, or ended with the object gone, for the retention; no others', async t => {
  const store = tempStore(t, { now: () => T0 })
  const late = T0 + DAY
  const verb = { verb: 'delete', cause: null, accepted: true, tried: false, joins: false, previous: null } as const
  const rows = [
    deletedLife(ended('deleted')),
    ended('ended'),
    ended('ended-failed', { state: 'failed' }),
    deletedLife(ended('kept-deleted-late'), late),
    ended('kept-gone-late', { goneAt: late }),
    ended('kept-ended-late', { endedAt: late }),
    ended('kept-object-lives', { gone: false, goneAt: null }),
    ended('kept-verb-in-hand', { verb }),
    ended('kept-running', { state: 'running', open: true }),
  ].map(life => ({ life, events: [] }))
  await store.commit({ rows })
  const now = T0 + 7 * DAY
  assert.equal(pruneAll(store, { now: now - 1, ...KEEP }).rows, 0)
  assert.equal(pruneAll(store, { now, ...KEEP }).rows, 3)
  const left = store.list({ namespaces: '*', states: ['deleted', 'stopped', 'failed', 'running'], limit: 100 })
  assert.ok(left.lives.every(life => life.id.name.startsWith('kept-')))
  assert.equal(left.lives.length, 6)
})

test('K11, C10: a row whose Idempotency-Key still answers is kept with it', async t => {
  const store = tempStore(t, { now: () => T0 })
  const { lives } = await store.commit({ ...change(ended('a')), key: { token: 'ci', key: 'k', hash: 'h' } })
  const soon = { retentionSeconds: 60, retentionCount: 100 }
  assert.equal(pruneAll(store, { now: T0 + DAY - 1, ...soon }).rows, 0)
  assert.equal(store.key('ci', 'k')?.life, lives[0]?.life)
  assert.equal(pruneAll(store, { now: T0 + DAY, ...soon }).rows, 1)
  assert.equal(store.key('ci', 'k'), null)
})

test('lifecycle §9: rows of a runtime or namespace that is no longer configured rest', async t => {
  const configured = { runtimes: ['k8s'], namespaces: ['default'] }
  const store = tempStore(t, { now: () => T0, configured })
  const ids = ['k8s-default|job|a', 'k3s-default|job|a', 'k8s-other|job|a']
  const rows = ids.map(id => ({ life: { ...ended('a'), id: newLife(id).id }, events: [] }))
  await store.commit({ rows })
  assert.equal(pruneAll(store, { now: T0 + 30 * DAY, ...KEEP }).rows, 1)
  assert.equal(store.newest('k8s-default|job|a'), null)
})

test('L4, design §11.10: the last 64 KiB of the newest run are kept and go with the row', async t => {
  const store = tempStore(t, { now: () => T0 })
  const { lives } = await store.commit(change(ended('a')))
  const life = lives[0]!.life
  assert.equal(store.tail(life), null)
  const bytes = Buffer.alloc(70_000, Buffer.from([0, 1, 255, 10]))
  store.keepTail(life, 1, bytes)
  assert.deepEqual(store.tail(life), bytes.subarray(-65_536))
  store.keepTail(life, 2, Buffer.from('second'))
  store.keepTail(life, 1, Buffer.from('late'))
  assert.equal(store.tail(life)?.toString(), 'second')
  store.keepTail(life + 1, 1, Buffer.from('nobody'))
  assert.equal(store.tail(life + 1), null)
  pruneAll(store, { now: T0 + 30 * DAY, ...KEEP })
  assert.equal(store.tail(life), null)
})

test('K11: pruning survives a restart', async t => {
  const store = tempStore(t, { now: () => T0 })
  await addEvents(store, 'a', 3)
  store.prune({ now: T0, ...KEEP, retentionCount: 0 })
  store.close()
  const again = createStore(store.path)
  assert.deepEqual(again.bounds(), { oldest: null, newest: 3, pruned: true })
  again.close()
})
