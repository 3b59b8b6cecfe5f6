import { type KubeStatus, readStatus } from './errors.ts'
import { TransportError } from './transport.ts'
import { WatchFault } from './watch-stream.ts'

/**
 * expired: our version is of no use, list anew. refused: it will not heal by itself soon. unreadable: what was sent makes
 * no sense. passing: go on from the same version. `text` holds no address.
 */
export interface Failure {
  readonly kind: 'expired' | 'refused' | 'unreadable' | 'passing'
  readonly text: string
  readonly retryAfterMs: number
}

const UNANSWERED = {
  unreachable: 'the cluster cannot be reached',
  'no-answer': 'the cluster did not answer',
  throttled: 'the cluster asks us to wait',
  aborted: 'stopped',
  'too-large': 'the cluster answered more than can be taken',
} as const

/** What a failed list or watch means for the next try (kube-client.md §6.3). */
export function judgeFailure(error: unknown, what: 'list' | 'watch'): Failure {
  if (error instanceof TransportError) {
    return { kind: 'passing', text: UNANSWERED[error.kind], retryAfterMs: error.retryAfterMs ?? 0 }
  }
  if (error instanceof WatchFault && error.status) return judgeStatus(error.status, what)
  if (error instanceof WatchFault && error.kind === 'broken') {
    return { kind: 'passing', text: 'the watch broke off', retryAfterMs: 0 }
  }
  return { kind: 'unreadable', text: `the ${what} could not be read`, retryAfterMs: 0 }
}

function judgeStatus(status: KubeStatus, what: 'list' | 'watch'): Failure {
  const reason = status.reason ? ` ${status.reason}` : ''
  const text = `the cluster answered ${status.code}${reason} to the ${what}`
  const retryAfterMs = (status.retryAfterSeconds ?? (status.code === 429 ? 1 : 0)) * 1000
  const ahead = status.causes.some(cause => cause.reason === 'ResourceVersionTooLarge')
  const expired = ahead || status.code === 410 || status.reason === 'Expired' || status.reason === 'Gone'
  const refused = status.code === 403 || status.code === 404
  return { kind: expired ? 'expired' : refused ? 'refused' : 'passing', text, retryAfterMs }
}

/** The Status inside an ERROR event, read as an error reply would be. */
export const statusOf = (object: unknown): KubeStatus => {
  const status = object as { code?: unknown }
  const code = typeof status.code === 'number' ? status.code : 500
  return readStatus({ status: code, headers: {}, body: Buffer.from(JSON.stringify({ kind: 'Status', ...status })) })
}
