import assert from 'node:assert/strict'
import type { Readable } from 'node:stream'
import { type TestContext, test } from 'node:test'
import type { Life } from '../../src/domain/life.ts'
import type { CreateRequest } from '../../src/domain/workload-spec.ts'
import type { RuntimeError } from '../../src/errors.ts'
import type { Backend, LogOptions } from '../../src/service/ports.ts'
import { type Cluster, claim, cluster, eventually, made, refusal } from './cluster.ts'

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

const sh = (script: string): Partial<CreateRequest> => ({ entrypoint: ['/bin/sh', '-c'], command: [script] })

async function all(body: Readable): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of body) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks)
}

const text = async (backend: Backend, life: Life, options: Partial<LogOptions> = {}): Promise<string> =>
  (await all(await backend.logs.read(life, { ...PLAIN, ...options }))).toString('latin1')

/** What has come of a stream so far. */
function collect(body: Readable) {
  const got = { text: '', ended: false, error: null as Error | null }
  body.on('data', chunk => {
    got.text += chunk.toString('latin1')
  })
  body.on('end', () => {
    got.ended = true
  })
  body.on('error', error => {
    got.error = error
  })
  return got
}

async function running(t: TestContext, request: Partial<CreateRequest>): Promise<Cluster & { life: Life }> {
  const made = await runningOn(await cluster(t, { kubelet: 'process' }), request)
  return made
}

async function runningOn(on: Cluster, request: Partial<CreateRequest>): Promise<Cluster & { life: Life }> {
  const life = await made(on.backend, claim(request))
  await eventually('its container has started', () =>
    on.sandbox.store.list('pods', 'default').some(({ metadata, status }) => {
      const { state } = status?.containerStatuses?.[0] ?? {}
      return metadata.labels?.app === life.id.name && (state?.running || state?.terminated)
    }),
  )
  return { ...on, life }
}

test('L1, B-96: tail and since as they were given, 0 too', async t => {
  const { backend, life } = await running(t, sh('for i in 1 2 3 4 5; do echo line $i; done; sleep 60'))
  await eventually('all lines are there', async () => (await text(backend, life)).includes('line 5'))
  assert.equal(await text(backend, life), 'line 1\nline 2\nline 3\nline 4\nline 5\n')
  assert.equal(await text(backend, life, { tail: 2 }), 'line 4\nline 5\n')
  assert.equal(await text(backend, life, { tail: 0 }), '')
  assert.equal(await text(backend, life, { tail: 1_000_000_000 }), await text(backend, life))
  assert.equal(await text(backend, life, { sinceSeconds: 0 }), '')
  assert.equal(await text(backend, life, { sinceSeconds: 600 }), await text(backend, life))
  assert.equal(await text(backend, life, { sinceTime: '2100-01-01T00:00:00Z' }), '')
  assert.match(await text(backend, life, { tail: 1, timestamps: true }), /^\d{4}-\d\d-\d\dT\S+Z line 5\n$/)
})

test('L7, B-97, F-54: bytes as they were written, and no more of them than asked for', async t => {
  const { backend, sandbox, life } = await running(
    t,
    sh(String.raw`printf 'a\000b\377\376\r\033[1m\r\n'; head -c 3000000 /dev/zero | tr '\0' x; sleep 60`),
  )
  await eventually('it has written', async () => (await text(backend, life, { limitBytes: 12 })).length === 12)
  assert.equal(await text(backend, life, { limitBytes: 12 }), 'a\0b\xff\xfe\r\x1b[1m\r\n')
  const bounded = await eventually('1 MiB is there', async () => {
    const bytes = await text(backend, life, { limitBytes: 1 << 20 })
    return bytes.length === 1 << 20 ? bytes : null
  })
  assert.equal(bounded.slice(12), 'x'.repeat((1 << 20) - 12))
  const asked = sandbox.faults.requests({ subresource: 'log' }).at(-1)?.query ?? ''
  assert.equal(new URLSearchParams(asked).get('limitBytes'), String(1 << 20))
})

test('L4: no pod is 404 with the reason', async t => {
  const { backend } = await cluster(t)
  const ended = { state: 'stopped', run: 1, open: false, reason: 'StoppedByRequest' } as const
  const life = { ...(await made(backend, claim(), false)), ...ended }
  const error: RuntimeError = await refusal(backend.logs.read(life, PLAIN))
  assert.equal(error.code, 'POD_NOT_FOUND')
  assert.equal(error.reason, 'StoppedByRequest')
})

test('L5, B-94: a container that has not started is 409 with its waiting reason', async t => {
  const { backend, sandbox } = await cluster(t, { kubelet: 'process' })
  const life = await made(backend, claim({ image: 'nowhere.invalid/x:1', ...sh('true') }))
  const error = await eventually('it waits for its image', async () => {
    const refused: RuntimeError = await refusal(backend.logs.read(life, PLAIN))
    return /Image/.test(refused.reason ?? '') ? refused : null
  })
  assert.equal(error.code, 'LOGS_NOT_READY')
  assert.equal(sandbox.faults.requests({ subresource: 'log' }).length, 0)
})

test('L5: follow waits for the start, reads to the end and ends with the container', async t => {
  const { backend } = await cluster(t, { kubelet: 'process' })
  const life = await made(backend, claim({ kind: 'job', ...sh('echo first; sleep 0.3; echo last') }))
  assert.equal(await text(backend, life, { follow: true }), 'first\nlast\n')
})

test('L5: follow of what is deleted while it waits ends, without a word', async t => {
  const { backend, sandbox } = await cluster(t, { kubelet: 'process' })
  const life = await made(backend, claim({ image: 'nowhere.invalid/x:1' }))
  await eventually('its pod is there', () => sandbox.store.list('pods', 'default')[0])
  const got = collect(await backend.logs.read(life, { ...PLAIN, follow: true }))
  assert.ok(await backend.workloads.remove(life))
  await eventually('it ends', () => got.ended)
  assert.equal(got.text, '')
})

test('B-93, B-91: a follow that is cut and reset goes on without loss or repetition', async t => {
  const { backend, sandbox, life } = await running(t, {
    kind: 'job',
    ...sh('i=0; while [ $i -lt 150 ]; do i=$((i+1)); echo line $i; sleep 0.01; done'),
  })
  const got = collect(await backend.logs.read(life, { ...PLAIN, follow: true }))
  let cuts = 0
  await eventually(
    'it ends',
    () => {
      for (const stream of sandbox.faults.streams) {
        if (stream.facts.subresource === 'log' && Math.random() < 0.05) {
          stream.close(cuts % 2 === 0 ? 'reset' : 'end')
          cuts += 1
        }
      }
      return got.ended || got.error
    },
    20_000,
  )
  assert.equal(got.error, null)
  assert.ok(cuts > 0)
  assert.equal(got.text, Array.from({ length: 150 }, (_, i) => `line ${i + 1}\n`).join(''))
})

test('B-93: tail=0 with follow shows what comes, timestamps only if asked for', async t => {
  const { backend, life } = await running(t, sh('echo old; while sleep 0.05; do echo new; done'))
  const controller = new AbortController()
  const options = { ...PLAIN, follow: true, tail: 0, timestamps: true, signal: controller.signal }
  const got = collect(await backend.logs.read(life, options))
  await eventually('something came', () => got.text.includes('new\n'))
  assert.match(got.text, /^(\d{4}-\d\d-\d\dT\S+Z new\n)+$/)
  controller.abort()
})

test('L6, B-95, F-54: a reader that leaves, by signal or by closing, closes the connection to the cluster', async t => {
  const { backend, sandbox, life } = await running(t, sh('while sleep 0.02; do echo x; done'))
  const open = () => [...sandbox.faults.streams].filter(({ facts }) => facts.subresource === 'log').length
  const controller = new AbortController()
  const bySignal = await backend.logs.read(life, { ...PLAIN, follow: true, signal: controller.signal })
  const byClosing = await backend.logs.read(life, { ...PLAIN, follow: true })
  const unread = await backend.logs.read(life, { ...PLAIN, follow: true })
  collect(bySignal)
  collect(byClosing)
  await eventually('three streams are open', () => open() === 3)
  controller.abort()
  byClosing.destroy()
  unread.destroy()
  await eventually('none is left', () => open() === 0, 1000)
})

test('B-100: a follow of a pod that is evicted ends', async t => {
  const { backend, sandbox, life } = await running(t, { kind: 'job', ...sh('echo hello; sleep 60') })
  const got = collect(await backend.logs.read(life, { ...PLAIN, follow: true }))
  await eventually('it has begun', () => got.text === 'hello\n')
  const pod = sandbox.store.list('pods', 'default')[0]
  sandbox.registry.delete('pods', 'default', pod?.metadata.name ?? '', { gracePeriodSeconds: 0 })
  await eventually('it ends', () => got.ended || got.error)
  assert.equal(got.text, 'hello\n')
})

test('L6, B-104: container and previous are asked for as given; what the cluster says of them is passed on', async t => {
  const { backend, life } = await running(t, sh('echo once; sleep 60'))
  const none: RuntimeError = await refusal(backend.logs.read(life, { ...PLAIN, previous: true }))
  assert.equal(none.code, 'REQUEST_INVALID')
  assert.match(none.message, /previous terminated container "main" in pod ".*" not found/)
  const wrong: RuntimeError = await refusal(backend.logs.read(life, { ...PLAIN, container: 'sidecar' }))
  assert.equal(wrong.code, 'REQUEST_INVALID')
  assert.match(wrong.message, /container sidecar is not valid for pod/)
  const path: RuntimeError = await refusal(backend.logs.read(life, { ...PLAIN, container: '../x' }))
  assert.equal(path.code, 'REQUEST_INVALID')
})

test('L6: previous shows the run before', async t => {
  const { backend, life } = await running(t, sh('echo before; sleep 0.2; exit 1'))
  const before = await eventually('it has restarted', async () =>
    backend.logs.read(life, { ...PLAIN, previous: true }).then(all, () => null),
  )
  assert.equal(before.toString(), 'before\n')
})

test('L3, B-56, L2: a Deployment and a Job of one name each show their own pods, and nobody else’s', async t => {
  const both = await cluster(t, { kubelet: 'process' })
  const { life: deployment } = await runningOn(both, sh('echo deployment; sleep 60'))
  const job = await made(both.backend, claim({ kind: 'job', ...sh('echo job; sleep 60') }))
  const mine = { app: 'web', 'gobrave-workload': 'web', 'runtimed.dev/kind': 'deployment' }
  both.sandbox.registry.create('pods', 'default', {
    metadata: { name: 'stray', labels: mine },
    spec: { containers: [{ name: 'main', image: 'x', command: ['/bin/sh', '-c', 'echo stray; sleep 60'] }] },
  })
  await eventually(
    'the stray has written',
    () => both.sandbox.store.get('pods', 'default', 'stray')?.status?.phase === 'Running',
  )
  const read = (life: Life) => text(both.backend, life).catch(() => '')
  assert.equal(await eventually('the Deployment has written', () => read(deployment)), 'deployment\n')
  assert.equal(await eventually('the Job has written', () => read(job)), 'job\n')
})

test('B-74: a missing right to read logs is told as ours', async t => {
  const { backend, sandbox, life } = await running(t, sh('sleep 60'))
  const all = { apiGroups: ['*'], resources: ['pods', 'deployments', 'replicasets'], verbs: ['*'] }
  sandbox.faults.enforceRole([all])
  for (const follow of [false, true]) {
    assert.equal((await refusal(backend.logs.read(life, { ...PLAIN, follow }))).code, 'CLUSTER_FORBIDDEN')
  }
})

test('F-54: a pod that vanishes between look-up and read is 404; an endless error text stays short', async t => {
  const { backend, sandbox, life } = await running(t, sh('sleep 60'))
  const log = { verb: 'get', resource: 'pods', subresource: 'log' } as const
  sandbox.faults.fail(log, { times: 1, status: 404, reason: 'NotFound', message: 'pods "web" not found' })
  assert.equal((await refusal(backend.logs.read(life, PLAIN))).code, 'POD_NOT_FOUND')
  sandbox.faults.fail(log, { times: 1, status: 400, message: 'x'.repeat(10_000_000) })
  const error: RuntimeError = await refusal(backend.logs.read(life, PLAIN))
  assert.equal(error.code, 'REQUEST_INVALID')
  assert.ok(error.message.length < 5000)
})

test('L2, B-99: of several pods the newest that runs, else the newest that has run; one evicted hides nothing', async t => {
  const { sandbox, backend } = await cluster(t, { kubelet: 'none', controllers: false })
  const life = await made(backend, claim({ kind: 'job' }))
  const owner = { apiVersion: 'batch/v1', kind: 'Job', name: 'web', uid: life.uid ?? '', controller: true }
  const ran = { terminated: { exitCode: 1, reason: 'Error', startedAt: '2026-11-29T18:00:00Z', containerID: 'x' } }
  const pods = [
    { name: 'a', at: 1, phase: 'Failed', state: ran },
    { name: 'b', at: 2, phase: 'Failed', state: ran },
    { name: 'c', at: 3, phase: 'Failed', reason: 'Evicted' },
    { name: 'd', at: 4, phase: 'Pending', state: { waiting: { reason: 'ContainerCreating' } } },
  ]
  const asked = async () => {
    await text(backend, life).catch(() => '')
    return sandbox.faults.requests({ subresource: 'log' }).at(-1)?.name
  }
  for (const { name, at, state, ...status } of pods) {
    sandbox.registry.create('pods', 'default', {
      metadata: {
        name,
        labels: { 'gobrave-workload': 'web', 'runtimed.dev/kind': 'job' },
        ownerReferences: [owner],
      },
      spec: { containers: [{ name: 'main', image: 'x' }] },
    })
    sandbox.registry.bind(sandbox.registry.get('pods', 'default', name), 'node', [])
    sandbox.registry.updateStatus('pods', 'default', name, draft => {
      draft.status = { ...status, containerStatuses: state ? [{ name: 'main', restartCount: 0, state }] : [] }
    })
    const pod = sandbox.registry.get('pods', 'default', name)
    const metadata = { ...pod.metadata, creationTimestamp: `2026-11-29T18:00:0${at}Z` }
    sandbox.store.replace('pods', pod, { ...pod, metadata })
  }
  assert.equal(await asked(), 'b')
  sandbox.registry.updateStatus('pods', 'default', 'a', draft => {
    draft.status = { phase: 'Running', containerStatuses: [{ name: 'main', state: { running: {} } }] }
  })
  assert.equal(await asked(), 'a')
})
