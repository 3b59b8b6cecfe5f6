import type { App, RouteContext } from '../app.ts'
import { ok, problems } from '../replies.ts'
import { NoQuery } from '../schema-parts.ts'
import { BackendList, MonitoredList } from '../schemas.ts'

const tags = ['Backends']

export function backendRoutes(app: App, { services: { health, runtimes } }: RouteContext): void {
  app.get(
    '/v1/backends',
    {
      config: { right: 'read' },
      schema: {
        operationId: 'listBackends',
        tags,
        summary: 'The configured runtimes and their health',
        description: 'With the state of each watch.',
        querystring: NoQuery,
        response: { 200: ok(BackendList, 'In the order of RUNTIMES'), ...problems() },
      },
    },
    async () => ({ items: health.backends() }),
  )
  app.get(
    '/v1/monitoring',
    {
      config: { right: 'read' },
      schema: {
        operationId: 'listMonitored',
        tags,
        summary: 'The monitored runtime IDs',
        description: 'Those with an open run or a verb in hand, sorted.',
        querystring: NoQuery,
        response: { 200: ok(MonitoredList, 'All of them'), ...problems() },
      },
    },
    async ({ scope }) => {
      const items = runtimes.monitored(scope)
      return { items, total: items.length }
    },
  )
}
