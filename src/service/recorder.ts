import type { Decision } from '../domain/decision.ts'
import type { RuntimeEvent } from '../domain/event.ts'
import type { Life } from '../domain/life.ts'
import { formatRuntimeId } from '../domain/runtime-id.ts'
import type { Change, Committed, RuntimeTable } from './ports.ts'

/** Told of every commit after it is durable, in order. An exception here would be a bug of ours; it is not caught. */
export type CommitListener = (committed: Committed) => void

/** The only way rows and events get written: durable first (P1), then told to those who wait. */
export class Recorder {
  readonly #table: Pick<RuntimeTable, 'commit'>
  readonly #listeners: CommitListener[] = []

  constructor(table: Pick<RuntimeTable, 'commit'>) {
    this.#table = table
  }

  onCommit(listener: CommitListener): void {
    this.#listeners.push(listener)
  }

  /** Resolves once durable. Throws STORAGE_UNAVAILABLE, and what the unique indexes refuse; nothing is then written or told. */
  async commit(change: Change): Promise<Committed> {
    const committed = await this.#table.commit(change)
    for (const listener of this.#listeners) listener(committed)
    return committed
  }

  /** Writes what was decided of a row, if it changed anything. Returns the row as stored; a withdrawn one as it was. */
  async record(before: Life, decision: Decision): Promise<Life> {
    if (decision.withdraw) {
      await this.commit({ rows: [], withdraw: [before.life] })
      return decision.life
    }
    if (decision.life === before && decision.events.length === 0) return before
    const { lives } = await this.commit({ rows: [{ life: decision.life, events: decision.events }] })
    return lives[0] ?? decision.life
  }
}

/** Lets a caller wait for the next change of one runtime. */
export class ChangeSignals {
  readonly #waiters = new Map<string, Set<() => void>>()

  /** Calls `wake` on each commit that concerns the runtime, until the returned function is called. */
  subscribe(id: string, wake: () => void): () => void {
    const waiters = this.#waiters.get(id) ?? new Set()
    this.#waiters.set(id, waiters)
    waiters.add(wake)
    return () => {
      waiters.delete(wake)
      if (waiters.size === 0) this.#waiters.delete(id)
    }
  }

  readonly listener: CommitListener = ({ lives, events }) => {
    if (this.#waiters.size === 0) return
    const ids = new Set([
      ...lives.map(life => formatRuntimeId(life.id)),
      ...events.map((e: RuntimeEvent) => e.runtimeId),
    ])
    for (const id of ids) for (const wake of [...(this.#waiters.get(id) ?? [])]) wake()
  }
}
