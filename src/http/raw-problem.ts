import { randomUUID } from 'node:crypto'
import { type Server, type ServerResponse, STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import { RuntimeError } from '../errors.ts'
import { frameworkProblem, PROBLEM_TYPE, problemOf } from './problem.ts'
import type { Traffic } from './traffic.ts'

/** Node's parser errors that are not simply a malformed request. */
const STATUS_OF: Readonly<Record<string, number>> = {
  HPE_HEADER_OVERFLOW: 431,
  HPE_CHUNK_EXTENSIONS_OVERFLOW: 413,
  ERR_HTTP_REQUEST_TIMEOUT: 408,
}

export interface ParserError extends Error {
  readonly code?: string
  readonly rawPacket?: Buffer
}

/**
 * Answers what never became a request: the framework has no reply for it. The socket is closed after it, since nobody
 * can say where the next request would begin.
 */
export function answerParserError(error: ParserError, socket: Socket, traffic: Traffic): RuntimeError | null {
  const reply = traffic.replyOn(socket)
  if (error.code === 'ECONNRESET' || !socket.writable || reply?.headersSent === true) {
    socket.destroy()
    return null
  }
  const problem = frameworkProblem(statusOf(error), error)
  socket.end(rawReply(problem))
  // A caller that goes on sending without reading must not keep the socket.
  setTimeout(() => socket.destroy(), 1_000).unref()
  return problem
}

function statusOf(error: ParserError): number {
  const status = STATUS_OF[error.code ?? ''] ?? 400
  const line = error.rawPacket?.indexOf('\n') ?? 0
  return status === 431 && line === -1 ? 414 : status
}

function rawReply(error: RuntimeError): string {
  const requestId = randomUUID()
  const body = JSON.stringify(problemOf(error, requestId))
  return [
    `HTTP/1.1 ${error.status} ${STATUS_CODES[error.status]}`,
    `content-type: ${PROBLEM_TYPE}`,
    `content-length: ${Buffer.byteLength(body)}`,
    `x-request-id: ${requestId}`,
    'connection: close',
    '',
    body,
  ].join('\r\n')
}

/** `Expect` of anything but `100-continue`: Node would answer 417 with an empty body. */
export function refuseExpectations(server: Server): void {
  server.on('checkExpectation', (_request: unknown, reply: ServerResponse) => {
    const requestId = randomUUID()
    const error = new RuntimeError('REQUEST_INVALID', 'cannot meet this expectation: leave out the header Expect')
    const body = JSON.stringify(problemOf(error, requestId))
    reply.writeHead(error.status, {
      'content-type': PROBLEM_TYPE,
      'content-length': Buffer.byteLength(body),
      'x-request-id': requestId,
      connection: 'close',
    })
    reply.end(body)
  })
}
