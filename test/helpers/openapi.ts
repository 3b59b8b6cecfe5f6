import { readFileSync } from 'node:fs'

// biome-ignore lint/suspicious/noExplicitAny: a document has no narrower type that would help
export type Json = { [key: string]: any }

/** The document as it is checked in. */
export const readDocument = (): Json =>
  JSON.parse(readFileSync(new URL('../../openapi/openapi.json', import.meta.url), 'utf8'))

export interface Operation {
  readonly id: string
  readonly method: string
  /** With `{id}` where the runtime ID goes. */
  readonly path: string
  readonly spec: Json
}

export const operationsOf = (doc: Json): Operation[] =>
  Object.entries(doc.paths as Json).flatMap(([path, methods]) =>
    Object.entries(methods as Json).map(([method, spec]) => ({
      id: spec.operationId,
      method: method.toUpperCase(),
      path,
      spec,
    })),
  )

export function resolve(doc: Json, schema: Json): Json {
  if (typeof schema.$ref !== 'string') return schema
  return schema.$ref
    .slice(2)
    .split('/')
    .reduce((node: Json, name: string) => node[name], doc)
}

const typeOf = (value: unknown): string => {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'array'
  return typeof value
}

function typeFits(type: string, value: unknown): boolean {
  if (type === 'integer') return Number.isInteger(value)
  return typeOf(value) === type
}

const RFC3339 = /^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}(\.[0-9]+)?(Z|[+-][0-9]{2}:[0-9]{2})$/

/** What of `value` does not fit the schema, as far as OpenAPI 3.0.3 is used here. Empty = it fits. */
export function faultsOf(doc: Json, given: Json, value: unknown, at = ''): string[] {
  const schema = resolve(doc, given)
  if (value === null && schema.nullable === true) return []
  const fault = (what: string) => [`${at || '/'}: ${what}`]
  for (const part of schema.allOf ?? []) {
    const faults = faultsOf(doc, part, value, at)
    if (faults.length > 0) return faults
  }
  if (schema.anyOf && !schema.anyOf.some((part: Json) => faultsOf(doc, part, value, at).length === 0)) {
    return fault('fits none of anyOf')
  }
  if (schema.type && !typeFits(schema.type, value)) return fault(`${typeOf(value)} is not ${schema.type}`)
  if (schema.enum && !schema.enum.includes(value)) return fault('not in enum')
  if (typeof value === 'number') return numberFaults(schema, value, fault)
  if (typeof value === 'string') return stringFaults(schema, value, fault)
  if (Array.isArray(value)) {
    if (value.length < (schema.minItems ?? 0) || value.length > (schema.maxItems ?? Infinity)) return fault('length')
    return value.flatMap((item, index) => faultsOf(doc, schema.items ?? {}, item, `${at}/${index}`))
  }
  return typeOf(value) === 'object' ? objectFaults(doc, schema, { value: value as Json, at }) : []
}

type Fault = (what: string) => string[]

function numberFaults(schema: Json, value: number, fault: Fault): string[] {
  if (value < (schema.minimum ?? -Infinity) || value > (schema.maximum ?? Infinity)) return fault('out of bounds')
  if (schema.format === 'int32' && Math.abs(value) > 2 ** 31) return fault('no int32')
  return []
}

function stringFaults(schema: Json, value: string, fault: Fault): string[] {
  if (value.length < (schema.minLength ?? 0) || value.length > (schema.maxLength ?? Infinity)) return fault('length')
  if (schema.pattern && !new RegExp(schema.pattern).test(value)) return fault('pattern')
  if (schema.format === 'date-time' && !RFC3339.test(value)) return fault('no date-time')
  return []
}

function objectFaults(doc: Json, schema: Json, { value, at }: { value: Json; at: string }): string[] {
  const known: Json = schema.properties ?? {}
  const missing = (schema.required ?? []).filter((name: string) => !Object.hasOwn(value, name))
  const faults = missing.map((name: string) => `${at}/${name}: missing`)
  for (const [name, member] of Object.entries(value)) {
    const inner = Object.hasOwn(known, name) ? known[name] : schema.additionalProperties
    if (inner === false) faults.push(`${at}/${name}: not known`)
    else if (typeof inner === 'object') faults.push(...faultsOf(doc, inner, member, `${at}/${name}`))
  }
  return faults
}

export interface Reply {
  readonly status: number
  readonly contentType: string | null
  readonly body: string
}

/** What of a reply the document does not say: its status, its media type or its body. */
export function replyFaults(doc: Json, operation: Operation, reply: Reply): string[] {
  const given = operation.spec.responses[reply.status]
  if (given === undefined) return [`${operation.id}: status ${reply.status} is not documented`]
  const { content } = resolve(doc, given)
  const media = (reply.contentType ?? '').split(';')[0] ?? ''
  const schema = content[media]?.schema
  if (schema === undefined) return [`${operation.id}: ${reply.status} as "${media}" is not documented`]
  const value = media.endsWith('json') ? JSON.parse(reply.body) : reply.body
  return faultsOf(doc, schema, value).map(fault => `${operation.id}: ${reply.status} ${fault}`)
}

/** The path with this runtime ID in it, encoded as clients do. */
export const fill = (path: string, id: string): string => path.replace('{id}', encodeURIComponent(id))
