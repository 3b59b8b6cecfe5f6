import type { App, RouteContext } from '../app.ts'
import { BODY, CLUSTER, ok, problems } from '../replies.ts'
import { AdoptionBody } from '../request-schemas.ts'
import { NoQuery } from '../schema-parts.ts'
import { AdoptionReportReply, AdoptionResult } from '../schemas.ts'
import { isoTime } from '../wire.ts'

const tags = ['Adoption']

export function adoptionRoutes(app: App, { services: { adoption } }: RouteContext): void {
  app.get(
    '/v1/adoption',
    {
      config: { right: 'read' },
      schema: {
        operationId: 'getAdoption',
        tags,
        summary: 'What was found at the last start, and what is orphaned or foreign now',
        description: 'Orphans carry our labels and belong to no row; foreign ones belong to another daemon.',
        querystring: NoQuery,
        response: { 200: ok(AdoptionReportReply, 'The report'), ...problems() },
      },
    },
    async ({ scope }) => {
      const { at, adopted, vanished, foreign, orphaned } = adoption.report(scope)
      return { at: isoTime(at), adopted, vanished, foreign, orphaned }
    },
  )
  app.post(
    '/v1/adoption',
    {
      config: { right: 'write' },
      schema: {
        operationId: 'adoptRuntimes',
        tags,
        summary: 'Take up or delete orphans',
        description: 'Each ID on its own: `done` false comes with the code of what was in the way.',
        querystring: NoQuery,
        body: AdoptionBody,
        response: { 200: ok(AdoptionResult, 'What came of each'), ...problems(409, 422, ...BODY, ...CLUSTER) },
      },
    },
    async ({ scope, body: { ids, action } }) => ({ items: await adoption.act(scope, ids, action) }),
  )
}
