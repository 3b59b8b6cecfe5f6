import { type ErrorCode, RuntimeError } from '../errors.ts'

export const PROBLEM_TYPE = 'application/problem+json'
const PROBLEM_BASE = 'https://runtimed.dev/problems#'

/** RFC 9457, with our members. Further members may stand beside them (`oldest`, `newest`). */
export interface Problem {
  readonly type: string
  readonly title: string
  readonly status: number
  readonly code: ErrorCode
  readonly detail: string
  readonly errors: readonly { path: string; message: string }[]
  readonly requestId: string
  readonly runtimeId: string | null
  readonly reason: string | null
  readonly [member: string]: unknown
}

/** `RUNTIME_NOT_FOUND` → `Runtime not found`: the same for every occurrence of a code, as RFC 9457 wants a title. */
const titleOf = (code: ErrorCode): string => {
  const words = code.toLowerCase().replaceAll('_', ' ')
  return words.charAt(0).toUpperCase() + words.slice(1)
}

export const problemOf = (error: RuntimeError, requestId: string): Problem => ({
  ...error.extra,
  type: PROBLEM_BASE + error.code,
  title: titleOf(error.code),
  status: error.status,
  code: error.code,
  detail: error.message,
  errors: error.errors,
  requestId,
  runtimeId: error.runtimeId,
  reason: error.reason,
})

/** Seconds after which a repeat makes sense; null where a repeat alone mends nothing. */
export function retryAfter(error: RuntimeError): number | null {
  if (error.retryAfterSeconds !== null) return Math.max(1, Math.ceil(error.retryAfterSeconds))
  if (error.status === 429) return 1
  return error.status === 503 ? 5 : null
}

/** What the framework says of a request it could not read, by status: its own texts are not ours to promise. */
const FRAMEWORK: Readonly<Record<number, readonly [ErrorCode, string]>> = {
  404: ['ROUTE_NOT_FOUND', 'cannot find this path'],
  408: ['REQUEST_TIMEOUT', 'cannot wait longer for the request: send its headers within 10 s and its body within 30 s'],
  413: ['BODY_TOO_LARGE', 'cannot read the body: at most 256 KiB are accepted'],
  414: ['URI_TOO_LONG', 'cannot read the URL: at most 8 KiB are accepted, and 256 characters in one segment'],
  415: ['MEDIA_TYPE_UNSUPPORTED', 'cannot read the body: send application/json, not compressed'],
  431: ['HEADERS_TOO_LARGE', 'cannot read the headers: at most 8 KiB are accepted'],
}

export function frameworkProblem(status: number, cause?: unknown): RuntimeError {
  const [code, detail] = FRAMEWORK[status] ?? ['REQUEST_INVALID', 'cannot read the request: it is not well formed']
  return new RuntimeError(code, detail, { cause })
}

const INVALID_JSON = new Set(['FST_ERR_CTP_EMPTY_JSON_BODY', 'FST_ERR_CTP_INVALID_JSON_BODY'])

/**
 * Whatever was thrown as what the caller may see of it. Errors that are not ours are INTERNAL_ERROR, with nothing of
 * the cause, unless the framework threw them for a request it could not read.
 */
export function toRuntimeError(error: unknown): RuntimeError {
  if (error instanceof RuntimeError) return error
  const { code, statusCode } = (error ?? {}) as { code?: unknown; statusCode?: unknown }
  const isFrameworks = typeof code === 'string' && code.startsWith('FST_ERR_')
  // The JSON parser of the framework throws a SyntaxError of its own with this status.
  const isJson = (isFrameworks && INVALID_JSON.has(code)) || (error instanceof SyntaxError && statusCode === 400)
  if (isJson) {
    const why = 'it is no JSON object, or has a member __proto__ or constructor.prototype'
    return new RuntimeError('REQUEST_INVALID', `cannot read the body: ${why}`, { cause: error })
  }
  if (isFrameworks && typeof statusCode === 'number' && statusCode >= 400 && statusCode < 500) {
    return frameworkProblem(statusCode, error)
  }
  return new RuntimeError('INTERNAL_ERROR', 'cannot answer: the daemon failed; its log has more under this requestId', {
    cause: error,
  })
}
