import type { Life } from '../domain/life.ts'
import { isMonitored } from '../domain/life.ts'
import { formatRuntimeId, parseRuntimeId, type RuntimeName } from '../domain/runtime-id.ts'
import { isRuntimeError, RuntimeError } from '../errors.ts'
import type { AdoptionApi, AdoptionReport } from './api.ts'
import type { Backends } from './backends.ts'
import type { KeyedQueue } from './keyed-queue.ts'
import type { Clock, Labelled, Log, RuntimeTable } from './ports.ts'
import { allows, requireNamespace, type Scope } from './scope.ts'
import { foreign, type TakeUp } from './take-up.ts'

export interface AdoptionOptions {
  readonly table: Pick<RuntimeTable, 'newest' | 'alive'>
  readonly backends: Backends
  readonly queue: KeyedQueue
  readonly takeUp: TakeUp
  readonly clock: Clock
  readonly log: Log
  readonly adoptOrphans: boolean
}

interface StartReport {
  readonly at: number
  readonly adopted: readonly string[]
  readonly vanished: readonly string[]
}

interface Before {
  readonly key: string
  readonly life: number
  readonly monitored: boolean
}

/** Rows and cluster compared both ways: at the start of the daemon, and on request (lifecycle.md §9). */
export class Adoption implements AdoptionApi {
  readonly #options: AdoptionOptions
  readonly #last = new Map<RuntimeName, StartReport>()

  constructor(options: AdoptionOptions) {
    this.#options = options
  }

  /**
   * One pass over all rows of a runtime once its caches are synced: each key is worked once, verbs in hand go on, what ended unseen
   * gets its ending. No call for a row that is in the cache. A row that cannot be read is logged and left aside.
   */
  async start(runtime: RuntimeName): Promise<void> {
    const { log, clock } = this.#options
    const before = this.#rows(runtime)
    await Promise.all(before.map(({ key }) => this.#options.queue.addAndWait(key)))
    const { adopted, vanished } = this.#sort(before)
    this.#last.set(runtime, { at: clock.now(), adopted, vanished })
    if (this.#options.adoptOrphans) await this.#adoptAll(runtime)
    log.info({ runtime, adopted: adopted.length, vanished: vanished.length }, 'rows are taken up again')
  }

  #rows(runtime: RuntimeName): Before[] {
    const { table, log, backends } = this.#options
    const before: Before[] = []
    const broken = (id: string, error: unknown): void =>
      log.error({ runtimeId: id, err: error }, 'cannot read this row, it is left aside; repair or remove it')
    for (const life of table.alive(broken)) {
      if (life.id.runtime !== runtime || !backends.serves(life.id)) continue
      const key = formatRuntimeId(life.id)
      before.push({ key, life: life.life, monitored: isMonitored(life) })
    }
    return before
  }

  #sort(before: readonly Before[]): { adopted: string[]; vanished: string[] } {
    const adopted: string[] = []
    const vanished: string[] = []
    for (const { key, life, monitored } of before) {
      const now = this.#options.table.newest(key)
      if (now === null || now.life !== life || now.gone || now.state === 'deleted') vanished.push(key)
      else if (monitored) adopted.push(key)
    }
    return { adopted: adopted.sort(), vanished: vanished.sort() }
  }

  report(scope: Scope): AdoptionReport {
    const visible = (id: string): boolean => allows(scope, parseRuntimeId(id).namespace)
    const { orphaned, foreign } = this.#compare()
    const starts = [...this.#last.values()]
    return {
      at: Math.max(0, ...starts.map(start => start.at)),
      adopted: starts.flatMap(start => start.adopted).filter(visible),
      vanished: starts.flatMap(start => start.vanished).filter(visible),
      foreign: foreign.filter(visible),
      orphaned: orphaned
        .map(({ id }) => formatRuntimeId(id))
        .filter(visible)
        .sort(),
    }
  }

  async act(
    scope: Scope,
    ids: readonly string[],
    action: 'adopt' | 'remove',
  ): Promise<ReadonlyArray<{ id: string; done: boolean; code: string | null }>> {
    const parsed = ids.map(id => parseRuntimeId(id))
    for (const id of parsed) requireNamespace(scope, id.namespace)
    const keys = parsed.map(id => formatRuntimeId(id))
    // An ID that is repeated is looked up once: a thousand of it would be a thousand calls, one after the other.
    const outcomes = new Map([...new Set(keys)].map(id => [id, this.#actOn(id, action)]))
    return await Promise.all(keys.map(id => outcomes.get(id)!))
  }

  async #actOn(id: string, action: 'adopt' | 'remove'): Promise<{ id: string; done: boolean; code: string | null }> {
    try {
      await this.#options.queue.run(id, () => (action === 'adopt' ? this.#adopt(id) : this.#remove(id)))
      return { id, done: true, code: null }
    } catch (error) {
      if (!isRuntimeError(error)) throw error
      return { id, done: false, code: error.code }
    }
  }

  async #adopt(id: string): Promise<void> {
    await this.#options.takeUp.takeFound(await this.#orphan(id))
    this.#options.queue.add(id)
  }

  async #remove(id: string): Promise<void> {
    const found = await this.#orphan(id)
    const { workloads } = this.#options.backends.get(found.id.runtime)
    await workloads.remove(this.#options.takeUp.provisional(found))
  }

  /** The orphan of that ID by a live GET. Throws RUNTIME_EXISTS (it has a row), RUNTIME_NOT_FOUND, FOREIGN_WORKLOAD. */
  async #orphan(id: string): Promise<Labelled> {
    const { table, takeUp, backends } = this.#options
    const row = table.newest(id)
    const runtimeId = parseRuntimeId(id)
    const found = await backends.get(runtimeId.runtime).inventory.find(runtimeId)
    if (found === null)
      throw new RuntimeError('RUNTIME_NOT_FOUND', `cannot find ${id} in the cluster`, { runtimeId: id })
    if (!takeUp.isOurs(found)) throw foreign(found)
    if (row !== null && row.state !== 'deleted') {
      throw new RuntimeError('RUNTIME_EXISTS', `cannot take ${id}: it is managed already`, { runtimeId: id })
    }
    return found
  }

  async #adoptAll(runtime: RuntimeName): Promise<void> {
    const { orphaned } = this.#compare()
    for (const { id } of orphaned.filter(found => found.id.runtime === runtime)) {
      const key = formatRuntimeId(id)
      const { done, code } = await this.#actOn(key, 'adopt')
      if (!done) this.#options.log.warn({ runtimeId: key, code }, 'cannot take this orphan up')
    }
  }

  #compare(): { orphaned: Labelled[]; foreign: string[] } {
    const { table, backends, takeUp } = this.#options
    const uids = new Map<string, string | null>()
    const foreign: string[] = []
    for (const life of table.alive(() => {})) noteRow(life, uids, foreign)
    const orphaned: Labelled[] = []
    for (const backend of backends.all) {
      for (const found of backend.inventory.labelled()) {
        if (takeUp.isOurs(found) && !uids.has(formatRuntimeId(found.id))) orphaned.push(found)
      }
    }
    return { orphaned, foreign: foreign.sort() }
  }
}

function noteRow(life: Life, uids: Map<string, string | null>, foreign: string[]): void {
  const key = formatRuntimeId(life.id)
  uids.set(key, life.uid)
  if (life.foreign) foreign.push(key)
}
