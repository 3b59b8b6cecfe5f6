import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type Database from 'better-sqlite3'
import { storageError, unavailable } from './storage-error.ts'

/** Forward only; never edited once released. */
export interface Migration {
  readonly version: number
  readonly name: string
  readonly sql: string
}

export const MIGRATIONS_FOLDER = join(import.meta.dirname, '../../migrations')

const FILE_NAME = /^(\d{4})-[a-z0-9-]+\.sql$/

/** The migrations of a folder of `0001-what-it-does.sql` files, numbered from 1 without a gap. */
export function readMigrations(folder: string): Migration[] {
  const names = readdirSync(folder).filter(name => name.endsWith('.sql'))
  return names.sort().map((name, index) => {
    const version = Number(FILE_NAME.exec(name)?.[1])
    if (version !== index + 1) throw new Error(`migration ${name} must be numbered ${index + 1}, as 0001-some-name.sql`)
    return { version, name, sql: readFileSync(join(folder, name), 'utf8') }
  })
}

export const schemaVersion = (db: Database.Database): number => Number(db.pragma('user_version', { simple: true }))

/**
 * Refuses a database that this program must not touch: newer than it, made by another program, or migrated by a file
 * that was edited since. Throws STORAGE_UNAVAILABLE; reads only.
 */
export function checkSchema(db: Database.Database, migrations: readonly Migration[]): void {
  const version = schemaVersion(db)
  if (version > migrations.length) {
    const remedy = `it has schema version ${version} and this program knows only ${migrations.length}; run the newer program`
    throw unavailable('open', remedy)
  }
  if (version === 0) {
    refuseForeign(db)
    return
  }
  for (const { version: applied, name, checksum } of appliedMigrations(db)) {
    const known = migrations[applied - 1]
    if (known !== undefined && checksumOf(known) === checksum) continue
    const remedy = `migration ${name} was edited after it was applied; put the released file back and add a new migration`
    throw unavailable('open', remedy)
  }
}

/** Applies what is missing, each migration all or nothing. Throws STORAGE_UNAVAILABLE. */
export function migrate(db: Database.Database, migrations: readonly Migration[], now: number): void {
  for (const migration of migrations.slice(schemaVersion(db))) {
    try {
      db.transaction(() => apply(db, migration, now)).immediate()
    } catch (error) {
      throw storageError(error, 'migrate')
    }
  }
}

function apply(db: Database.Database, migration: Migration, now: number): void {
  db.exec(`CREATE TABLE IF NOT EXISTS schema_migrations
    (version INTEGER PRIMARY KEY, name TEXT NOT NULL, checksum TEXT NOT NULL, applied_at INTEGER NOT NULL) STRICT`)
  db.exec(migration.sql)
  if (!db.inTransaction) throw new Error(`migration ${migration.name} ends its transaction; take COMMIT out of it`)
  db.prepare('INSERT INTO schema_migrations VALUES (?, ?, ?, ?)').run(
    migration.version,
    migration.name,
    checksumOf(migration),
    now,
  )
  db.pragma(`user_version = ${migration.version}`)
}

interface Applied {
  readonly version: number
  readonly name: string
  readonly checksum: string
}

const appliedMigrations = (db: Database.Database): Applied[] =>
  db.prepare<[], Applied>('SELECT version, name, checksum FROM schema_migrations ORDER BY version').all()

const checksumOf = (migration: Migration): string => createHash('sha256').update(migration.sql).digest('hex')

function refuseForeign(db: Database.Database): void {
  const first = db.prepare<[], { name: string }>('SELECT name FROM sqlite_master LIMIT 1').get()
  if (first !== undefined) throw unavailable('open', 'the file was made by another program; set another DATABASE_PATH')
}
