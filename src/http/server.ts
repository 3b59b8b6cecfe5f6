import { randomUUID } from 'node:crypto'
import type { Socket } from 'node:net'
import Fastify, {
  type FastifyBaseLogger,
  type FastifyError,
  type FastifyReply,
  type FastifyRequest,
  LogController,
} from 'fastify'
import { serializerCompiler } from 'fastify-type-provider-zod'
import { RuntimeError } from '../errors.ts'
import type { Services } from '../service/api.ts'
import type { App, RouteContext, Routes } from './app.ts'
import type { Auth } from './auth.ts'
import { docsRoutes, registerDocument } from './document.ts'
import { LIMITS, type Limits, MAX_PARAM_LENGTH } from './limits.ts'
import type { Metrics } from './metrics.ts'
import { type KnownPaths, knownPaths } from './paths.ts'
import { frameworkProblem, PROBLEM_TYPE, problemOf, retryAfter, toRuntimeError } from './problem.ts'
import { answerParserError, type ParserError, refuseExpectations } from './raw-problem.ts'
import { describeError } from './redact.ts'
import { adoptionRoutes } from './routes/adoption.ts'
import { backendRoutes } from './routes/backends.ts'
import { eventRoutes } from './routes/events.ts'
import { execRoutes } from './routes/exec.ts'
import { healthRoutes } from './routes/health.ts'
import { imageRoutes } from './routes/images.ts'
import { logRoutes } from './routes/logs.ts'
import { runtimeRoutes } from './routes/runtimes.ts'
import { Traffic } from './traffic.ts'
import { validatorCompiler } from './validation.ts'

export interface ServerOptions {
  readonly services: Services
  readonly auth: Auth
  readonly logger: FastifyBaseLogger
  readonly metrics: Metrics
  /** For tests. */
  readonly limits?: Partial<Limits>
}

const ROUTES: readonly Routes[] = [
  runtimeRoutes,
  execRoutes,
  logRoutes,
  eventRoutes,
  adoptionRoutes,
  backendRoutes,
  imageRoutes,
  healthRoutes,
]

/** The HTTP side, ready to listen. `drain` ends it gracefully; `close` at once. */
export async function createServer(options: ServerOptions): Promise<App> {
  const limits = { ...LIMITS, ...options.limits }
  const traffic = new Traffic(limits)
  const app = newFastify(options.logger, { limits, traffic })
  app.decorate('traffic', traffic)
  app.decorateRequest('scope', null as never)
  app.decorateRequest('errorCode', null)
  traffic.watch(app.server)
  refuseExpectations(app.server)
  app.server.maxConnections = limits.sockets
  app.setValidatorCompiler(validatorCompiler as never)
  app.setSerializerCompiler(serializerCompiler)
  app.setErrorHandler((error, request, reply) => sendProblem(error, request, reply))
  app.removeContentTypeParser('text/plain')
  const paths = knownPaths(app)
  addHooks(app, { ...options, limits, paths })
  await registerDocument(app)
  const context: RouteContext = { services: options.services, metrics: options.metrics, limits }
  for (const routes of ROUTES) routes(app, context)
  docsRoutes(app)
  await app.ready()
  return app
}

/**
 * Takes nothing new (503), ends waits and streams, gives requests in hand their time, then closes every socket.
 * Bounded by `drainMs`; no workload is touched.
 */
export async function drain(app: App): Promise<void> {
  await app.traffic.drain()
  await app.close()
}

function newFastify(logger: FastifyBaseLogger, { limits, traffic }: { limits: Limits; traffic: Traffic }): App {
  return Fastify({
    loggerInstance: logger,
    logController: new LogController({ disableRequestLogging: true, requestIdLogLabel: 'requestId' }),
    genReqId: () => randomUUID(),
    bodyLimit: limits.bodyBytes,
    requestTimeout: limits.bodyTimeoutMs,
    connectionTimeout: limits.stallMs,
    keepAliveTimeout: limits.keepAliveMs,
    forceCloseConnections: true,
    return503OnClosing: false,
    routerOptions: { maxParamLength: MAX_PARAM_LENGTH },
    http: {
      // The request line counts here too; a long URL is to be told from large headers, so both are measured again later.
      // Node would refuse a request without Host with an empty body; `requireWellFormed` does it in ours.
      requireHostHeader: false,
      maxHeaderSize: 2 * (limits.headerBytes + limits.urlBytes),
      headersTimeout: limits.headersTimeoutMs,
      connectionsCheckingInterval: limits.checkEveryMs,
    },
    frameworkErrors: (error: FastifyError, request: FastifyRequest, reply: FastifyReply) => {
      reply.header('x-request-id', request.id)
      sendProblem(error, request, reply)
    },
    clientErrorHandler: (error: ParserError, socket: Socket) => {
      const problem = answerParserError(error, socket, traffic)
      if (problem) logger.info({ code: problem.code, status: problem.status }, 'malformed request')
    },
  } as never) as unknown as App
}

interface HookContext extends ServerOptions {
  readonly limits: Limits
  readonly paths: KnownPaths
}

function addHooks(app: App, { auth, metrics, limits, paths }: HookContext): void {
  app.addHook('onRequest', async (request, reply) => {
    reply.header('x-request-id', request.id)
    requireWellFormed(request, limits)
    if (request.is404 || hasTrailingSlash(request)) throw notFound(request, reply, paths)
    const right = request.routeOptions.config.right ?? 'write'
    if (right !== 'open') app.traffic.admit()
    request.scope = auth.authorise(request.raw, right)
    forgetEmptyBody(request)
  })
  app.addHook('onResponse', async (request, reply) => {
    const { method, routeOptions } = request
    const route = routeOptions.url ?? 'unknown'
    const status = reply.raw.headersSent ? reply.raw.statusCode : 499
    metrics.requests.observe({ method, route, status }, reply.elapsedTime / 1000)
    const quiet = routeOptions.config.right === 'open' || routeOptions.config.right === 'page'
    request.log[quiet ? 'debug' : 'info'](
      {
        method,
        path: pathOf(request),
        status,
        ms: Math.round(reply.elapsedTime * 10) / 10,
        token: request.scope?.token ?? null,
        ...(request.errorCode === null ? {} : { code: request.errorCode }),
      },
      'request',
    )
  })
}

const MAX_LOGGED_PATH = 300

/** Never the query: it may hold what is not meant for a log. */
const pathOf = (request: FastifyRequest): string => (request.url.split('?', 1)[0] ?? '').slice(0, MAX_LOGGED_PATH)

function requireWellFormed({ raw }: FastifyRequest, limits: Limits): void {
  if (raw.httpVersion === '1.1' && raw.headers.host === undefined) throw frameworkProblem(400)
  if (Buffer.byteLength(raw.url ?? '') > limits.urlBytes) throw frameworkProblem(414)
  const bytes = raw.rawHeaders.reduce((sum, part) => sum + part.length + 2, 0)
  if (bytes > limits.headerBytes) throw frameworkProblem(431)
  const encoding = raw.headers['content-encoding'] ?? 'identity'
  if (encoding.toLowerCase() !== 'identity') throw frameworkProblem(415)
}

/** Resolves with the URL. Throws CONFIGURATION_ERROR when the address cannot be had. */
export async function listen(app: App, address: { host: string; port: number }): Promise<string> {
  try {
    return await app.listen(address)
  } catch (error) {
    const why = UNUSABLE[(error as NodeJS.ErrnoException).code ?? '']
    if (why === undefined) throw error
    throw new RuntimeError('CONFIGURATION_ERROR', `cannot listen on ${address.host} port ${address.port}: ${why}`, {
      cause: error,
    })
  }
}

const UNUSABLE: Readonly<Record<string, string>> = {
  EADDRINUSE: 'another process listens there; stop it, or set another PORT',
  EADDRNOTAVAIL: 'this machine has no such address; set another HOST',
  ENOTFOUND: 'this name has no address; set another HOST',
  EACCES: 'it needs more rights; set a PORT above 1023',
}

/** The router would take the empty segment for a runtime ID; the docs page alone has a folder. */
const hasTrailingSlash = (request: FastifyRequest): boolean => {
  const [path = ''] = request.url.split('?', 1)
  return path.endsWith('/') && path !== '/docs/'
}

function notFound(request: FastifyRequest, reply: FastifyReply, paths: KnownPaths): RuntimeError {
  const methods = paths.methodsOf(request.url)
  if (methods.length === 0) return frameworkProblem(404)
  reply.header('allow', methods.join(', '))
  return new RuntimeError('METHOD_NOT_ALLOWED', `cannot ${request.method} this path: use ${methods.join(', ')}`)
}

/** Clients name a media type on a POST or DELETE without a body; nothing is to be parsed then. */
function forgetEmptyBody({ raw }: FastifyRequest): void {
  const { headers } = raw
  const length = headers['content-length']
  if ((length === undefined || Number(length) === 0) && headers['transfer-encoding'] === undefined) {
    delete headers['content-type']
  }
}

function sendProblem(thrown: unknown, request: FastifyRequest, reply: FastifyReply): void {
  const error = toRuntimeError(thrown)
  request.errorCode = error.code
  if (error.code === 'INTERNAL_ERROR') request.log.error({ failure: describeError(thrown) }, 'request failed')
  else if (error.status >= 500 && error.cause !== undefined) {
    request.log.warn({ code: error.code, failure: describeError(error) }, 'request failed')
  }
  const seconds = retryAfter(error)
  if (seconds !== null) reply.header('retry-after', seconds)
  if (error.code === 'UNAUTHENTICATED') reply.header('www-authenticate', 'Bearer')
  if (error.code === 'SHUTTING_DOWN') reply.header('connection', 'close')
  reply
    .code(error.status)
    .type(PROBLEM_TYPE)
    .send(JSON.stringify(problemOf(error, request.id)))
}
