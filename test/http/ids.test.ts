import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { startServer, type TestServer } from '../helpers/http-server.ts'
import { operationsOf, readDocument } from '../helpers/openapi.ts'
import { raw } from '../helpers/raw-http.ts'

const WEB = 'k8s-my-team-a|deployment|web'
const doc = readDocument()
const byId = operationsOf(doc).filter(operation => operation.path.includes('{id}'))

/** Sends the path as it stands: fetch would encode and normalise it. */
const send = (server: TestServer, method: string, path: string) =>
  raw(server.port, `${method} ${path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`)

const pathFor = (template: string, id: string): string => {
  const query = template.endsWith('/wait') ? '?for=running&timeout=0' : ''
  return template.replace('{id}', id) + query
}

test('B9, B-78: in every route a raw "|" and %7C reach the runtime, a double-encoded one is 400', async t => {
  const server = await startServer(t)
  assert.ok(byId.length >= 9)
  for (const { method, path } of byId) {
    server.services.add(WEB)
    const expected = path.endsWith('/exec') ? [501] : [200, 202]
    for (const id of [WEB, WEB.replaceAll('|', '%7C'), WEB.replaceAll('|', '%7c'), encodeURIComponent(` ${WEB} `)]) {
      const reply = await send(server, method, pathFor(path, id))
      assert.ok(expected.includes(reply.status), `${method} ${path} ${id}: ${reply.status} ${reply.body}`)
      server.services.add(WEB)
    }
    const twice = await send(server, method, pathFor(path, WEB.replaceAll('|', '%257C')))
    assert.deepEqual([twice.status, JSON.parse(twice.body).code], [400, 'RUNTIME_ID_INVALID'], path)
  }
})

const NOT_AN_ID: readonly string[] = [
  '.',
  '..',
  'x',
  'k8s-default|deployment',
  'k8s-default|deployment|a|b',
  'k8s-default||a',
  '|||',
  'k8s-default|Deployment|a',
  'k8s-default|cronjob|a',
  'K8S-default|job|a',
  'default|job|a',
  'podman-default|job|a',
  'k8s-|job|a',
  'k8s-default|job|A',
  'k8s-default|job|-a',
  'k8s-default|job|a.b',
  'k8s-default|job|..',
  'k8s-default|job|a/b',
  'k8s-default|job|../../namespaces/kube-system/secrets?a=',
  'x/../../namespaces/kube-system/secrets?a=',
  'k8s-default|job|a\n',
  'k8s-default|job|a\u0000',
  'k8s-default|job|ü',
  'k8s-default|job|a%2Fb',
  `k8s-default|job|${'a'.repeat(64)}`,
  `k8s-${'n'.repeat(63)}|deployment|${'a'.repeat(63)}b`,
  'k3s-default|job|a',
]
test('B4, B5, B7, B8, F-49: what is no ID of a configured runtime is 400 in every route and asks no backend', async t => {
  const server = await startServer(t)
  for (const { method, path } of byId) {
    for (const id of NOT_AN_ID) {
      if (path.endsWith('/exec') && id.startsWith('k3s-')) continue
      const reply = await send(server, method, pathFor(path, encodeURIComponent(id).replaceAll('.', '%2e')))
      assert.deepEqual([reply.status, JSON.parse(reply.body).code], [400, 'RUNTIME_ID_INVALID'], `${path} ${id}`)
    }
  }
  assert.deepEqual(server.services.calls, [])
})

test('B8, F-49: an ID past the router’s limit is 414, as a problem; the longest legal one works', async t => {
  const server = await startServer(t)
  for (const { method, path } of byId) {
    const reply = await send(server, method, pathFor(path, 'k8s-default|job|'.padEnd(300, 'a')))
    assert.deepEqual([reply.status, JSON.parse(reply.body).code], [414, 'URI_TOO_LONG'], path)
  }
  const longest = `k8s-${'n'.repeat(63)}|deployment|${'a'.repeat(63)}`
  assert.equal(longest.length, 142)
  server.services.add(longest)
  assert.equal((await send(server, 'GET', `/v1/runtimes/${longest}`)).status, 200)
})

test('F-49: raw dots and slashes in a path never reach another route with a verb', async t => {
  const server = await startServer(t)
  for (const path of [
    '/v1/runtimes/..',
    '/v1/runtimes/./start',
    '/v1/runtimes/../runtimes',
    '/v1//runtimes',
    '//v1/runtimes',
  ]) {
    const reply = await send(server, 'DELETE', path)
    assert.ok([400, 404, 405].includes(reply.status), `${path}: ${reply.status}`)
  }
  assert.deepEqual(server.services.calls, [])
})

test('F-49: generated texts as IDs: 400 unless they parse, and nothing asked', async t => {
  const server = await startServer(t)
  const part = fc.constantFrom(
    'k8s-default',
    'k3s-a',
    'deployment',
    'job',
    'web',
    '..',
    '',
    ' ',
    'a/b',
    'Ü',
    '%',
    '\r\n',
  )
  const ids = fc.oneof(
    fc.array(part, { minLength: 1, maxLength: 4 }).map(parts => parts.join('|')),
    fc.string({ minLength: 1, maxLength: 200, unit: 'binary' }).filter(text => text.isWellFormed()),
  )
  await fc.assert(
    fc.asyncProperty(
      ids.filter(id => id !== '' && id !== '.' && id !== '..'),
      async id => {
        const reply = await fetch(`${server.url}/v1/runtimes/${encodeURIComponent(id)}`)
        const { code } = (await reply.json()) as { code: string }
        const expected = code === 'RUNTIME_NOT_FOUND' ? 404 : 400
        assert.equal(reply.status, expected)
      },
    ),
    { numRuns: 300 },
  )
})
