/** Every time and limit of a reflector (ms unless said). */
export interface ReflectorProfile {
  readonly pageSize: number
  /** Headers of a list or watch. */
  readonly callDeadlineMs: number
  /** Body of one page. */
  readonly pageDeadlineMs: number
  /** timeoutSeconds asked of the server, before jitter. */
  readonly watchMs: number
  /** How much longer than that we wait for the server to end it. */
  readonly watchMarginMs: number
  /** Longest silence of a server that is known to send bookmarks. */
  readonly idleMs: number
  /** A watch that ends earlier is a failure. */
  readonly shortWatchMs: number
  /** Spread of the reconnects after a proper end. */
  readonly reconnectJitterMs: number
  readonly backoffBaseMs: number
  readonly backoffMaxMs: number
  /** The back-off starts over after that long without failure. */
  readonly healthyMs: number
  readonly relistMs: number
  readonly maxLineBytes: number
  /** A collection that went back in time is believed after that many lists over that time. */
  readonly rewindLists: number
  readonly rewindMs: number
}

/** `callDeadlineMs`: KUBE_TIMEOUT_SECONDS, `watchMs`: WATCH_TIMEOUT_SECONDS, both in ms. */
export function productionProfile(callDeadlineMs = 10_000, watchMs = 290_000): ReflectorProfile {
  return {
    pageSize: 500,
    callDeadlineMs,
    pageDeadlineMs: 60_000,
    watchMs,
    watchMarginMs: 5000,
    idleMs: Math.min(100_000, watchMs + 5000),
    shortWatchMs: 1000,
    reconnectJitterMs: 250,
    backoffBaseMs: 800,
    backoffMaxMs: 30_000,
    healthyMs: 120_000,
    relistMs: 600_000,
    maxLineBytes: 8 * 1024 * 1024,
    rewindLists: 3,
    rewindMs: 30_000,
  }
}

/** faults.md, "Profiles": back-off 20 → 750 ms, watch 2 s + 0.3 s, deadline 0.5 s. */
export const testProfile: ReflectorProfile = {
  ...productionProfile(500, 2000),
  pageDeadlineMs: 2000,
  watchMarginMs: 300,
  idleMs: 2300,
  shortWatchMs: 50,
  reconnectJitterMs: 20,
  backoffBaseMs: 20,
  backoffMaxMs: 750,
  healthyMs: 1000,
  rewindMs: 100,
}

/** A cache counts as stale once unheard of for so long (wire.md §2, WATCH_TIMEOUT_SECONDS). */
export const staleAfterMs = (watchMs: number): number => Math.min(150_000, 2 * watchMs)
