import type { Life } from '../domain/life.ts'
import { decide, takenUp } from '../domain/lifecycle.ts'
import type { Seen } from '../domain/observation.ts'
import { formatRuntimeId, type RuntimeId } from '../domain/runtime-id.ts'
import { RuntimeError } from '../errors.ts'
import type { Backends } from './backends.ts'
import type { Clock, Labelled, RuntimeTable } from './ports.ts'
import type { Recorder } from './recorder.ts'

export interface TakeUpOptions {
  readonly table: Pick<RuntimeTable, 'newest'>
  readonly backends: Backends
  readonly recorder: Recorder
  readonly clock: Clock
  readonly instance: string
  readonly newNonce: () => string
  /** What a workload without a spec of ours is held to. */
  readonly defaults: { readonly jobStop: 'delete' | 'suspend'; readonly startTimeoutSeconds: number }
}

/** Makes a labelled workload without a row ours (lifecycle.md §2.7, §9). */
export class TakeUp {
  readonly #options: TakeUpOptions

  constructor(options: TakeUpOptions) {
    this.#options = options
  }

  /** Ours to take: no instance or runtime label, or those of this daemon. */
  isOurs(found: Labelled): boolean {
    const { instance, runtime, id } = found
    return (instance === null || instance === this.#options.instance) && (runtime === null || runtime === id.runtime)
  }

  /** By one live GET: null = not there, without our label, or another instance's. For reads. */
  async find(id: RuntimeId): Promise<Labelled | null> {
    const found = await this.#options.backends.get(id.runtime).inventory.find(id)
    return found !== null && this.isOurs(found) ? found : null
  }

  /** For a verb: the row it was taken up with, or null when nothing labelled is there. Throws FOREIGN_WORKLOAD. Only inside the key's turn. */
  async take(id: RuntimeId): Promise<Life | null> {
    const { inventory } = this.#options.backends.get(id.runtime)
    const found = await inventory.find(id)
    if (found === null) return null
    if (!this.isOurs(found)) throw foreign(found)
    return await this.takeFound(found)
  }

  /** Labels it as ours, makes its row and applies the first observation. */
  async takeFound(found: Labelled): Promise<Life> {
    const { backends, recorder } = this.#options
    const backend = backends.get(found.id.runtime)
    await backend.inventory.mark(found)
    const life = this.provisional(found)
    const seen = await backend.workloads.look(life, 'pods')
    if (seen.type === 'gone') {
      const id = formatRuntimeId(found.id)
      throw new RuntimeError('RUNTIME_NOT_FOUND', `cannot take up ${id}: it has just gone`, { runtimeId: id })
    }
    const row = this.provisional(found, seen)
    const { lives } = await recorder.commit({ rows: [{ life: row, events: [] }] })
    const stored = lives[0] ?? row
    const decision = decide(stored, seen, { now: this.#options.clock.now() })
    return await recorder.record(stored, decision.look === null ? decision : { ...decision, life: stored, events: [] })
  }

  /** A row that is never stored, through which a read shows an orphan: run 0, not monitored. */
  async preview(found: Labelled): Promise<{ life: Life; seen: Seen } | null> {
    const life = this.provisional(found)
    const seen = await this.#options.backends.get(found.id.runtime).workloads.look(life, 'object')
    if (seen.type === 'gone') return null
    const now = this.#options.clock.now()
    const opened = this.provisional(found, seen)
    const decision = decide(opened, seen, { now })
    const shown = decision.look === null ? decision.life : opened
    return { life: { ...shown, run: 0, open: false, verb: null }, seen }
  }

  /** A row as it would be stored; without `seen` only to look through. */
  provisional(found: Labelled, seen: Seen | null = null): Life {
    return takenUp({
      id: found.id,
      uid: found.uid,
      nonce: found.nonce ?? this.#options.newNonce(),
      image: found.image,
      labels: found.labels,
      now: this.#options.clock.now(),
      lastEventAt: this.#options.table.newest(formatRuntimeId(found.id))?.lastEventAt ?? 0,
      seen,
      ...this.#options.defaults,
    })
  }
}

export function foreign(found: Labelled): RuntimeError {
  const id = formatRuntimeId(found.id)
  return new RuntimeError(
    'FOREIGN_WORKLOAD',
    `cannot touch ${id}: it belongs to instance "${found.instance ?? 'default'}" of runtime "${found.runtime ?? found.id.runtime}"; use that daemon, or change its runtimed.dev labels`,
    { runtimeId: id },
  )
}
