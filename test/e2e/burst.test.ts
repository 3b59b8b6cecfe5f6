import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startSandbox } from '../../src/sandbox/index.ts'
import { kubeconfigFile, startDaemon } from '../helpers/daemon.ts'

const CREATES = 128

interface Condition {
  type: string
  status: string
}

test('B-77: 128 creates at once: each Started comes once, soon after its pod is ready', async t => {
  const sandbox = await startSandbox({ kubelet: 'instant' })
  t.after(() => sandbox.close())
  const readyAt = new Map<string, number>()
  sandbox.store.subscribe(({ resource, object }) => {
    const pod = object as { metadata: { labels?: Record<string, string> }; status?: { conditions?: Condition[] } }
    const name = pod.metadata.labels?.['gobrave-workload']
    const isReady = pod.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True')
    if (resource === 'pods' && isReady && name !== undefined && !readyAt.has(name)) readyAt.set(name, Date.now())
  })
  const daemon = await startDaemon(t, { kubeconfig: kubeconfigFile(t, sandbox.kubeconfig()) })
  await daemon.ready()
  const names = Array.from({ length: CREATES }, (_, n) => `burst-${n}`)
  const seenAt = new Map<string, number>()
  const reading = readStarted(daemon.url, seenAt)
  const replies = await Promise.all(names.map(name => daemon.api('POST', '/v1/runtimes', { name, image: 'web' })))
  assert.deepEqual([...new Set(replies.map(reply => reply.status))], [201])
  await reading
  assert.deepEqual([...seenAt.keys()].sort(), names.toSorted())
  const lags = names
    .map(name => (seenAt.get(name) ?? Number.NaN) - (readyAt.get(name) ?? Number.NaN))
    .sort((a, b) => a - b)
  const p99 = lags[Math.floor(CREATES * 0.99) - 1] ?? Number.POSITIVE_INFINITY
  t.diagnostic(`lag from pod ready to event read: median ${lags[CREATES / 2]} ms, p99 ${p99} ms`)
  assert.ok(p99 < 10_000, `p99 ${p99} ms`)
})

/** Reads the stream until each has its Started; a second one of the same runtime is a failure. */
async function readStarted(url: string, seenAt: Map<string, number>): Promise<void> {
  const controller = new AbortController()
  const reply = await fetch(`${url}/v1/events/stream?after=0`, {
    headers: { accept: 'application/x-ndjson' },
    signal: controller.signal,
  })
  let rest = ''
  for await (const chunk of reply.body as unknown as AsyncIterable<Uint8Array>) {
    const lines = (rest + Buffer.from(chunk).toString()).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines.filter(text => text !== '')) {
      const event = JSON.parse(line)
      const name = event.runtimeId.split('|')[2]
      assert.equal(event.type, 'ContainerStarted')
      assert.equal(seenAt.has(name), false, `${name} started twice`)
      seenAt.set(name, Date.now())
    }
    if (seenAt.size === CREATES) break
  }
  controller.abort()
}
