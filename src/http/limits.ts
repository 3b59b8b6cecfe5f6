/** Every limit and timeout of the HTTP side, each with its reason. Tests shorten them; nothing else does. */
export interface Limits {
  readonly bodyBytes: number
  /** All header lines together, as sent. */
  readonly headerBytes: number
  readonly urlBytes: number
  /** From the first byte of a request to the end of its headers; a socket that sends nothing counts too. */
  readonly headersTimeoutMs: number
  /** From the first byte of a request to the end of its body. */
  readonly bodyTimeoutMs: number
  readonly keepAliveMs: number
  /** How often slow requests are looked for. */
  readonly checkEveryMs: number
  /** A reader whose socket takes no byte of a waiting reply for this long is cut off. */
  readonly stallMs: number
  readonly heartbeatMs: number
  /** What a live reader of the feed may leave unsent (wire.md §5). */
  readonly unsentEvents: number
  readonly unsentBytes: number
  /** How long a burst may stand above that before it says something of the reader. */
  readonly graceMs: number
  readonly sockets: number
  /** Requests in hand at once, waits and streams included. */
  readonly requests: number
  readonly streams: number
  /** How long requests in hand may take to end once the daemon shuts down. */
  readonly drainMs: number
}

export const LIMITS: Limits = {
  bodyBytes: 256 * 1024,
  headerBytes: 8 * 1024,
  urlBytes: 8 * 1024,
  headersTimeoutMs: 10_000,
  bodyTimeoutMs: 30_000,
  keepAliveMs: 30_000,
  checkEveryMs: 1_000,
  stallMs: 30_000,
  // 15 s is promised; timers and the network may take some of it.
  heartbeatMs: 10_000,
  unsentEvents: 1_000,
  unsentBytes: 1024 * 1024,
  graceMs: 1_000,
  sockets: 4_096,
  requests: 4_000,
  streams: 1_000,
  // 10 s are promised for the whole shutdown; the rest is for closing what is left by force.
  drainMs: 8_000,
}

/** The longest runtime ID has 142 characters; this leaves room for blanks around its parts, counted after decoding. */
export const MAX_PARAM_LENGTH = 256
