import { setImmediate as nextTurn } from 'node:timers/promises'
import type { RuntimeApi, RuntimeListPage, RuntimeListQuery } from '../../service/api.ts'
import type { RuntimeView } from '../../service/runtime-view.ts'
import type { Scope } from '../../service/scope.ts'
import type { App, RouteContext } from '../app.ts'
import { BODY, CLUSTER, LOCATION, ok, problems } from '../replies.ts'
import { CreateBody, CreateQuery, IdempotencyHeader, IdParams, ListQuery, WaitQuery } from '../request-schemas.ts'
import { NoBody, NoQuery } from '../schema-parts.ts'
import { InspectedRuntime, Rendered, Runtime, RuntimeList, Waited } from '../schemas.ts'
import { locationOf, toInspected, toRuntime, toRuntimeList } from '../wire.ts'

const tags = ['Runtimes']
const DEFAULT_PAGE = 100
/** Rows read and shown in about 20 ms. */
const ROWS_A_TURN = 250
const DEFAULT_WAIT_SECONDS = 60

export function runtimeRoutes(app: App, context: RouteContext): void {
  createRoute(app, context)
  readRoutes(app, context)
  verbRoutes(app, context)
  waitRoute(app, context)
}

function createRoute(app: App, { services }: RouteContext): void {
  app.post(
    '/v1/runtimes',
    {
      config: { right: 'write' },
      schema: {
        operationId: 'createRuntime',
        tags,
        summary: 'Create a runtime',
        description:
          'Launches it unless `start` is false. With `dryRun=render` nothing is written and no cluster is called.',
        querystring: CreateQuery,
        headers: IdempotencyHeader,
        body: CreateBody,
        'x-response-headers': { 201: LOCATION },
        response: {
          200: ok(Rendered, 'The objects that would be created'),
          201: ok(Runtime, 'Created'),
          ...problems(409, 422, ...BODY, ...CLUSTER),
        },
      },
    },
    async (request, reply) => {
      const { scope, body } = request
      if (request.query.dryRun === 'render') return { objects: services.runtimes.render(scope, body) }
      const created = await services.runtimes.create(scope, body, request.headers['idempotency-key'] ?? null)
      return reply.code(201).header('location', locationOf(created.id)).send(toRuntime(created))
    },
  )
}

function readRoutes(app: App, { services }: RouteContext): void {
  app.get(
    '/v1/runtimes',
    {
      config: { right: 'read' },
      schema: {
        operationId: 'listRuntimes',
        tags,
        summary: 'List runtimes',
        description: 'In order of their IDs. Deleted ones only with `state=deleted`.',
        querystring: ListQuery,
        response: { 200: ok(RuntimeList, 'One page'), ...problems() },
      },
    },
    async ({ scope, query: { state, limit = DEFAULT_PAGE, ...query } }) =>
      toRuntimeList(await listInTurns(services.runtimes, scope, { ...query, states: state, limit })),
  )
  app.get(
    '/v1/runtimes/:id',
    {
      config: { right: 'read' },
      schema: {
        operationId: 'getRuntime',
        tags,
        summary: 'Inspect a runtime',
        description: 'With its spec and its newest events.',
        params: IdParams,
        querystring: NoQuery,
        response: { 200: ok(InspectedRuntime, 'The runtime'), ...problems(404, ...CLUSTER) },
      },
    },
    async ({ scope, params: { id } }) => toInspected(services.events.epoch, await services.runtimes.inspect(scope, id)),
  )
}

/** A large page in parts, between which others get a turn. The cursor makes parts of it as good as one. */
async function listInTurns(
  runtimes: Pick<RuntimeApi, 'list'>,
  scope: Scope,
  query: RuntimeListQuery,
): Promise<RuntimeListPage> {
  let { items, nextCursor } = runtimes.list(scope, { ...query, limit: Math.min(query.limit, ROWS_A_TURN) })
  let asked = ROWS_A_TURN
  // A part that is short stopped at what one look may scan; the rest is for the next request.
  while (nextCursor !== null && items.length === asked && asked < query.limit) {
    await nextTurn()
    const limit = Math.min(query.limit - asked, ROWS_A_TURN)
    const part = runtimes.list(scope, { ...query, limit, cursor: nextCursor })
    items = [...items, ...part.items]
    nextCursor = part.nextCursor
    asked += limit
  }
  return { items, nextCursor }
}

interface VerbRoute {
  readonly method: 'POST' | 'DELETE'
  readonly path: string
  readonly operationId: string
  readonly summary: string
  readonly description: string
  readonly act: (scope: Scope, id: string) => Promise<RuntimeView>
}

function verbRoutes(app: App, { services: { runtimes } }: RouteContext): void {
  const start = (scope: Scope, id: string) => runtimes.start(scope, id)
  const stop = (scope: Scope, id: string) => runtimes.stop(scope, id)
  const remove = (scope: Scope, id: string) => runtimes.remove(scope, id)
  const verb = (name: string, description: string, act: VerbRoute['act']): VerbRoute => ({
    method: 'POST',
    path: `/v1/runtimes/:id/${name}`,
    operationId: `${name}Runtime`,
    summary: `${name.charAt(0).toUpperCase()}${name.slice(1)} a runtime`,
    description,
    act,
  })
  const routes: readonly VerbRoute[] = [
    verb('start', 'Starts it; nothing happens when it is up.', start),
    verb('stop', 'A Deployment is scaled to 0, a Job deleted (or suspended, see `jobStop`).', stop),
    verb('pause', 'The same as stop.', stop),
    verb('resume', 'The same as start.', start),
    {
      method: 'DELETE',
      path: '/v1/runtimes/:id',
      operationId: 'deleteRuntime',
      summary: 'Delete a runtime',
      description: 'Accepted in every state, and again once deleted.',
      act: remove,
    },
  ]
  for (const route of routes) verbRoute(app, route)
}

function verbRoute(app: App, { method, path, act, ...texts }: VerbRoute): void {
  app.route({
    method,
    url: path,
    config: { right: 'write' },
    schema: {
      ...texts,
      tags,
      params: IdParams,
      querystring: NoQuery,
      body: NoBody,
      'x-response-headers': { 202: LOCATION },
      response: {
        202: ok(Runtime, 'Accepted; the runtime as it is now'),
        ...problems(404, 409, 422, ...BODY, ...CLUSTER),
      },
    },
    handler: async ({ scope, params: { id } }, reply) => {
      const runtime = await act(scope, id)
      return reply.code(202).header('location', locationOf(runtime.id)).send(toRuntime(runtime))
    },
  })
}

function waitRoute(app: App, { services }: RouteContext): void {
  app.get(
    '/v1/runtimes/:id/wait',
    {
      config: { right: 'read' },
      schema: {
        operationId: 'waitRuntime',
        tags,
        summary: 'Wait until a runtime runs, has ended or is deleted',
        description: '`reached` is false at the time-out, or as soon as it cannot be reached any more.',
        params: IdParams,
        querystring: WaitQuery,
        response: { 200: ok(Waited, 'Reached, or not'), ...problems(404, ...CLUSTER) },
      },
    },
    async ({ scope, params, query }, reply) => {
      const waited = await services.runtimes.wait(scope, params.id, {
        for: query.for,
        run: query.run,
        timeoutSeconds: query.timeout ?? DEFAULT_WAIT_SECONDS,
        signal: app.traffic.signalFor(reply.raw),
      })
      return { reached: waited.reached, runtime: toRuntime(waited.runtime) }
    },
  )
}
