import { now, spread } from './figures.ts'

/** Notes when a change of a numbered Deployment arrived, and tells later how long after it was made. */
export class Arrivals {
  #ids = new Float64Array(1024)
  #times = new Float64Array(1024)
  #length = 0

  note(id: number, at = now()): void {
    if (this.#length === this.#ids.length) {
      this.#ids = grown(this.#ids)
      this.#times = grown(this.#times)
    }
    this.#ids[this.#length] = id
    this.#times[this.#length] = at
    this.#length += 1
  }

  get count(): number {
    return this.#length
  }

  /** ms from the change to its arrival; `times[n]` is when Deployment `from + n` was changed. Others are left out. */
  delays({ from, times }: { from: number; times: readonly number[] }): ReturnType<typeof spread> {
    const delays: number[] = []
    for (let n = 0; n < this.#length; n += 1) {
      const made = times[(this.#ids[n] ?? 0) - from]
      if (made !== undefined) delays.push((this.#times[n] ?? 0) - made)
    }
    return spread(delays)
  }
}

function grown(small: Float64Array): Float64Array<ArrayBuffer> {
  const large = new Float64Array(small.length * 2)
  large.set(small)
  return large
}
