import type { Faults } from './faults.ts'
import { StatusError } from './status-error.ts'

export interface LoopOptions {
  /** from `add` to the look at the key */
  lagMs: number
  /** longest pause between tries of a key that fails */
  retryMaxMs: number
  /** stands still while its controllers are paused */
  faults: Faults
  /** looks at the key; may say in how many milliseconds it wants to look again. A StatusError thrown means: again, later */
  reconcile: (key: string) => number | undefined
}

/** First pause after a failure; doubles with each. */
const RETRY_FROM_MS = 5

/** A queue of keys, each looked at once however often it was added: the work queue of one controller. */
export class KeyedLoop {
  readonly #options: LoopOptions
  readonly #timers = new Map<string, { due: number; timer: NodeJS.Timeout }>()
  readonly #held = new Set<string>()
  readonly #failures = new Map<string, number>()
  readonly #stopListening: () => void
  #closed = false

  constructor(options: LoopOptions) {
    this.#options = options
    this.#stopListening = options.faults.onResume(() => {
      const held = [...this.#held]
      this.#held.clear()
      for (const key of held) this.add(key)
    })
  }

  /** Looks at the key after the delay; an earlier look that is already due stands, and serves for both. */
  add(key: string, delayMs = this.#options.lagMs): void {
    if (this.#closed) return
    const due = Date.now() + delayMs
    const waiting = this.#timers.get(key)
    if (waiting && waiting.due <= due) return
    if (waiting) clearTimeout(waiting.timer)
    this.#timers.set(key, { due, timer: setTimeout(() => this.#run(key), delayMs) })
  }

  close(): void {
    this.#closed = true
    this.#stopListening()
    for (const { timer } of this.#timers.values()) clearTimeout(timer)
    this.#timers.clear()
  }

  #run(key: string): void {
    this.#timers.delete(key)
    if (this.#options.faults.paused) {
      this.#held.add(key)
      return
    }
    try {
      const again = this.#options.reconcile(key)
      this.#failures.delete(key)
      if (again !== undefined) this.add(key, again)
    } catch (error) {
      if (!(error instanceof StatusError)) throw error
      const failures = this.#failures.get(key) ?? 0
      this.#failures.set(key, failures + 1)
      this.add(key, Math.min(RETRY_FROM_MS * 2 ** failures, this.#options.retryMaxMs))
    }
  }
}

export const keyOfObject = ({ metadata }: { metadata: { namespace?: string; name: string } }): string =>
  `${metadata.namespace ?? ''}/${metadata.name}`

export function splitKey(key: string): [namespace: string, name: string] {
  const cut = key.indexOf('/')
  return [key.slice(0, cut), key.slice(cut + 1)]
}
