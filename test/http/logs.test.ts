import assert from 'node:assert/strict'
import { once } from 'node:events'
import { PassThrough, Readable } from 'node:stream'
import { test } from 'node:test'
import { RuntimeError } from '../../src/errors.ts'
import type { LogQuery } from '../../src/service/api.ts'
import { startServer, type TestServer } from '../helpers/http-server.ts'
import { eventually, silentSocket } from '../helpers/raw-http.ts'

const ID = 'k8s-default|job|a'
const PATH = `/v1/runtimes/${encodeURIComponent(ID)}/logs`

async function withLog(t: Parameters<typeof startServer>[0], log: (query: LogQuery) => Readable): Promise<TestServer> {
  const server = await startServer(t)
  server.services.add(ID)
  server.services.log = log
  return server
}

const QUERIES: ReadonlyArray<[query: string, expected: Partial<LogQuery>]> = [
  [
    '',
    {
      tail: 200,
      follow: false,
      since: undefined,
      timestamps: false,
      container: undefined,
      previous: false,
      limitBytes: 1024 * 1024,
    },
  ],
  ['?tail=50', { tail: 50 }],
  ['?tail=0&follow=true', { tail: 0, follow: true }],
  ['?tail=1000000000', { tail: 1_000_000_000 }],
  ['?since=60', { since: { seconds: 60 } }],
  ['?since=2026-01-02T03:04:05Z', { since: { time: '2026-01-02T03:04:05Z' } }],
  ['?since=2026-01-02T03:04:05.123%2B02:00', { since: { time: '2026-01-02T03:04:05.123+02:00' } }],
  ['?timestamps=1&previous=true&follow=0', { timestamps: true, previous: true, follow: false }],
  ['?container=side-car&limitBytes=67108864', { container: 'side-car', limitBytes: 64 * 1024 * 1024 }],
]
test('L1, L6: what the query says is what the service is asked', async t => {
  const asked: LogQuery[] = []
  const server = await withLog(t, query => {
    asked.push(query)
    return Readable.from([])
  })
  for (const [query, expected] of QUERIES) {
    const reply = await fetch(server.url + PATH + query)
    assert.deepEqual([reply.status, await reply.text()], [200, ''], query)
    assert.partialDeepStrictEqual(asked.at(-1), expected)
  }
})

test('L7: bytes come as they were written: binary, split UTF-8, no newline, ANSI', async t => {
  const bytes = Buffer.concat([
    Buffer.from([0, 0xff, 0xfe, 0x0d, 0xc3]),
    Buffer.from([0xa9, 0x1b, 0x5b, 0x33, 0x31]),
    Buffer.alloc(300_000, 7),
  ])
  const server = await withLog(t, () => Readable.from([bytes.subarray(0, 5), bytes.subarray(5, 9), bytes.subarray(9)]))
  const reply = await fetch(server.url + PATH)
  assert.equal(reply.headers.get('content-type'), 'text/plain; charset=utf-8')
  assert.equal(reply.headers.get('x-log-kept'), null)
  assert.ok(reply.headers.get('x-request-id'))
  assert.ok(Buffer.from(await reply.arrayBuffer()).equals(bytes))
})

test('L4: a kept tail says so', async t => {
  const server = await withLog(t, () => Readable.from([Buffer.from('last words')]))
  server.services.kept = true
  const reply = await fetch(server.url + PATH)
  assert.deepEqual([reply.headers.get('x-log-kept'), await reply.text()], ['true', 'last words'])
})

test('L5: LOGS_NOT_READY and what fails before the first byte are problems', async t => {
  const failing = () =>
    new Readable({
      read() {
        this.destroy(new RuntimeError('POD_NOT_FOUND', 'cannot read: the pod is gone'))
      },
    })
  const server = await withLog(t, failing)
  const reply = await fetch(server.url + PATH)
  assert.equal(((await reply.json()) as { code: string }).code, 'POD_NOT_FOUND')
  assert.equal(reply.headers.get('content-type'), 'application/problem+json; charset=utf-8')
  server.services.fail = new RuntimeError('LOGS_NOT_READY', 'cannot read yet', { reason: 'ImagePullBackOff' })
  const refused = await fetch(`${server.url}${PATH}?follow=true`)
  assert.equal(((await refused.json()) as { reason: string }).reason, 'ImagePullBackOff')
})

test('L7: a log that breaks off half-way breaks the reply, and never ends the process', async t => {
  const server = await withLog(t, () => {
    const log = new PassThrough()
    log.write('half')
    setTimeout(() => log.destroy(new Error('upstream reset')), 30)
    return log
  })
  const reply = await fetch(`${server.url}${PATH}?follow=true`)
  await assert.rejects(reply.text())
  assert.equal((await fetch(`${server.url}/livez`)).status, 200)
})

test('L6: a follower sees the headers at once, bytes as they come, and its leaving closes the log upstream', async t => {
  const log = new PassThrough()
  const server = await withLog(t, () => log)
  const leave = new AbortController()
  const reply = await fetch(`${server.url}${PATH}?follow=true`, { signal: leave.signal })
  assert.equal(reply.status, 200)
  const reader = reply.body!.getReader()
  log.write('one')
  assert.equal(Buffer.from((await reader.read()).value!).toString(), 'one')
  const closed = new Promise<void>(resolve => log.once('close', () => resolve()))
  leave.abort()
  await reader.read().catch(() => {})
  await closed
  assert.ok(server.services.signals.every(signal => signal.aborted))
})

test('F-54: a caller that leaves before the log is there gives up the request for it', async t => {
  const server = await startServer(t)
  server.services.add(ID)
  let asked: AbortSignal | undefined
  server.services.runtimes.logs = (_scope, _id, query) => {
    asked = query.signal
    return new Promise(() => {})
  }
  const leave = new AbortController()
  const waiting = fetch(`${server.url}${PATH}?follow=true`, { signal: leave.signal }).catch(() => 'left')
  await eventually('asked', () => asked !== undefined)
  leave.abort()
  assert.equal(await waiting, 'left')
  await eventually('given up', () => asked?.aborted === true)
})

test('F-54, L7: a log of 256 MiB to a caller that does not read stays upstream, then comes whole', async t => {
  let produced = 0
  const total = 256
  const server = await withLog(
    t,
    () =>
      new Readable({
        read() {
          this.push(produced < total ? Buffer.alloc(1024 * 1024, 120) : null)
          produced += 1
        },
      }),
  )
  const before = process.memoryUsage().rss
  const socket = await silentSocket(server.port)
  socket.write(`GET ${PATH}?limitBytes=67108864 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`)
  await eventually('it began', () => produced > 0)
  await new Promise(resolve => setTimeout(resolve, 200))
  assert.ok(produced < 32, `${produced} MiB were read for nobody`)
  let received = 0
  socket.on('data', chunk => {
    received += chunk.length
  })
  socket.resume()
  await once(socket, 'close')
  assert.ok(received > total * 1024 * 1024)
  const grown = (process.memoryUsage().rss - before) / 1024 / 1024
  assert.ok(grown < 150, `RSS grew by ${grown} MiB`)
})

test('HEAD of a log answers without a body and closes the log', async t => {
  const log = new PassThrough()
  log.write('never sent')
  const server = await withLog(t, () => log)
  const reply = await fetch(server.url + PATH, { method: 'HEAD' })
  assert.deepEqual([reply.status, await reply.text()], [200, ''])
  assert.equal(log.destroyed, true)
})
