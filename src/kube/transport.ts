import type { Readable } from 'node:stream'
import { promisify } from 'node:util'
import { gunzip } from 'node:zlib'
import { type Dispatcher, errors } from 'undici'
import { type Credential, Credentials } from './credentials.ts'
import { type Attempt, withDeadline } from './deadline.ts'
import type { ClusterAccess } from './kube-config.ts'
import { Limiter } from './limiter.ts'
import { ConnectionPools } from './pools.ts'
import { pause, retryAfterMs } from './timing.ts'

export type QueryValue = string | number | boolean | undefined

/** One call. `path` is built by objects.ts from checked names; values of `query` are escaped here. */
export interface Call {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE'
  readonly path: string
  readonly query?: Readonly<Record<string, QueryValue>>
  readonly body?: unknown
  readonly contentType?: string
  /** Default: the transport's. All attempts together end within it. */
  readonly deadlineMs?: number
  /** If given, the deadline ends with the headers and the body has so long (big pages over a slow network). */
  readonly bodyDeadlineMs?: number
  readonly signal?: AbortSignal
  /** false: one attempt (the reflector has a back-off of its own). Default true. */
  readonly retry?: boolean
  /** Ask for gzip; worth it for lists. */
  readonly gzip?: boolean
}

export interface Reply {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly body: Buffer
}

/** Status and headers came; the body comes as it is written, without a time limit, and fails if the connection does. */
export interface StreamReply {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly body: Readable
}

/**
 * unreachable: surely not sent. no-answer: sent, at least in part, and not answered in full. throttled: held back by the
 * cluster's own 429 beyond the deadline, not sent. aborted: by the caller's signal. too-large: the answer is beyond our limit.
 */
export type FailureKind = 'unreachable' | 'no-answer' | 'throttled' | 'aborted' | 'too-large'

/** A call without an answer. Its message is for logs only. */
export class TransportError extends Error {
  readonly kind: FailureKind
  readonly sent: boolean
  readonly retryAfterMs: number | null

  constructor(kind: FailureKind, sent: boolean, details: { cause?: unknown; retryAfterMs?: number } = {}) {
    super(`no answer of the cluster (${kind})`, { cause: details.cause })
    this.name = 'TransportError'
    this.kind = kind
    this.sent = sent
    this.retryAfterMs = details.retryAfterMs ?? null
  }
}

export interface TransportOptions {
  /** KUBE_TIMEOUT_SECONDS in ms. */
  readonly deadlineMs: number
  readonly connectTimeoutMs?: number
  readonly maxInFlight?: number
  readonly gzip?: boolean
  /** How long a token, CA or key read from a file counts. */
  readonly rereadMs?: number
  readonly random?: () => number
  /** Told of each attempt's end: HTTP status or the kind of failure, and the seconds until the reply's headers. */
  readonly onAttempt?: (method: string, outcome: number | FailureKind, seconds: number) => void
}

const inflate = promisify(gunzip)
const MAX_BODY = 64 * 1024 * 1024
const RETRIED = new Set([429, 500, 502, 503, 504])
const DEFAULT_RETRY_AFTER_MS = 1000

/**
 * HTTP/1.1 to one API server: a pool of kept-alive connections for calls, another for watches and logs. HTTP/2 is off:
 * one connection for all would be one failure domain, and it is not faster (kube-client.md §3.6).
 */
export class Transport {
  readonly #credentials: Credentials
  readonly #pools: ConnectionPools
  readonly #limiter: Limiter
  readonly #options: TransportOptions
  readonly #random: () => number
  #gateUntil = 0

  constructor(access: ClusterAccess, options: TransportOptions) {
    this.#options = options
    this.#random = options.random ?? Math.random
    this.#credentials = new Credentials(access, {
      rereadMs: options.rereadMs ?? 60_000,
      execTimeoutMs: options.deadlineMs,
    })
    const maxInFlight = options.maxInFlight ?? 32
    this.#limiter = new Limiter(maxInFlight)
    this.#pools = new ConnectionPools(access, {
      connections: maxInFlight,
      connectTimeoutMs: options.connectTimeoutMs ?? 5000,
      maxResponseSize: MAX_BODY,
    })
  }

  /**
   * Answers whatever status the cluster gave in the end. Retries within the deadline: 429 after Retry-After, 500, 502,
   * 503, 504 and what was surely not sent; 401 once, with fresh credentials; a GET also when the connection broke.
   * Throws TransportError.
   */
  async request(call: Call): Promise<Reply> {
    const until = Date.now() + (call.deadlineMs ?? this.#options.deadlineMs)
    return await withDeadline(until, call.signal, async attempt => {
      for (let n = 0; ; n += 1) {
        const outcome = await this.#tryOnce(call, attempt)
        const wait = call.retry === false ? null : this.#retryDelay(call, outcome, n)
        if (wait === null || Date.now() + wait >= until || attempt.signal.aborted) return settle(outcome)
        await pause(wait, attempt.signal)
      }
    })
  }

  /** One attempt (two after a 401). The deadline ends with the headers; the signal ends the body too. Throws TransportError. */
  async stream(call: Call): Promise<StreamReply> {
    const until = Date.now() + (call.deadlineMs ?? this.#options.deadlineMs)
    return await withDeadline(until, call.signal, async (attempt, endWith) => {
      const reply = await this.#authorized(call, attempt, 'streams')
      endWith(reply.body)
      return { status: reply.statusCode, headers: reply.headers, body: reply.body }
    })
  }

  /** Breaks what is under way and closes every socket. */
  async close(): Promise<void> {
    await this.#pools.destroy()
  }

  async #tryOnce(call: Call, attempt: Attempt): Promise<Reply | TransportError> {
    let release: (() => void) | null = null
    try {
      await this.#passGate(attempt)
      release = await this.#limiter.acquire(attempt.signal)
      if (!release) throw new TransportError(abortKind(call), false)
      const reply = await this.#authorized(call, attempt, 'calls')
      if (call.bodyDeadlineMs !== undefined) attempt.extend(call.bodyDeadlineMs)
      const body = await readBody(call, reply)
      if (reply.statusCode === 429) this.#closeGate(retryAfterMs(reply.headers['retry-after'], Date.now()))
      return { status: reply.statusCode, headers: reply.headers, body }
    } catch (error) {
      if (error instanceof TransportError) return error
      throw error
    } finally {
      release?.()
    }
  }

  async #authorized(call: Call, attempt: Attempt, pool: 'calls' | 'streams'): Promise<Dispatcher.ResponseData> {
    const credential = await this.#credential(call, attempt)
    const reply = await this.#send(call, attempt, pool, credential)
    if (reply.statusCode !== 401) return reply
    this.#credentials.refuse(credential.version)
    const fresh = await this.#credential(call, attempt)
    if (fresh.version === credential.version) return reply
    reply.body.destroy()
    reply.body.on('error', () => {})
    return await this.#send(call, attempt, pool, fresh)
  }

  async #credential(call: Call, attempt: Attempt): Promise<Credential> {
    const aborted = new Promise<never>((_, reject) => {
      const fail = (): void => reject(new TransportError(abortKind(call), false))
      if (attempt.signal.aborted) fail()
      attempt.signal.addEventListener('abort', fail, { once: true })
    })
    aborted.catch(() => {})
    try {
      return await Promise.race([this.#credentials.get(), aborted])
    } catch (cause) {
      throw cause instanceof TransportError ? cause : new TransportError('unreachable', false, { cause })
    }
  }

  async #send(call: Call, attempt: Attempt, pool: 'calls' | 'streams', credential: Credential) {
    const progress = { sent: false }
    const begun = performance.now()
    try {
      const reply = await this.#pools.use(credential.tls)[pool].request({
        method: call.method,
        path: this.#pools.prefix + call.path + queryText(call.query),
        headers: this.#headers(call, credential),
        body: call.body === undefined ? null : JSON.stringify(call.body),
        signal: attempt.signal,
        headersTimeout: 0,
        bodyTimeout: 0,
        progress,
      } as Dispatcher.RequestOptions)
      this.#options.onAttempt?.(call.method, reply.statusCode, (performance.now() - begun) / 1000)
      return reply
    } catch (cause) {
      const kind = call.signal?.aborted ? 'aborted' : progress.sent ? 'no-answer' : 'unreachable'
      this.#options.onAttempt?.(call.method, kind, (performance.now() - begun) / 1000)
      throw new TransportError(kind, progress.sent, { cause })
    }
  }

  #headers(call: Call, credential: Credential): Record<string, string | string[]> {
    return {
      accept: 'application/json',
      'user-agent': 'runtimed',
      ...(call.gzip && this.#options.gzip !== false ? { 'accept-encoding': 'gzip' } : {}),
      ...(call.body === undefined ? {} : { 'content-type': call.contentType ?? 'application/json' }),
      ...credential.headers,
    }
  }

  #closeGate(wait: number | null): void {
    this.#gateUntil = Math.max(this.#gateUntil, Date.now() + (wait ?? DEFAULT_RETRY_AFTER_MS))
  }

  /** Waits out a 429 given to anybody; who would wait beyond his deadline is told at once. */
  async #passGate(attempt: Attempt): Promise<void> {
    const wait = this.#gateUntil - Date.now()
    if (wait <= 0) return
    if (this.#gateUntil >= attempt.until) throw new TransportError('throttled', false, { retryAfterMs: wait })
    await pause(wait + this.#random() * Math.min(250, attempt.until - this.#gateUntil), attempt.signal)
  }

  /** ms to wait before the next attempt, null if there shall be none. */
  #retryDelay(call: Call, outcome: Reply | TransportError, n: number): number | null {
    const jittered = Math.min(2000, 50 * 2 ** n) * (0.5 + this.#random())
    if (outcome instanceof TransportError) {
      const again = outcome.kind === 'unreachable' || (outcome.kind === 'no-answer' && call.method === 'GET')
      return again ? jittered : null
    }
    if (!RETRIED.has(outcome.status)) return null
    const asked = retryAfterMs(outcome.headers['retry-after'], Date.now())
    return Math.max(jittered, outcome.status === 429 ? (asked ?? DEFAULT_RETRY_AFTER_MS) : (asked ?? 0))
  }
}

const abortKind = (call: Call): FailureKind => (call.signal?.aborted ? 'aborted' : 'unreachable')

function settle(outcome: Reply | TransportError): Reply {
  if (outcome instanceof TransportError) throw outcome
  return outcome
}

function queryText(query: Call['query']): string {
  const parameters = new URLSearchParams()
  for (const [name, value] of Object.entries(query ?? {})) {
    if (value !== undefined) parameters.set(name, String(value))
  }
  return parameters.size === 0 ? '' : `?${parameters}`
}

async function readBody(call: Call, reply: Dispatcher.ResponseData): Promise<Buffer> {
  try {
    const bytes = Buffer.from(await reply.body.arrayBuffer())
    if (reply.headers['content-encoding'] !== 'gzip') return bytes
    return await inflate(bytes, { maxOutputLength: MAX_BODY })
  } catch (cause) {
    const tooLarge =
      cause instanceof errors.ResponseExceededMaxSizeError ||
      (cause as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE'
    throw new TransportError(tooLarge ? 'too-large' : call.signal?.aborted ? 'aborted' : 'no-answer', true, { cause })
  }
}
