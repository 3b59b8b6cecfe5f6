import assert from 'node:assert/strict'
import { test } from 'node:test'
import Database from 'better-sqlite3'
import fc from 'fast-check'
import type { Life } from '../../src/domain/life.ts'
import { tempStore } from '../helpers/store.ts'
import { change, deletedLife, newEvent, newLife, T0 } from './lives.ts'

type Store = ReturnType<typeof tempStore>
type Step = 'rename' | 'replace' | 'delete' | 'withdraw' | 'warn' | 'refused' | 'prune'

const IDS = ['k8s-default|deployment|a', 'k8s-default|deployment|b', 'k8s-default|deployment|c']
const STEPS: readonly Step[] = ['rename', 'replace', 'delete', 'withdraw', 'warn', 'refused', 'prune']

/** A change of the newest life of the ID; one that the schema refuses must leave all as it was. */
async function apply(store: Store, id: string, step: Step, n: number): Promise<void> {
  const life = store.newest(id)
  if (step === 'prune') return void store.prune({ now: T0 + n, retentionSeconds: 1, retentionCount: 1 })
  if (life === null || life.state === 'deleted')
    return void (await store.commit(change(newLife(id, { uid: `u-${n}` }))))
  if (step === 'rename') await store.commit(change({ ...life, message: `m-${n}` }))
  else if (step === 'warn') await store.commit(change(life, newEvent('ContainerWarning', { cause: `c-${n}` })))
  else if (step === 'withdraw') await store.commit({ rows: [], withdraw: [life.life] })
  else if (step === 'delete') await store.commit(change(deletedLife(life)))
  else if (step === 'replace') await store.commit(replacement(life, id, n))
  else await refused(store, life)
}

const replacement = (life: Life, id: string, n: number) => ({
  rows: [
    { life: deletedLife(life), events: [] },
    { life: newLife(id, { uid: `u-${n}` }), events: [] },
  ],
})

async function refused(store: Store, life: Life): Promise<void> {
  const started = newEvent('ContainerStarted', { run: 99 })
  await assert.rejects(store.commit(change({ ...life, message: 'never' }, started, started)))
}

/** What another connection reads in the file. */
function inFile(db: Database.Database, id: string): unknown {
  const row = db.prepare('SELECT life, row FROM lives WHERE runtime_id = ? ORDER BY life DESC LIMIT 1').get(id) as
    | { life: number; row: string }
    | undefined
  const seqs = db.prepare('SELECT seq FROM events WHERE runtime_id = ? ORDER BY seq DESC LIMIT 5').pluck().all(id)
  return { life: row === undefined ? null : { ...JSON.parse(row.row), life: row.life }, seqs }
}

const asRead = (store: Store, id: string): unknown => ({
  life: store.newest(id),
  seqs: store.newestOf(id, 5).map(event => event.seq),
})

test('K11, P1: what is kept of a read is what the file says, whatever was written, refused, withdrawn or pruned', async t => {
  const steps = fc.array(fc.tuple(fc.constantFrom(...IDS), fc.constantFrom(...STEPS)), { maxLength: 40 })
  await fc.assert(
    fc.asyncProperty(steps, async walk => {
      const store = tempStore(t, { now: () => T0 })
      const db = new Database(store.path, { readonly: true })
      for (const [n, [id, step]] of walk.entries()) {
        await apply(store, id, step, n)
        for (const each of IDS) assert.deepEqual(asRead(store, each), inFile(db, each))
      }
      db.close()
      store.close()
    }),
    { numRuns: 25 },
  )
})

test('P1: more IDs than are kept are read all the same', async t => {
  const store = tempStore(t)
  const ids = Array.from({ length: 5000 }, (_, n) => `k8s-default|deployment|w-${n}`)
  await store.commit({ rows: ids.map(id => ({ life: newLife(id, { uid: id }), events: [] })) })
  for (const id of [...ids, ...ids.slice(0, 10)]) assert.equal(store.newest(id)?.uid, id)
})
