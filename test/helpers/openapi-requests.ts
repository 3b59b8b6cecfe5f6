import fc from 'fast-check'
import { faultsOf, type Json, type Operation, resolve } from './openapi.ts'

/** A request made from the document: as it should be, or with one thing wrong. */
export interface GeneratedRequest {
  readonly operation: Operation
  readonly id: string
  /** Name and text of each query parameter; one name may stand several times. */
  readonly query: ReadonlyArray<readonly [string, string]>
  readonly headers: ReadonlyArray<readonly [string, string]>
  /** undefined = no body. */
  readonly body: unknown
  /** Whether the document allows it. */
  readonly valid: boolean
}

const word = fc.stringMatching(/^[a-z][a-z0-9]{0,8}$/)

/** What the services accept too, for members whose schema does not say it all. */
const LIKELY: Readonly<Record<string, readonly unknown[]>> = {
  image: ['busybox', 'registry.example/web:1.2'],
  runtime: ['k8s'],
  namespace: ['default', 'ai'],
  name: ['web', 'batch-import-001'],
  entrypoint: [['/bin/web']],
  command: [['--port', '8080']],
  workdir: ['/srv'],
  env: [{ MODE: 'prod' }],
  cpu: [0.5, '500m'],
  memory: [1024, '512Mi'],
  user: ['1000', '1000:2000'],
  supplementalGroups: [[44]],
  volumes: [[], [{ source: '/data/web', target: '/web', mode: 'ro' }]],
  schedulingConstraints: [[{ type: 'node', key: 'disk', operator: 'In', values: ['ssd'] }]],
  labels: [{ team: 'a' }],
  imagePullPolicy: ['Always', 'IfNotPresent'],
  imagePullSecrets: [['regcred']],
}

function fitsMember(doc: Json, name: string, schema: Json): fc.Arbitrary<unknown> {
  const likely = LIKELY[name]
  if (likely === undefined) return fits(doc, schema)
  return fc.oneof({ weight: 12, arbitrary: fc.constantFrom(...likely) }, { weight: 1, arbitrary: fits(doc, schema) })
}

/** Values that fit a schema of the document. */
function fits(doc: Json, given: Json): fc.Arbitrary<unknown> {
  const schema = { ...resolve(doc, given) }
  if (schema.allOf) return fits(doc, schema.allOf[0])
  if (schema.anyOf) return fc.oneof(...schema.anyOf.map((part: Json) => fits(doc, part)))
  if (schema.enum) return fc.constantFrom(...schema.enum)
  if (schema.pattern) return fc.stringMatching(new RegExp(schema.pattern), { maxLength: schema.maxLength ?? 80 })
  const { minimum = 0, maximum = 1_000 } = schema
  switch (schema.type) {
    case 'integer':
      return fc.oneof(fc.constantFrom(minimum, maximum), fc.integer({ min: minimum, max: maximum }))
    case 'number':
      return fc.double({ min: 0, max: 64, noNaN: true })
    case 'boolean':
      return fc.boolean()
    case 'array':
      return fc.array(fits(doc, schema.items), { minLength: schema.minItems ?? 0, maxLength: 3 })
    case 'object':
      return objectOf(doc, schema)
    default:
      return schema.minLength ? word : fc.oneof(word, fc.string({ maxLength: 20 }))
  }
}

function objectOf(doc: Json, schema: Json): fc.Arbitrary<unknown> {
  if (!schema.properties)
    return fc.dictionary(word, fits(doc, schema.additionalProperties ?? { type: 'string' }), { maxKeys: 3 })
  const members = Object.entries(schema.properties as Json).map(
    ([name, member]) => [name, fitsMember(doc, name, member)] as const,
  )
  return fc.record(Object.fromEntries(members), { requiredKeys: schema.required ?? [] }).map(object => ({ ...object }))
}

const WRONG: readonly unknown[] = [null, -1, 1.5, 1e15, true, '', ' ', 'wrong', [], {}, { a: 1 }, ['x'], '0x10', '1e3']

/** The same value with something else in one place, or one member too many or too few. */
function spoilt(value: unknown): fc.Arbitrary<unknown> {
  const wrong = fc.constantFrom(...WRONG)
  if (typeof value !== 'object' || value === null || Object.keys(value).length === 0) return wrong
  const keys = Object.keys(value)
  const ways = [
    wrong,
    fc.constantFrom(...keys).chain(key => spoilt((value as Json)[key]).map(inner => withMember(value, key, inner))),
    fc.constantFrom(...keys).map(key => withMember(value, key, undefined)),
  ]
  if (!Array.isArray(value))
    ways.push(fc.constantFrom('privileged', 'hostNetwork', 'a/b', 'toString').map(key => withMember(value, key, 'x')))
  return fc.oneof(...ways)
}

function withMember(value: object, key: string, member: unknown): unknown {
  if (Array.isArray(value)) return value.map((item, at) => (String(at) === key ? (member ?? null) : item))
  const rest = Object.entries(value).filter(([name]) => name !== key)
  return Object.fromEntries(member === undefined ? rest : [...rest, [key, member]])
}

const texts = (value: unknown): string[] => (Array.isArray(value) ? value.map(String) : [String(value)])

/** What a text in a query means by its schema; the text itself where it means nothing. */
function meaning(doc: Json, schema: Json, found: readonly string[]): unknown {
  const { type, items } = resolve(doc, schema)
  if (type === 'array') return found.map(text => meaning(doc, items, [text]))
  const [text = ''] = found
  if (found.length > 1) return found
  if (type === 'integer') return /^[0-9]+$/.test(text) ? Number(text) : text
  if (type === 'boolean') return text === 'true' || text === 'false' ? text === 'true' : text
  return text
}

function queryFaults(doc: Json, operation: Operation, query: GeneratedRequest['query']): number {
  const known = (operation.spec.parameters ?? []).filter((parameter: Json) => parameter.in === 'query')
  const strange = query.filter(([name]) => !known.some((parameter: Json) => parameter.name === name))
  const wrong = known.filter(({ name, schema, required }: Json) => {
    const found = query.filter(([given]) => given === name).map(([, text]) => text)
    if (found.length === 0) return required
    return faultsOf(doc, schema, meaning(doc, schema, found)).length > 0
  })
  return strange.length + wrong.length
}

export interface Ids {
  /** IDs that are there, and one that is legal and not there. */
  readonly known: readonly string[]
}

/** Requests to one operation, most of them as documented. A text with a blank meaning of its own is left out. */
export function requestsTo(doc: Json, operation: Operation, { known }: Ids): fc.Arbitrary<GeneratedRequest> {
  const parameters: Json[] = operation.spec.parameters ?? []
  const bodySchema: Json | undefined = operation.spec.requestBody?.content['application/json'].schema
  const some = (parameter: Json) => {
    const value = fits(doc, parameter.schema).map(found => texts(found).map(text => [parameter.name, text] as const))
    return parameter.required ? value : fc.oneof(fc.constant([]), value)
  }
  const params = (place: string) =>
    fc.tuple(...parameters.filter(({ in: where }) => where === place).map(some)).map(all => all.flat())
  const bodies = bodySchema ? fits(doc, bodySchema) : fc.constant(undefined)
  const spoilQuery = fc.tuple(
    fc.constantFrom('zzz', ...parameters.filter(p => p.in === 'query').map(p => p.name)),
    fc.constantFrom('', '-1', '1e3', 'x', '%00', 'true'),
  )
  return fc
    .record({
      id: fc.oneof(
        fc.constantFrom(...known),
        fits(doc, { $ref: '#/components/schemas/RuntimeId' }) as fc.Arbitrary<string>,
      ),
      query: params('query'),
      headers: params('header'),
      body: bodies.chain(body =>
        bodySchema
          ? fc.oneof({ weight: 2, arbitrary: fc.constant(body) }, { weight: 1, arbitrary: spoilt(body) })
          : fc.constant(body),
      ),
      extra: fc.oneof({ weight: 3, arbitrary: fc.constant(null) }, { weight: 1, arbitrary: spoilQuery }),
    })
    .map(({ id, query, headers, body, extra }) => {
      const whole = extra === null ? query : [...query, extra]
      const fine = bodySchema === undefined || faultsOf(doc, bodySchema, body).length === 0
      return { operation, id, query: whole, headers, body, valid: fine && queryFaults(doc, operation, whole) === 0 }
    })
    .filter(({ body }) => !hasBlankMeaning(body))
}

/** Blanks count as absent in some fields (wire.md), which a schema cannot say. */
function hasBlankMeaning(body: unknown): boolean {
  if (typeof body !== 'object' || body === null) return false
  const { kind, imagePullPolicy } = body as Json
  return [kind, imagePullPolicy].some(text => typeof text === 'string' && text.trim() === '')
}
