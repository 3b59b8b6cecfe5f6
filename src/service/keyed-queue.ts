import type { Backoff } from './backoff.ts'
import type { Clock } from './ports.ts'

export interface KeyedQueueOptions {
  /** Makes row and observation agree for one key. Throws to be called again later; it has logged why. */
  readonly work: (key: string, fresh: boolean) => Promise<void>
  readonly backoff: Backoff
  readonly clock: Clock
  /** Keys reconciled at the same time. Verbs are not counted: a caller waits for each. */
  readonly workers: number
}

/** Keys beyond `workers` that may wait for the disk: with them one sync serves a burst, and a turn stays below 100 ms. */
const MAX_ASIDE = 96

const MAX_AHEAD = 3

/**
 * One queue a key (lifecycle.md §2.10): the reconciler's work and the verbs of users take turns, so nothing observed is
 * applied between the intent and the result of a verb. A key added while it waits is worked once, while it is worked
 * once more after. Keys do not wait for each other, save for `workers`.
 */
export class KeyedQueue {
  readonly #options: KeyedQueueOptions
  /** Waiting keys in order; true = the object is to be read live. */
  readonly #waiting = new Map<string, boolean>()
  readonly #busy = new Map<string, Promise<void>>()
  readonly #timers = new Map<string, () => void>()
  /** Who waits for the next time that a key is worked. */
  readonly #awaited = new Map<string, Array<() => void>>()
  #working = 0
  #aside = 0
  #pumping = false
  #closed = false
  #idle: Array<() => void> = []
  /** Verbs that went ahead of what waits for the key. */
  readonly #ahead = new Map<string, number>()

  constructor(options: KeyedQueueOptions) {
    this.#options = options
  }

  /** Works the key soon. `fresh` asks for one live read of the object whatever the cache says. */
  add(key: string, fresh = false): void {
    if (this.#closed) return
    this.#cancelTimer(key)
    this.#waiting.set(key, fresh || this.#waiting.get(key) === true)
    this.#schedule()
  }

  /** Works the key soon; resolves when that was tried once, well or not, or the queue was closed. */
  async addAndWait(key: string): Promise<void> {
    if (this.#closed) return
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#awaited.set(key, [...(this.#awaited.get(key) ?? []), resolve])
    this.add(key)
    await promise
  }

  /** Works the key at a later time, unless it is worked before. One timer a key: the later call wins, it knows more. */
  addAfter(key: string, ms: number): void {
    if (this.#closed || this.#waiting.has(key)) return
    this.#cancelTimer(key)
    const cancel = this.#options.clock.after(ms, () => {
      this.#timers.delete(key)
      this.add(key)
    })
    this.#timers.set(key, cancel)
  }

  /**
   * Runs a verb of this key alone; its result or error is the caller's. A verb goes ahead of work that waits, but only
   * a few do: callers that never leave the key alone must not keep it from being observed.
   */
  async run<T>(key: string, verb: () => Promise<T>): Promise<T> {
    const before = this.#busy.get(key) ?? Promise.resolve()
    const turn = before.then(() => this.#giveWay(key)).then(verb)
    const done = turn.then(nothing, nothing)
    this.#hold(key, done)
    return await turn
  }

  /**
   * For work that waits for the disk: meanwhile another key has its worker, so that as many as come in a burst share a
   * sync. Its own key stays taken.
   */
  async aside<T>(wait: () => Promise<T>): Promise<T> {
    if (this.#aside >= MAX_ASIDE) return await wait()
    this.#aside++
    this.#working--
    queueMicrotask(() => this.#pump())
    try {
      return await wait()
    } finally {
      this.#aside--
      this.#working++
    }
  }

  /** Keys waiting or being worked. */
  get depth(): number {
    return this.#waiting.size + this.#busy.size
  }

  /** Resolves when nothing is waiting or being worked; keys that come back later by timer do not count. */
  async whenIdle(): Promise<void> {
    if (this.#waiting.size === 0 && this.#busy.size === 0) return
    await new Promise<void>(resolve => this.#idle.push(resolve))
  }

  /** Takes nothing more and waits for what is being worked. */
  async close(): Promise<void> {
    this.#closed = true
    this.#waiting.clear()
    this.#ahead.clear()
    for (const cancel of this.#timers.values()) cancel()
    this.#timers.clear()
    for (const key of this.#awaited.keys()) this.#tell(this.#takeAwaited(key))
    await Promise.all(this.#busy.values())
  }

  #hold(key: string, done: Promise<void>): void {
    this.#busy.set(key, done)
    void done.then(() => {
      if (this.#busy.get(key) === done) this.#busy.delete(key)
      this.#schedule()
    })
  }

  #cancelTimer(key: string): void {
    this.#timers.get(key)?.()
    this.#timers.delete(key)
  }

  #schedule(): void {
    if (this.#pumping) return
    this.#pumping = true
    setImmediate(() => {
      this.#pumping = false
      this.#pump()
    })
  }

  #pump(): void {
    for (const [key, fresh] of this.#waiting) {
      if (this.#working >= this.#options.workers) return
      if (!this.#busy.has(key)) this.#hold(key, this.#work(key, fresh))
    }
    if (this.#waiting.size === 0 && this.#busy.size === 0) {
      for (const resolve of this.#idle.splice(0)) resolve()
    }
  }

  async #work(key: string, fresh: boolean): Promise<void> {
    this.#waiting.delete(key)
    this.#ahead.delete(key)
    const awaiting = this.#takeAwaited(key)
    this.#working++
    try {
      await this.#reconcile(key, fresh)
    } finally {
      this.#working--
      this.#tell(awaiting)
    }
  }

  /** Within the key's turn: what waits for it goes first once enough verbs went ahead of it. */
  async #giveWay(key: string): Promise<void> {
    const fresh = this.#waiting.get(key)
    if (fresh === undefined) return
    const ahead = this.#ahead.get(key) ?? 0
    if (ahead < MAX_AHEAD) this.#ahead.set(key, ahead + 1)
    else await this.#work(key, fresh)
  }

  #takeAwaited(key: string): ReadonlyArray<() => void> {
    const awaiting = this.#awaited.get(key) ?? []
    this.#awaited.delete(key)
    return awaiting
  }

  #tell(awaiting: ReadonlyArray<() => void>): void {
    for (const resolve of awaiting) resolve()
  }

  async #reconcile(key: string, fresh: boolean): Promise<void> {
    try {
      await this.#options.work(key, fresh)
      this.#options.backoff.forget(key)
    } catch {
      this.addAfter(key, this.#options.backoff.next(key))
    }
  }
}

const nothing = (): void => {}
