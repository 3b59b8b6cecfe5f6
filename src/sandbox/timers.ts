/** Pending actions that can be dropped together. */
export class Timers {
  readonly #pending = new Set<NodeJS.Timeout>()

  later(delayMs: number, run: () => void): void {
    const timer = setTimeout(() => {
      this.#pending.delete(timer)
      run()
    }, delayMs)
    this.#pending.add(timer)
  }

  clear(): void {
    for (const timer of this.#pending) clearTimeout(timer)
    this.#pending.clear()
  }
}
