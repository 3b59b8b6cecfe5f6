import type { Life } from '../domain/life.ts'
import { formatRuntimeId } from '../domain/runtime-id.ts'
import { RuntimeError } from '../errors.ts'
import type { ListQuery } from '../service/ports.ts'
import type { Connection } from './connection.ts'
import { fromRow, type LifeRow, toColumns } from './life-row.ts'
import { Recent } from './recent.ts'

const CHUNK = 500
/** One page of a list looks at no more than this, so that a narrow filter over many rows does not hold the event loop. */
const MAX_SCANNED = 30_000
const MAX_PARSED = 3_000
/** Rows kept as they were parsed, of 2 KB or so each. They are this process's alone to write, so none grows old here. */
const KEPT = 4_000

type Columns = ReturnType<typeof toColumns>

/** Rows of runtimes, one a life. Reads throw STORAGE_UNAVAILABLE. */
export class RuntimeTable {
  readonly #connection: Connection
  readonly #statements: ReturnType<typeof prepare>
  readonly #recent = new Recent<Life>(KEPT)

  constructor(connection: Connection) {
    this.#connection = connection
    this.#statements = prepare(connection.db)
  }

  /** Within a transaction: inserts (`life` 0) or updates. Throws RUNTIME_EXISTS when its ID has a row that is not deleted. */
  put(life: Life): Life {
    this.#recent.forget(formatRuntimeId(life.id))
    if (life.life === 0) return this.#insert(life)
    const { changes } = this.#statements.update.run(toColumns(life))
    if (changes === 1) return life
    throw new RuntimeError('INTERNAL_ERROR', `cannot update row ${life.life}: it is not there; look for its withdrawal`)
  }

  /** Within a transaction: takes the row away, with its key and tail. */
  withdraw(life: number): void {
    this.#recent.clear()
    this.#statements.withdraw.run(life)
  }

  newest(id: string): Life | null {
    return this.#connection.read(() => {
      const known = this.#recent.get(id)
      if (known !== undefined) return known
      const row = this.#statements.newest.get(id)
      if (row === undefined) return null
      const life = fromRow(row)
      this.#recent.keep(id, life)
      return life
    })
  }

  /** Rows were taken away past this table. */
  forget(): void {
    this.#recent.clear()
  }

  /** Of any state; the newest, should two lives carry it. */
  byNonce(nonce: string): Life | null {
    return this.#one(() => this.#statements.byNonce.get(nonce))
  }

  byLife(life: number): Life | null {
    return this.#one(() => this.#statements.byLife.get(life))
  }

  /**
   * One page in the order of ID bytes. It may hold fewer than `limit` rows, none even, and still have a `next`, when the
   * filters leave out most of what is there. A row that cannot be read is left out.
   */
  list(query: ListQuery): { lives: Life[]; next: string | null } {
    return this.#connection.read(() => this.#page(query))
  }

  /** In steps, so that commits may go on between two rows; a row made meanwhile may or may not be seen. */
  *alive(onBroken: (id: string, error: unknown) => void): Generator<Life> {
    let after = 0
    while (true) {
      const rows = this.#connection.read(() => this.#statements.alive.all(after, CHUNK))
      for (const row of rows) {
        const life = readable(row, onBroken)
        if (life !== null) yield life
        after = row.life
      }
      if (rows.length < CHUNK) return
    }
  }

  monitored(): string[] {
    return this.#connection.read(() => this.#statements.monitored.all())
  }

  countByState(): ReadonlyMap<string, number> {
    return new Map(this.#connection.read(() => this.#statements.countByState.all()).map(row => [row.state, row.count]))
  }

  #insert(life: Life): Life {
    const columns = toColumns(life)
    if (life.state !== 'deleted' && this.#statements.occupied.get(columns.runtime_id) !== undefined) {
      const remedy = 'delete it first, or choose another name'
      const message = `cannot create ${columns.runtime_id}: it exists; ${remedy}`
      throw new RuntimeError('RUNTIME_EXISTS', message, { runtimeId: columns.runtime_id })
    }
    const { lastInsertRowid } = this.#statements.insert.run(columns)
    return { ...life, life: Number(lastInsertRowid) }
  }

  #one(find: () => LifeRow | undefined): Life | null {
    return this.#connection.read(() => {
      const row = find()
      return row === undefined ? null : fromRow(row)
    })
  }

  #page(query: ListQuery): { lives: Life[]; next: string | null } {
    const lives: Life[] = []
    let after = query.after ?? ''
    // One more than asked for tells whether there is a next page; a filter may need to look at many more.
    const chunk = Math.min(CHUNK, query.limit + 1)
    for (let scanned = 0, parsed = 0; scanned < MAX_SCANNED && parsed < MAX_PARSED; scanned += CHUNK) {
      const { rows, last } = this.#scan(query, { after, chunk: scanned === 0 ? chunk : CHUNK })
      for (const [index, row] of rows.entries()) {
        const life = readable(row, () => {})
        if (life !== null && (query.accept?.(life) ?? true)) lives.push(life)
        if (lives.length < query.limit) continue
        const more = last !== null || index < rows.length - 1
        return { lives, next: more ? row.runtime_id : null }
      }
      if (last === null) return { lives, next: null }
      parsed += rows.length
      after = last
    }
    return { lives, next: after }
  }

  /** The matching ones of the next rows; `last` is the ID of the last one looked at, null at the end of the table. */
  #scan(
    query: ListQuery,
    { after, chunk }: { after: string; chunk: number },
  ): { rows: LifeRow[]; last: string | null } {
    const deletedToo = query.states?.includes('deleted') ?? false
    const { scanAll, scanAlive, endOfAll, endOfAlive } = this.#statements
    const filters = {
      after,
      chunk,
      runtime: query.runtime ?? null,
      kind: query.kind ?? null,
      namespaces: query.namespaces === '*' ? null : JSON.stringify(query.namespaces),
      states: query.states === undefined ? null : JSON.stringify(query.states),
    }
    const rows = (deletedToo ? scanAll : scanAlive).all(filters)
    const end = (deletedToo ? endOfAll : endOfAlive).get(after, chunk - 1)
    return { rows, last: end?.runtime_id ?? null }
  }
}

function readable(row: LifeRow, onBroken: (id: string, error: unknown) => void): Life | null {
  try {
    return fromRow(row)
  } catch (error) {
    onBroken(row.runtime_id, error)
    return null
  }
}

const COLUMNS = [
  'runtime_id',
  'runtime',
  'namespace',
  'kind',
  'name',
  'uid',
  'nonce',
  'state',
  'monitored',
  'settled_at',
  'row',
]

const ALIVE = `FROM lives WHERE runtime_id > ? AND state <> 'deleted'`
const NEWEST_OF_EACH = `FROM lives AS l WHERE runtime_id > ?
  AND life = (SELECT max(life) FROM lives WHERE runtime_id = l.runtime_id)`

const matching = (from: string): string => `
  SELECT life, runtime_id, row FROM (SELECT * ${from.replace('?', '@after')} ORDER BY runtime_id LIMIT @chunk)
  WHERE (@runtime IS NULL OR runtime = @runtime)
    AND (@kind IS NULL OR kind = @kind)
    AND (@namespaces IS NULL OR namespace IN (SELECT value FROM json_each(@namespaces)))
    AND (@states IS NULL OR state IN (SELECT value FROM json_each(@states)))
  ORDER BY runtime_id`

const lastOf = (from: string): string => `SELECT runtime_id ${from} ORDER BY runtime_id LIMIT 1 OFFSET ?`

type Filters = Record<'after' | 'runtime' | 'kind' | 'namespaces' | 'states', string | null> & { chunk: number }

const prepare = (db: Connection['db']) => ({
  insert: db.prepare<[Columns]>(
    `INSERT INTO lives (${COLUMNS.join(', ')}) VALUES (${COLUMNS.map(name => `@${name}`).join(', ')})`,
  ),
  update: db.prepare<[Columns]>(
    `UPDATE lives SET ${COLUMNS.map(name => `${name} = @${name}`).join(', ')} WHERE life = @life`,
  ),
  withdraw: db.prepare<[number]>('DELETE FROM lives WHERE life = ?'),
  occupied: db.prepare<[string], { life: number }>(
    `SELECT life FROM lives WHERE runtime_id = ? AND state <> 'deleted'`,
  ),
  newest: db.prepare<[string], LifeRow>(
    'SELECT life, runtime_id, row FROM lives WHERE runtime_id = ? ORDER BY life DESC LIMIT 1',
  ),
  byNonce: db.prepare<[string], LifeRow>(
    'SELECT life, runtime_id, row FROM lives WHERE nonce = ? ORDER BY life DESC LIMIT 1',
  ),
  byLife: db.prepare<[number], LifeRow>('SELECT life, runtime_id, row FROM lives WHERE life = ?'),
  alive: db.prepare<[number, number], LifeRow>(
    `SELECT life, runtime_id, row FROM lives WHERE life > ? AND state <> 'deleted' ORDER BY life LIMIT ?`,
  ),
  monitored: db.prepare<[], string>('SELECT runtime_id FROM lives WHERE monitored = 1 ORDER BY runtime_id').pluck(),
  countByState: db.prepare<[], { state: string; count: number }>(
    `SELECT state, count(*) AS count FROM lives WHERE state <> 'deleted' GROUP BY state`,
  ),
  scanAlive: db.prepare<[Filters], LifeRow>(matching(ALIVE)),
  scanAll: db.prepare<[Filters], LifeRow>(matching(NEWEST_OF_EACH)),
  endOfAlive: db.prepare<[string, number], { runtime_id: string }>(lastOf(ALIVE)),
  endOfAll: db.prepare<[string, number], { runtime_id: string }>(lastOf(NEWEST_OF_EACH)),
})
