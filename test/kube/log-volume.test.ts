import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import type { Readable } from 'node:stream'
import { type TestContext, test } from 'node:test'
import { KubeClient } from '../../src/kube/client.ts'
import { KubeLogs } from '../../src/kube/logs.ts'
import type { Pod } from '../../src/kube/objects.ts'
import type { LogOptions } from '../../src/service/ports.ts'
import { claim } from './cluster.ts'
import { serve, transportTo, until } from './serve.ts'

const MiB = 1 << 20
const VOLUME = 48 * MiB
const STAMP = '2026-11-29T18:00:00.000000001Z '

const pod = (running: boolean): Pod => ({
  metadata: { name: 'p', namespace: 'default', uid: 'u' },
  spec: { containers: [{ name: 'main' }] },
  status: {
    phase: running ? 'Running' : 'Succeeded',
    containerStatuses: [
      {
        name: 'main',
        image: 'x',
        imageID: 'x',
        containerID: 'c',
        ready: running,
        restartCount: 0,
        state: running ? { running: {} } : { terminated: { exitCode: 0, containerID: 'c' } },
      },
    ],
  },
})

/** Writes `bytes` of no line end at the reader's pace. */
async function flood(
  response: ServerResponse,
  bytes: number,
  wrote: (bytes: number) => void = () => {},
): Promise<void> {
  const chunk = Buffer.alloc(64 * 1024, 0x78)
  const controller = new AbortController()
  const { signal } = controller
  const closed = new Promise<void>(resolve => response.once('close', resolve))
  for (let left = bytes; left > 0 && !response.destroyed; left -= chunk.length) {
    wrote(chunk.length)
    if (!response.write(chunk)) await Promise.race([once(response, 'drain', { signal }), closed])
  }
  controller.abort()
  response.end()
}

async function logsOf(t: TestContext, answer: (response: ServerResponse, query: URLSearchParams) => void) {
  const api = await serve(t, ({ query }, response) => answer(response, query))
  let ended = false
  const logs = new KubeLogs({
    client: new KubeClient(transportTo(t, api.url, { deadlineMs: 5000 })),
    pods: { newest: async () => pod(true), again: async () => pod(!ended), isThere: async () => true },
    changed: async () => {},
  })
  const read = (options: Partial<LogOptions>): Promise<Readable> => logs.read(claim(), { ...PLAIN, ...options })
  return { api, read, end: () => (ended = true) }
}

const PLAIN: LogOptions = {
  tail: null,
  follow: false,
  sinceSeconds: null,
  sinceTime: null,
  timestamps: false,
  container: null,
  previous: false,
  limitBytes: null,
  signal: new AbortController().signal,
}

test('F-54, L6, L7: a huge log without a newline passes whole; what is not read is not taken from the cluster', async t => {
  for (const follow of [false, true]) {
    let written = 0
    const { read, end } = await logsOf(t, (response, query) => {
      end()
      if (query.get('timestamps') === 'true') response.write(STAMP)
      void flood(response, query.has('sinceTime') ? 0 : VOLUME, bytes => {
        written += bytes
      })
    })
    const body = await read({ follow })
    let size = 0
    let before = -1
    for await (const chunk of body) {
      size += (chunk as Buffer).length
      while (before !== written && before !== VOLUME && size < 2 * MiB) {
        before = written
        await new Promise(resolve => setTimeout(resolve, 200))
      }
    }
    assert.equal(size, VOLUME)
    assert.ok(before > 0 && before < VOLUME / 2, `${before} bytes were taken while nobody read`)
  }
})

test('F-54: at most the bytes asked for, even of a server that ignores the limit; then the connection is closed', async t => {
  const { api, read } = await logsOf(t, response => void flood(response, VOLUME))
  const body = await read({ limitBytes: MiB })
  let size = 0
  for await (const chunk of body) size += (chunk as Buffer).length
  assert.equal(size, MiB)
  await until('the connection is closed', () => api.sockets.size === 0, 1000)
})

test('F-54, B-95: a reader that stops reading and leaves closes the connection within a second', async t => {
  const { api, read } = await logsOf(t, response => void flood(response, VOLUME))
  const body = await read({ follow: true })
  await new Promise(resolve => body.once('data', resolve))
  body.pause()
  body.destroy()
  await until('the connection is closed', () => api.sockets.size === 0, 1000)
})

test('B-95: a connection that breaks fails the stream of the reader and nothing else', async t => {
  const { read } = await logsOf(t, response => {
    response.write('some')
    setTimeout(() => response.destroy(), 50)
  })
  const body = await read({})
  await assert.rejects(async () => {
    for await (const _ of body);
  })
})

test('L5, L6: a follow of a container that has said nothing yet begins at once: a kubelet sends no headers before', async t => {
  let speak = (): void => {}
  const { read, end } = await logsOf(t, (response, query) => {
    if (query.has('sinceTime')) return void response.end()
    speak = () => response.end(`${STAMP}at last\n`)
  })
  const began = Date.now()
  const body = await read({ follow: true })
  assert.ok(Date.now() - began < 3000)
  setTimeout(() => {
    end()
    speak()
  }, 200)
  let text = ''
  for await (const chunk of body) text += chunk
  assert.equal(text, 'at last\n')
})
