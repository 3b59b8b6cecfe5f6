import { parseRuntimeId } from '../../domain/runtime-id.ts'
import { RuntimeError } from '../../errors.ts'
import { requireNamespace } from '../../service/scope.ts'
import type { App } from '../app.ts'
import { BODY, problems } from '../replies.ts'
import { IdParams } from '../request-schemas.ts'
import { NoQuery } from '../schema-parts.ts'

export function execRoutes(app: App): void {
  app.post(
    '/v1/runtimes/:id/exec',
    {
      config: { right: 'write' },
      schema: {
        operationId: 'execRuntime',
        tags: ['Runtimes'],
        summary: 'Run a command in a runtime',
        description: 'Not built yet: always 501.',
        params: IdParams,
        querystring: NoQuery,
        response: problems(...BODY, 501),
      },
    },
    async ({ scope, params: { id } }) => {
      requireNamespace(scope, parseRuntimeId(id).namespace)
      throw new RuntimeError('NOT_IMPLEMENTED', 'cannot run commands in a runtime yet: this route is not built')
    },
  )
}
