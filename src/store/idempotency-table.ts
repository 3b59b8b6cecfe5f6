import { RuntimeError } from '../errors.ts'
import type { KeyClaim, KeyRecord } from '../service/ports.ts'
import type { Connection } from './connection.ts'

/** wire.md §3: a key answers for a day. */
export const KEY_LIFETIME_MS = 24 * 3600 * 1000

/** Idempotency keys by token. A key older than a day is as good as absent. */
export class IdempotencyTable {
  readonly #now: () => number
  readonly #statements: ReturnType<typeof prepare>

  constructor({ db }: Connection, now: () => number) {
    this.#now = now
    this.#statements = prepare(db)
  }

  find(token: string, key: string): KeyRecord | null {
    return this.#statements.find.get(token, key, this.#now() - KEY_LIFETIME_MS) ?? null
  }

  /**
   * Within a transaction, before the row is made. Throws IDEMPOTENCY_KEY_REUSED for a key of another body and
   * RUNTIME_EXISTS for a repeat of the same, which the caller answers with the row the key names.
   */
  requireFree({ token, key, hash }: KeyClaim): void {
    const taken = this.find(token, key)
    if (taken === null) return
    if (taken.hash === hash) throw new RuntimeError('RUNTIME_EXISTS', 'cannot create it again: the key has its runtime')
    const remedy = 'it was used with another body within 24 hours; use a new key'
    throw new RuntimeError('IDEMPOTENCY_KEY_REUSED', `cannot use this Idempotency-Key: ${remedy}`)
  }

  record({ token, key, hash }: KeyClaim, life: number): void {
    this.#statements.record.run(token, key, hash, life, this.#now())
  }

  free(token: string, key: string): void {
    this.#statements.free.run(token, key)
  }
}

const prepare = (db: Connection['db']) => ({
  find: db.prepare<[string, string, number], KeyRecord>(
    'SELECT life, hash FROM idempotency_keys WHERE token = ? AND key = ? AND created_at > ?',
  ),
  record: db.prepare<[string, string, string, number, number]>(
    'INSERT OR REPLACE INTO idempotency_keys (token, key, hash, life, created_at) VALUES (?, ?, ?, ?, ?)',
  ),
  free: db.prepare<[string, string]>('DELETE FROM idempotency_keys WHERE token = ? AND key = ?'),
})
