/** Delay between tries of one key: `first · 2^n`, at most `longest`, plus up to as much again by chance so that many do not come back at once. */
export interface BackoffProfile {
  readonly firstMs: number
  readonly longestMs: number
}

export const PRODUCTION_BACKOFF: BackoffProfile = { firstMs: 800, longestMs: 30_000 }

export class Backoff {
  readonly #tries = new Map<string, number>()
  readonly #profile: BackoffProfile
  readonly #random: () => number

  constructor(profile: BackoffProfile, random: () => number) {
    this.#profile = profile
    this.#random = random
  }

  /** Delay in ms before the next try of this key; grows with each call until `forget`. */
  next(key: string): number {
    const tries = this.#tries.get(key) ?? 0
    this.#tries.set(key, tries + 1)
    const base = Math.min(this.#profile.longestMs, this.#profile.firstMs * 2 ** Math.min(tries, 30))
    return base * (1 + this.#random() * 0.5)
  }

  forget(key: string): void {
    this.#tries.delete(key)
  }

  get size(): number {
    return this.#tries.size
  }
}
