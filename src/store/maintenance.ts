import { isRuntimeError } from '../errors.ts'
import type { Connection } from './connection.ts'
import { KEY_LIFETIME_MS } from './idempotency-table.ts'

/** One call takes away at most this much, so that it holds the event loop for some milliseconds only. */
const EVENTS_A_CALL = 500
const ROWS_A_CALL = 100
const KEYS_A_CALL = 500
/** How long a change that found the disk full speaks for those to come. */
const REFUSAL_COUNTS_MS = 10_000

export interface Retention {
  /** ms since the epoch. */
  readonly now: number
  readonly retentionSeconds: number
  readonly retentionCount: number
}

/** Rows of what is configured may be pruned; those of a runtime or namespace that is not, rest (lifecycle.md §9). */
export interface Configured {
  readonly runtimes: readonly string[] | '*'
  readonly namespaces: readonly string[] | '*'
}

/** What keeps the file small and says whether it can be written. */
export class Maintenance {
  readonly #connection: Connection
  readonly #configured: { runtimes: string | null; namespaces: string | null }
  readonly #statements: ReturnType<typeof prepare>

  constructor(connection: Connection, { runtimes, namespaces }: Configured) {
    this.#connection = connection
    this.#configured = { runtimes: toJson(runtimes), namespaces: toJson(namespaces) }
    this.#statements = prepare(connection.db)
  }

  /**
   * One bounded step; to be repeated while it returns anything. Events go from the old end alone, so no gap arises
   * within what is kept. A row goes when it has been settled for the retention and no idempotency key names it.
   */
  prune({ now, retentionSeconds, retentionCount }: Retention): { events: number; rows: number } {
    const before = now - retentionSeconds * 1000
    return this.#connection.write(() => {
      this.#statements.dropKeys.run(now - KEY_LIFETIME_MS, KEYS_A_CALL)
      const events = this.#pruneEvents(before, retentionCount)
      const rows = this.#statements.dropRows.run({ ...this.#configured, before, limit: ROWS_A_CALL }).changes
      return { events, rows }
    })
  }

  /**
   * A real write, synced to the disk; the caller limits its rate. On a full disk it may still fit where a row does not,
   * so it does not outweigh a change that was refused lately.
   */
  writable(): { ok: boolean; reason: string | null } {
    const { refusal } = this.#connection
    if (refusal !== null && performance.now() - refusal.at < REFUSAL_COUNTS_MS) {
      return { ok: false, reason: refusal.reason }
    }
    try {
      this.#connection.write(() => this.#statements.probe.run(), 'probe')
      return { ok: true, reason: null }
    } catch (error) {
      if (isRuntimeError(error, 'STORAGE_UNAVAILABLE')) return { ok: false, reason: error.message }
      throw error
    }
  }

  #pruneEvents(before: number, retentionCount: number): number {
    const oldest = this.#statements.oldest.all(EVENTS_A_CALL)
    const newest = this.#statements.newest.get()?.seq ?? 0
    // No number is left out between the oldest kept and the newest: seq tells how many there are.
    const firstByCount = newest - retentionCount + 1
    const keepFrom = oldest.findIndex(event => event.seq >= firstByCount && event.recorded_at >= before)
    const last = oldest[(keepFrom === -1 ? oldest.length : keepFrom) - 1]
    if (last === undefined) return 0
    this.#statements.setPrunedTo.run(last.seq)
    return this.#statements.dropEvents.run(last.seq).changes
  }
}

const toJson = (list: readonly string[] | '*'): string | null => (list === '*' ? null : JSON.stringify(list))

const prepare = (db: Connection['db']) => ({
  oldest: db.prepare<[number], { seq: number; recorded_at: number }>(
    'SELECT seq, recorded_at FROM events ORDER BY seq LIMIT ?',
  ),
  newest: db.prepare<[], { seq: number }>('SELECT max(seq) AS seq FROM events'),
  dropEvents: db.prepare<[number]>('DELETE FROM events WHERE seq <= ?'),
  setPrunedTo: db.prepare<[number]>('UPDATE meta SET pruned_to = ?'),
  dropKeys: db.prepare<[number, number]>(
    `DELETE FROM idempotency_keys WHERE (token, key) IN
       (SELECT token, key FROM idempotency_keys WHERE created_at <= ? ORDER BY created_at LIMIT ?)`,
  ),
  dropRows: db.prepare<[{ before: number; limit: number; runtimes: string | null; namespaces: string | null }]>(
    `DELETE FROM lives WHERE life IN (
       SELECT life FROM lives AS l WHERE settled_at IS NOT NULL AND settled_at <= @before
         AND NOT EXISTS (SELECT 1 FROM idempotency_keys WHERE life = l.life)
         AND (@runtimes IS NULL OR runtime IN (SELECT value FROM json_each(@runtimes)))
         AND (@namespaces IS NULL OR namespace IN (SELECT value FROM json_each(@namespaces)))
       ORDER BY settled_at, life LIMIT @limit)`,
  ),
  probe: db.prepare<[]>('UPDATE meta SET last_probe = last_probe + 1'),
})
