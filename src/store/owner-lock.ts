import { hostname } from 'node:os'
import Database from 'better-sqlite3'
import { isBusy, isFull, storageError, unavailable } from './storage-error.ts'

const BUSY_TIMEOUT_MS = 100

interface Owner {
  readonly pid: number
  readonly host: string
  readonly since: string
}

/**
 * Makes this process the only owner of the database at `path`; the returned function gives it up. The lock is a write
 * transaction held open on `<path>.lock`: the kernel drops it with the process, however that ends, so it is never stale.
 * Throws STORAGE_UNAVAILABLE that names the owner.
 */
export function takeOwnership(path: string, now: number): () => void {
  const lock = openLock(path)
  try {
    announceIfRoom(lock, { pid: process.pid, host: hostname(), since: new Date(now).toISOString() })
    // A reader may look at the announcement while this is held; a writer may not come in.
    lock.exec('BEGIN IMMEDIATE')
  } catch (error) {
    const failure = isBusy(error) ? heldBy(lock, path, error) : storageError(error, 'lock')
    lock.close()
    throw failure
  }
  return () => lock.close()
}

function openLock(path: string): Database.Database {
  try {
    return new Database(`${path}.lock`, { timeout: BUSY_TIMEOUT_MS })
  } catch (error) {
    throw storageError(error, 'lock')
  }
}

/** A full disk is no reason to refuse: reads go on there. */
function announceIfRoom(lock: Database.Database, owner: Owner): void {
  try {
    announce(lock, owner)
  } catch (error) {
    if (!isFull(error)) throw error
  }
}

function announce(lock: Database.Database, owner: Owner): void {
  lock
    .transaction(() => {
      lock.exec('CREATE TABLE IF NOT EXISTS owner (pid INTEGER, host TEXT, since TEXT); DELETE FROM owner')
      lock.prepare('INSERT INTO owner VALUES (@pid, @host, @since)').run(owner)
    })
    .immediate()
}

function heldBy(lock: Database.Database, path: string, cause: unknown): Error {
  const owner = readOwner(lock)
  const who = owner === null ? 'another process' : `process ${owner.pid} on ${owner.host}, since ${owner.since}`
  return unavailable('open', `${who}, holds ${path}; stop it first, or set another DATABASE_PATH`, cause)
}

function readOwner(lock: Database.Database): Owner | null {
  try {
    const owner = lock.prepare<[], Owner>('SELECT pid, host, since FROM owner').get() ?? null
    // An owner that found the disk full could not announce itself: the name is then of one long gone.
    return owner === null || hasEnded(owner) ? null : owner
  } catch {
    // The owner is just announcing itself; the refusal stands without its name.
    return null
  }
}

function hasEnded({ pid, host }: Owner): boolean {
  if (host !== hostname()) return false
  try {
    process.kill(pid, 0)
    return false
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ESRCH'
  }
}
