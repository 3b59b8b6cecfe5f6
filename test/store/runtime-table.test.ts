import assert from 'node:assert/strict'
import { test } from 'node:test'
import Database from 'better-sqlite3'
import fc from 'fast-check'
import type { Life } from '../../src/domain/life.ts'
import { formatRuntimeId } from '../../src/domain/runtime-id.ts'
import type { ListQuery } from '../../src/service/ports.ts'
import { createStore } from '../../src/store/store.ts'
import { tempStore } from '../helpers/store.ts'
import { change, deletedLife, newLife, T0 } from './lives.ts'

const WEB = 'k8s-default|deployment|web'
const idOf = (life: Life): string => formatRuntimeId(life.id)

type Store = ReturnType<typeof tempStore>

async function add(store: Store, id: string, more: Partial<Life> = {}): Promise<Life> {
  return (await store.commit(change(newLife(id, more)))).lives[0]!
}

/** All pages of a list, as a client walks them. */
function walk(store: Store, query: Omit<ListQuery, 'after'>): Life[] {
  const found: Life[] = []
  let after: string | undefined
  do {
    const { lives, next } = store.list({ ...query, after })
    assert.ok(lives.length <= query.limit)
    found.push(...lives)
    after = next ?? undefined
  } while (after !== undefined)
  return found
}

test('C9: an ID has one row that is not deleted; a deleted one makes room for a new life', async t => {
  const store = tempStore(t)
  const first = await add(store, WEB)
  await assert.rejects(store.commit(change(newLife(WEB))), { code: 'RUNTIME_EXISTS', runtimeId: WEB })
  assert.deepEqual(store.newest(WEB), first)
  await store.commit({
    rows: [
      { life: deletedLife(first), events: [] },
      { life: newLife(WEB, { uid: 'u-2' }), events: [] },
    ],
  })
  const second = store.newest(WEB)!
  assert.equal(second.uid, 'u-2')
  assert.ok(second.life > first.life)
  assert.equal(store.byLife(first.life)?.state, 'deleted')
})

test('C9, F-20: of two claims of one ID in one turn exactly one is taken', async t => {
  const store = tempStore(t)
  const settled = await Promise.allSettled(Array.from({ length: 20 }, () => add(store, WEB)))
  assert.equal(settled.filter(one => one.status === 'fulfilled').length, 1)
  assert.equal(walk(store, { namespaces: '*', limit: 10 }).length, 1)
})

test('K1: a row comes back as it was given, fields this part knows nothing of included', async t => {
  const store = tempStore(t)
  const given = newLife(WEB, { labels: { ü: '\u{1f600}' }, ...{ later: { added: [1, null] } } })
  const stored = await add(store, WEB, given)
  assert.deepEqual(store.newest(WEB), { ...given, life: stored.life })
  assert.deepEqual(store.byLife(stored.life), store.byNonce('n-1'))
  const changed = { ...stored, state: 'stopped' as const, exitCode: 0, open: false }
  await store.commit(change(changed))
  assert.deepEqual(store.newest(WEB), changed)
})

test('a row that is not there cannot be updated', async t => {
  const store = tempStore(t)
  await assert.rejects(store.commit(change(newLife(WEB, { life: 7 }))), { code: 'INTERNAL_ERROR' })
  assert.equal(store.newest(WEB), null)
  assert.equal(store.byLife(7), null)
  assert.equal(store.byNonce('n-1'), null)
})

test('C13: a withdrawn claim leaves nothing and its number is not used again', async t => {
  const store = tempStore(t)
  const key = { token: 'ci', key: 'k', hash: 'h' }
  const { lives } = await store.commit({ ...change(newLife(WEB)), key })
  const claimed = lives[0]!.life
  store.keepTail(claimed, 1, Buffer.from('log'))
  await store.commit({ rows: [], withdraw: [claimed] })
  assert.equal(store.newest(WEB), null)
  assert.equal(store.key('ci', 'k'), null)
  assert.equal(store.tail(claimed), null)
  assert.ok((await add(store, WEB)).life > claimed)
})

test('C10: an Idempotency-Key names its row for 24 hours, by token, after a restart too', async t => {
  let now = T0
  const store = tempStore(t, { now: () => now })
  const key = { token: 'ci', key: 'k', hash: 'h' }
  const { lives } = await store.commit({ ...change(newLife(WEB)), key })
  assert.deepEqual(store.key('ci', 'k'), { life: lives[0]!.life, hash: 'h' })
  assert.equal(store.key('other', 'k'), null)
  const other = change(newLife('k8s-default|job|b'))
  await assert.rejects(store.commit({ ...other, key: { ...key, hash: 'x' } }), { code: 'IDEMPOTENCY_KEY_REUSED' })
  await assert.rejects(store.commit({ ...other, key }), { code: 'RUNTIME_EXISTS' })
  assert.equal(store.newest('k8s-default|job|b'), null)
  now += 24 * 3600 * 1000
  assert.equal(store.key('ci', 'k'), null)
  const again = await store.commit({ ...other, key: { ...key, hash: 'x' } })
  assert.deepEqual(store.key('ci', 'k'), { life: again.lives[0]!.life, hash: 'x' })
  await store.commit({ rows: [], freeKey: { token: 'ci', key: 'k' } })
  assert.equal(store.key('ci', 'k'), null)
})

test('design §11.13: a list is ordered by ID bytes and filtered; deleted rows come only when asked for', async t => {
  const store = tempStore(t)
  await add(store, 'k8s-b|job|a')
  await add(store, 'k8s-a|job|z', { state: 'stopped', open: false })
  await add(store, 'docker-a|job|z')
  const gone = await add(store, 'k8s-a|deployment|web')
  await store.commit(change(deletedLife(gone)))
  const ids = (query: Partial<ListQuery>): string[] => walk(store, { namespaces: '*', limit: 1, ...query }).map(idOf)
  assert.deepEqual(ids({}), ['docker-a|job|z', 'k8s-a|job|z', 'k8s-b|job|a'])
  assert.deepEqual(ids({ runtime: 'k8s' }), ['k8s-a|job|z', 'k8s-b|job|a'])
  assert.deepEqual(ids({ namespaces: ['a'] }), ['docker-a|job|z', 'k8s-a|job|z'])
  assert.deepEqual(ids({ namespaces: [] }), [])
  assert.deepEqual(ids({ kind: 'deployment' }), [])
  assert.deepEqual(ids({ states: ['stopped'] }), ['k8s-a|job|z'])
  assert.deepEqual(ids({ states: ['deleted', 'stopped'] }), ['k8s-a|deployment|web', 'k8s-a|job|z'])
  assert.deepEqual(ids({ accept: life => life.id.name === 'a' }), ['k8s-b|job|a'])
})

test('design §11.13: an ID that lives again is listed by its newest life alone', async t => {
  const store = tempStore(t)
  await store.commit(change(deletedLife(await add(store, WEB))))
  const newest = await add(store, WEB, { uid: 'u-2' })
  assert.deepEqual(walk(store, { namespaces: '*', states: ['deleted', 'running'], limit: 5 }), [newest])
  assert.deepEqual(walk(store, { namespaces: '*', states: ['deleted'], limit: 5 }), [])
})

test('design §11.13: whatever is made or deleted meanwhile, what exists throughout is seen exactly once', async t => {
  await fc.assert(
    fc.asyncProperty(
      fc.uniqueArray(fc.integer({ min: 0, max: 40 }), { minLength: 1 }),
      fc.array(fc.record({ n: fc.integer({ min: 0, max: 40 }), remove: fc.boolean() })),
      fc.integer({ min: 1, max: 5 }),
      async (first, changes, limit) => {
        const store = tempStore(t)
        const id = (n: number): string => `k8s-default|job|n${n}`
        const alive = new Map<number, Life>()
        for (const n of first) alive.set(n, await add(store, id(n)))
        const throughout = new Set(first)
        const seen: string[] = []
        const queue = [...changes]
        for (let after: string | undefined | null = undefined; after !== null; ) {
          const page: ReturnType<Store['list']> = store.list({ namespaces: '*', limit, after })
          seen.push(...page.lives.map(idOf))
          after = page.next
          const { n, remove } = queue.shift() ?? { n: 0, remove: false }
          const there = alive.get(n)
          if (remove && there !== undefined) {
            await store.commit(change(deletedLife(there)))
            throughout.delete(n)
            alive.delete(n)
          } else if (!remove && there === undefined) alive.set(n, await add(store, id(n)))
        }
        assert.deepEqual(seen, [...new Set(seen)].sort())
        for (const n of throughout) assert.ok(seen.includes(id(n)))
        store.close()
      },
    ),
    { numRuns: 12 },
  )
})

test('design §10: a page of a narrow filter over 12,000 rows is bounded and the walk still finds all', async t => {
  const store = tempStore(t)
  const wanted = (i: number): boolean => i % 4_000 === 7
  const rows = Array.from({ length: 12_000 }, (_, i) => ({
    life: newLife(`k8s-default|job|n${String(i).padStart(5, '0')}`, { labels: { rare: wanted(i) ? 'yes' : 'no' } }),
    events: [],
  }))
  await store.commit({ rows })
  let pages = 0
  let longest = 0
  const found: Life[] = []
  for (let after: string | undefined | null = undefined; after !== null; pages++) {
    const began = performance.now()
    const accept = (life: Life): boolean => life.labels.rare === 'yes'
    const page: ReturnType<Store['list']> = store.list({ namespaces: '*', limit: 100, accept, after })
    longest = Math.max(longest, performance.now() - began)
    found.push(...page.lives)
    after = page.next
  }
  assert.equal(found.length, 3)
  assert.ok(pages > 3, `${pages} pages`)
  t.diagnostic(`longest page ${longest.toFixed(1)} ms of ${pages}`)
})

test('I13: monitored are the rows with an open run or a verb in hand', async t => {
  const store = tempStore(t)
  await add(store, 'k8s-default|job|b')
  await add(store, 'k8s-default|job|a')
  await add(store, 'k8s-default|job|ended', { open: false, state: 'stopped' })
  const stop = { verb: 'stop', cause: null, accepted: true, tried: false, joins: false, previous: null } as const
  await add(store, 'k8s-default|job|c', { open: false, state: 'stopping', verb: stop })
  assert.deepEqual(store.monitored(), ['k8s-default|job|a', 'k8s-default|job|b', 'k8s-default|job|c'])
})

test('K7, F-23: a damaged row is reported and left aside; every other one is there', async t => {
  const store = tempStore(t)
  for (let i = 0; i < 5; i++) await add(store, `k8s-default|job|n${i}`)
  const gone = await add(store, 'k8s-default|job|gone')
  await store.commit(change(deletedLife(gone)))
  const raw = new Database(store.path)
  raw.prepare(`UPDATE lives SET row = '{"id":' WHERE name = 'n1'`).run()
  raw.prepare(`UPDATE lives SET row = (SELECT row FROM lives WHERE name = 'n0') WHERE name = 'n2'`).run()
  raw.prepare(`UPDATE lives SET row = '{}' WHERE name = 'n3'`).run()
  raw.close()
  const broken: string[] = []
  const names = Array.from(
    store.alive(id => broken.push(id)),
    life => life.id.name,
  )
  assert.deepEqual(names, ['n0', 'n4'])
  assert.deepEqual(broken, ['k8s-default|job|n1', 'k8s-default|job|n2', 'k8s-default|job|n3'])
  assert.throws(() => store.newest('k8s-default|job|n1'), { code: 'STORAGE_UNAVAILABLE', message: /n1/ })
  assert.equal(store.newest('k8s-default|job|n4')?.id.name, 'n4')
  assert.deepEqual(
    walk(store, { namespaces: '*', limit: 2 }).map(life => life.id.name),
    ['n0', 'n4'],
  )
})

test('K7: a row of an earlier version is read with what it lacks filled in', async t => {
  const store = tempStore(t)
  await add(store, WEB, { podControllers: ['rs'] })
  store.close()
  const raw = new Database(store.path)
  raw.prepare(`UPDATE lives SET row = json_remove(row, '$.podControllers')`).run()
  raw.close()
  const again = createStore(store.path)
  t.after(() => again.close())
  assert.deepEqual(again.newest(WEB)?.podControllers, [])
})

test('K3: rows are streamed in steps, and commits go on between them', async t => {
  const store = tempStore(t)
  const rows = Array.from({ length: 1200 }, (_, i) => ({ life: newLife(`k8s-default|job|n${i}`), events: [] }))
  await store.commit({ rows })
  const seen = new Set<number>()
  for (const life of store.alive(assert.fail)) {
    if (seen.size % 400 === 0) await store.commit(change({ ...life, ready: true }))
    seen.add(life.life)
  }
  assert.equal(seen.size, 1200)
})
