import assert from 'node:assert/strict'
import { test } from 'node:test'
import Database from 'better-sqlite3'
import fc from 'fast-check'
import type { NewEvent, RuntimeEvent } from '../../src/domain/event.ts'
import { formatRuntimeId } from '../../src/domain/runtime-id.ts'
import { createStore } from '../../src/store/store.ts'
import { tempStore } from '../helpers/store.ts'
import { change, newEvent, newLife, T0 } from './lives.ts'

const WEB = 'k8s-default|deployment|web'

async function runningLife(store: ReturnType<typeof tempStore>, id = WEB) {
  return (await store.commit(change(newLife(id)))).lives[0]!
}

test('J12: an event keeps every field of its payload, and labels and uid as they were when it was written', async t => {
  const store = tempStore(t)
  const life = await runningLife(store)
  const given = newEvent('ContainerFailed', {
    run: 3,
    reason: 'OOMKilled',
    message: 'Zeile 1\nüñ',
    exitCode: 137,
    time: T0 + 5,
  })
  const { events } = await store.commit(change(life, given))
  const expected: RuntimeEvent = {
    ...given,
    seq: 1,
    life: life.life,
    runtimeId: WEB,
    namespace: 'default',
    uid: 'u-1',
    labels: { team: 'a' },
  }
  assert.deepEqual(events, [expected])
  const warning = newEvent('ContainerWarning', { run: 3, cause: 'image' })
  await store.commit(change({ ...life, uid: null, labels: {} }, warning))
  assert.deepEqual(store.read({ after: 0, limit: 10 }), [
    expected,
    { ...expected, ...warning, seq: 2, uid: null, labels: {} },
  ])
})

const twice: ReadonlyArray<readonly [string, NewEvent, NewEvent]> = [
  ['a second Started of a run', newEvent('ContainerStarted'), newEvent('ContainerStarted')],
  ['a second Exited of a run', newEvent('ContainerExited'), newEvent('ContainerExited')],
  ['Failed after Exited', newEvent('ContainerExited'), newEvent('ContainerFailed')],
  ['Exited after Failed', newEvent('ContainerFailed'), newEvent('ContainerExited')],
  ['a second Deleted of a life', newEvent('ContainerDeleted'), newEvent('ContainerDeleted', { run: 2 })],
  ['a start after Deleted', newEvent('ContainerDeleted'), newEvent('ContainerStarted', { run: 2 })],
  ['a Warning after Deleted', newEvent('ContainerDeleted'), newEvent('ContainerWarning', { cause: 'image' })],
  [
    'a second Warning of a cause',
    newEvent('ContainerWarning', { cause: 'image' }),
    newEvent('ContainerWarning', { cause: 'image', reason: 'other' }),
  ],
]
for (const [what, first, second] of twice) {
  test(`H6, F-31: ${what} is refused and leaves the row as it was`, async t => {
    const store = tempStore(t)
    const life = await runningLife(store)
    await store.commit(change(life, first))
    const change2 = change({ ...life, state: 'failed' }, newEvent('ContainerWarning', { cause: 'node' }), second)
    await assert.rejects(store.commit(change2), { code: 'INTERNAL_ERROR' })
    assert.equal(store.read({ after: 0, limit: 10 }).length, 1)
    assert.equal(store.newest(WEB)?.state, 'running')
  })
}

test('H6, F-31: a new run, a new cause and a new life each have their own', async t => {
  const store = tempStore(t)
  const life = await runningLife(store)
  const both = (run: number): NewEvent[] => [
    newEvent('ContainerStarted', { run }),
    newEvent('ContainerExited', { run }),
  ]
  const warnings = ['image', 'oom'].map(cause => newEvent('ContainerWarning', { cause }))
  await store.commit(change(life, ...both(1), ...warnings, ...both(2), newEvent('ContainerDeleted')))
  await store.commit(change({ ...life, state: 'deleted' }))
  const next = await runningLife(store)
  await store.commit(change(next, ...both(1), newEvent('ContainerDeleted')))
  assert.deepEqual(
    store.read({ after: 0, limit: 100 }).map(event => event.seq),
    Array.from({ length: 10 }, (_, i) => i + 1),
  )
})

test('wire §5: a page starts after its cursor, of all, one or several runtimes, in order of seq', async t => {
  const store = tempStore(t)
  const ids = ['a', 'b', 'c'].map(name => `k8s-default|job|${name}`)
  const lives = await Promise.all(ids.map(id => runningLife(store, id)))
  for (let run = 1; run <= 4; run++) {
    for (const life of lives) await store.commit(change(life, newEvent('ContainerStarted', { run })))
  }
  const seqs = (query: Parameters<typeof store.read>[0]): number[] => store.read(query).map(event => event.seq)
  assert.deepEqual(seqs({ after: 0, limit: 100 }), [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12])
  assert.deepEqual(seqs({ after: 4, limit: 3 }), [5, 6, 7])
  assert.deepEqual(seqs({ after: 1, limit: 2, runtimeIds: [ids[0]!] }), [4, 7])
  assert.deepEqual(seqs({ after: 2, limit: 4, runtimeIds: [ids[2]!, ids[0]!] }), [3, 4, 6, 7])
  assert.deepEqual(seqs({ after: 0, limit: 4, runtimeIds: [] }), [])
  assert.deepEqual(seqs({ after: 12, limit: 4 }), [])
  assert.deepEqual(
    store.newestOf(ids[1]!, 2).map(event => event.seq),
    [11, 8],
  )
})

test('P7: bounds know the newest ever, and whether anything was ever pruned', async t => {
  let now = T0
  const store = tempStore(t, { now: () => now })
  assert.deepEqual(store.bounds(), { oldest: null, newest: null, pruned: false })
  const life = await runningLife(store)
  await store.commit(change(life, newEvent('ContainerStarted'), newEvent('ContainerExited')))
  assert.deepEqual(store.bounds(), { oldest: 1, newest: 2, pruned: false })
  now += 10_000
  store.prune({ now, retentionSeconds: 1, retentionCount: 100 })
  assert.deepEqual(store.bounds(), { oldest: null, newest: 2, pruned: true })
  const { events } = await store.commit(change(life, newEvent('ContainerStarted', { run: 2 })))
  assert.equal(events[0]?.seq, 3)
  assert.deepEqual(store.bounds(), { oldest: 3, newest: 3, pruned: true })
})

test('F-45: seq is exact up to the last safe integer, and nothing is numbered beyond it', async t => {
  const store = tempStore(t)
  const life = await runningLife(store)
  await store.commit(change(life, newEvent('ContainerStarted')))
  const raw = new Database(store.path)
  raw.prepare(`UPDATE sqlite_sequence SET seq = ? WHERE name = 'events'`).run(BigInt(Number.MAX_SAFE_INTEGER) - 1n)
  raw.close()
  const { events } = await store.commit(change(life, newEvent('ContainerExited')))
  assert.equal(events[0]?.seq, Number.MAX_SAFE_INTEGER)
  assert.equal(store.bounds().newest, Number.MAX_SAFE_INTEGER)
  const beyond = store.commit(change(life, newEvent('ContainerStarted', { run: 2 })))
  await assert.rejects(beyond, { code: 'STORAGE_UNAVAILABLE' })
  assert.equal(store.read({ after: 1, limit: 10 }).length, 1)
})

test('F-45: with the clock set back an hour the feed is still ordered by seq', async t => {
  let now = T0
  const store = tempStore(t, { now: () => now })
  const life = await runningLife(store)
  await store.commit(change(life, newEvent('ContainerStarted', { time: now })))
  now -= 3_600_000
  await store.commit(change(life, newEvent('ContainerExited', { time: now })))
  const types = store.read({ after: 0, limit: 10 }).map(event => event.type)
  assert.deepEqual(types, ['ContainerStarted', 'ContainerExited'])
  assert.deepEqual(store.newestOf(WEB, 1)[0]?.type, 'ContainerExited')
})

test('P1: nothing is shown before it is on disk, and everything acknowledged is seen by another connection', async t => {
  const store = tempStore(t)
  const life = await runningLife(store)
  const pending = store.commit(change({ ...life, ready: true }, newEvent('ContainerStarted')))
  assert.deepEqual(store.read({ after: 0, limit: 10 }), [])
  assert.notEqual(store.newest(WEB)?.ready, true)
  await pending
  const other = new Database(store.path, { readonly: true })
  assert.equal(other.prepare('SELECT count(*) FROM events').pluck().get(), 1)
  other.close()
  assert.equal(store.newest(WEB)?.ready, true)
})

test('wire §5: a database has its own epoch and keeps it', async t => {
  const store = tempStore(t)
  assert.match(store.epoch, /^[0-9a-z]{4,}$/)
  assert.notEqual(tempStore(t).epoch, store.epoch)
  store.close()
  const again = createStore(store.path)
  assert.equal(again.epoch, store.epoch)
  again.close()
})

/** What one step of the random history does; the runs make some changes illegal on purpose. */
const step = fc.oneof(
  fc.record({ type: fc.constant('commit' as const), job: fc.nat(2), run: fc.nat(3), ending: fc.boolean() }),
  fc.record({ type: fc.constant('prune' as const), keep: fc.nat(4) }),
  fc.record({ type: fc.constant('reopen' as const) }),
)

test('P2, P3: over any history seq rises strictly without reuse, a run ends once, and pruning takes a prefix', async t => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 40 }), async steps => {
      const first = tempStore(t)
      let store: ReturnType<typeof createStore> = first
      const lives = await Promise.all(['a', 'b', 'c'].map(name => runningLife(first, `k8s-default|job|${name}`)))
      const acknowledged: RuntimeEvent[] = []
      let accepted = 0
      for (const step of steps) {
        if (step.type === 'prune') store.prune({ now: Date.now(), retentionSeconds: 3600, retentionCount: step.keep })
        if (step.type === 'reopen') {
          store.close()
          store = createStore(first.path)
        }
        if (step.type !== 'commit') continue
        const event = newEvent(step.ending ? 'ContainerExited' : 'ContainerStarted', { run: step.run })
        const [outcome] = await Promise.allSettled([store.commit(change(lives[step.job]!, event))])
        if (outcome.status === 'fulfilled') acknowledged.push(...outcome.value.events)
        if (outcome.status === 'fulfilled') accepted++
      }
      const kept = store.read({ after: 0, limit: 1000 })
      assert.deepEqual(
        acknowledged.map(event => event.seq),
        Array.from({ length: accepted }, (_, i) => i + 1),
      )
      assert.deepEqual(kept, acknowledged.slice(acknowledged.length - kept.length))
      const runs = kept.map(event => `${event.runtimeId} ${event.run} ${event.type}`)
      assert.equal(new Set(runs).size, runs.length)
      for (const { id } of lives) {
        const own = store.read({ after: 0, limit: 1000, runtimeIds: [formatRuntimeId(id)] })
        assert.deepEqual(
          own,
          kept.filter(event => event.runtimeId === formatRuntimeId(id)),
        )
      }
      store.close()
    }),
    { numRuns: 15 },
  )
})
