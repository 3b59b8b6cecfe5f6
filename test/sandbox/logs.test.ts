import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { LogBuffer } from '../../src/sandbox/log-buffer.ts'
import { type Client, DEPLOYMENTS, deployment, PODS, pod, sandboxFor, until } from './client.ts'

const log = (client: Client, query = '', name = 'one') => client.get(`${PODS}/${name}/log${query}`)
const ended = (client: Client) => client.pod(({ status }) => status.containerStatuses?.[0].state.terminated, 'the end')

test('both streams, bytes as written, tail, limitBytes, timestamps', async t => {
  const client = await sandboxFor(t)
  await client.post(PODS, pod('one', ['sh', '-c', 'echo a; echo b >&2; sleep 0.05; echo c; printf end']))
  await ended(client)
  assert.equal((await log(client)).text, 'a\nb\nc\nend')
  assert.equal((await log(client, '?tailLines=2')).text, 'c\nend')
  assert.equal((await log(client, '?tailLines=0')).text, '')
  assert.equal((await log(client, '?limitBytes=3')).text, 'a\nb')
  const stamped = (await log(client, '?timestamps=true&tailLines=2')).text.split('\n')
  for (const line of stamped) assert.match(line, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z (c|end)$/)
  assert.equal((await log(client)).headers.get('content-type'), 'text/plain')
})

test('sinceSeconds and sinceTime leave out what is older', async t => {
  const client = await sandboxFor(t)
  await client.post(PODS, pod('one', ['sh', '-c', 'echo old; sleep 1.2; echo new; while :; do sleep 0.05; done']))
  await until('both lines', async () => (await log(client)).text === 'old\nnew\n')
  assert.equal((await log(client, '?sinceSeconds=1')).text, 'new\n')
  assert.equal((await log(client, `?sinceTime=${new Date(Date.now() - 60_000).toISOString()}`)).text, 'old\nnew\n')
  assert.equal((await log(client, `?sinceTime=${new Date(Date.now() + 60_000).toISOString()}`)).text, '')
})

test('follow sends lines as they come and ends with the container', async t => {
  const client = await sandboxFor(t)
  await client.post(PODS, pod('one', ['sh', '-c', 'echo first; sleep 0.8; echo second; sleep 0.2; echo last']))
  await client.pod(({ status }) => status.containerStatuses?.[0].started)
  const response = await fetch(`${client.sandbox.url}${PODS}/one/log?follow=true`)
  const times: [string, number][] = []
  const decoder = new TextDecoder()
  for await (const chunk of response.body!)
    for (const line of decoder.decode(chunk).trim().split('\n')) times.push([line, Date.now()])
  assert.deepEqual(
    times.map(([line]) => line),
    ['first', 'second', 'last'],
  )
  assert.ok(times[1]![1] - times[0]![1] >= 300, 'not kept back until the end')
})

test('a follower that leaves is forgotten', async t => {
  const client = await sandboxFor(t)
  await client.post(PODS, pod('one', ['sh', '-c', 'while :; do echo x; sleep 0.02; done']))
  await client.pod(({ status }) => status.containerStatuses?.[0].started)
  const controller = new AbortController()
  await fetch(`${client.sandbox.url}${PODS}/one/log?follow=true`, { signal: controller.signal })
  assert.equal(client.sandbox.faults.streams.size, 1)
  controller.abort()
  await until('the stream is closed', () => client.sandbox.faults.streams.size === 0)
})

test('previous: the instance before; 400 when there is none', async t => {
  const client = await sandboxFor(t)
  await client.post(
    DEPLOYMENTS,
    deployment('web', ['sh', '-c', 'echo run; test -e seen && { echo again; sleep 60; }; touch seen; exit 1']),
  )
  const { metadata } = await client.pod(
    ({ status }) => status.containerStatuses?.[0].restartCount === 1 && status.containerStatuses[0].state.running,
  )
  assert.equal((await log(client, '?previous=true', metadata.name)).text, 'run\n')
  await until('the new output', async () => (await log(client, '', metadata.name)).text === 'run\nagain\n')
  await client.post(PODS, pod('one', ['sh', '-c', 'sleep 60']))
  await until(
    'it runs',
    () => client.sandbox.store.get('pods', 'default', 'one')?.status.containerStatuses?.[0].state.running,
  )
  const none = await log(client, '?container=main&previous=true')
  assert.equal(none.code, 400)
  assert.equal(none.body.message, 'previous terminated container "main" in pod "one" not found')
})

test('400 with the kubelet’s words while a container waits, and for one that is not there', async t => {
  const client = await sandboxFor(t, { timing: { imagePullMs: 150, imageBackoffMs: 2000 } })
  await client.post(PODS, pod('one', ['x'], { image: 'registry.invalid/none:1' }))
  const reply = async (query = ''): Promise<string> => (await log(client, query)).body?.message
  await until(
    'creating',
    async () => (await reply()) === 'container "main" in pod "one" is waiting to start: ContainerCreating',
  )
  await until(
    'no image',
    async () => (await reply()) === 'container "main" in pod "one" is waiting to start: image can\'t be pulled',
  )
  await until(
    'back-off',
    async () =>
      (await reply()) === 'container "main" in pod "one" is waiting to start: trying and failing to pull image',
  )
  const other = await log(client, '?container=other')
  assert.equal(other.code, 400)
  assert.equal(other.body.message, 'container other is not valid for pod one')
  assert.equal((await log(client, '?tailLines=-1')).code, 422)
  assert.equal((await log(client, '', 'nope')).code, 404)
})

test('a log is bounded: the oldest lines go, the newest stay', () => {
  const buffer = new LogBuffer()
  const line = Buffer.from(`${'x'.repeat(1023)}\n`)
  for (let n = 0; n < 20 * 1024; n++) buffer.append(line)
  buffer.append(Buffer.from('newest\n'))
  let size = 0
  let last = ''
  buffer.read(
    {},
    {
      write: chunk => {
        size += chunk.length
        last = chunk.toString()
      },
      end: () => {},
    },
  )
  assert.ok(size <= 16 * 1024 * 1024 && size > 8 * 1024 * 1024)
  assert.equal(last, 'newest\n')
})

test('a line without end is cut at 16 KiB and joins up to the same bytes; binary stays binary', async () => {
  const buffer = new LogBuffer()
  const bytes = Buffer.alloc(100_000, 0).map((_, index) => (index * 7) % 256)
  for (let at = 0; at < bytes.length; at += 333) buffer.append(Buffer.from(bytes.subarray(at, at + 333)))
  buffer.end()
  const chunks: Buffer[] = []
  await new Promise<void>(resolve => buffer.read({}, { write: chunk => chunks.push(chunk), end: resolve }))
  assert.ok(Buffer.concat(chunks).equals(Buffer.from(bytes)))
  assert.ok(chunks.every(chunk => chunk.length <= 16 * 1024))
  await sleep(0)
})
