import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { EVENT_TYPES } from '../../src/domain/event.ts'
import { STATES } from '../../src/domain/life.ts'
import { openapiText } from '../../src/openapi.ts'
import { startServer } from '../helpers/http-server.ts'
import { faultsOf, fill, type Json, operationsOf, readDocument, replyFaults } from '../helpers/openapi.ts'

const root = fileURLToPath(new URL('../../', import.meta.url))
const doc = readDocument()
const ID = 'k8s-default|job|a'

test('U2: the document on disk is what the code makes, byte for byte and each time, and what is served', async t => {
  const text = readFileSync(`${root}openapi/openapi.json`, 'utf8')
  assert.equal(await openapiText(), text, 'run "npm run openapi"')
  assert.equal(await openapiText(), text)
  const server = await startServer(t)
  assert.deepEqual(await (await fetch(`${server.url}/openapi.json`)).json(), JSON.parse(text))
})

const PROMISED = [
  'GET /v1/runtimes',
  'POST /v1/runtimes',
  'GET /v1/runtimes/{id}',
  'DELETE /v1/runtimes/{id}',
  ...['start', 'stop', 'pause', 'resume', 'exec'].map(verb => `POST /v1/runtimes/{id}/${verb}`),
  ...['wait', 'logs', 'events'].map(what => `GET /v1/runtimes/{id}/${what}`),
  'GET /v1/events',
  'GET /v1/events/stream',
  'GET /v1/backends',
  'GET /v1/monitoring',
  'GET /v1/adoption',
  'POST /v1/adoption',
  'POST /v1/images/preflight',
  'GET /livez',
  'GET /readyz',
  'GET /metrics',
]
test('U1: the document has every route of the contract', () => {
  const there = operationsOf(doc).map(({ method, path }) => `${method} ${path}`)
  for (const route of PROMISED) assert.ok(there.includes(route), route)
})

test('R11: each operation has an id of its own, one tag, summary and description; probes need no token', () => {
  const operations = operationsOf(doc)
  assert.equal(new Set(operations.map(({ id }) => id)).size, operations.length)
  for (const { id, spec } of operations) {
    assert.match(id, /^[a-z]+[A-Z][A-Za-z]+$/)
    assert.equal(spec.tags.length, 1)
    assert.ok(
      doc.tags.some((tag: Json) => tag.name === spec.tags[0]),
      id,
    )
    assert.ok(spec.summary && spec.description, id)
    assert.equal(spec.security !== undefined, ['getLiveness', 'getReadiness'].includes(id), id)
  }
})

/** Every schema of the document, with where it stands. */
function* schemasIn(node: unknown, at: string): Generator<[at: string, schema: Json]> {
  if (node === null || typeof node !== 'object') return
  if (!Array.isArray(node) && ('type' in node || 'anyOf' in node)) yield [at, node as Json]
  for (const [key, child] of Object.entries(node)) yield* schemasIn(child, `${at}/${key}`)
}

test('R1, R2, R7, R12: enums are named, replies open and complete, requests strict, patterns plain, one media type', () => {
  const REQUESTS = ['RuntimeSpec', 'Volume', 'SchedulingConstraint', 'AdoptionRequest', 'Preflight']
  for (const [at, schema] of schemasIn(doc, '')) {
    const named = /^\/components\/schemas\/([A-Za-z]+)$/.exec(at)?.[1]
    if (schema.enum) assert.ok(named, `inline enum at ${at}`)
    if (schema.pattern) assert.doesNotMatch(schema.pattern, /\(\?|\\d|\\w|\\s/, at)
    assert.ok(!('default' in schema || 'const' in schema || 'examples' in schema), at)
    if (!named || schema.type !== 'object') continue
    assert.equal(schema.additionalProperties === false, REQUESTS.includes(named), named)
    const optional = Object.keys(schema.properties ?? {}).filter(name => !schema.required?.includes(name))
    if (!REQUESTS.includes(named)) assert.deepEqual(optional, named === 'Problem' ? ['oldest', 'newest'] : [], named)
  }
  for (const { id, spec } of operationsOf(doc)) {
    for (const response of Object.values(spec.responses as Json)) {
      assert.ok(response.$ref || Object.keys(response.content).length === 1, id)
    }
  }
})

test('B-69: every state the code knows is in the document’s closed enum and none else; event types are open', () => {
  assert.deepEqual(doc.components.schemas.RuntimeState.enum, [...STATES])
  assert.equal(doc.components.schemas.RuntimeEvent.properties.type.type, 'string')
  for (const type of EVENT_TYPES)
    assert.match(doc.components.schemas.RuntimeEvent.properties.type.description, new RegExp(type))
})

test('B-69: a state outside the enum is never sent: it would be a 500, and tests would see it', async t => {
  const server = await startServer(t)
  const view = server.services.add(ID)
  for (const state of [...STATES, 'Running', 'starting']) {
    server.services.rows.get(ID)!.view = { ...view, state: state as never }
    const { status } = await fetch(`${server.url}/v1/runtimes?state=${state}`)
    const listed = await fetch(`${server.url}/v1/runtimes/${encodeURIComponent(ID)}/wait?for=ended&timeout=0`)
    const known = (STATES as readonly string[]).includes(state)
    assert.deepEqual([status, listed.status], known ? [200, 200] : [400, 500], state)
  }
})

const BODIES: Readonly<Record<string, Json>> = {
  createRuntime: doc.components.schemas.RuntimeSpec.example,
  preflightImage: { image: 'a' },
  adoptRuntimes: { ids: [ID], action: 'adopt' },
}
test('U2: each operation’s reply, good and bad, is as documented', async t => {
  const server = await startServer(t)
  for (const operation of operationsOf(doc)) {
    server.services.add(ID)
    server.services.emit(ID, 'ContainerStarted')
    for (const id of [ID, 'k8s-default|job|none', 'x']) {
      const query = operation.path.endsWith('/wait') ? '?for=running&timeout=0' : ''
      const given = BODIES[operation.id]
      const init: RequestInit = { method: operation.method }
      if (given) Object.assign(init, { body: JSON.stringify(given), headers: { 'content-type': 'application/json' } })
      const reply = await fetch(server.url + fill(operation.path, id) + query, init)
      const isStream = operation.id === 'streamEvents'
      const body = isStream ? '' : await reply.text()
      if (isStream) await reply.body?.cancel()
      const contentType = reply.headers.get('content-type')
      assert.deepEqual(replyFaults(doc, operation, { status: reply.status, contentType, body }), [])
      const location = operation.spec.responses[reply.status]?.headers?.Location
      assert.equal(reply.headers.get('location') !== null, location !== undefined, operation.id)
    }
  }
})

test('the example of a spec is one that is accepted', () => {
  const { example } = doc.components.schemas.RuntimeSpec
  assert.deepEqual(faultsOf(doc, { $ref: '#/components/schemas/RuntimeSpec' }, example), [])
})

test('the docs page is served whole under a policy that lets nothing in from elsewhere', async t => {
  const server = await startServer(t)
  for (const path of [
    '/docs',
    '/docs/',
    '/docs/static/swagger-initializer.js',
    '/docs/static/swagger-ui-bundle.js',
    '/docs/json',
  ]) {
    const reply = await fetch(server.url + path)
    assert.equal(reply.status, 200, path)
    assert.match(
      reply.headers.get('content-security-policy') ?? '',
      /^default-src 'none'; script-src 'self'; style-src 'self';/,
      path,
    )
    await reply.body?.cancel()
  }
  const initializer = await (await fetch(`${server.url}/docs/static/swagger-initializer.js`)).text()
  assert.match(initializer, /"validatorUrl":\s*null/)
})

const PROGRAM = `import createClient from 'openapi-fetch'
import type { components, paths } from './api.d.ts'

const client = createClient<paths>({ baseUrl: 'http://127.0.0.1:8080' })
const { data, error } = await client.POST('/v1/runtimes', { body: { image: 'busybox', cpu: '500m', memory: 1024 } })
if (error) throw new Error(error.code + error.detail)
const state: components['schemas']['RuntimeState'] = 'state' in data ? data.state : 'unknown'
const page = await client.GET('/v1/runtimes', { params: { query: { state: ['running'], limit: 5 } } })
const ids: string[] = page.data?.items.map(item => item.id) ?? []
const waited = await client.GET('/v1/runtimes/{id}/wait', { params: { path: { id: ids[0] ?? '' }, query: { for: 'running' } } })
await client.POST('/v1/runtimes/{id}/stop', { params: { path: { id: 'x' } } })
// @ts-expect-error a text where a number belongs
await client.POST('/v1/runtimes', { body: { image: 'busybox', port: '80' } })
console.log(state, waited.data?.reached, waited.data?.runtime.endedAt?.length)
`
test('U2: a TypeScript client made from the document compiles, strictly', () => {
  const folder = `${root}node_modules/.cache/runtimed-client`
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  const tool = (path: string, args: readonly string[]) =>
    execFileSync(process.execPath, [`${root}node_modules/${path}`, ...args], { cwd: root, encoding: 'utf8' })
  tool('openapi-typescript/bin/cli.js', ['openapi/openapi.json', '-o', `${folder}/api.d.ts`])
  writeFileSync(`${folder}/client.ts`, PROGRAM)
  const options = [
    '--strict',
    '--noEmit',
    '--skipLibCheck',
    '--module',
    'nodenext',
    '--target',
    'es2024',
    '--types',
    'node',
    '--allowImportingTsExtensions',
  ]
  writeFileSync(`${folder}/package.json`, '{"type":"module"}')
  tool('typescript/bin/tsc', [...options, `${folder}/client.ts`])
  rmSync(folder, { recursive: true })
})
