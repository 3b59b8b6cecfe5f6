/**
 * Every failure a caller can act on, with its HTTP status. `code` is API: never renamed, never reused.
 * The document, the README and this catalogue are held equal by a test.
 */
export const ERROR_CATALOGUE = {
  REQUEST_INVALID: 400,
  RUNTIME_ID_INVALID: 400,
  SELECTOR_INVALID: 400,
  CONFIGURATION_ERROR: 400,
  UNAUTHENTICATED: 401,
  FORBIDDEN: 403,
  NAMESPACE_NOT_ALLOWED: 403,
  RUNTIME_NOT_FOUND: 404,
  POD_NOT_FOUND: 404,
  ROUTE_NOT_FOUND: 404,
  METHOD_NOT_ALLOWED: 405,
  REQUEST_TIMEOUT: 408,
  RUNTIME_EXISTS: 409,
  RUNTIME_BUSY: 409,
  JOB_NOT_RESTARTABLE: 409,
  IDEMPOTENCY_KEY_REUSED: 409,
  FOREIGN_WORKLOAD: 409,
  QUOTA_EXCEEDED: 409,
  LOGS_NOT_READY: 409,
  CURSOR_EXPIRED: 410,
  BODY_TOO_LARGE: 413,
  URI_TOO_LONG: 414,
  MEDIA_TYPE_UNSUPPORTED: 415,
  SPEC_REFUSED: 422,
  IMAGE_REFUSED: 422,
  DNS_RESOLUTION_ERROR: 422,
  TOO_MANY_REQUESTS: 429,
  HEADERS_TOO_LARGE: 431,
  INTERNAL_ERROR: 500,
  NOT_IMPLEMENTED: 501,
  KUBERNETES_ERROR: 502,
  DOCKER_ERROR: 502,
  CLUSTER_FORBIDDEN: 502,
  CONTAINER_CREATION_FAILED: 502,
  CONTAINER_START_FAILED: 502,
  CONTAINER_STOP_FAILED: 502,
  BACKEND_UNAVAILABLE: 503,
  STORAGE_UNAVAILABLE: 503,
  SHUTTING_DOWN: 503,
  BACKEND_TIMEOUT: 504,
} as const

export type ErrorCode = keyof typeof ERROR_CATALOGUE

/** One fault of a request: where (JSON pointer, or the name of a header or query parameter) and what would be accepted. */
export interface FieldError {
  path: string
  message: string
}

export interface RuntimeErrorDetails {
  /** Logged, never sent. */
  cause?: unknown
  errors?: readonly FieldError[]
  runtimeId?: string
  /** The cluster's own CamelCase word. */
  reason?: string
  retryAfterSeconds?: number
  /** Further members of the problem, such as `oldest` and `newest` of CURSOR_EXPIRED. */
  extra?: Readonly<Record<string, unknown>>
  /**
   * Whether the cluster surely did not do what was asked. Only a failed write may leave it false: then the verb stays
   * in hand (lifecycle.md §2.3). Default true, save for BACKEND_TIMEOUT.
   */
  notDone?: boolean
  /** A refused create left its workload behind because undoing it got no answer (lifecycle.md §2.2). Default false. */
  leftBehind?: boolean
}

/** The one error that reaches a caller. Its message starts with "cannot …" and says what to change; it never carries a cause. */
export class RuntimeError extends Error {
  readonly code: ErrorCode
  readonly status: number
  readonly errors: readonly FieldError[]
  readonly runtimeId: string | null
  readonly reason: string | null
  readonly retryAfterSeconds: number | null
  readonly extra: Readonly<Record<string, unknown>>
  readonly notDone: boolean
  readonly leftBehind: boolean

  constructor(code: ErrorCode, message: string, details: RuntimeErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause })
    this.name = 'RuntimeError'
    this.code = code
    this.status = ERROR_CATALOGUE[code]
    this.errors = details.errors ?? []
    this.runtimeId = details.runtimeId ?? null
    this.reason = details.reason ?? null
    this.retryAfterSeconds = details.retryAfterSeconds ?? null
    this.extra = details.extra ?? {}
    this.notDone = details.notDone ?? code !== 'BACKEND_TIMEOUT'
    this.leftBehind = details.leftBehind ?? false
  }
}

export const isRuntimeError = (error: unknown, code?: ErrorCode): error is RuntimeError =>
  error instanceof RuntimeError && (code === undefined || error.code === code)
