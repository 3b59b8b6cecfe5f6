import { setImmediate as nextTurn } from 'node:timers/promises'
import type { FastifyReply, FastifyRequest } from 'fastify'
import * as z from 'zod'
import type { EventBatch, EventFilter } from '../../service/api.ts'
import type { App, RouteContext } from '../app.ts'
import { formatFor, sendEvents } from '../event-stream.ts'
import { ok, problems } from '../replies.ts'
import { EventsQuery, IdParams, LastEventIdHeader, RuntimeEventsQuery, StreamQuery } from '../request-schemas.ts'
import { EventList } from '../schemas.ts'
import { toEventList } from '../wire.ts'

const tags = ['Events']
const DEFAULT_PAGE = 500

export function eventRoutes(app: App, context: RouteContext): void {
  pageRoutes(app, context)
  streamRoute(app, context)
}

function pageRoutes(app: App, { services: { events } }: RouteContext): void {
  app.get(
    '/v1/events',
    {
      config: { right: 'read' },
      schema: {
        operationId: 'listEvents',
        tags,
        summary: 'Read the feed',
        description: 'One page after a cursor, at once, even if empty. A cursor that can no longer be followed is 410.',
        querystring: EventsQuery,
        response: { 200: ok(EventList, 'One page'), ...problems(410) },
      },
    },
    async ({ scope, query }) =>
      toEventList(events.epoch, await events.page(scope, filterOf(query), query.after, query.limit ?? DEFAULT_PAGE)),
  )
  app.get(
    '/v1/runtimes/:id/events',
    {
      config: { right: 'read' },
      schema: {
        operationId: 'listRuntimeEvents',
        tags,
        summary: 'Read the events of one runtime',
        description: 'All its lives, also once it is deleted.',
        params: IdParams,
        querystring: RuntimeEventsQuery,
        response: { 200: ok(EventList, 'One page'), ...problems(404, 410) },
      },
    },
    async ({ scope, params: { id }, query: { after, limit = DEFAULT_PAGE } }) =>
      toEventList(events.epoch, await events.pageOf(scope, id, after, limit)),
  )
}

function streamRoute(app: App, context: RouteContext): void {
  const { events } = context.services
  app.get(
    '/v1/events/stream',
    {
      config: { right: 'read' },
      schema: {
        operationId: 'streamEvents',
        tags,
        summary: 'Follow the feed',
        description: [
          'Server-sent events: `id` is the cursor, `event` the type, `data` a RuntimeEvent in JSON on one line.',
          'With `Accept: application/x-ndjson` one RuntimeEvent a line instead, an empty line as heartbeat.',
          'History goes out at your pace; once live, a reader that leaves 1,000 events or 1 MiB unread is cut off and resumes by its cursor.',
        ].join(' '),
        querystring: StreamQuery,
        headers: LastEventIdHeader,
        response: { 200: ok(z.string(), 'Events as they come', 'text/event-stream'), ...problems(410) },
      },
    },
    async (request, reply) => {
      const { scope, query } = request
      const after = request.headers['last-event-id'] || query.after
      const format = formatFor(request.headers.accept)
      reply.type(format.contentType).header('cache-control', 'no-store').header('x-accel-buffering', 'no')
      if (request.method === 'HEAD') {
        await events.page(scope, filterOf(query), after, 1)
        return reply.send('')
      }
      const signal = app.traffic.signalFor(reply.raw)
      const batches = await opened(events.stream(scope, filterOf(query), after, signal))
      app.traffic.openStream(reply.raw)
      await follow(batches, { request, reply, format, context })
    },
  )
}

/** The same batches, once it is sure that they do not begin with a refusal, which is still answered as a problem. */
async function opened(batches: AsyncIterable<EventBatch>): Promise<AsyncIterable<EventBatch>> {
  const iterator = batches[Symbol.asyncIterator]()
  const first = iterator.next()
  await Promise.race([first, nextTurn()])
  let pending: Promise<IteratorResult<EventBatch>> | null = first
  return {
    [Symbol.asyncIterator]: () => ({
      next() {
        const next = pending ?? iterator.next()
        pending = null
        return next
      },
      return: async () => (await iterator.return?.()) ?? { done: true, value: undefined },
    }),
  }
}

interface Following {
  readonly request: FastifyRequest
  readonly reply: FastifyReply
  readonly format: ReturnType<typeof formatFor>
  readonly context: RouteContext
}

async function follow(
  batches: AsyncIterable<EventBatch>,
  { request, reply, format, context }: Following,
): Promise<void> {
  const { metrics, limits, services } = context
  const { raw } = reply
  raw.writeHead(200, reply.getHeaders() as Record<string, string>)
  raw.flushHeaders()
  reply.hijack()
  metrics.streams.inc()
  raw.once('close', () => metrics.streams.dec())
  try {
    const { cut } = await sendEvents(batches, { reply: raw, format, epoch: services.events.epoch, limits })
    if (!cut) return void raw.end()
    metrics.cutReaders.inc()
    request.log.info('slow reader of the event stream cut off')
  } catch (error) {
    request.log.info({ reason: String((error as { code?: unknown }).code ?? 'failed') }, 'event stream ended early')
  }
  // Not ended but broken off: the reader can tell that there is more, and resumes by its cursor.
  raw.destroy()
}

function filterOf(query: z.output<typeof StreamQuery>): EventFilter {
  return {
    runtimeIds: query.runtimeId,
    types: query.type,
    namespaces: query.namespace,
    labelSelector: query.labelSelector,
  }
}
