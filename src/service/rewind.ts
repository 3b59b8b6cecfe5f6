import type { Life } from '../domain/life.ts'
import { formatRuntimeId, type Kind, type RuntimeId, type RuntimeName } from '../domain/runtime-id.ts'
import { newer } from '../domain/version.ts'
import type { KeyedQueue } from './keyed-queue.ts'
import type { Log, RuntimeTable } from './ports.ts'
import type { Recorder } from './recorder.ts'

export interface RewindOptions {
  readonly table: Pick<RuntimeTable, 'newest' | 'alive'>
  readonly recorder: Recorder
  readonly queue: KeyedQueue
  readonly log: Log
}

interface Noted {
  readonly id: RuntimeId
  readonly version: string
}

/**
 * A cluster that was restored from a backup counts its versions from there again. Rows note the versions of what was last
 * written and believed, and nothing older is believed after them: they would be deaf until the cluster has caught up.
 */
export class Rewind {
  readonly #options: RewindOptions
  #noted: Map<string, Noted> | null = null

  constructor(options: RewindOptions) {
    this.#options = options
  }

  /** The newest version that the rows of a kind noted before this start; null = none. All kinds cost one pass over the rows. */
  newestKnown(runtime: RuntimeName, kind: Kind, namespace: string | null): string | null {
    this.#noted ??= this.#note()
    let newest: string | null = null
    for (const { id, version } of this.#noted.values()) {
      const concerned = id.runtime === runtime && id.kind === kind && (namespace === null || id.namespace === namespace)
      if (concerned && newer(version, newest)) newest = version
    }
    return newest
  }

  #note(): Map<string, Noted> {
    const noted = new Map<string, Noted>()
    for (const { id, seenVersion, writtenVersion } of this.#options.table.alive(() => {})) {
      const place = `${id.runtime}|${id.namespace}|${id.kind}`
      for (const version of [seenVersion, writtenVersion]) {
        if (version !== null && newer(version, noted.get(place)?.version ?? null)) noted.set(place, { id, version })
      }
    }
    return noted
  }

  /**
   * Has the rows of a kind forget their versions, each in its turn, and all rows there be decided again: pods that were
   * gone may be back. A row that fails keeps its versions; logged.
   */
  async forget(runtime: RuntimeName, kind: Kind, namespace: string | null): Promise<void> {
    const { queue, log } = this.#options
    for (const { id } of [...this.#rows(runtime, namespace)]) {
      const key = formatRuntimeId(id)
      if (id.kind === kind) {
        await queue
          .run(key, () => this.#forgetOne(key))
          .catch(error => log.error({ runtimeId: key, err: error }, 'cannot forget the versions of this row; restart'))
      }
      queue.add(key)
    }
  }

  async #forgetOne(key: string): Promise<void> {
    const { table, recorder } = this.#options
    const life = table.newest(key)
    if (life === null || life.state === 'deleted') return
    const forgotten = { ...life, seenVersion: null, writtenVersion: null, writtenGeneration: null }
    await recorder.commit({ rows: [{ life: forgotten, events: [] }] })
  }

  *#rows(runtime: RuntimeName, namespace: string | null): Generator<Life> {
    for (const life of this.#options.table.alive(() => {})) {
      const { id } = life
      if (id.runtime === runtime && (namespace === null || id.namespace === namespace)) yield life
    }
  }
}
