import { RuntimeError } from '../errors.ts'
import type { Change, Committed } from '../service/ports.ts'
import type { Connection } from './connection.ts'
import { isFileTrouble, storageError } from './storage-error.ts'

/** Bounds how long one transaction may hold the event loop. */
const MAX_BATCH = 200

interface Queued {
  readonly change: Change
  readonly resolve: (committed: Committed) => void
  readonly reject: (error: unknown) => void
}

type Outcome = { readonly committed: Committed } | { readonly error: unknown }

/**
 * Group commit: the changes queued in one turn of the event loop share a transaction and its fsync. Each has a
 * savepoint, so one that breaks a rule is rejected alone; trouble with the file rejects all of them.
 */
export class Committer {
  readonly #connection: Connection
  readonly #apply: (change: Change) => Committed
  #queue: Queued[] = []
  #scheduled = false
  #lastCommitMs = 0

  constructor(connection: Connection, apply: (change: Change) => Committed) {
    this.#connection = connection
    this.#apply = apply
  }

  /** Resolves when the change is on disk. Throws STORAGE_UNAVAILABLE, or the RuntimeError of the rule it breaks. */
  commit(change: Change): Promise<Committed> {
    return new Promise((resolve, reject) => {
      this.#queue.push({ change, resolve, reject })
      this.#schedule()
    })
  }

  /** Writes what is queued, now. */
  drain(): void {
    while (this.#queue.length > 0) this.#flush()
  }

  get lastCommitMs(): number {
    return this.#lastCommitMs
  }

  #schedule(): void {
    if (this.#scheduled) return
    this.#scheduled = true
    setImmediate(() => {
      this.#scheduled = false
      this.#flush()
      if (this.#queue.length > 0) this.#schedule()
    })
  }

  #flush(): void {
    const batch = this.#queue.splice(0, MAX_BATCH)
    if (batch.length === 0) return
    const began = performance.now()
    try {
      const outcomes = this.#connection.write(() => batch.map(({ change }) => this.#attempt(change)))
      this.#lastCommitMs = performance.now() - began
      settle(batch, outcomes)
    } catch (error) {
      for (const { reject } of batch) reject(error)
    }
  }

  /** Within the shared transaction; better-sqlite3 makes a nested transaction a savepoint. */
  #attempt(change: Change): Outcome {
    const { db } = this.#connection
    try {
      return { committed: db.transaction(this.#apply)(change) }
    } catch (error) {
      if (!db.inTransaction || isFileTrouble(error)) throw storageError(error, 'write')
      return { error: ruleBroken(error) }
    }
  }
}

function settle(batch: readonly Queued[], outcomes: readonly Outcome[]): void {
  for (const [index, outcome] of outcomes.entries()) {
    const queued = batch[index]
    if ('committed' in outcome) queued?.resolve(outcome.committed)
    else queued?.reject(outcome.error)
  }
}

const ruleBroken = (error: unknown): RuntimeError =>
  error instanceof RuntimeError
    ? error
    : new RuntimeError('INTERNAL_ERROR', 'cannot record the change: it breaks a rule of the store; see the log', {
        cause: error,
      })
