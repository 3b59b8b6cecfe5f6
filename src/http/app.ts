import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { FastifyBaseLogger, FastifyInstance } from 'fastify'
import type { ZodTypeProvider } from 'fastify-type-provider-zod'
import type { Services } from '../service/api.ts'
import type { Scope } from '../service/scope.ts'
import type { Right } from './auth.ts'
import type { Limits } from './limits.ts'
import type { Metrics } from './metrics.ts'
import type { Traffic } from './traffic.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** What the route asks of its caller. A route that does not say is for nobody but write tokens. */
    right?: Right
  }
  interface FastifyRequest {
    /** What the caller may see and do. */
    scope: Scope
    /** Code of the error that was answered, for the log. */
    errorCode: string | null
  }
  interface FastifyInstance {
    traffic: Traffic
  }
  interface FastifySchema {
    /** Headers of a reply, by status, for the document alone. */
    'x-response-headers'?: Readonly<Record<number, Readonly<Record<string, unknown>>>>
  }
}

export type App = FastifyInstance<Server, IncomingMessage, ServerResponse, FastifyBaseLogger, ZodTypeProvider>

/** What routes are made from. */
export interface RouteContext {
  readonly services: Services
  readonly metrics: Metrics
  readonly limits: Limits
}

export type Routes = (app: App, context: RouteContext) => void
