import type { Clock } from './ports.ts'

export const systemClock: Clock = {
  now: () => Date.now(),
  after(ms, work) {
    // setTimeout turns anything above 2^31-1 ms into 1 ms; a timer that far away is set again when it fires.
    const timer = setTimeout(work, Math.min(Math.max(ms, 0), 2 ** 31 - 1))
    timer.unref()
    return () => clearTimeout(timer)
  },
}
