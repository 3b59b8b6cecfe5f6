import { type ErrorCode, type FieldError, RuntimeError } from '../errors.ts'
import { retryAfterMs } from './timing.ts'
import { type Reply, TransportError } from './transport.ts'

export interface StatusCause {
  readonly reason: string | null
  /** The cluster's own field path, such as `spec.template.spec.containers[0].image`. */
  readonly field: string | null
  readonly message: string
}

/** An error reply of the API server. `message` is the cluster's text, cut to a sane length; it is not for callers as it is. */
export interface KubeStatus {
  /** HTTP status. */
  readonly code: number
  readonly reason: string | null
  readonly message: string
  /** details.kind, e.g. `namespaces` when a create found no namespace. */
  readonly kind: string | null
  readonly causes: readonly StatusCause[]
  readonly retryAfterSeconds: number | null
}

/** What was being done, for the message: `cannot ${action}: …`, e.g. action "create the Deployment web in ai". */
export interface Doing {
  readonly action: string
  /** The call changes the cluster: an answer that never came may mean that it was done. */
  readonly write: boolean
  /** A 404 speaks of the namespace, not of the object. */
  readonly create?: boolean
}

/**
 * The cluster answered with an error. `code` is the right one when the caller has nothing better to say; who knows more
 * (404 of a delete, 409 of a create, 400 of a log) looks at `kube`.
 */
export class KubeStatusError extends RuntimeError {
  readonly kube: KubeStatus

  constructor(kube: KubeStatus, doing: Doing) {
    const verdict = judge(kube, doing)
    super(verdict.code, `cannot ${doing.action}: ${verdict.why}`, {
      cause: new Error(`HTTP ${kube.code} ${kube.reason ?? ''}: ${kube.message}`),
      errors: verdict.code === 'SPEC_REFUSED' ? fieldErrors(kube) : [],
      ...(kube.reason === null ? {} : { reason: kube.reason }),
      ...(verdict.code === 'BACKEND_UNAVAILABLE' ? { retryAfterSeconds: kube.retryAfterSeconds ?? 1 } : {}),
      notDone: true,
    })
    this.name = 'KubeStatusError'
    this.kube = kube
  }
}

/** Whether the cluster answered with this HTTP status (and reason). */
export const isKubeStatus = (error: unknown, code: number, reason?: string): error is KubeStatusError =>
  error instanceof KubeStatusError && error.kube.code === code && (reason === undefined || error.kube.reason === reason)

/**
 * Everything a transport may throw, as the caller shall see it. Only a write that was sent and not answered in full is
 * left undecided (`notDone` false, BACKEND_TIMEOUT); for a read nothing is ever left undecided.
 */
export function fromTransport(error: unknown, doing: Doing): RuntimeError {
  if (error instanceof RuntimeError) return error
  if (!(error instanceof TransportError)) {
    return new RuntimeError('KUBERNETES_ERROR', `cannot ${doing.action}: the cluster's answer cannot be read`, {
      cause: error,
      notDone: !doing.write,
    })
  }
  const notDone = !(doing.write && error.sent)
  switch (error.kind) {
    case 'unreachable':
    case 'throttled': {
      const why = error.kind === 'throttled' ? 'asks us to wait' : 'cannot be reached'
      const retryAfterSeconds = Math.max(1, Math.ceil((error.retryAfterMs ?? 1000) / 1000))
      const details = { cause: error, retryAfterSeconds, notDone: true }
      return new RuntimeError('BACKEND_UNAVAILABLE', `cannot ${doing.action}: the cluster ${why}; try again`, details)
    }
    case 'too-large': {
      const why = 'the cluster answered more than can be taken'
      return new RuntimeError('KUBERNETES_ERROR', `cannot ${doing.action}: ${why}`, { cause: error, notDone })
    }
    case 'no-answer':
    case 'aborted': {
      const then = notDone ? 'try again' : 'it may have been done; look before trying again'
      const message = `cannot ${doing.action}: the cluster did not answer in time; ${then}`
      return new RuntimeError('BACKEND_TIMEOUT', message, { cause: error, notDone })
    }
  }
}

/** Reads the Status out of an error reply; replies that are no Status (a proxy's HTML) give reason null. */
export function readStatus(reply: Reply, now: number = Date.now()): KubeStatus {
  const status = parse(reply.body)
  const after = retryAfterMs(reply.headers['retry-after'], now)
  const details = status?.details
  return {
    code: reply.status,
    reason: asText(status?.reason),
    message: clip(asText(status?.message) ?? `no Status, ${reply.body.length} bytes`, 4096),
    kind: asText(details?.kind),
    causes: (Array.isArray(details?.causes) ? details.causes : []).slice(0, 50).map(cause => ({
      reason: asText(cause?.reason),
      field: asText(cause?.field),
      message: clip(asText(cause?.message) ?? '', 1000),
    })),
    retryAfterSeconds: after === null ? asSeconds(details?.retryAfterSeconds) : Math.ceil(after / 1000),
  }
}

interface RawStatus {
  reason?: unknown
  message?: unknown
  details?: {
    kind?: unknown
    causes?: ({ reason?: unknown; field?: unknown; message?: unknown } | null)[]
    retryAfterSeconds?: unknown
  }
}

function parse(body: Buffer): RawStatus | null {
  try {
    const value: unknown = JSON.parse(body.toString('utf8'))
    const status = typeof value === 'object' && value !== null && 'kind' in value && value.kind === 'Status'
    return status ? (value as RawStatus) : null
  } catch {
    return null // a proxy's own page: the HTTP status is all we have
  }
}

const asText = (value: unknown): string | null => (typeof value === 'string' && value !== '' ? value : null)
const asSeconds = (value: unknown): number | null => (typeof value === 'number' && value > 0 ? Math.ceil(value) : null)

// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not get through
const CONTROL = /[\u0000-\u001f\u007f]+/g
const clip = (text: string, length: number): string => {
  const line = text.slice(0, length + 1).replace(CONTROL, ' ')
  return line.length > length ? `${line.slice(0, length)}…` : line
}

interface Verdict {
  readonly code: ErrorCode
  readonly why: string
}

const WEBHOOK = /admission webhook ".*" denied/
const BY_ADMISSION = /is forbidden: (?!User ")/

/** kube-client.md §5 and wire.md §7: only what a user must know to mend his spec is told in the cluster's words. */
function judge(kube: KubeStatus, doing: Doing): Verdict {
  const told = clip(kube.message, 500)
  if (doing.write && kube.code >= 400 && kube.code < 500 && WEBHOOK.test(kube.message)) return refused(told)
  switch (kube.code) {
    case 401:
      return { code: 'BACKEND_UNAVAILABLE', why: 'the cluster does not accept our credentials' }
    case 403:
      return judgeForbidden(kube, doing, told)
    case 404:
      if (!doing.create) return { code: 'RUNTIME_NOT_FOUND', why: 'it does not exist' }
      return kube.kind === 'namespaces' ? refused(told) : odd(kube)
    case 409:
      return judgeConflict(kube)
    case 422:
      return doing.write ? refused(told) : odd(kube)
    case 429:
      return { code: 'BACKEND_UNAVAILABLE', why: 'the cluster asks us to wait; try again' }
    case 503:
      return { code: 'BACKEND_UNAVAILABLE', why: 'the cluster is not available; try again' }
    default:
      return odd(kube)
  }
}

const refused = (told: string): Verdict => ({ code: 'SPEC_REFUSED', why: `the cluster refused it: ${told}` })
const odd = (kube: KubeStatus): Verdict => ({ code: 'KUBERNETES_ERROR', why: `the cluster answered ${kube.code}` })

function judgeForbidden(kube: KubeStatus, doing: Doing, told: string): Verdict {
  if (kube.message.includes('exceeded quota')) return { code: 'QUOTA_EXCEEDED', why: told }
  if (kube.causes.some(cause => cause.reason === 'NamespaceTerminating')) {
    return { code: 'RUNTIME_BUSY', why: 'its namespace is being deleted' }
  }
  if (doing.write && BY_ADMISSION.test(kube.message)) return refused(told)
  return { code: 'CLUSTER_FORBIDDEN', why: 'the cluster does not give us the right; extend the role of this service' }
}

function judgeConflict(kube: KubeStatus): Verdict {
  if (kube.reason !== 'AlreadyExists') return odd(kube)
  if (kube.message.startsWith('object is being deleted')) {
    return { code: 'RUNTIME_BUSY', why: 'an object of this name is being deleted; try again once it is gone' }
  }
  return { code: 'RUNTIME_EXISTS', why: 'an object of this name exists' }
}

function fieldErrors(kube: KubeStatus): FieldError[] {
  return kube.causes.map(cause => ({ path: cause.field ?? '', message: cause.message || (cause.reason ?? 'refused') }))
}
