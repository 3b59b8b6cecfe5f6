import type { Connection } from './connection.ts'

/** design.md §11.10. */
export const MAX_TAIL_BYTES = 64 * 1024

/** The end of the log of a life's newest ended run. */
export class TailTable {
  readonly #connection: Connection
  readonly #statements: ReturnType<typeof prepare>

  constructor(connection: Connection) {
    this.#connection = connection
    this.#statements = prepare(connection.db)
  }

  /** Keeps the last 64 KiB; nothing for a row that is gone, or that has the tail of a newer run. Throws STORAGE_UNAVAILABLE. */
  keepTail(life: number, run: number, bytes: Buffer): void {
    const kept = bytes.subarray(Math.max(0, bytes.length - MAX_TAIL_BYTES))
    this.#connection.write(() => this.#statements.keep.run({ life, run, bytes: kept }))
  }

  tail(life: number): Buffer | null {
    return this.#connection.read(() => this.#statements.find.get(life)?.bytes ?? null)
  }
}

const prepare = (db: Connection['db']) => ({
  keep: db.prepare<[{ life: number; run: number; bytes: Buffer }]>(
    `INSERT INTO tails (life, run, bytes) SELECT @life, @run, @bytes FROM lives WHERE life = @life
     ON CONFLICT (life) DO UPDATE SET run = excluded.run, bytes = excluded.bytes WHERE excluded.run >= tails.run`,
  ),
  find: db.prepare<[number], { bytes: Buffer }>('SELECT bytes FROM tails WHERE life = ?'),
})
