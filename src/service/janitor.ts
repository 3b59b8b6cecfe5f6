import type { Clock, Log, Maintenance } from './ports.ts'

const EVERY_MS = 60_000

export interface JanitorOptions {
  readonly store: Pick<Maintenance, 'prune'>
  readonly clock: Clock
  readonly log: Log
  readonly retentionSeconds: number
  readonly retentionCount: number
}

/** Prunes history by age and count once a minute, step by step, so that requests come in between (lifecycle.md §9). */
export class Janitor {
  readonly #options: JanitorOptions
  #cancel: (() => void) | null = null
  #stopped = false

  constructor(options: JanitorOptions) {
    this.#options = options
  }

  start(): void {
    if (this.#stopped) return
    this.#cancel = this.#options.clock.after(EVERY_MS, () => {
      void this.sweep().finally(() => this.start())
    })
  }

  stop(): void {
    this.#stopped = true
    this.#cancel?.()
  }

  /** Until nothing is past its time; a full disk is told and tried again a minute later. */
  async sweep(): Promise<void> {
    const { store, clock, log, retentionSeconds, retentionCount } = this.#options
    let events = 0
    let rows = 0
    try {
      while (!this.#stopped) {
        const step = store.prune({ now: clock.now(), retentionSeconds, retentionCount })
        events += step.events
        rows += step.rows
        if (step.events === 0 && step.rows === 0) break
        await new Promise(setImmediate)
      }
    } catch (error) {
      log.warn({ err: error }, 'cannot prune history now, will try again')
    }
    if (events > 0 || rows > 0) log.info({ events, rows }, 'history was pruned')
  }
}
