import assert from 'node:assert/strict'
import { test } from 'node:test'
import { finish, type Json } from '../../src/http/document-finish.ts'

const ref = (name: string) => ({ $ref: `#/components/schemas/${name}` })
const body = (schema: Json) => ({ requestBody: { content: { 'application/json': { schema } } } })
const answer = (schema: Json) => ({ 200: { description: 'x', content: { 'application/json': { schema } } } })

function docWith(schemas: Json, operation: Json = {}): Json {
  return {
    paths: { '/b': { post: { responses: {}, ...operation } } },
    components: { schemas: { Problem: { type: 'object' }, ...schemas } },
  }
}

test('finish: components that no path leads to are dropped', () => {
  const doc = finish(docWith({ A: ref('B'), B: {}, C: {} }, { responses: answer(ref('A')) }))
  assert.deepEqual(Object.keys(doc.components.schemas), ['A', 'B', 'Problem'])
})

test('finish: an Input twin that says the same, or stands alone, takes the plain name everywhere', () => {
  const schemas = {
    AInput: { items: ref('BInput') },
    A: { items: ref('B') },
    BInput: { type: 'string' },
    B: { type: 'string' },
    CInput: {},
  }
  const operation = { ...body({ anyOf: [ref('AInput'), ref('CInput')] }), responses: answer(ref('A')) }
  const doc = finish(docWith(schemas, operation))
  assert.deepEqual(Object.keys(doc.components.schemas), ['A', 'B', 'C', 'Problem'])
  assert.deepEqual(doc.paths['/b'].post.requestBody.content['application/json'].schema.anyOf, [ref('A'), ref('C')])
})

test('finish: an Input that differs from its twin fails, and is named', () => {
  const schemas = { AInput: { type: 'string' }, A: { type: 'number' } }
  const operation = { ...body(ref('AInput')), responses: answer(ref('A')) }
  assert.throws(() => finish(docWith(schemas, operation)), /AInput/)
})

test('finish: keywords that clients stumble over are gone', () => {
  const A = {
    properties: {
      a: { const: 'x' },
      b: { type: 'string', format: 'date-time', pattern: 'long' },
      c: { type: 'integer', pattern: '^[0-9]+$' },
      d: { type: 'object', default: {}, propertyNames: {} },
      e: { allOf: [ref('B')] },
      f: { allOf: [ref('B')], description: 'kept' },
      g: { type: 'string', pattern: 'kept', examples: ['one', 'two'] },
      h: { allOf: [ref('B')], nullable: true },
    },
  }
  const doc = finish(docWith({ A, B: {} }, { responses: answer(ref('A')) }))
  assert.deepEqual(doc.components.schemas.A.properties, {
    a: { enum: ['x'] },
    b: { type: 'string', format: 'date-time' },
    c: { type: 'integer' },
    d: { type: 'object' },
    e: ref('B'),
    f: { allOf: [ref('B')], description: 'kept' },
    g: { type: 'string', pattern: 'kept', example: 'one' },
    h: { type: 'object', allOf: [ref('B')], nullable: true },
  })
})

test('finish: parameters stand path, query, header, required first, with headers as people write them', () => {
  const parameter = (where: string, name: string, required = false) => ({ in: where, name, required })
  const parameters = [
    parameter('header', 'last-event-id'),
    parameter('query', 'b'),
    parameter('header', 'idempotency-key'),
    parameter('query', 'a', true),
    parameter('path', 'id', true),
  ]
  const doc = finish(docWith({}, { parameters }))
  const names = doc.paths['/b'].post.parameters.map((given: Json) => given.name)
  assert.deepEqual(names, ['id', 'a', 'b', 'Last-Event-ID', 'Idempotency-Key'])
})

test('finish: problems are hoisted by status; another body of that status stays', () => {
  const problem = { description: 'x', content: { 'application/problem+json': { schema: ref('Problem') } } }
  const responses = { 404: problem, 409: problem, 503: { ...answer({})[200] } }
  const doc = finish(docWith({}, { responses }))
  assert.deepEqual(doc.paths['/b'].post.responses[404], { $ref: '#/components/responses/NotFoundProblem' })
  assert.equal(doc.paths['/b'].post.responses[503].description, 'x')
  assert.deepEqual(Object.keys(doc.components.responses), ['ConflictProblem', 'NotFoundProblem'])
})

test('finish: a body that says nothing is not documented; the document given is not changed', () => {
  const given = docWith({ NothingInput: { type: 'object' } }, body(ref('NothingInput')))
  const before = structuredClone(given)
  assert.equal(finish(given).paths['/b'].post.requestBody, undefined)
  assert.deepEqual(given, before)
})
