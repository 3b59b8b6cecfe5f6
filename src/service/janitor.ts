import type { Clock, Log, Maintenance } from './ports.ts'

const EVERY_MS = 60_000

export interface JanitorOptions {
  readonly store: Pick<Maintenance, 'prune'>
  readonly clock: Clock
  readonly log: Log
  readonly retentionSeconds: number
  readonly retentionCount: number
}

/** Prunes history by age and count once a minute, in batches that do not block (lifecycle.md §9). */
export class Janitor {
  readonly #options: JanitorOptions
  #cancel: (() => void) | null = null

  constructor(options: JanitorOptions) {
    this.#options = options
  }

  start(): void {
    this.#cancel = this.#options.clock.after(EVERY_MS, () => {
      this.sweep()
      this.start()
    })
  }

  stop(): void {
    this.#cancel?.()
  }

  /** One batch; a full disk is told and tried again. */
  sweep(): void {
    const { store, clock, log, retentionSeconds, retentionCount } = this.#options
    try {
      const removed = store.prune({ now: clock.now(), retentionSeconds, retentionCount })
      if (removed.events > 0 || removed.rows > 0) log.info(removed, 'history was pruned')
    } catch (error) {
      log.warn({ err: error }, 'cannot prune history now, will try again')
    }
  }
}
