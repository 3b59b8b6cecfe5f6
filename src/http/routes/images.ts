import type { App, RouteContext } from '../app.ts'
import { BODY, ok, problems } from '../replies.ts'
import { PreflightBody } from '../request-schemas.ts'
import { NoQuery } from '../schema-parts.ts'
import { Preflighted } from '../schemas.ts'

export function imageRoutes(app: App, { services: { images } }: RouteContext): void {
  app.post(
    '/v1/images/preflight',
    {
      // It changes nothing, but `read` is GET (design.md §11.2).
      config: { right: 'write' },
      schema: {
        operationId: 'preflightImage',
        tags: ['Images'],
        summary: 'Check an image and its pull policy',
        description: 'The check of create, alone. No registry is asked: nodes pull, not we.',
        querystring: NoQuery,
        body: PreflightBody,
        response: { 200: ok(Preflighted, 'Accepted'), ...problems(422, ...BODY) },
      },
    },
    async ({ body: { image, imagePullPolicy } }) => images.preflight(image, imagePullPolicy),
  )
}
