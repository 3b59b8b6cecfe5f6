import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { startServer, type TestServer } from '../helpers/http-server.ts'
import { fill, operationsOf, readDocument, replyFaults } from '../helpers/openapi.ts'
import { type GeneratedRequest, requestsTo } from '../helpers/openapi-requests.ts'

const doc = readDocument()
const KNOWN = ['k8s-default|deployment|web', 'k8s-ai|job|batch']
const RUNS = 70

async function send(server: TestServer, { operation, id, query, headers, body }: GeneratedRequest) {
  const quick =
    operation.id === 'waitRuntime'
      ? query.map(([name, text]) => [
          name,
          name === 'timeout' && /^[0-9]+$/.test(text) && Number(text) <= 600 ? '0' : text,
        ])
      : query
  const whole =
    operation.id === 'waitRuntime' && !quick.some(([name]) => name === 'timeout') ? [...quick, ['timeout', '0']] : quick
  const text = new URLSearchParams(whole as [string, string][]).toString()
  const reply = await fetch(`${server.url}${fill(operation.path, id)}${text ? `?${text}` : ''}`, {
    method: operation.method,
    headers: [
      ...headers.filter(([, value]) => value !== ''),
      ...(body === undefined ? [] : [['content-type', 'application/json'] as const]),
    ] as never,
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  const isStream = (reply.headers.get('content-type') ?? '').startsWith('text/event-stream')
  const received = isStream ? '' : await reply.text()
  if (isStream) await reply.body?.cancel()
  return { status: reply.status, contentType: reply.headers.get('content-type'), body: received }
}

for (const operation of operationsOf(doc)) {
  test(`F-55: ${operation.id}: every generated request is answered as documented, none with 5xx`, async t => {
    const server = await startServer(t)
    for (let at = 0; at < 5; at += 1) server.services.emit(KNOWN[0]!, 'ContainerWarning')
    let served = 0
    await fc.assert(
      fc.asyncProperty(requestsTo(doc, operation, { known: [...KNOWN, 'k8s-default|job|none'] }), async request => {
        for (const id of KNOWN) server.services.add(id)
        const reply = await send(server, request)
        assert.deepEqual(replyFaults(doc, operation, reply), [])
        if (reply.status < 300 || reply.status === 501) served += 1
        if (operation.id !== 'execRuntime') assert.ok(reply.status < 500, `${reply.status} ${reply.body}`)
        // What the schemas refuse begins so; what the services refuse tells what they could not do.
        const refusedBySchema =
          reply.status === 400 && /"detail":"cannot read the (body|query|headers)/.test(reply.body)
        if (request.valid) assert.ok(!refusedBySchema, `valid, but ${reply.body}`)
        else assert.ok(reply.status >= 400, `invalid, but ${reply.status}`)
      }),
      { numRuns: RUNS },
    )
    assert.ok(served > 0, 'not one of the generated requests was served')
  })
}

const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'PROPFIND', 'QUERY', 'SEARCH']
const TYPES = [
  'application/json',
  'application/json; charset=utf-8',
  'text/plain',
  'application/xml',
  'multipart/form-data',
  'nonsense',
  '*/*',
  '',
]

test('F-55: wrong methods and media types on every path: a problem with the right status, never 5xx, never done', async t => {
  const server = await startServer(t)
  const paths = [...new Set(operationsOf(doc).map(({ path }) => path))]
  const requests = fc.record({
    path: fc.constantFrom(...paths, '/v1', '/v1/nothing', '/'),
    method: fc.constantFrom(...METHODS.filter(method => method !== 'TRACE')),
    type: fc.constantFrom(...TYPES),
    body: fc.constantFrom('{}', '{"image":"a"', 'x', '[]', 'null'),
  })
  await fc.assert(
    fc.asyncProperty(requests, async ({ path, method, type, body }) => {
      for (const id of KNOWN) server.services.add(id)
      const known = operationsOf(doc).filter(operation => operation.path === path)
      const isThere = known.some(operation => operation.method === method)
      const init: RequestInit = { method, headers: type === '' ? {} : { 'content-type': type } }
      if (method !== 'GET') init.body = body
      const query = path.endsWith('/wait') ? '?for=running&timeout=0' : ''
      const reply = await fetch(server.url + fill(path, KNOWN[0]!) + query, init)
      await reply.body?.cancel()
      if (known.length === 0) assert.equal(reply.status, 404)
      else if (!isThere) {
        assert.equal(reply.status, 405)
        assert.ok(reply.headers.get('allow'))
      } else if (method === 'POST' && !type.startsWith('application/json')) assert.equal(reply.status, 415)
      else assert.ok(reply.status < 500 || path.endsWith('/exec'), `${reply.status}`)
    }),
    { numRuns: 200 },
  )
})
