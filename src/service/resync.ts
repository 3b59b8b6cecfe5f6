import { formatRuntimeId } from '../domain/runtime-id.ts'
import type { KeyedQueue } from './keyed-queue.ts'
import type { Clock, RuntimeTable } from './ports.ts'

const EVERY_MS = 10 * 60_000
const CHUNK = 500

export interface ResyncOptions {
  readonly table: Pick<RuntimeTable, 'alive'>
  readonly queue: KeyedQueue
  readonly clock: Clock
}

/**
 * Works every row again each ten minutes, from the cache and without a call, so that whatever was missed is mended. Rows
 * whose label was removed by others are looked at by one GET: no watch speaks of them any more (lifecycle.md §9).
 */
export class Resync {
  readonly #options: ResyncOptions
  #cancel: (() => void) | null = null
  #stopped = false

  constructor(options: ResyncOptions) {
    this.#options = options
  }

  start(): void {
    if (this.#stopped) return
    this.#cancel = this.#options.clock.after(EVERY_MS, () => {
      void this.run().finally(() => this.start())
    })
  }

  stop(): void {
    this.#stopped = true
    this.#cancel?.()
  }

  async run(): Promise<void> {
    let count = 0
    for (const life of this.#options.table.alive(() => {})) {
      if (this.#stopped) return
      this.#options.queue.add(formatRuntimeId(life.id), life.foreign)
      if (++count % CHUNK === 0) await new Promise(setImmediate)
    }
  }
}
