import type Database from 'better-sqlite3'
import type { RuntimeError } from '../errors.ts'
import { isBusy, isFatal, isFull, storageError, unavailable } from './storage-error.ts'

/** How long another process's write lock may block our event loop. */
export const BUSY_TIMEOUT_MS = 150
/** Frames of the WAL that are not in the file yet before they are folded in: about 4 MiB. */
const CHECKPOINT_FRAMES = 1000

export interface Refusal {
  readonly at: number
  readonly reason: string
}

/**
 * The one connection: every read and write of the tables goes through it, so that all trouble with the file has one
 * shape, and a failed fsync ends all writing at once.
 */
export class Connection {
  readonly db: Database.Database
  readonly #onFatal: (error: RuntimeError) => void
  #fatal: RuntimeError | null = null
  #closed = false
  #checkpointDue = false
  #patient = true
  #refusal: Refusal | null = null

  constructor(db: Database.Database, onFatal: (error: RuntimeError) => void) {
    this.db = db
    this.#onFatal = onFatal
  }

  /** Throws STORAGE_UNAVAILABLE. */
  read<T>(work: () => T): T {
    if (this.#closed) throw unavailable('read', 'it is closed; the daemon shuts down')
    try {
      return work()
    } catch (error) {
      throw storageError(error, 'read')
    }
  }

  /**
   * Runs `work` as one transaction, durable on return. Throws STORAGE_UNAVAILABLE, or what `work` threw as RuntimeError.
   * `probe`: it changes nothing that counts, and is so small that it may succeed where nothing else does.
   */
  write<T>(work: () => T, what: 'change' | 'probe' = 'change'): T {
    if (this.#fatal !== null) throw this.#fatal
    if (this.#closed) throw unavailable('write', 'it is closed; the daemon shuts down')
    try {
      const result = this.db.transaction(work).immediate()
      if (what === 'change') this.#refusal = null
      this.#bePatient(true)
      this.#planCheckpoint()
      return result
    } catch (error) {
      throw this.#failed(error, 'write')
    }
  }

  /** Why the last change could not be written, and when (ms of performance.now); null once one was. */
  get refusal(): Refusal | null {
    return this.#refusal
  }

  close(): void {
    this.#closed = true
  }

  #failed(error: unknown, doing: string): RuntimeError {
    if (isBusy(error)) this.#bePatient(false)
    const failure = storageError(error, doing)
    if (isFull(error)) this.#refusal = { at: performance.now(), reason: failure.message }
    if (!isFatal(error)) return failure
    this.#fatal ??= failure
    this.#onFatal(failure)
    return failure
  }

  /** While somebody else holds the write lock only the first of our writes waits for it; the others fail at once. */
  #bePatient(patient: boolean): void {
    if (patient === this.#patient) return
    this.#patient = patient
    this.db.pragma(`busy_timeout = ${patient ? BUSY_TIMEOUT_MS : 0}`)
  }

  #planCheckpoint(): void {
    if (this.#checkpointDue) return
    this.#checkpointDue = true
    setImmediate(() => this.#checkpoint()).unref()
  }

  /** After the replies have gone out. Trouble other than a failed fsync loses nothing: the WAL keeps what is not folded in. */
  #checkpoint(): void {
    this.#checkpointDue = false
    if (this.#closed || this.#fatal !== null) return
    try {
      if (this.#pendingFrames() >= CHECKPOINT_FRAMES) this.db.pragma('wal_checkpoint(PASSIVE)')
    } catch (error) {
      this.#failed(error, 'write')
    }
  }

  #pendingFrames(): number {
    const [state] = this.db.pragma('wal_checkpoint(NOOP)') as Array<{ log: number; checkpointed: number }>
    return state === undefined ? 0 : state.log - state.checkpointed
  }
}
