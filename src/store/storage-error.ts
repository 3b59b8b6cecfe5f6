import Database from 'better-sqlite3'
import { isRuntimeError, RuntimeError } from '../errors.ts'

/** SQLite's primary result code → what a person should look at. Fixed texts: they go out with a 503. */
const REMEDIES: Readonly<Record<string, string>> = {
  FULL: 'the disk is full; free space in the folder of DATABASE_PATH',
  READONLY: 'the file or its folder is read-only; check the mount and the permissions of DATABASE_PATH',
  PERM: 'the file or its folder is not accessible; check the permissions of DATABASE_PATH',
  CANTOPEN: 'the file cannot be opened; check that the folder of DATABASE_PATH exists and is writable',
  BUSY: 'another process holds its write lock; end that process, then repeat the call',
  LOCKED: 'another process holds its write lock; end that process, then repeat the call',
  IOERR: 'reading or writing the file failed; check the disk and the kernel log',
  CORRUPT: 'the file is damaged; restore it, or move it away and adopt the workloads anew',
  NOTADB: 'the file is no SQLite database; check DATABASE_PATH',
}
const UNKNOWN_REMEDY = 'the file cannot be used; check the disk, its free space and the log'

const RETRY_AFTER_SECONDS = 1

/** STORAGE_UNAVAILABLE with a text of ours; the cause is kept for the log. A RuntimeError passes unchanged. */
export function storageError(error: unknown, doing: string): RuntimeError {
  if (isRuntimeError(error)) return error
  return unavailable(doing, REMEDIES[primaryCode(error)] ?? UNKNOWN_REMEDY, error)
}

/** `cannot <doing> the database: <remedy>`. */
export const unavailable = (doing: string, remedy: string, cause?: unknown): RuntimeError =>
  new RuntimeError('STORAGE_UNAVAILABLE', `cannot ${doing} the database: ${remedy}`, {
    cause,
    retryAfterSeconds: RETRY_AFTER_SECONDS,
  })

/** A broken rule of the schema (unique index, trigger, foreign key), as opposed to trouble with the file. */
export const isConstraint = (error: unknown): boolean => primaryCode(error) === 'CONSTRAINT'

/** Another connection holds the lock that was asked for. */
export const isBusy = (error: unknown): boolean => primaryCode(error) === 'BUSY'

/** The disk, or a limit set on the file, has no room. */
export const isFull = (error: unknown): boolean => primaryCode(error) === 'FULL'

/** Trouble with the file: the whole transaction is lost, not one change alone. */
export const isFileTrouble = (error: unknown): boolean => error instanceof Database.SqliteError && !isConstraint(error)

/**
 * A failed fsync cannot be retried: the kernel has dropped the dirty pages and the next fsync succeeds over a hole
 * (https://www.sqlite.org/atomiccommit.html, and the PostgreSQL "fsyncgate" reports). Only a new process, which reads
 * the file anew, may go on.
 */
export const isFatal = (error: unknown): boolean =>
  error instanceof Database.SqliteError &&
  (error.code === 'SQLITE_IOERR_FSYNC' || error.code === 'SQLITE_IOERR_DIR_FSYNC')

const primaryCode = (error: unknown): string =>
  error instanceof Database.SqliteError ? (error.code.split('_')[1] ?? '') : ''
