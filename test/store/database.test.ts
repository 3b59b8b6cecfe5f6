import assert from 'node:assert/strict'
import { existsSync, mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import Database from 'better-sqlite3'
import { isAtLeast, networkFileSystem, openDatabase } from '../../src/store/database.ts'
import { MIGRATIONS_FOLDER, readMigrations } from '../../src/store/migrations.ts'
import { createStore } from '../../src/store/store.ts'
import { tempFolder, tempStore } from '../helpers/store.ts'
import { change, newLife } from './lives.ts'
import { startChild, until } from './process.ts'

const options = { migrations: readMigrations(MIGRATIONS_FOLDER), now: Date.now }

test('F-41: WAL, synchronous FULL and foreign keys hold on a fresh and on a reopened file', t => {
  const path = join(tempFolder(t), 'made', 'when', 'missing', 'runtimed.db')
  for (const which of ['fresh', 'reopened']) {
    const { db, close } = openDatabase(path, options)
    const pragma = (name: string): unknown => db.pragma(name, { simple: true })
    assert.deepEqual(
      [pragma('journal_mode'), pragma('synchronous'), pragma('foreign_keys')],
      ['wal', 2, 1],
      `on a ${which} file`,
    )
    assert.ok(Number(pragma('busy_timeout')) <= 250)
    close()
  }
})

test('F-45: the SQLite in use is at least 3.51.3, compared by number', () => {
  const db = new Database(':memory:')
  const version = String(db.prepare('SELECT sqlite_version()').pluck().get())
  db.close()
  assert.ok(isAtLeast(version, '3.51.3'), version)
  const cases: Array<[string, boolean]> = [
    ['3.51.3', true],
    ['3.51.2', false],
    ['3.9.99', false],
    ['3.100.0', true],
    ['4.0.0', true],
    ['3.51', false],
  ]
  for (const [version, expected] of cases) assert.equal(isAtLeast(version, '3.51.3'), expected, version)
})

test('B-116: a network file system is told by its magic number, a local one is not', () => {
  const cases: Array<[number, string | null]> = [
    [0x6969, 'NFS'],
    [0xff534d42, 'CIFS'],
    [0xff534d42 | 0, 'CIFS'],
    [0xfe534d42, 'SMB2'],
    [0xef53, null],
    [0x01021994, null],
  ]
  for (const [magic, expected] of cases) assert.equal(networkFileSystem(magic), expected)
})

test('F-27, K10, B-116: a second daemon on the file is refused within a second and told who holds it', async t => {
  const store = tempStore(t)
  const linked = join(tempFolder(t), 'other-name.db')
  symlinkSync(store.path, linked)
  for (const path of [store.path, linked]) {
    const began = performance.now()
    assert.throws(() => createStore(path), {
      code: 'STORAGE_UNAVAILABLE',
      message: new RegExp(`process ${process.pid} on .+, since \\d{4}-\\d\\d-\\d\\dT.*stop it first`),
    })
    assert.ok(performance.now() - began < 1_000)
  }
  const child = startChild(t, ['own', store.path])
  assert.equal(await child.ended, 1)
  assert.match(child.errors(), new RegExp(`process ${process.pid} on `))
  await store.commit(change(newLife('k8s-default|job|still-works')))
})

test('F-27: ownership ends with the process, however it ends', async t => {
  const path = join(tempFolder(t), 'runtimed.db')
  for (const signal of ['SIGKILL', 'SIGTERM'] as const) {
    const child = startChild(t, ['own', path])
    await until(() => child.lines.includes('open'))
    assert.throws(() => createStore(path), { message: new RegExp(`process ${child.process.pid} on `) })
    child.process.kill(signal)
    await child.ended
    createStore(path).close()
  }
})

test('F-27: of daemons that start together on a new file exactly one gets it', async t => {
  const path = join(tempFolder(t), 'runtimed.db')
  const children = [1, 2, 3, 4].map(() => startChild(t, ['own', path]))
  const refused = (child: (typeof children)[number]): boolean => child.process.exitCode === 1
  await until(() => children.every(child => refused(child) || child.lines.includes('open')))
  assert.equal(children.filter(child => child.lines.includes('open')).length, 1)
})

test('a file of another program, or no database at all, is left as it is', t => {
  const folder = tempFolder(t)
  const foreign = join(folder, 'foreign.db')
  const db = new Database(foreign)
  db.exec('CREATE TABLE theirs (a)')
  db.close()
  const text = join(folder, 'text.db')
  writeFileSync(text, 'no database, but longer than the hundred bytes of a header. '.repeat(20))
  for (const path of [foreign, text]) {
    const before = readFileSync(path)
    assert.throws(() => createStore(path), { code: 'STORAGE_UNAVAILABLE', message: /DATABASE_PATH/ })
    assert.deepEqual(readFileSync(path), before)
    assert.ok(!existsSync(`${path}-wal`))
  }
})

test('B-116: a damaged file is refused at the start, and says what to do', async t => {
  const store = tempStore(t)
  const rows = Array.from({ length: 300 }, (_, i) => ({ life: newLife(`k8s-default|job|n${i}`), events: [] }))
  await store.commit({ rows })
  store.close()
  const bytes = readFileSync(store.path)
  bytes.fill(0xa5, statSync(store.path).size - 3 * 4096)
  writeFileSync(store.path, bytes)
  assert.throws(() => createStore(store.path), { code: 'STORAGE_UNAVAILABLE', message: /damaged; restore it/ })
})

test('a path that cannot be used is refused with a remedy', t => {
  const folder = tempFolder(t)
  writeFileSync(join(folder, 'file'), '')
  mkdirSync(join(folder, 'folder.db'))
  for (const path of [join(folder, 'file', 'runtimed.db'), join(folder, 'folder.db')]) {
    assert.throws(() => createStore(path), { code: 'STORAGE_UNAVAILABLE', message: /^cannot .*; check/ })
  }
})
