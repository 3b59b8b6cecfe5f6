import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import type { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import * as z from 'zod'
import type { LogQuery } from '../../service/api.ts'
import type { App, RouteContext } from '../app.ts'
import { CLUSTER, ok, problems } from '../replies.ts'
import { IdParams, LogsQuery } from '../request-schemas.ts'

const TEXT = 'text/plain; charset=utf-8'
const DEFAULT_TAIL = 200
const DEFAULT_LIMIT_BYTES = 1024 * 1024

const KEPT = {
  'x-log-kept': { type: 'string', description: '`true` when this is the tail kept after the end of the run.' },
}

export function logRoutes(app: App, { services }: RouteContext): void {
  app.get(
    '/v1/runtimes/:id/logs',
    {
      config: { right: 'read' },
      schema: {
        operationId: 'getRuntimeLogs',
        tags: ['Runtimes'],
        summary: 'Read the log of a runtime',
        description: 'Bytes as they were written, of the newest pod. With `follow` until it ends or you leave.',
        params: IdParams,
        querystring: LogsQuery,
        'x-response-headers': { 200: KEPT },
        response: { 200: ok(z.string(), 'The log', 'text/plain'), ...problems(404, 409, ...CLUSTER) },
      },
    },
    async (request, reply) => {
      const { scope, params, query } = request
      const wanted = { ...readQuery(query), signal: app.traffic.signalFor(reply.raw) }
      const { body, kept } = await services.runtimes.logs(scope, params.id, wanted)
      if (kept) reply.header('x-log-kept', 'true')
      reply.type(TEXT)
      if (request.method === 'HEAD') {
        body.destroy()
        return reply.send('')
      }
      // What goes wrong before the first byte can still be told; a follower sees the headers at once instead.
      if (!wanted.follow) await firstByte(body)
      const headers = reply.getHeaders()
      reply.hijack()
      await sendBody(body, reply.raw, headers).catch(error =>
        request.log.debug({ error: String(error) }, 'log cut off'),
      )
    },
  )
}

function readQuery(query: z.output<typeof LogsQuery>): Omit<LogQuery, 'signal'> {
  const { since } = query
  return {
    tail: query.tail ?? DEFAULT_TAIL,
    follow: query.follow ?? false,
    since: since === undefined ? undefined : typeof since === 'number' ? { seconds: since } : { time: since },
    timestamps: query.timestamps ?? false,
    container: query.container,
    previous: query.previous ?? false,
    limitBytes: query.limitBytes ?? DEFAULT_LIMIT_BYTES,
  }
}

/** Resolves when there is something to read or nothing to come; rejects with the stream's error. */
async function firstByte(body: Readable): Promise<void> {
  if (body.readableLength > 0 || body.readableEnded || body.destroyed) return
  const settled = new AbortController()
  const { signal } = settled
  const signs = ['readable', 'end', 'close'].map(sign => once(body, sign, { signal }))
  await Promise.race(signs).finally(() => settled.abort())
}

/** Ends the reply where the body ends; a body that breaks off breaks the reply, so that the reader can tell. */
async function sendBody(body: Readable, reply: ServerResponse, headers: Record<string, unknown>): Promise<void> {
  reply.writeHead(200, headers as Record<string, string>)
  reply.flushHeaders()
  await pipeline(body, reply)
}
