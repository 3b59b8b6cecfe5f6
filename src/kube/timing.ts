/** Waits `ms`, or until the signal is aborted, whichever is first. Never throws. */
export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  if (signal?.aborted) return Promise.resolve()
  return new Promise(resolve => {
    const done = (): void => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', done)
      resolve()
    }
    const timer = setTimeout(done, ms)
    signal?.addEventListener('abort', done)
  })
}

/** min(max, base·2^n)·(1 + random): client-go's manager for reflectors (0.8 s, 30 s, jitter 1). `random` gives 0 ≤ x < 1. */
export const backoffDelay = (n: number, base: number, max: number, random: () => number): number =>
  Math.min(max, base * 2 ** Math.min(n, 30)) * (1 + random())

/** A Retry-After header in ms: seconds or an HTTP date; null if there is none that makes sense. */
export function retryAfterMs(header: string | string[] | undefined, now: number): number | null {
  const value = Array.isArray(header) ? header[0] : header
  if (value === undefined) return null
  const seconds = /^\d+$/.test(value.trim()) ? Number(value) * 1000 : Date.parse(value) - now
  return Number.isFinite(seconds) ? Math.max(0, seconds) : null
}
