import { type DestinationStream, type Logger, type LoggerOptions, pino } from 'pino'
import { isRuntimeError } from './errors.ts'

/** Longest line in bytes; collectors split longer ones, and half a JSON object is none. */
export const MAX_LINE_BYTES = 16_384

/** Reserve for the quotes and commas around shortened texts. */
const MAX_TEXT = 2048
const MAX_ITEMS = 20
const MAX_CAUSES = 4

const SECRET_KEYS = new Set(['authorization', 'token', 'env', 'cookie', 'password', 'clientKey', 'secret'])
/** How far down a secret is looked for by its name. */
const MAX_DEPTH = 4

const CENSOR = '[redacted]'

/**
 * Options of the one logger. Levels: `error` a person must act, a healthy system logs none; `warn` something is wrong that
 * mends itself or is the caller's; `info` start, stop, verbs and connections lost and found; `debug` each decision.
 * Each line is one JSON object of at most 16 KiB. No header, token or environment value gets out.
 */
export function loggerOptions(level: string): LoggerOptions {
  return {
    level,
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    // Not pino's `redact`: with wildcards it takes several times as long as writing the line.
    formatters: { level: label => ({ level: label }), log: fields => censored(fields) },
    serializers: {
      err: serialiseError,
      error: serialiseError,
      cause: serialiseError,
      req: serialiseRequest,
      res: serialiseReply,
    },
    hooks: { streamWrite: line => shorten(line.replace(BEARER, `$1${CENSOR}`)) },
  }
}

/** Writes to standard output, or to `destination`. */
export const createLogger = (level: string, destination?: DestinationStream): Logger =>
  destination ? pino(loggerOptions(level), destination) : pino(loggerOptions(level))

/** The same fields with secrets blotted out, copied only where there is one. Errors and requests have serialisers of their own. */
function censored(fields: Record<string, unknown>, depth = 1): Record<string, unknown> {
  let copy: Record<string, unknown> | null = null
  for (const key in fields) {
    const value = fields[key]
    const shown = isSecret(key, value)
      ? CENSOR
      : depth < MAX_DEPTH && isPlain(value)
        ? censored(value, depth + 1)
        : value
    if (shown === value) continue
    copy ??= Array.isArray(fields) ? ([...fields] as never) : { ...fields }
    copy[key] = shown
  }
  return copy ?? fields
}

const isSecret = (key: string, value: unknown): boolean => value !== null && SECRET_KEYS.has(key)

function isPlain(value: unknown): value is Record<string, unknown> {
  if (typeof value !== 'object' || value === null) return false
  return (
    Array.isArray(value) || Object.getPrototypeOf(value) === Object.prototype || Object.getPrototypeOf(value) === null
  )
}

/** A credential that a message of somebody else repeats. */
const BEARER = /(\bBearer\s+)[^\s"\\]+/gi

export interface SerialisedError {
  type: string
  message: string
  code?: string | number
  status?: number
  reason?: string
  stack?: string
  cause?: SerialisedError
}

/**
 * What a log needs of an error, its causes with it. Of errors of the Kubernetes client the reply's headers, which they
 * carry in a member and in their message too, are left out.
 */
export function serialiseError(error: unknown, depth = 0): SerialisedError {
  if (!(error instanceof Error)) return { type: typeof error, message: clip(describe(error)) }
  const { code, status, reason } = error as { code?: unknown; status?: unknown; reason?: unknown }
  const frames = (error.stack ?? '').split('\n').filter(line => /^\s+at /.test(line))
  const out: SerialisedError = { type: error.name, message: clip(error.message.split('\nHeaders:')[0] ?? '') }
  if (typeof code === 'string' || typeof code === 'number') out.code = code
  if (typeof status === 'number') out.status = status
  if (typeof reason === 'string') out.reason = clip(reason)
  // A RuntimeError says all by its code and message; where it was thrown would only fill the log of an outage.
  if (frames.length > 0 && !isExpected(error)) out.stack = clip(frames.join('\n'))
  if (error.cause !== undefined && depth < MAX_CAUSES) out.cause = serialiseError(error.cause, depth + 1)
  return out
}

const isExpected = (error: Error): boolean => isRuntimeError(error) && error.code !== 'INTERNAL_ERROR'

function describe(value: unknown): string {
  try {
    return typeof value === 'string' ? value : (JSON.stringify(value) ?? String(value))
  } catch {
    return String(value)
  }
}

const serialiseRequest = (request: { id?: unknown; method?: unknown; url?: unknown; ip?: unknown }) => ({
  id: request.id,
  method: request.method,
  url: request.url,
  ip: request.ip,
})

const serialiseReply = (reply: { statusCode?: unknown }) => ({ statusCode: reply.statusCode })

const clip = (text: string, max = MAX_TEXT): string => (text.length > max ? `${text.slice(0, max)}…` : text)

/** A line over the limit, with its long texts and lists cut until it fits; still one JSON object. */
function shorten(line: string): string {
  if (line.length * 3 <= MAX_LINE_BYTES || Buffer.byteLength(line) <= MAX_LINE_BYTES) return line
  const entry: unknown = JSON.parse(line)
  for (let max = MAX_TEXT; max >= 32; max /= 4) {
    const shorter = `${JSON.stringify({ ...(cut(entry, max) as object), truncated: true })}\n`
    if (Buffer.byteLength(shorter) <= MAX_LINE_BYTES) return shorter
  }
  const { level, time, msg } = entry as { level?: unknown; time?: unknown; msg?: unknown }
  return `${JSON.stringify({ level, time, msg: clip(String(msg)), truncated: true })}\n`
}

function cut(value: unknown, max: number): unknown {
  if (typeof value === 'string') return clip(value, max)
  if (Array.isArray(value)) return value.slice(0, MAX_ITEMS).map(item => cut(item, max))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, cut(item, max)]))
}
