// The other process of the store's tests: `child.ts <what> <path> [number]`, reporting on stdout one line a time.
import { writeSync } from 'node:fs'
import Database from 'better-sqlite3'
import { MIGRATIONS_FOLDER, migrate, readMigrations } from '../../src/store/migrations.ts'
import { createStore } from '../../src/store/store.ts'
import { change, newEvent, newLife } from './lives.ts'
import { crashingMigration } from './second-migration.ts'

const [what = '', path = '', number = '0'] = process.argv.slice(2)
const say = (line: string): void => {
  writeSync(1, `${line}\n`)
}
const stayAlive = (): void => {
  setInterval(() => {}, 60_000)
}

/** Opens the store and keeps it until it is killed. */
function own(): void {
  createStore(path)
  say('open')
  stayAlive()
}

/** Opens the store and ends. */
function open(): void {
  createStore(path)
  say('open')
}

/** Commits for ever (or `number` times), some at once, and says each as soon as it is acknowledged. */
async function write(): Promise<void> {
  const store = createStore(path)
  process.on('uncaughtExceptionMonitor', () => say('fatal'))
  const { lives } = await store.commit(change(newLife(`k8s-default|job|p${process.pid}`)))
  const times = Number(number) || Number.POSITIVE_INFINITY
  const padding = 'x'.repeat(Number(process.env.PADDING ?? 200))
  for (let i = 0; i < times; i++) {
    const events = [0, 1, 2].map(j =>
      newEvent('ContainerWarning', { cause: `${process.pid}-${i}-${j}`, message: padding }),
    )
    await Promise.all(
      events.map(async event => {
        const committed = await store.commit(change(lives[0]!, event))
        say(`${committed.events[0]?.seq} ${event.cause}`)
      }),
    )
  }
  store.close()
}

/** Holds the write lock of the database itself, as a backup tool or a stray shell would. */
function lock(): void {
  const db = new Database(path)
  db.exec('BEGIN IMMEDIATE')
  say('locked')
  setTimeout(() => db.exec('ROLLBACK'), Number(number))
}

/** Dies by SIGKILL after so many statements of the second migration. */
function migrateAndDie(): void {
  const db = new Database(path)
  db.function('die', { deterministic: false }, () => process.kill(process.pid, 'SIGKILL'))
  migrate(db, [...readMigrations(MIGRATIONS_FOLDER), crashingMigration(Number(number))], 0)
  say('migrated')
}

const roles: Record<string, () => void | Promise<void>> = { own, open, write, lock, 'migrate-and-die': migrateAndDie }
await roles[what]?.()
