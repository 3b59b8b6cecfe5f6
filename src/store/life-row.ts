import { isMonitored, type Life, STATES } from '../domain/life.ts'
import { formatRuntimeId } from '../domain/runtime-id.ts'
import { unavailable } from './storage-error.ts'

/** A row as it lies in the table: the life as JSON, and beside it what queries need. */
export interface LifeRow {
  readonly life: number
  readonly runtime_id: string
  readonly row: string
}

/** Parameters of an insert or update, by column name. The number of the life is a column alone. */
export function toColumns({ life, ...rest }: Life) {
  const whole = { life, ...rest }
  return {
    life,
    runtime_id: formatRuntimeId(whole.id),
    runtime: whole.id.runtime,
    namespace: whole.id.namespace,
    kind: whole.id.kind,
    name: whole.id.name,
    uid: whole.uid,
    nonce: whole.nonce,
    state: whole.state,
    monitored: isMonitored(whole) ? 1 : 0,
    settled_at: settledAt(whole),
    row: JSON.stringify(rest),
  }
}

/**
 * Since when a row may age: deleted, or ended by itself with its object gone and nothing in hand (lifecycle.md §9).
 * null while it must be kept.
 */
export function settledAt(life: Life): number | null {
  if (life.state === 'deleted') return life.deletedAt ?? life.goneAt ?? life.endedAt ?? life.createdAt
  const ended = life.state === 'stopped' || life.state === 'failed'
  if (!ended || !life.gone || isMonitored(life)) return null
  return Math.max(life.endedAt ?? life.createdAt, life.goneAt ?? 0)
}

/** Throws STORAGE_UNAVAILABLE for a row that is no life (edited or damaged), for this ID alone. */
export function fromRow({ life, runtime_id, row }: LifeRow): Life {
  const value = parse(row)
  if (!isLifeOf(value, runtime_id)) {
    const remedy = `its row ${life}, of ${runtime_id}, is damaged; restore the file, or remove that row`
    throw unavailable('read', remedy, row.slice(0, 200))
  }
  return { ...value, life }
}

/** Members that `Life` got since the first release of the store: rows written before do not have them. */
const ADDED: Pick<Life, 'podControllers' | 'exitReason'> = { podControllers: [], exitReason: null }

function parse(row: string): unknown {
  try {
    const value: unknown = JSON.parse(row)
    return typeof value === 'object' && value !== null ? { ...ADDED, ...value } : null
  } catch {
    // No JSON is no life: `fromRow` says so.
    return null
  }
}

/** Not a full check, rows are written by us alone: enough to notice a row that was edited, cut or swapped. */
function isLifeOf(value: unknown, runtimeId: string): value is Omit<Life, 'life'> {
  if (typeof value !== 'object' || value === null) return false
  const { id, state } = value as Partial<Life>
  if (typeof id !== 'object' || id === null) return false
  return STATES.some(known => known === state) && formatRuntimeId(id) === runtimeId
}
