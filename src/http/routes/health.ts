import * as z from 'zod'
import type { App, RouteContext } from '../app.ts'
import { ok, openProblems, problems } from '../replies.ts'
import { NoQuery } from '../schema-parts.ts'
import { HealthReport } from '../schemas.ts'

const tags = ['Health']
const SHUTTING_DOWN = { name: 'shutdown', ok: false, reason: 'the daemon is shutting down' }

export function healthRoutes(app: App, context: RouteContext): void {
  probeRoutes(app, context)
  metricsRoute(app, context)
}

function probeRoutes(app: App, { services: { health } }: RouteContext): void {
  app.get(
    '/livez',
    {
      config: { right: 'open' },
      schema: {
        operationId: 'getLiveness',
        tags,
        summary: 'Is the process alive',
        description: 'Never red for a cluster that is down.',
        security: [],
        querystring: NoQuery,
        response: { 200: ok(HealthReport, 'Alive'), ...openProblems() },
      },
    },
    async () => health.live(),
  )
  app.get(
    '/readyz',
    {
      config: { right: 'open' },
      schema: {
        operationId: 'getReadiness',
        tags,
        summary: 'Can it do its work',
        description: 'The database is writable and a configured runtime is synced and fresh.',
        security: [],
        querystring: NoQuery,
        response: {
          200: ok(HealthReport, 'Ready, perhaps degraded'),
          503: ok(HealthReport, 'Not ready; the checks say why'),
          ...openProblems(),
        },
      },
    },
    async (_request, reply) => {
      const { ready, status, checks } = health.ready()
      if (app.traffic.draining) {
        return reply.code(503).send({ status: 'unavailable', checks: [...checks, SHUTTING_DOWN] })
      }
      return reply.code(ready ? 200 : 503).send({ status, checks })
    },
  )
}

function metricsRoute(app: App, { metrics: { registry } }: RouteContext): void {
  app.get(
    '/metrics',
    {
      config: { right: 'page' },
      schema: {
        operationId: 'getMetrics',
        tags,
        summary: 'Metrics of this process',
        description: 'Prometheus text. No token is needed on loopback.',
        querystring: NoQuery,
        response: { 200: ok(z.string(), 'Metrics', 'text/plain'), ...problems() },
      },
    },
    async (_request, reply) => reply.type(registry.contentType).send(await registry.metrics()),
  )
}
