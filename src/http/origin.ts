import type { IncomingMessage } from 'node:http'
import { isIPv4 } from 'node:net'
import { RuntimeError } from '../errors.ts'

/** An address or a host name that only this machine answers to: `localhost`, 127.0.0.0/8, ::1. */
export function isLoopback(host: string): boolean {
  const name = host.toLowerCase().replace(/^\[(.*)\]$/, '$1')
  if (name === 'localhost' || name === '::1') return true
  const v4 = name.startsWith('::ffff:') ? name.slice('::ffff:'.length) : name
  return isIPv4(v4) && v4.startsWith('127.')
}

const HOST_HEADER = /^(\[[0-9a-fA-F:.]+\]|[^:/?#@[\]\s]+)(?::[0-9]{1,5})?$/

/**
 * Without tokens the browser of whoever sits at this machine is the way in: a foreign page may name us as its own host
 * (DNS rebinding, seen in Host) or post to us blindly (seen in Origin). Throws FORBIDDEN. `anyHost` lifts the first check alone.
 */
export function requireOwnSite(request: IncomingMessage, { anyHost }: { anyHost: boolean }): void {
  const { host = '', origin } = request.headers
  const [, name] = HOST_HEADER.exec(host) ?? []
  if (!anyHost && (name === undefined || !isLoopback(name))) {
    throw new RuntimeError(
      'FORBIDDEN',
      'cannot serve this Host without tokens: use localhost, or set TOKENS_FILE or ALLOW_ANONYMOUS',
    )
  }
  if (origin !== undefined && !isOrigin(origin, host)) {
    throw new RuntimeError('FORBIDDEN', 'cannot serve a page of another site without tokens: set TOKENS_FILE')
  }
}

const isOrigin = (origin: string, host: string): boolean =>
  [`http://${host}`, `https://${host}`].some(own => own.toLowerCase() === origin.toLowerCase())
