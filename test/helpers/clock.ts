import type { Clock } from '../../src/service/ports.ts'

/** A clock that stands still until the test moves it; timers fire in order of their time. */
export class FakeClock implements Clock {
  #now: number
  #timers: Array<{ at: number; work: () => void }> = []

  constructor(now = Date.parse('2026-01-01T00:00:00Z')) {
    this.#now = now
  }

  now(): number {
    return this.#now
  }

  after(ms: number, work: () => void): () => void {
    const timer = { at: this.#now + Math.max(0, ms), work }
    this.#timers.push(timer)
    return () => {
      this.#timers = this.#timers.filter(other => other !== timer)
    }
  }

  get pending(): number {
    return this.#timers.length
  }

  advance(ms: number): void {
    const until = this.#now + ms
    for (;;) {
      const due = this.#timers.filter(timer => timer.at <= until).sort((a, b) => a.at - b.at)[0]
      if (due === undefined) break
      this.#timers = this.#timers.filter(other => other !== due)
      this.#now = Math.max(this.#now, due.at)
      due.work()
    }
    this.#now = until
  }
}
