import swagger from '@fastify/swagger'
import swaggerUi from '@fastify/swagger-ui'
import type { FastifyInstance } from 'fastify'
import { createJsonSchemaTransform, createJsonSchemaTransformObject } from 'fastify-type-provider-zod'
import type * as z from 'zod'
import pkg from '../../package.json' with { type: 'json' }
import { finish, type Json } from './document-finish.ts'

/** The page's own scripts and styles, and nothing from elsewhere. */
const DOCS_CSP =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

const INFO = {
  title: 'runtimed',
  version: pkg.version,
  description: [
    'Create, start, stop, inspect and delete container workloads, each known by one runtime ID, and follow what becomes of them.',
    'Every error is a `Problem`. What the document leaves out: 404 for an unknown path, 405 with `Allow` for a known one, and 408 for what never became a request are problems too.',
    'HEAD works wherever GET does. Without tokens, only callers on this machine are served, and none is needed.',
  ].join('\n\n'),
  license: { name: 'Apache-2.0', url: 'https://www.apache.org/licenses/LICENSE-2.0' },
}

const TAGS = [
  { name: 'Runtimes', description: 'Workloads by their runtime ID.' },
  { name: 'Events', description: 'The durable, numbered feed.' },
  { name: 'Adoption', description: 'Workloads found without a row.' },
  { name: 'Backends', description: 'Clusters and what is watched there.' },
  { name: 'Images', description: 'Checks before a create.' },
  { name: 'Health', description: 'Probes and metrics.' },
]

/** Plain objects stay open (openapi.md R1); bounds that only say "a safe integer" go. */
const override = ({ zodSchema, jsonSchema }: { zodSchema: z.core.$ZodTypes; jsonSchema: Json }): void => {
  const { def } = zodSchema._zod
  if (def.type === 'object' && !def.catchall) delete jsonSchema.additionalProperties
  if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum
  if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum
}

/** Collects every route registered after this call into `app.swagger()`. */
export async function registerDocument(app: FastifyInstance): Promise<void> {
  const zodToJsonConfig = { override }
  const transform = createJsonSchemaTransform({ zodToJsonConfig })
  const transformObject = createJsonSchemaTransformObject({ zodToJsonConfig })
  await app.register(swagger, {
    openapi: {
      openapi: '3.0.3',
      info: INFO,
      servers: [{ url: '/' }],
      tags: TAGS,
      components: { securitySchemes: { token: { type: 'http', scheme: 'bearer' } } },
      security: [{ token: [] }, {}],
    },
    transform: given => withResponseHeaders(transform(given as never) as never),
    transformObject: given => finish(transformObject(given as never) as Json) as never,
  })
}

/** The type provider drops the headers of a response; they come in beside the schema instead (openapi.md 4.3). */
function withResponseHeaders({ schema, url }: { schema: Json; url: string }): { schema: Json; url: string } {
  const { 'x-response-headers': headers = {}, ...rest } = schema ?? {}
  for (const [status, named] of Object.entries(headers)) rest.response[status].headers = named
  return { schema: rest, url }
}

/** `/openapi.json` and the page `/docs`. */
export function docsRoutes(app: FastifyInstance): void {
  app.get('/openapi.json', { config: { right: 'page' }, schema: { hide: true } }, async () => app.swagger())
  app.register(async docs => {
    docs.addHook('onRoute', route => {
      route.config = { ...route.config, right: 'page' }
    })
    await docs.register(swaggerUi, {
      routePrefix: '/docs',
      uiConfig: { validatorUrl: null } as Json,
      staticCSP: DOCS_CSP,
    })
  })
}
