import { timingSafeEqual } from 'node:crypto'
import { statSync } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import { RuntimeError } from '../errors.ts'
import { intersect, type Scope } from '../service/scope.ts'
import { isLoopback, requireOwnSite } from './origin.ts'
import { digestOf, readTokens, type Token } from './token-file.ts'

/**
 * What a route asks of its caller. `open`: nothing. `page`: any token, or none on loopback. `read`: any token; what it
 * sees is the services' business. `write`: a token with write access.
 */
export type Right = 'open' | 'page' | 'read' | 'write'

export interface Auth {
  /** Throws UNAUTHENTICATED or FORBIDDEN. */
  authorise(request: IncomingMessage, right: Right): Scope
}

export interface AuthOptions {
  /** null = no tokens: whoever can connect may do everything. */
  readonly tokensFile: string | null
  readonly namespaces: readonly string[] | '*'
  readonly allowAnonymous: boolean
  /** Told when a changed file cannot be read; the tokens read before stay in force. */
  readonly onBadFile: (error: unknown) => void
  readonly recheckMs?: number
  readonly now?: () => number
}

/** The file is looked at again at most this often, and only when a request comes. */
const RECHECK_MS = 500

/** Throws when the file is bad or missing now. */
export function createAuth(options: AuthOptions): Auth {
  return options.tokensFile === null ? anonymousAuth(options) : tokenAuth(options, options.tokensFile)
}

function anonymousAuth({ namespaces, allowAnonymous }: AuthOptions): Auth {
  const scope: Scope = { token: null, namespaces, write: true }
  return {
    authorise(request, right) {
      if (right !== 'open') requireOwnSite(request, { anyHost: allowAnonymous })
      return scope
    },
  }
}

function tokenAuth(options: AuthOptions, file: string): Auth {
  const tokens = watchedTokens(options, file)
  const nobody: Scope = { token: null, namespaces: [], write: false }
  return {
    authorise(request, right) {
      if (right === 'open') return nobody
      const presented = bearerOf(request)
      if (presented === null && right === 'page' && isLoopback(request.socket.remoteAddress ?? '')) return nobody
      const token = presented === null ? undefined : find(tokens(), presented)
      if (token === undefined) {
        throw new RuntimeError('UNAUTHENTICATED', 'cannot serve without a valid token: send "Authorization: Bearer …"')
      }
      if (right === 'write' && !token.write) {
        throw new RuntimeError('FORBIDDEN', 'cannot change anything with a token whose access is "read"')
      }
      return { token: token.name, namespaces: intersect(token.namespaces, options.namespaces), write: token.write }
    },
  }
}

/** The tokens in force, read again when the file looks different. Its directory may be swapped, as Kubernetes does. */
function watchedTokens(options: AuthOptions, file: string): () => readonly Token[] {
  const { recheckMs = RECHECK_MS, now = Date.now, onBadFile } = options
  let looks = looksOf(file)
  let tokens = readTokens(file)
  let checkedAt = now()
  return () => {
    if (now() - checkedAt < recheckMs) return tokens
    checkedAt = now()
    const looksNow = looksOf(file)
    if (looksNow === looks) return tokens
    looks = looksNow
    try {
      tokens = readTokens(file)
    } catch (error) {
      onBadFile(error)
    }
    return tokens
  }
}

/** Changes whenever the file does; `missing` when it cannot be looked at. */
function looksOf(file: string): string {
  const stat = statSync(file, { throwIfNoEntry: false })
  return stat === undefined ? 'missing' : `${stat.mtimeMs} ${stat.ino} ${stat.size}`
}

const BEARER = /^Bearer +([!-~]{1,4096})$/i

/** The one token of the request; null when there is none, more than one, or something else. */
function bearerOf(request: IncomingMessage): string | null {
  const lines = request.rawHeaders.filter((name, at) => at % 2 === 0 && name.toLowerCase() === 'authorization')
  if (lines.length !== 1) return null
  return BEARER.exec(request.headers.authorization ?? '')?.[1] ?? null
}

/** Takes the same time whichever token matches, if any: all digests are compared, and all to the end. */
function find(tokens: readonly Token[], presented: string): Token | undefined {
  const digest = digestOf(presented)
  let found: Token | undefined
  for (const token of tokens) if (timingSafeEqual(token.digest, digest)) found = token
  return found
}
