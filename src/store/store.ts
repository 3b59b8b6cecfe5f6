import { statSync } from 'node:fs'
import type { RuntimeError } from '../errors.ts'
import type { Change, Committed, Store } from '../service/ports.ts'
import { Committer } from './committer.ts'
import { Connection } from './connection.ts'
import { openDatabase } from './database.ts'
import { EventTable } from './event-table.ts'
import { IdempotencyTable } from './idempotency-table.ts'
import { type Configured, Maintenance } from './maintenance.ts'
import { MIGRATIONS_FOLDER, type Migration, readMigrations } from './migrations.ts'
import { RuntimeTable } from './runtime-table.ts'
import { TailTable } from './tail-table.ts'

export interface StoreOptions {
  /** ms since the epoch; default: the machine's. */
  readonly now?: () => number
  /**
   * A sync of the disk failed: nothing is written any more, reads go on, and the process must end with an error within a
   * second. Called once. Default: thrown as an uncaught exception.
   */
  readonly onFatal?: (error: RuntimeError) => void
  /** What may be pruned; default: everything. */
  readonly configured?: Configured
  readonly migrations?: readonly Migration[]
}

export interface StoreMetrics {
  readonly databaseBytes: number
  readonly walBytes: number
  /** Duration of the newest group commit. */
  readonly lastCommitMs: number
}

export interface SqliteStore extends Store {
  metrics(): StoreMetrics
}

/**
 * Opens the store at `path`, for this process alone. Throws STORAGE_UNAVAILABLE with a message for the operator.
 * `close` writes what is queued first.
 */
export function createStore(path: string, options: StoreOptions = {}): SqliteStore {
  const now = options.now ?? Date.now
  const opened = openDatabase(path, { migrations: options.migrations ?? readMigrations(MIGRATIONS_FOLDER), now })
  const connection = new Connection(opened.db, options.onFatal ?? throwUncaught)
  const tables = {
    runtimes: new RuntimeTable(connection),
    events: new EventTable(connection, now),
    keys: new IdempotencyTable(connection, now),
  }
  const committer = new Committer(connection, change => applyChange(tables, change))
  const tails = new TailTable(connection)
  const maintenance = new Maintenance(connection, options.configured ?? { runtimes: '*', namespaces: '*' })
  const { runtimes, events, keys } = tables
  return {
    epoch: events.epoch,
    commit: change => committer.commit(change),
    newest: id => runtimes.newest(id),
    byNonce: nonce => runtimes.byNonce(nonce),
    byLife: life => runtimes.byLife(life),
    list: query => runtimes.list(query),
    alive: onBroken => runtimes.alive(onBroken),
    monitored: () => runtimes.monitored(),
    countByState: () => runtimes.countByState(),
    key: (token, key) => connection.read(() => keys.find(token, key)),
    bounds: () => events.bounds(),
    read: query => events.read(query),
    newestOf: (runtimeId, limit) => events.newestOf(runtimeId, limit),
    keepTail: (life, run, bytes) => tails.keepTail(life, run, bytes),
    tail: life => tails.tail(life),
    prune(limits) {
      const pruned = maintenance.prune(limits)
      if (pruned.rows > 0) runtimes.forget()
      if (pruned.events > 0) events.forget()
      return pruned
    },
    writable: () => maintenance.writable(),
    metrics: () => ({ ...fileSizes(opened.path), lastCommitMs: committer.lastCommitMs }),
    close() {
      committer.drain()
      connection.close()
      opened.close()
    },
  }
}

interface Tables {
  readonly runtimes: RuntimeTable
  readonly events: EventTable
  readonly keys: IdempotencyTable
}

/** Within a transaction; whatever it throws undoes all of the change. */
function applyChange({ runtimes, events, keys }: Tables, change: Change): Committed {
  for (const life of change.withdraw ?? []) runtimes.withdraw(life)
  if (change.freeKey !== undefined) keys.free(change.freeKey.token, change.freeKey.key)
  if (change.key !== undefined) keys.requireFree(change.key)
  const stored = change.rows.map(row => {
    const life = runtimes.put(row.life)
    return { life, events: row.events.map(event => events.append(life, event)) }
  })
  const lives = stored.map(({ life }) => life)
  const claimed = lives.at(-1)
  if (change.key !== undefined && claimed !== undefined) keys.record(change.key, claimed.life)
  return { lives, events: stored.flatMap(row => row.events) }
}

const fileSizes = (path: string) => ({ databaseBytes: sizeOf(path), walBytes: sizeOf(`${path}-wal`) })

const sizeOf = (path: string): number => statSync(path, { throwIfNoEntry: false })?.size ?? 0

function throwUncaught(error: RuntimeError): void {
  queueMicrotask(() => {
    throw error
  })
}
