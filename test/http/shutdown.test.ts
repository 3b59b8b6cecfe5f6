import assert from 'node:assert/strict'
import { once } from 'node:events'
import { PassThrough } from 'node:stream'
import { test } from 'node:test'
import { drain } from '../../src/http/server.ts'
import { startServer } from '../helpers/http-server.ts'
import { eventually, raw } from '../helpers/raw-http.ts'

const ID = 'k8s-default|job|a'
const PATH = `/v1/runtimes/${encodeURIComponent(ID)}`

test('U3: drain ends streams, waits and followed logs at once, then closes', async t => {
  const server = await startServer(t)
  server.services.add(ID)
  const log = new PassThrough()
  server.services.log = query => {
    query.signal.addEventListener('abort', () => log.end())
    return log
  }
  const stream = await fetch(`${server.url}/v1/events/stream`)
  const follow = await fetch(`${server.url}${PATH}/logs?follow=true`)
  const waiting = fetch(`${server.url}${PATH}/wait?for=deleted&timeout=600`)
  await eventually('all are open', () => server.services.signals.length === 3)
  const began = performance.now()
  await drain(server.app)
  assert.ok(performance.now() - began < 2_000)
  assert.equal(await stream.text(), '')
  assert.equal(await follow.text(), '')
  assert.equal(((await (await waiting).json()) as { reached: boolean }).reached, false)
  await assert.rejects(fetch(`${server.url}/livez`))
})

test('U3: while requests in hand end, new ones are 503 with Retry-After; livez 200, readyz 503', async t => {
  const server = await startServer(t)
  server.services.add(ID)
  let finish = () => {}
  const { inspect } = server.services.runtimes
  server.services.runtimes.inspect = async (scope, id) => {
    await new Promise<void>(resolve => {
      finish = resolve
    })
    return inspect(scope, id)
  }
  const inHand = fetch(server.url + PATH)
  await eventually('it is in hand', () => server.app.traffic.active === 1)
  const drained = drain(server.app)
  const get = (path: string) => raw(server.port, `GET ${path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`)
  const refused = await get('/v1/runtimes')
  assert.equal(JSON.parse(refused.body).code, 'SHUTTING_DOWN')
  assert.match(refused.head, /retry-after: 5/i)
  assert.equal((await get('/livez')).status, 200)
  const ready = await get('/readyz')
  assert.deepEqual([ready.status, JSON.parse(ready.body).checks.at(-1).name], [503, 'shutdown'])
  finish()
  assert.equal((await inHand).status, 200)
  await drained
})

test('U3: a request that never ends is cut when the time to drain is over', async t => {
  const server = await startServer(t, { limits: { drainMs: 200 } })
  server.services.add(ID)
  server.services.runtimes.inspect = () => new Promise(() => {})
  const stuck = fetch(server.url + PATH).catch(() => 'cut')
  await eventually('it is in hand', () => server.app.traffic.active === 1)
  const began = performance.now()
  await drain(server.app)
  assert.ok(performance.now() - began < 1_500)
  assert.equal(await stuck, 'cut')
})

test('U3: an idle kept-alive connection does not hold the shutdown', async t => {
  const server = await startServer(t)
  await fetch(`${server.url}/livez`)
  const closed = once(server.app.server, 'close')
  await drain(server.app)
  await closed
})
