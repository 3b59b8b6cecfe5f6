import { formatRuntimeId, type RuntimeId } from '../domain/runtime-id.ts'
import type { Clock } from '../service/ports.ts'

/** Who waits for the next change of one workload, or of a pod of it. */
export class ChangeHub {
  readonly #clock: Pick<Clock, 'after'>
  readonly #waiting = new Map<string, Set<() => void>>()

  constructor(clock: Pick<Clock, 'after'>) {
    this.#clock = clock
  }

  notify(key: string): void {
    for (const wake of this.#waiting.get(key) ?? []) wake()
  }

  /** Resolves with the next change, after `ms`, or when the signal aborts, whichever is first. */
  next(id: RuntimeId, ms: number, signal: AbortSignal): Promise<void> {
    if (signal.aborted) return Promise.resolve()
    const key = formatRuntimeId(id)
    return new Promise(resolve => {
      const wake = (): void => {
        cancel()
        signal.removeEventListener('abort', wake)
        this.#leave(key, wake)
        resolve()
      }
      const cancel = this.#clock.after(ms, wake)
      signal.addEventListener('abort', wake)
      this.#join(key, wake)
    })
  }

  #join(key: string, wake: () => void): void {
    const waiting = this.#waiting.get(key)
    if (waiting) waiting.add(wake)
    else this.#waiting.set(key, new Set([wake]))
  }

  #leave(key: string, wake: () => void): void {
    const waiting = this.#waiting.get(key)
    waiting?.delete(wake)
    if (waiting?.size === 0) this.#waiting.delete(key)
  }
}
