/**
 * At most `size` at a time, first come first served. `acquire` answers a release function, or null when the signal was
 * aborted before a place was free.
 */
export class Limiter {
  #free: number
  readonly #waiting: ((release: () => void) => void)[] = []

  constructor(size: number) {
    this.#free = size
  }

  acquire(signal: AbortSignal): Promise<(() => void) | null> {
    if (signal.aborted) return Promise.resolve(null)
    if (this.#free > 0) {
      this.#free -= 1
      return Promise.resolve(this.#releaser())
    }
    return new Promise(resolve => {
      const give = (release: () => void): void => {
        signal.removeEventListener('abort', leave)
        resolve(release)
      }
      const leave = (): void => {
        const at = this.#waiting.indexOf(give)
        if (at >= 0) this.#waiting.splice(at, 1)
        resolve(null)
      }
      this.#waiting.push(give)
      signal.addEventListener('abort', leave, { once: true })
    })
  }

  #releaser(): () => void {
    let released = false
    return () => {
      if (released) return
      released = true
      const next = this.#waiting.shift()
      if (next) next(this.#releaser())
      else this.#free += 1
    }
  }
}
