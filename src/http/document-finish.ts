import { PROBLEM_TYPE } from './problem.ts'
import { PROBLEMS } from './replies.ts'

/** JSON as far as the document needs it. */
// biome-ignore lint/suspicious/noExplicitAny: a document has no narrower type that would help
export type Json = { [key: string]: any }
type Visit = (node: Json) => void

/**
 * The generated document as generated clients need it (openapi.md §3 and §4.2). Pure: the document given is not
 * changed. Throws when an `…Input` schema is left, which means that one object with defaults is used both ways.
 */
export function finish(given: Json): Json {
  const doc = structuredClone(given)
  prune(doc)
  mergeInputs(doc)
  walk(doc.components.schemas, tidySchema)
  walk(doc.paths, tidySchema)
  for (const operation of operationsOf(doc)) {
    dropEmptyBody(operation)
    sortParameters(operation)
    hoistProblems(operation)
  }
  prune(doc)
  doc.components = {
    schemas: sorted(doc.components.schemas),
    responses: problemResponses(doc),
    ...(doc.components.securitySchemes ? { securitySchemes: doc.components.securitySchemes } : {}),
  }
  doc.paths = sorted(doc.paths)
  return doc
}

const REF = '#/components/schemas/'

function walk(node: unknown, visit: Visit): void {
  if (node === null || typeof node !== 'object') return
  if (!Array.isArray(node)) visit(node as Json)
  for (const child of Object.values(node)) walk(child, visit)
}

const sorted = (object: Json): Json => Object.fromEntries(Object.entries(object).sort(([a], [b]) => (a < b ? -1 : 1)))

/** Drops components that nothing in `paths` leads to. */
function prune(doc: Json): void {
  const { schemas } = doc.components
  const reached = new Set<string>(['Problem'])
  const queue: unknown[] = [doc.paths, schemas.Problem]
  for (let node = queue.pop(); node !== undefined; node = queue.pop()) {
    walk(node, ({ $ref }) => {
      if (typeof $ref !== 'string' || !$ref.startsWith(REF)) return
      const name = $ref.slice(REF.length)
      if (reached.has(name)) return
      reached.add(name)
      queue.push(schemas[name])
    })
  }
  doc.components.schemas = Object.fromEntries(Object.entries(schemas).filter(([name]) => reached.has(name)))
}

/** `FooInput` becomes `Foo` where `Foo` is gone or says the same. Renames make others equal, so until nothing moves. */
function mergeInputs(doc: Json): void {
  const { schemas } = doc.components
  for (let moved = true; moved; ) {
    moved = false
    for (const name of Object.keys(schemas).filter(name => name.endsWith('Input'))) {
      const plain = name.slice(0, -'Input'.length)
      if (schemas[plain] && !same(schemas[plain], schemas[name])) continue
      schemas[plain] ??= schemas[name]
      delete schemas[name]
      walk(doc, node => {
        if (node.$ref === REF + name) node.$ref = REF + plain
      })
      moved = true
    }
  }
  const left = Object.keys(schemas).filter(name => name.endsWith('Input'))
  if (left.length > 0) throw new Error(`cannot finish the document: give ${left.join(', ')} and its output two names`)
}

const same = (a: unknown, b: unknown): boolean => JSON.stringify(a) === JSON.stringify(b)

function tidySchema(node: Json): void {
  if ('const' in node) {
    node.enum = [node.const]
    delete node.const
  }
  if (node.format === 'date-time' || node.type === 'integer') delete node.pattern
  if (typeof node.default === 'object') delete node.default
  if (Array.isArray(node.examples)) {
    node.example = node.examples[0]
    delete node.examples
  }
  delete node.propertyNames
  // OpenAPI 3.0.3 gives `nullable` a meaning only beside `type`; what is referred to and may be null is an object here.
  if (node.nullable === true && Array.isArray(node.allOf)) node.type = 'object'
  if (Array.isArray(node.allOf) && node.allOf.length === 1 && Object.keys(node).length === 1) {
    Object.assign(node, node.allOf[0])
    delete node.allOf
  }
}

const METHODS = ['get', 'put', 'post', 'delete', 'options', 'head', 'patch', 'trace']

const operationsOf = (doc: Json): Json[] =>
  Object.values(doc.paths as Json).flatMap(path => METHODS.flatMap(method => (path[method] ? [path[method]] : [])))

/** A body that may only be `{}` is tolerated, not offered: on DELETE a documented body is not even legal. */
function dropEmptyBody(operation: Json): void {
  const schema = operation.requestBody?.content['application/json']?.schema
  if (schema?.$ref === `${REF}Nothing`) delete operation.requestBody
}

const PLACES = ['path', 'query', 'header']

/** Path, query, header; required first: some clients take parameters by position. */
function sortParameters(operation: Json): void {
  if (!operation.parameters) return
  for (const parameter of operation.parameters) {
    if (parameter.in !== 'header') continue
    parameter.name = parameter.name.replace(/(^|-)[a-z]/g, (start: string) => start.toUpperCase())
    // The id in `Last-Event-ID` is written in capitals by everyone.
    parameter.name = parameter.name.replace(/-Id$/, '-ID')
  }
  const rank = (parameter: Json) => PLACES.indexOf(parameter.in) * 2 + (parameter.required ? 0 : 1)
  operation.parameters.sort((a: Json, b: Json) => rank(a) - rank(b))
}

const isProblem = (response: Json): boolean => response.content?.[PROBLEM_TYPE] !== undefined

function hoistProblems(operation: Json): void {
  for (const [status, response] of Object.entries(operation.responses as Json)) {
    const [name] = PROBLEMS[Number(status)] ?? []
    if (name && isProblem(response)) operation.responses[status] = { $ref: `#/components/responses/${name}` }
  }
}

function problemResponses(doc: Json): Json {
  const used = new Set<string>()
  walk(doc.paths, ({ $ref }) => {
    if (typeof $ref === 'string') used.add($ref)
  })
  const all = Object.values(PROBLEMS).map(([name, description]) => [
    name,
    { description, content: { [PROBLEM_TYPE]: { schema: { $ref: `${REF}Problem` } } } },
  ])
  return sorted(Object.fromEntries(all.filter(([name]) => used.has(`#/components/responses/${name}`))))
}
