import assert from 'node:assert/strict'
import { copyFileSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import Database from 'better-sqlite3'
import { MIGRATIONS_FOLDER, readMigrations } from '../../src/store/migrations.ts'
import { createStore } from '../../src/store/store.ts'
import { tempFolder, tempStore } from '../helpers/store.ts'
import { change, newLife } from './lives.ts'
import { canTrace, startChild } from './process.ts'
import { STATEMENTS, secondMigration } from './second-migration.ts'

const released = readMigrations(MIGRATIONS_FOLDER)
const extended = [...released, { ...secondMigration, version: released.length + 1 }]

/** All that the second migration leaves behind. */
function look(path: string): { version: number; notes: boolean; column: boolean; index: boolean } {
  const db = new Database(path, { readonly: true })
  const has = (sql: string): boolean => db.prepare(sql).get() !== undefined
  const found = {
    version: Number(db.pragma('user_version', { simple: true })),
    notes: has(`SELECT 1 FROM sqlite_master WHERE name = 'notes'`),
    column: has(`SELECT 1 FROM pragma_table_info('lives') WHERE name = 'note'`),
    index: has(`SELECT 1 FROM sqlite_master WHERE name = 'lives_by_note'`),
  }
  db.close()
  return found
}

const before = { version: released.length, notes: false, column: false, index: false }
const after = { version: released.length + 1, notes: true, column: true, index: true }

test('F-42: killed after any statement of a migration, nothing of it is there; the next start does all of it', async t => {
  const store = tempStore(t)
  await store.commit(change(newLife('k8s-default|job|a')))
  store.close()
  for (let statement = 0; statement <= STATEMENTS.length; statement++) {
    const child = startChild(t, ['migrate-and-die', store.path, String(statement)])
    await child.ended
    assert.equal(child.process.signalCode, 'SIGKILL', child.errors())
    assert.deepEqual(look(store.path), before, `after statement ${statement}`)
  }
  const again = createStore(store.path, { migrations: extended })
  assert.equal(again.newest('k8s-default|job|a')?.state, 'running')
  again.close()
  assert.deepEqual(look(store.path), after)
})

if (canTrace) {
  test('F-42: killed at any write to the disk of the very first start, the next start is whole', async t => {
    const folder = tempFolder(t)
    // strace gives no signals together with --seccomp-bpf.
    const killAt = (write: number): string[] => [
      'strace',
      '-f',
      '-qq',
      '-e',
      'trace=pwrite64',
      '-e',
      `inject=pwrite64:signal=SIGKILL:when=${write}`,
      '-o',
      '/dev/null',
    ]
    let survived = false
    let kills = 0
    for (let write = 1; !survived; write += 7, kills++) {
      const path = join(folder, `${write}.db`)
      const child = startChild(t, ['open', path], killAt(write))
      survived = (await child.ended) === 0
      if (survived) assert.deepEqual(child.lines, ['open'])
      const store = createStore(path)
      await store.commit(change(newLife('k8s-default|job|a')))
      store.close()
      const db = new Database(path, { readonly: true })
      assert.equal(db.pragma('integrity_check', { simple: true }), 'ok')
      db.close()
    }
    assert.ok(kills > 5, `${kills} writes were killed`)
  })
}

test('F-42: a migration that fails half-way leaves the database as it was', async t => {
  const store = tempStore(t)
  await store.commit(change(newLife('k8s-default|job|a')))
  store.close()
  const broken = { ...secondMigration, sql: `${STATEMENTS.slice(0, 4).join('\n')}\nINSERT INTO missing VALUES (1);` }
  assert.throws(() => createStore(store.path, { migrations: [...released, broken] }), { code: 'STORAGE_UNAVAILABLE' })
  assert.deepEqual(look(store.path), before)
  const committing = { ...secondMigration, sql: `${STATEMENTS[0]} COMMIT; BEGIN; ROLLBACK;` }
  assert.throws(() => createStore(store.path, { migrations: [...released, committing] }), {
    code: 'STORAGE_UNAVAILABLE',
  })
})

test('F-42: a database newer than the program is refused, both versions named, and stays as it is', t => {
  const store = tempStore(t, { migrations: extended })
  store.close()
  const refused = { code: 'STORAGE_UNAVAILABLE', message: new RegExp(`version ${after.version} .* ${before.version};`) }
  assert.throws(() => createStore(store.path), refused)
  assert.deepEqual(look(store.path), after)
})

test('F-42: a migration that was edited after its release is refused and named', t => {
  const store = tempStore(t)
  store.close()
  const edited = released.map(one => ({ ...one, sql: `${one.sql}\n-- a harmless remark` }))
  const refused = { code: 'STORAGE_UNAVAILABLE', message: /0001-[a-z-]+\.sql was edited/ }
  assert.throws(() => createStore(store.path, { migrations: edited }), refused)
  createStore(store.path).close()
})

test('F-42: migrations are numbered from 1 without a gap', t => {
  const folder = tempFolder(t)
  for (const name of readdirSync(MIGRATIONS_FOLDER)) copyFileSync(join(MIGRATIONS_FOLDER, name), join(folder, name))
  assert.deepEqual(readMigrations(folder), released)
  writeFileSync(join(folder, '0009-gap.sql'), '')
  assert.throws(() => readMigrations(folder), /0009-gap\.sql must be numbered/)
})
