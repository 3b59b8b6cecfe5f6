import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { RuntimeEvent } from '../../src/domain/event.ts'
import { RuntimeError } from '../../src/errors.ts'
import { startServer, type TestServer } from '../helpers/http-server.ts'
import { faultsOf, readDocument } from '../helpers/openapi.ts'
import { eventually, silentSocket } from '../helpers/raw-http.ts'

const A = 'k8s-default|job|a'
const B = 'k8s-ai|job|b'

/** Reads a stream until this many of its parts are whole; a heartbeat is a part too. */
async function read(reply: Response, parts: number, separator = '\n\n'): Promise<string[]> {
  const reader = reply.body!.pipeThrough(new TextDecoderStream()).getReader()
  let text = ''
  while (text.split(separator).length <= parts) {
    const { done, value } = await reader.read()
    if (done) break
    text += value
  }
  await reader.cancel()
  return text.split(separator).slice(0, parts)
}

const stream = (server: TestServer, query = '', headers: Record<string, string> = {}) =>
  fetch(`${server.url}/v1/events/stream${query}`, { headers })

const idsIn = (frames: readonly string[]) => frames.map(frame => /^id: (.*)$/m.exec(frame)?.[1])

test('B-70: the page moves its cursor past what the filter left out, and the next page begins after it', async t => {
  const server = await startServer(t)
  for (let at = 0; at < 6; at += 1) server.services.emit(at % 2 === 0 ? A : B, 'ContainerStarted', { run: at })
  const page = async (query: string) =>
    (await (await fetch(`${server.url}/v1/events?${query}`)).json()) as never as {
      items: RuntimeEvent[]
      cursor: string
    }
  const first = await page(`runtimeId=${encodeURIComponent(A)}&limit=2`)
  assert.deepEqual([first.items.map(event => event.seq), first.cursor], [[1, 3], 'x7k2-3'])
  const next = await page(`runtimeId=${encodeURIComponent(A)}&after=${first.cursor}`)
  assert.deepEqual([next.items.map(event => event.seq), next.cursor], [[5], 'x7k2-6'])
  assert.deepEqual((await page('after=now')).items, [])
  assert.equal(
    (await page('after=0&type=ContainerStarted&type=ContainerFailed&namespace=ai&namespace=default')).items.length,
    6,
  )
  assert.equal((await page('after=5')).items.length, 1)
})

test('B-70: one runtime’s events, and 404 where there never was one', async t => {
  const server = await startServer(t)
  server.services.add(A)
  server.services.emit(A, 'ContainerStarted')
  server.services.emit(B, 'ContainerStarted')
  const of = async (id: string) => fetch(`${server.url}/v1/runtimes/${encodeURIComponent(id)}/events`)
  assert.equal(((await (await of(A)).json()) as { items: unknown[] }).items.length, 1)
  assert.equal((await of('k8s-default|job|never')).status, 404)
})

test('SSE: id, event and one line of data, history first, then live', async t => {
  const server = await startServer(t)
  server.services.emit(A, 'ContainerStarted', { message: 'two\nlines' })
  const reply = await stream(server)
  assert.equal(reply.headers.get('content-type'), 'text/event-stream; charset=utf-8')
  assert.ok(reply.headers.get('x-request-id'))
  server.services.emit(A, 'ContainerExited', { exitCode: 0 })
  const [first = '', second = ''] = await read(reply, 2)
  const lines = first.split('\n')
  assert.deepEqual(lines.slice(0, 2), ['id: x7k2-1', 'event: ContainerStarted'])
  assert.equal(lines.length, 3)
  const event = JSON.parse(lines[2]!.slice('data: '.length))
  assert.deepEqual(faultsOf(readDocument(), { $ref: '#/components/schemas/RuntimeEvent' }, event), [])
  assert.equal(event.message, 'two\nlines')
  assert.match(second, /^id: x7k2-2\nevent: ContainerExited\n/)
})

test('ndjson by Accept: one event a line', async t => {
  const server = await startServer(t)
  server.services.emit(A, 'ContainerStarted')
  const reply = await stream(server, '', { accept: 'application/x-ndjson' })
  assert.equal(reply.headers.get('content-type'), 'application/x-ndjson; charset=utf-8')
  const [line = ''] = await read(reply, 1, '\n')
  assert.equal(JSON.parse(line).id, 'x7k2-1')
})

test('B-70: Last-Event-ID = n goes on with n+1 and beats after; after=now shows only what comes', async t => {
  const server = await startServer(t)
  for (let at = 0; at < 5; at += 1) server.services.emit(A, 'ContainerWarning')
  assert.deepEqual(idsIn(await read(await stream(server, '?after=4', { 'last-event-id': 'x7k2-2' }), 3)), [
    'x7k2-3',
    'x7k2-4',
    'x7k2-5',
  ])
  assert.deepEqual(idsIn(await read(await stream(server, '?after=4', { 'last-event-id': '' }), 1)), ['x7k2-5'])
  const live = await stream(server, '?after=now')
  server.services.emit(A, 'ContainerStarted')
  assert.deepEqual(idsIn(await read(live, 1)), ['x7k2-6'])
})

test('B-70, P7: an expired, future or foreign cursor is 410 with oldest and newest, before any event', async t => {
  const server = await startServer(t)
  for (let at = 0; at < 5; at += 1) server.services.emit(A, 'ContainerWarning')
  server.services.oldest = 3
  for (const path of ['/v1/events', '/v1/events/stream']) {
    for (const [after, header] of [
      ['1', ''],
      ['x7k2-1', ''],
      ['6', ''],
      ['other-4', ''],
      ['4', 'x7k2-1'],
    ] as const) {
      const reply = await fetch(`${server.url}${path}?after=${header && path === '/v1/events' ? '1' : after}`, {
        headers: header ? { 'last-event-id': header } : {},
      })
      const problem = (await reply.json()) as Record<string, unknown>
      assert.deepEqual(
        [reply.status, problem.code, problem.oldest, problem.newest],
        [410, 'CURSOR_EXPIRED', 'x7k2-3', 'x7k2-5'],
        `${path} ${after}`,
      )
    }
  }
  assert.deepEqual(idsIn(await read(await stream(server, '?after=2'), 1)), ['x7k2-3'])
})

test('a malformed Last-Event-ID is 400', async t => {
  const server = await startServer(t)
  for (const bad of ['x', '-1', 'x7k2-1 ', 'X7-1', 'x7k2-1, x7k2-2']) {
    const reply = await stream(server, '', { 'last-event-id': bad.trim() === bad ? bad : `${bad};` })
    assert.equal(reply.status, 400, bad)
    assert.equal(((await reply.json()) as { errors: Array<{ path: string }> }).errors[0]?.path, 'last-event-id')
  }
})

test('HEAD of the stream checks the cursor and ends', async t => {
  const server = await startServer(t)
  const head = (query: string) => fetch(`${server.url}/v1/events/stream${query}`, { method: 'HEAD' })
  assert.equal((await head('')).status, 200)
  assert.equal((await head('?after=9')).status, 410)
  assert.equal(server.app.traffic.streams, 0)
})

test('a quiet stream has a heartbeat: a comment for SSE, an empty line for ndjson', async t => {
  const server = await startServer(t, { limits: { heartbeatMs: 20 } })
  assert.deepEqual(await read(await stream(server), 3), [':', ':', ':'])
  assert.deepEqual(await read(await stream(server, '', { accept: 'application/x-ndjson' }), 3, '\n'), ['', '', ''])
})

test('a reader that leaves ends its subscription at once', async t => {
  const server = await startServer(t)
  for (let at = 0; at < 200; at += 1) {
    const leave = new AbortController()
    const reply = await fetch(`${server.url}/v1/events/stream`, { signal: leave.signal })
    leave.abort()
    await reply.text().catch(() => {})
  }
  await eventually('nobody listens', () => server.services.wakers.size === 0 && server.app.traffic.streams === 0)
  assert.ok(server.services.signals.every(signal => signal.aborted))
})

const PAD = 'x'.repeat(8_000)

test('B-71, F-53: readers that never read are cut once live, lose nothing, and others are not delayed', async t => {
  const server = await startServer(t)
  const sockets = await Promise.all(Array.from({ length: 100 }, () => silentSocket(server.port)))
  for (const socket of sockets) socket.write('GET /v1/events/stream HTTP/1.1\r\nHost: localhost\r\n\r\n')
  await eventually('all are live', () => server.services.wakers.size === 100)
  const healthy = await stream(server)
  const reader = healthy.body!.getReader()
  const before = process.memoryUsage().rss
  let received = 0
  let slowest = 0
  const total = 1_500
  for (let at = 1; at <= total; at += 1) {
    server.services.emit(A, 'ContainerWarning', { message: PAD })
    if (at % 50 !== 0) continue
    const began = performance.now()
    while (received < at * PAD.length) received += (await reader.read()).value?.length ?? Number.POSITIVE_INFINITY
    slowest = Math.max(slowest, performance.now() - began)
  }
  await reader.cancel()
  await eventually('the silent are cut', () => server.app.traffic.streams === 0)
  assert.ok(Number.isFinite(received), 'the healthy reader was cut')
  assert.ok(slowest < 3_000, `the healthy reader waited ${slowest} ms`)
  const grown = (process.memoryUsage().rss - before) / 1024 / 1024
  // 100 readers × 1 MiB is what may be unsent at once; beyond that nothing may grow.
  assert.ok(grown < 400, `RSS grew by ${grown} MiB`)
  for (const socket of sockets) socket.destroy()
  const resumed = await read(await stream(server, `?after=${total - 2}`), 2)
  assert.deepEqual(idsIn(resumed), [`x7k2-${total - 1}`, `x7k2-${total}`])
})

test('B-71: the count of unsent events cuts a live reader by itself, whatever their size', async t => {
  const server = await startServer(t, { limits: { unsentEvents: 200, unsentBytes: 1e9 } })
  const socket = await silentSocket(server.port)
  socket.write('GET /v1/events/stream HTTP/1.1\r\nHost: localhost\r\n\r\n')
  await eventually('it is live', () => server.services.wakers.size === 1)
  // Fill what the kernel takes; from then on every event is unsent.
  for (let at = 0; at < 4_000 && server.app.traffic.streams === 1; at += 1) {
    server.services.emit(A, 'ContainerWarning', { message: PAD })
    if (at % 20 === 0) await new Promise(resolve => setImmediate(resolve))
  }
  await eventually('it is cut', () => server.app.traffic.streams === 0)
  assert.match(await metric(server), /runtimed_event_streams_cut_total 1/)
  socket.destroy()
})

test('history waits for a slow reader: nothing is cut, skipped or read ahead into memory', async t => {
  const server = await startServer(t, { limits: { graceMs: 20 } })
  const total = 3_000
  for (let at = 0; at < total; at += 1) server.services.emit(A, 'ContainerWarning', { message: PAD })
  let pulled = 0
  const { stream: open } = server.services.events
  server.services.events.stream = async function* (...given) {
    for await (const batch of open(...given)) {
      pulled += batch.events.length
      yield batch
    }
  }
  const socket = await silentSocket(server.port)
  socket.write('GET /v1/events/stream?after=0 HTTP/1.1\r\nHost: localhost\r\n\r\n')
  await eventually('it is open', () => server.app.traffic.streams === 1)
  let text = ''
  let received = 0
  socket.on('data', chunk => {
    text += chunk.toString().replaceAll('x', '')
    received += chunk.length
    // Past the first batch of 500, so that it stops in the midst of history.
    if (received - chunk.length < PAD.length * 600 && received >= PAD.length * 600) socket.pause()
  })
  for (const isMidway of [false, true]) {
    if (isMidway) {
      socket.resume()
      await eventually('it stopped midway', () => received >= PAD.length * 600)
    }
    await new Promise(resolve => setTimeout(resolve, 300))
    assert.equal(server.app.traffic.streams, 1, 'a reader of history was cut')
    // What the kernel and a batch or two hold; the whole history is 24 MB.
    assert.ok(pulled < total * (isMidway ? 0.75 : 0.5), `${pulled} events were read for a reader that takes none`)
  }
  socket.resume()
  await eventually('all has come', () => text.includes(`id: 7k2-${total}\n`))
  const seqs = [...text.matchAll(/^id: 7k2-(\d+)$/gm)].map(match => Number(match[1]))
  assert.deepEqual(
    seqs,
    Array.from({ length: total }, (_, at) => at + 1),
  )
  socket.destroy()
})

test('a refusal that comes with the first read of the feed is still a problem', async t => {
  const server = await startServer(t)
  // biome-ignore lint/correctness/useYield: it refuses before its first batch
  server.services.events.stream = async function* () {
    throw new RuntimeError('CURSOR_EXPIRED', 'cannot resume', { extra: { oldest: null, newest: null } })
  }
  const reply = await stream(server)
  assert.deepEqual([reply.status, ((await reply.json()) as { oldest: unknown }).oldest], [410, null])
  assert.equal(server.app.traffic.streams, 0)
})

test('F-53: past the number of streams: 429 with Retry-After', async t => {
  const server = await startServer(t, { limits: { streams: 2 } })
  const open = [await stream(server), await stream(server)]
  const refused = await stream(server)
  assert.deepEqual([refused.status, refused.headers.get('retry-after')], [429, '5'])
  for (const reply of open) await reply.body?.cancel()
  await eventually('room again', () => server.app.traffic.streams === 0)
  const again = await stream(server)
  assert.equal(again.status, 200)
  await again.body?.cancel()
})

const metric = async (server: TestServer): Promise<string> => (await fetch(`${server.url}/metrics`)).text()
