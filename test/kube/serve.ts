import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import type { TestContext } from 'node:test'
import type { ClusterAccess } from '../../src/kube/kube-config.ts'
import { Transport, type TransportOptions } from '../../src/kube/transport.ts'

export interface Seen {
  readonly method: string
  readonly path: string
  readonly query: URLSearchParams
  readonly headers: IncomingMessage['headers']
  readonly body: string
  readonly at: number
}
export type Handler = (seen: Seen, response: ServerResponse, request: IncomingMessage) => void

export interface Served {
  readonly url: string
  readonly seen: Seen[]
  readonly sockets: Set<Socket>
  /** Connections accepted since the start. */
  connections(): number
  close(): Promise<void>
}

/** A real HTTP server on a free port whose answers the test writes; it keeps what it was asked. */
export async function serve(t: TestContext, handler: Handler): Promise<Served> {
  const seen: Seen[] = []
  const sockets = new Set<Socket>()
  let connections = 0
  const server = createServer(async (request, response) => {
    const url = new URL(request.url ?? '/', 'http://x')
    let body = ''
    for await (const chunk of request.on('error', () => {})) body += chunk
    const { method = '', headers } = request
    const one = { method, path: url.pathname, query: url.searchParams, headers, body, at: Date.now() }
    seen.push(one)
    handler(one, response, request)
  })
  server.keepAliveTimeout = 0
  server.on('connection', socket => {
    connections += 1
    sockets.add(socket)
    socket.on('error', () => {}).once('close', () => sockets.delete(socket))
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const close = async (): Promise<void> => {
    server.closeAllConnections()
    await new Promise(resolve => server.close(resolve))
  }
  t.after(close)
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return { url, seen, sockets, connections: () => connections, close }
}

export const access = (server: string, more: Partial<ClusterAccess> = {}): ClusterAccess => ({
  server,
  namespace: null,
  ca: null,
  cert: null,
  key: null,
  skipVerify: false,
  serverName: null,
  credential: { kind: 'none' },
  impersonate: null,
  ...more,
})

/** A transport that is closed with the test. Its deadline is long: on a busy machine a short one fails tests of other things. */
export function transportTo(
  t: TestContext,
  to: string | ClusterAccess,
  options: Partial<TransportOptions> = {},
): Transport {
  const transport = new Transport(typeof to === 'string' ? access(to) : to, { deadlineMs: 5000, ...options })
  t.after(() => transport.close())
  return transport
}

export function json(response: ServerResponse, status: number, body: unknown, headers: Record<string, string> = {}) {
  response.writeHead(status, { 'content-type': 'application/json', ...headers })
  response.end(JSON.stringify(body))
}

export const statusBody = (code: number, reason: string, message = reason, details?: object) => ({
  kind: 'Status',
  apiVersion: 'v1',
  metadata: {},
  status: 'Failure',
  code,
  reason,
  message,
  ...(details ? { details } : {}),
})

/** Waits until it is so; fails the test at the deadline. */
export async function until(what: string, is: () => boolean, ms = 3000): Promise<void> {
  const end = Date.now() + ms
  while (!is()) {
    if (Date.now() > end) throw new Error(`not within ${ms} ms: ${what}`)
    await new Promise(resolve => setTimeout(resolve, 5))
  }
}

/** What the work gives, provided that it is done before a timer of `ms` fires in this very process. */
export async function within<T>(ms: number, work: Promise<T>): Promise<T> {
  const late = Promise.withResolvers<never>()
  const timer = setTimeout(() => late.reject(new Error(`not done within ${ms} ms`)), ms)
  try {
    return await Promise.race([work, late.promise])
  } finally {
    clearTimeout(timer)
  }
}
