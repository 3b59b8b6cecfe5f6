import { existsSync, mkdirSync, realpathSync, statfsSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import Database from 'better-sqlite3'
import { BUSY_TIMEOUT_MS } from './connection.ts'
import { checkSchema, type Migration, migrate } from './migrations.ts'
import { takeOwnership } from './owner-lock.ts'
import { storageError, unavailable } from './storage-error.ts'

/** Versions before it can lose a commit when the WAL is reset (https://www.sqlite.org/wal.html#walresetbug). */
const OLDEST_SQLITE = '3.51.3'
const LARGEST_IDLE_WAL_BYTES = 16 * 1024 * 1024

export interface OpenOptions {
  readonly migrations: readonly Migration[]
  /** ms since the epoch. */
  readonly now: () => number
}

export interface OpenDatabase {
  readonly db: Database.Database
  readonly path: string
  /** Folds the WAL into the file and gives up the ownership. */
  close(): void
}

/**
 * Opens the database at `path`, made with its folder if missing, for this process alone, checked and migrated.
 * Throws STORAGE_UNAVAILABLE: owned by another process, newer than the program, damaged, edited migration, disk trouble.
 */
export function openDatabase(path: string, options: OpenOptions): OpenDatabase {
  requireSqlite()
  const file = locate(path)
  const release = takeOwnership(file, options.now())
  try {
    const db = openChecked(file, options)
    return { db, path: file, close: () => closeBoth(db, release) }
  } catch (error) {
    release()
    throw storageError(error, 'open')
  }
}

/** The one path of a file, whatever symlinks lead to it: two names of one database must meet at one lock. */
function locate(path: string): string {
  try {
    mkdirSync(dirname(path), { recursive: true })
    const file = existsSync(path) ? realpathSync(path) : join(realpathSync(dirname(path)), basename(path))
    const network = networkFileSystem(statfsSync(dirname(file)).type)
    if (network === null) return file
    throw unavailable('open', `${network} does not hold locks between machines; set DATABASE_PATH to a local disk`)
  } catch (error) {
    throw storageError(error, 'open')
  }
}

/** Name of a network file system by its `statfs` magic number (statfs(2)), null for any other. */
export function networkFileSystem(magic: number): string | null {
  return (
    new Map([
      [0x6969, 'NFS'],
      [0x517b, 'SMB'],
      [0xff534d42, 'CIFS'],
      [0xfe534d42, 'SMB2'],
    ]).get(magic >>> 0) ?? null
  )
}

function openChecked(file: string, { migrations, now }: OpenOptions): Database.Database {
  const db = new Database(file, { timeout: BUSY_TIMEOUT_MS })
  try {
    checkSchema(db, migrations)
    configure(db)
    checkIntegrity(db)
    migrate(db, migrations, now())
    return db
  } catch (error) {
    db.close()
    throw error
  }
}

/** FULL comes after WAL: the build's default for WAL is NORMAL, which does not sync at commit. */
function configure(db: Database.Database): void {
  const mode = db.pragma('journal_mode = WAL', { simple: true })
  if (mode !== 'wal') throw unavailable('open', 'its disk does not offer write-ahead logging; use a local disk')
  db.pragma('synchronous = FULL')
  db.pragma('foreign_keys = ON')
  db.pragma(`journal_size_limit = ${LARGEST_IDLE_WAL_BYTES}`)
  // SQLite swallows the errors of its automatic checkpoint, a failed fsync too: ours is explicit.
  db.pragma('wal_autocheckpoint = 0')
}

function checkIntegrity(db: Database.Database): void {
  const found = db.pragma('quick_check(1)', { simple: true })
  if (found === 'ok') return
  throw unavailable('open', 'the file is damaged; restore it, or move it away and adopt the workloads anew', found)
}

/** Fails when the SQLite built into the driver is older than the one we trust. */
function requireSqlite(): void {
  const memory = new Database(':memory:')
  const version = String(memory.prepare('SELECT sqlite_version()').pluck().get())
  memory.close()
  if (isAtLeast(version, OLDEST_SQLITE)) return
  throw unavailable('open', `SQLite ${version} is older than ${OLDEST_SQLITE}; run npm ci`)
}

/** Dotted numbers, compared part by part. */
export function isAtLeast(version: string, oldest: string): boolean {
  const parts = version.split('.').map(Number)
  for (const [index, wanted] of oldest.split('.').map(Number).entries()) {
    const part = parts[index] ?? 0
    if (part !== wanted) return part > wanted
  }
  return true
}

function closeBoth(db: Database.Database, release: () => void): void {
  try {
    db.close()
  } finally {
    release()
  }
}
