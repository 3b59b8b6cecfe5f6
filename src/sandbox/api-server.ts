import { randomUUID } from 'node:crypto'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { gzip } from 'node:zlib'
import { discover } from './discovery.ts'
import type { Failure, Faults, JournalEntry } from './faults.ts'
import { type Answer, handle } from './handlers.ts'
import type { ListWatch } from './list-watch.ts'
import { findLog, type LogSource, logOptions } from './pod-logs.ts'
import type { Registry } from './registry.ts'
import { factsOf, type RequestFacts, readJson } from './request.ts'
import { noSuchPath, StatusError } from './status-error.ts'
import { ResponseStream } from './stream.ts'

/** Bodies above this are gzipped for who accepts it, as a real API server does. */
const GZIP_FROM = 128 * 1024

export interface ApiServerParts {
  registry: Registry
  listWatch: ListWatch
  faults: Faults
  logs: LogSource
}

/** The HTTP side: plain HTTP/1.1 on loopback. Reads requests, plays faults, answers or streams. */
export class ApiServer {
  readonly #parts: ApiServerParts
  readonly #server: Server

  constructor(parts: ApiServerParts) {
    this.#parts = parts
    this.#server = createServer({ keepAliveTimeout: 90_000 }, (request, response) => {
      this.#serve(request, response).catch(() => response.socket?.destroy())
    })
  }

  /** Starts to listen on 127.0.0.1 (0 = any free port); resolves with the port. */
  listen(port: number): Promise<number> {
    return new Promise((resolve, reject) => {
      this.#server.once('error', reject)
      this.#server.listen(port, '127.0.0.1', () => resolve((this.#server.address() as AddressInfo).port))
    })
  }

  /** Ends streams and connections; nothing is answered afterwards. */
  async close(): Promise<void> {
    this.#parts.faults.closeStreams('end')
    const closed = new Promise<void>(resolve => this.#server.close(() => resolve()))
    this.#server.closeAllConnections()
    await closed
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { faults } = this.#parts
    let facts: RequestFacts
    try {
      facts = factsOf(request)
    } catch (error) {
      return sendError(response, error)
    }
    const entry = faults.record(facts)
    response.on('finish', () => {
      entry.status = response.statusCode
    })
    const failure = faults.take(facts)
    if (failure?.slowMs) await sleep(failure.slowMs)
    if (failure && !failure.performed && play(failure, response)) return
    try {
      faults.admit(facts, request.headers.authorization)
      await this.#carryOut(request, response, { facts, entry, failure })
    } catch (error) {
      sendError(response, error)
    }
  }

  async #carryOut(
    request: IncomingMessage,
    response: ServerResponse,
    { facts, failure }: { facts: RequestFacts; entry: JournalEntry; failure: Failure | undefined },
  ): Promise<void> {
    const { registry, listWatch, faults } = this.#parts
    if (facts.resource === undefined) return answerPath(facts, response)
    if (facts.verb === 'watch' && facts.subresource === undefined) return listWatch.watch(facts, response)
    if (facts.subresource === 'log') return this.#log(facts, response)
    const body = await readJson(request)
    const write = faults.countWrite(facts)
    const call = { facts, body, contentType: request.headers['content-type'] ?? '', staleAt: faults.staleAt }
    let answer: Answer | StatusError
    try {
      answer = handle(registry, listWatch, call)
    } catch (error) {
      if (!(error instanceof StatusError)) throw error
      answer = error
    }
    await faults.crashPoint(write, 'before')
    if (failure?.performed && play(failure, response)) return
    if (write > 0) response.on('finish', () => void faults.crashPoint(write, 'after'))
    if (answer instanceof StatusError) sendError(response, answer)
    else send(request, response, answer)
  }

  #log(facts: RequestFacts, response: ServerResponse): void {
    const { registry, logs, faults } = this.#parts
    if (facts.verb !== 'get' && facts.verb !== 'watch') throw noSuchPath()
    const query = new URLSearchParams(facts.query)
    const options = logOptions(query, Date.now())
    const log = findLog(registry.get('pods', facts.namespace, facts.name!), query, logs)
    response.writeHead(200, { 'content-type': 'text/plain' })
    response.flushHeaders()
    const stream = new ResponseStream(facts, response, faults)
    if (log) stream.onClose(log.read(options, stream))
    else stream.end()
  }
}

/** Plays a fault; true when that was the answer. */
function play(failure: Failure, response: ServerResponse): boolean {
  if (failure.hang) return true
  if (failure.reset) {
    response.socket?.resetAndDestroy()
    return true
  }
  if (failure.status === undefined) return false
  if (failure.retryAfter !== undefined) response.setHeader('retry-after', String(failure.retryAfter))
  if (failure.body !== undefined) {
    response.writeHead(failure.status, {
      'content-type': failure.body.startsWith('{') ? 'application/json' : 'text/html',
    })
    response.end(failure.body)
    return true
  }
  const details = failure.retryAfter === undefined ? {} : { retryAfterSeconds: failure.retryAfter }
  sendError(
    response,
    new StatusError(
      failure.status,
      failure.reason ?? reasonOf(failure.status),
      failure.message ?? 'fault injected by a test',
      details,
    ),
  )
  return true
}

const REASONS: Record<number, string> = {
  400: 'BadRequest',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'NotFound',
  409: 'Conflict',
  410: 'Expired',
  422: 'Invalid',
  429: 'TooManyRequests',
  500: 'InternalError',
  503: 'ServiceUnavailable',
  504: 'Timeout',
}

const reasonOf = (status: number): string => REASONS[status] ?? 'InternalError'

function answerPath(facts: RequestFacts, response: ServerResponse): void {
  const found = discover(facts.path)
  if (found === undefined) throw noSuchPath()
  const isText = typeof found === 'string'
  response.writeHead(200, { 'content-type': isText ? 'text/plain; charset=utf-8' : 'application/json' })
  response.end(isText ? found : JSON.stringify(found))
}

function send(request: IncomingMessage, response: ServerResponse, { status, text }: Answer): void {
  response.setHeader('content-type', 'application/json')
  response.setHeader('audit-id', randomUUID())
  if (text.length > GZIP_FROM && /\bgzip\b/.test(String(request.headers['accept-encoding'] ?? ''))) {
    gzip(text, { level: 1 }, (error, packed) => {
      if (error) response.destroy(error)
      else response.writeHead(status, { 'content-encoding': 'gzip' }).end(packed)
    })
    return
  }
  response.writeHead(status).end(request.method === 'HEAD' ? undefined : text)
}

function sendError(response: ServerResponse, error: unknown): void {
  if (response.headersSent) {
    response.destroy()
    return
  }
  const known =
    error instanceof StatusError
      ? error
      : new StatusError(500, 'InternalError', `Internal error occurred: ${(error as Error).message}`)
  response.writeHead(known.code, { 'content-type': 'application/json' })
  response.end(JSON.stringify(known.body))
}
