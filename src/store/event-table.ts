import type { EventType, NewEvent, RuntimeEvent } from '../domain/event.ts'
import type { Life } from '../domain/life.ts'
import { formatRuntimeId } from '../domain/runtime-id.ts'
import type { EventQuery } from '../service/ports.ts'
import type { Connection } from './connection.ts'
import { Recent } from './recent.ts'
import { unavailable } from './storage-error.ts'

/** Runtimes whose newest events are kept as they were read. */
const KEPT = 2_000

interface EventRow {
  readonly seq: number
  readonly life: number
  readonly runtime_id: string
  readonly namespace: string
  readonly type: EventType
  readonly run: number
  readonly cause: string | null
  readonly reason: string | null
  readonly message: string | null
  readonly exit_code: number | null
  readonly time: number
  readonly uid: string | null
  readonly labels: string
}

interface Bounds {
  readonly oldest: number | null
  readonly newest: number | null
  readonly pruned_to: number
}

/** The event feed: appended in order of seq, never changed, pruned from its old end alone. */
export class EventTable {
  /** Made with the database; tells a cursor of a lost database from one of this. */
  readonly epoch: string
  readonly #connection: Connection
  readonly #now: () => number
  readonly #statements: ReturnType<typeof prepare>
  readonly #recent = new Recent<{ readonly limit: number; readonly events: readonly RuntimeEvent[] }>(KEPT)

  constructor(connection: Connection, now: () => number) {
    this.#connection = connection
    this.#now = now
    this.#statements = prepare(connection.db)
    this.epoch = connection.read(() => String(connection.db.prepare('SELECT epoch FROM meta').pluck().get()))
  }

  /**
   * Within a transaction. The schema refuses a second start or ending of a run, a second Warning of a cause and anything
   * after the Deleted of a life. Throws STORAGE_UNAVAILABLE when no exact number is left for `seq`.
   */
  append(life: Life, event: NewEvent): RuntimeEvent {
    const labels = life.labels
    const stored = { ...pick(event), life: life.life, runtimeId: formatRuntimeId(life.id), uid: life.uid }
    this.#recent.forget(stored.runtimeId)
    const { lastInsertRowid } = this.#statements.append.run({
      ...stored,
      namespace: life.id.namespace,
      labels: JSON.stringify(labels),
      recordedAt: this.#now(),
    })
    if (lastInsertRowid > Number.MAX_SAFE_INTEGER) throw unavailable('write', 'its event numbers are used up')
    return { ...stored, seq: Number(lastInsertRowid), namespace: life.id.namespace, labels }
  }

  /** `oldest` is null when none is kept; `newest` is the newest ever, kept or not, null when there never was one. */
  bounds(): { oldest: number | null; newest: number | null; pruned: boolean } {
    return this.#connection.read(() => {
      const { oldest, newest, pruned_to } = this.#statements.bounds.get() as Bounds
      return { oldest, newest, pruned: pruned_to > 0 }
    })
  }

  read({ after, limit, runtimeIds }: EventQuery): RuntimeEvent[] {
    const { page, pageOf, pageOfSome } = this.#statements
    return this.#connection.read(() => {
      if (runtimeIds === undefined) return page.all(after, limit).map(fromRow)
      const [only] = runtimeIds
      if (runtimeIds.length === 1 && only !== undefined) return pageOf.all(only, after, limit).map(fromRow)
      return pageOfSome.all(JSON.stringify(runtimeIds), after, limit).map(fromRow)
    })
  }

  /** Newest first, of all lives of the ID. Never change what it answers: the next caller gets the same. */
  newestOf(runtimeId: string, limit: number): readonly RuntimeEvent[] {
    return this.#connection.read(() => {
      const known = this.#recent.get(runtimeId)
      if (known?.limit === limit) return known.events
      const events = this.#statements.newestOf.all(runtimeId, limit).map(fromRow)
      this.#recent.keep(runtimeId, { limit, events })
      return events
    })
  }

  /** Events were taken away past this table. */
  forget(): void {
    this.#recent.clear()
  }
}

const pick = ({ type, run, cause, reason, message, exitCode, time }: NewEvent): NewEvent => ({
  type,
  run,
  cause,
  reason,
  message,
  exitCode,
  time,
})

const fromRow = ({ runtime_id, exit_code, labels, ...rest }: EventRow): RuntimeEvent => ({
  ...rest,
  runtimeId: runtime_id,
  exitCode: exit_code,
  labels: JSON.parse(labels),
})

const FIELDS = 'seq, life, runtime_id, namespace, type, run, cause, reason, message, exit_code, time, uid, labels'

const prepare = (db: Connection['db']) => ({
  append: db
    .prepare<[Record<string, string | number | null>]>(
      `INSERT INTO events (life, runtime_id, namespace, type, run, cause, reason, message, exit_code, time, uid, labels, recorded_at)
       VALUES (@life, @runtimeId, @namespace, @type, @run, @cause, @reason, @message, @exitCode, @time, @uid, @labels, @recordedAt)`,
    )
    .safeIntegers(true),
  bounds: db.prepare<[], Bounds>(
    `SELECT (SELECT min(seq) FROM events) AS oldest, (SELECT seq FROM sqlite_sequence WHERE name = 'events') AS newest,
       pruned_to FROM meta`,
  ),
  page: db.prepare<[number, number], EventRow>(`SELECT ${FIELDS} FROM events WHERE seq > ? ORDER BY seq LIMIT ?`),
  pageOf: db.prepare<[string, number, number], EventRow>(
    `SELECT ${FIELDS} FROM events WHERE runtime_id = ? AND seq > ? ORDER BY seq LIMIT ?`,
  ),
  pageOfSome: db.prepare<[string, number, number], EventRow>(
    `SELECT ${FIELDS} FROM events INDEXED BY events_by_runtime
     WHERE runtime_id IN (SELECT value FROM json_each(?)) AND seq > ? ORDER BY seq LIMIT ?`,
  ),
  newestOf: db.prepare<[string, number], EventRow>(
    `SELECT ${FIELDS} FROM events WHERE runtime_id = ? ORDER BY seq DESC LIMIT ?`,
  ),
})
