import assert from 'node:assert/strict'
import { existsSync, statSync } from 'node:fs'
import { describe, type TestContext, test } from 'node:test'
import Database from 'better-sqlite3'
import { type Sandbox, startSandbox, TEST_TIMING } from '../../src/sandbox/index.ts'
import { told } from '../contract/world.ts'
import { type Client, kubeconfigFile, poll, spawnDaemon, startDaemon } from '../helpers/daemon.ts'
import { startProxy } from '../helpers/tcp-proxy.ts'

const WEB = {
  ...{ name: 'web', kind: 'deployment', image: 'busybox', terminationGracePeriodSeconds: 1 },
  ...{ entrypoint: ['/bin/sh', '-c'], command: ['trap "exit 0" TERM; sleep 3600 & wait'] },
}
const ID = 'k8s-default|deployment|web'

async function sandboxOf(t: TestContext): Promise<{ sandbox: Sandbox; kubeconfig: string }> {
  const sandbox = await startSandbox({ timing: TEST_TIMING })
  t.after(() => sandbox.close())
  return { sandbox, kubeconfig: kubeconfigFile(t, sandbox.kubeconfig()) }
}

async function create(client: Client, spec: object = WEB) {
  const reply = await client.api('POST', '/v1/runtimes', spec)
  assert.equal(reply.status, 201, JSON.stringify(reply.body))
  return reply.body
}

const state = (client: Client, wanted: string, id = ID) =>
  client.waitFor(id, runtime => (runtime?.state ?? 'deleted') === wanted)

const story = async (client: Client, id = ID): Promise<string[]> => (await client.eventsOf(id)).map(told)

/** The call and how long it took, ms. */
async function timed<T>(call: Promise<T>): Promise<[T, number]> {
  const start = performance.now()
  return [await call, performance.now() - start]
}

describe('daemon', { concurrency: 3 }, () => {
  test('U3, F-26: SIGTERM: not ready at once, streams end, exit 0, the log is checkpointed, no workload is touched', async t => {
    const { sandbox, kubeconfig } = await sandboxOf(t)
    const child = await spawnDaemon(t, { kubeconfig })
    await child.ready()
    await create(child)
    await state(child, 'running')
    const writes = sandbox.faults.writes().length
    const stream = await fetch(`${child.url}/v1/events/stream?after=now`)
    const waiting = child.api('GET', child.path(ID, '/wait?for=deleted&timeout=600')).then(
      ({ status }) => status,
      () => 0,
    )
    const start = performance.now()
    child.process.kill('SIGTERM')
    const after = await poll(
      () =>
        child.api('GET', '/readyz').then(
          ({ status }) => status,
          () => 0,
        ),
      status => status !== 200,
      2,
    )
    assert.ok([503, 0].includes(after))
    await stream.text()
    assert.ok([200, 503, 0].includes(await waiting))
    assert.equal(await child.ended, 0, child.output())
    assert.ok(performance.now() - start < 10_000)
    const wal = `${child.database}-wal`
    assert.ok(!existsSync(wal) || statSync(wal).size === 0)
    assert.equal(sandbox.registry.get('deployments', 'default', 'web').spec.replicas, 1)
    assert.deepEqual(
      sandbox.faults
        .writes()
        .slice(writes)
        .filter(({ userAgent }) => /runtimed/.test(userAgent)),
      [],
    )
  })

  test('U3, F-26: a second SIGTERM ends it at once', async t => {
    const { sandbox, kubeconfig } = await sandboxOf(t)
    const child = await spawnDaemon(t, { kubeconfig, env: { KUBE_TIMEOUT_SECONDS: '60' } })
    await child.ready()
    const hang = sandbox.faults.fail({ verb: 'create', resource: 'deployments' }, { hang: true })
    child.api('POST', '/v1/runtimes', WEB).catch(() => {})
    await poll(
      () => hang.hits,
      hits => hits > 0,
    )
    child.process.kill('SIGTERM')
    await poll(
      () => child.output(),
      text => text.includes('shutting down'),
    )
    child.process.kill('SIGTERM')
    const [code, ms] = await timed(child.ended)
    assert.notEqual(code, 0)
    assert.ok(ms < 1_000, `${ms} ms`)
  })

  test('F-25, I5, P8: started with the API unreachable it answers from its rows, refuses writes, and catches up', async t => {
    const { sandbox } = await sandboxOf(t)
    const proxy = await startProxy(t, sandbox.port)
    const kubeconfig = kubeconfigFile(t, sandbox.kubeconfig().replaceAll(String(sandbox.port), String(proxy.port)))
    const first = await startDaemon(t, { kubeconfig, profile: 'test' })
    await first.ready()
    await create(first)
    const up = await state(first, 'running')
    await first.stop()
    await proxy.refuse()
    const second = await startDaemon(t, { kubeconfig, profile: 'test', env: { DATABASE_PATH: first.database } })
    const seen = (await second.api('GET', second.path(ID))).body
    assert.deepEqual([seen.state, seen.stale, seen.run, seen.startedAt], ['running', true, 1, up.startedAt])
    for (const [method, path, body] of [
      ['POST', second.path(ID, '/stop'), undefined],
      ['DELETE', second.path(ID), undefined],
      ['POST', '/v1/runtimes', { ...WEB, name: 'other' }],
    ] as const) {
      const [reply, ms] = await timed(second.api(method, path, body))
      assert.deepEqual([reply.status, reply.body.code], [503, 'BACKEND_UNAVAILABLE'], `${method} ${path}`)
      assert.ok(ms < 2_000, `${ms} ms`)
    }
    assert.equal((await second.api('GET', second.path('k8s-default|deployment|other'))).status, 503)
    assert.equal((await second.api('GET', second.path(ID))).body.state, 'running')
    assert.deepEqual(await story(second), ['Started 1 -'])
    sandbox.registry.scale('deployments', 'default', 'web', 0)
    await proxy.restore()
    await second.ready(5)
    const stopped = await state(second, 'stopped')
    assert.equal(stopped.stale, false)
    assert.deepEqual(await story(second), ['Started 1 -', 'Exited 1 ScaledToZero -'])
  })

  test('F-28, I5, B-25: reads that fail after the start change nothing; what is true follows', async t => {
    const { sandbox, kubeconfig } = await sandboxOf(t)
    const first = await startDaemon(t, { kubeconfig, profile: 'test' })
    await first.ready()
    await create(first)
    await state(first, 'running')
    await first.stop()
    sandbox.registry.delete('deployments', 'default', 'web')
    const failures = [{ status: 500 }, { status: 403 }, { status: 401 }, { reset: true }, { status: 429 }]
    const faults = failures.map(failure =>
      sandbox.faults.fail({ verb: 'get', resource: 'deployments' }, { ...failure, times: 1 }),
    )
    const slow = sandbox.faults.fail({ verb: 'get', resource: 'deployments' }, { hang: true, times: 1 })
    const second = await startDaemon(t, { kubeconfig, profile: 'test', env: { DATABASE_PATH: first.database } })
    await poll(
      () => slow.hits,
      hits => hits === 1,
    )
    assert.deepEqual(await story(second), ['Started 1 -'])
    await state(second, 'deleted')
    assert.deepEqual(
      faults.map(({ hits }) => hits),
      failures.map(() => 1),
    )
    assert.deepEqual(await story(second), ['Started 1 -', 'Deleted 1 NotFound'])
  })

  test('F-9, B-11, I11: deleted and made anew unseen: the old life ends, the new one is an orphan', async t => {
    const { sandbox, kubeconfig } = await sandboxOf(t)
    const daemon = await startDaemon(t, { kubeconfig, profile: 'test' })
    await daemon.ready()
    const made = await create(daemon)
    await state(daemon, 'running')
    const show = sandbox.faults.hideFromWatch(() => true)
    const { spec, metadata } = sandbox.registry.get('deployments', 'default', 'web')
    sandbox.registry.delete('deployments', 'default', 'web')
    const { name, labels, annotations } = metadata
    const next = sandbox.registry.create('deployments', 'default', { metadata: { name, labels, annotations }, spec })
    sandbox.faults.compact()
    show()
    sandbox.faults.closeStreams('reset')
    const seen = await daemon.waitFor(ID, runtime => runtime?.uid === next.metadata.uid)
    assert.deepEqual([seen.run, seen.monitored], [0, false])
    const events = await daemon.eventsOf(ID)
    assert.deepEqual(events.map(told), ['Started 1 -', 'Deleted 1 NotFound'])
    assert.deepEqual([...new Set(events.map(({ uid }) => uid))], [made.uid])
    assert.deepEqual((await daemon.api('GET', '/v1/adoption')).body.orphaned, [ID])
  })

  test('I9, F-2, F-6: watches that break and are too old to resume lose nothing and repeat nothing', async t => {
    const { sandbox, kubeconfig } = await sandboxOf(t)
    const daemon = await startDaemon(t, { kubeconfig, profile: 'test' })
    await daemon.ready()
    const job = (script: string, name: string) => ({ ...WEB, kind: 'job', name, command: [script] })
    const made = [
      await create(daemon, job('sleep 2', 'ends')),
      await create(daemon, { ...WEB, kind: 'job', name: 'removed' }),
      await create(daemon, { ...WEB, kind: 'job', name: 'stays' }),
    ]
    for (const { id } of made) await state(daemon, 'running', id)
    const expire = (): void => {
      sandbox.faults.compact()
      sandbox.faults.closeStreams('reset')
    }
    sandbox.faults.muteStreams()
    sandbox.registry.delete('jobs', 'default', 'removed', { propagationPolicy: 'Background' })
    expire()
    await state(daemon, 'deleted', made[1].id)
    await state(daemon, 'stopped', made[0].id)
    for (let round = 0; round < 5; round++) expire()
    await daemon.ready()
    await daemon.api('DELETE', daemon.path(made[2].id))
    await state(daemon, 'deleted', made[2].id)
    assert.deepEqual(await Promise.all(made.map(({ id }) => story(daemon, id))), [
      ['Started 1 -', 'Exited 1 - 0'],
      ['Started 1 -', 'Deleted 1 NotFound'],
      ['Started 1 -', 'Deleted 1 DeletedByRequest'],
    ])
  })

  test('K7, K8: a damaged row is reported and left aside, the others go on; all worked again they say nothing new', async t => {
    const { kubeconfig } = await sandboxOf(t)
    const first = await startDaemon(t, { kubeconfig })
    await first.ready()
    const other = 'k8s-default|deployment|other'
    await create(first)
    await create(first, { ...WEB, name: 'other' })
    await Promise.all([state(first, 'running'), state(first, 'running', other)])
    await first.stop()
    const database = new Database(first.database)
    database.prepare(`UPDATE lives SET row = '{"broken' WHERE runtime_id = ?`).run(ID)
    database.close()
    const second = await startDaemon(t, { kubeconfig, env: { DATABASE_PATH: first.database } })
    await second.ready()
    const seen = (await second.api('GET', second.path(other))).body
    assert.deepEqual([seen.state, seen.monitored], ['running', true])
    const errors = second.lines.filter(({ level, runtimeId }) => level === 'error' && runtimeId === ID)
    assert.equal(errors.length, 1)
    assert.equal((await second.api('GET', second.path(ID))).body.code, 'STORAGE_UNAVAILABLE')
    for (let round = 0; round < 3; round++) {
      second.app.queue.add(other, true)
      await second.app.queue.whenIdle()
    }
    assert.deepEqual(await story(second, other), ['Started 1 -'])
    await second.api('DELETE', second.path(other))
    await state(second, 'deleted', other)
  })

  test('B-2, B-20, F-3: with every watch dead readiness fails, and a delete still goes to the API', async t => {
    const { sandbox, kubeconfig } = await sandboxOf(t)
    const daemon = await startDaemon(t, { kubeconfig, profile: 'test' })
    await daemon.ready()
    await create(daemon)
    await state(daemon, 'running')
    const watches = sandbox.faults.fail(({ verb }) => verb === 'watch' || verb === 'list', { hang: true })
    sandbox.faults.muteStreams({ future: true })
    const sick = await poll(
      () => daemon.api('GET', '/readyz'),
      ({ status }) => status === 503,
    )
    assert.match(JSON.stringify(sick.body.checks), /k8s/)
    const stale = await daemon.waitFor(ID, runtime => runtime?.stale)
    assert.equal(stale.state, 'running')
    assert.equal((await daemon.api('GET', '/livez')).status, 200)
    assert.equal((await daemon.api('DELETE', daemon.path(ID))).status, 202)
    const requests = sandbox.faults.requests({ verb: 'delete', resource: 'deployments', name: 'web' })
    assert.deepEqual(
      requests.map(({ status }) => status),
      [200],
    )
    watches.remove()
    sandbox.faults.unmuteStreams()
    await state(daemon, 'deleted')
    await daemon.ready()
    assert.deepEqual(await story(daemon), ['Started 1 -', 'Deleted 1 DeletedByRequest'])
  })

  test('B-118, B-62: what was written is seen by the next read, however late the watch', async t => {
    const { sandbox, kubeconfig } = await sandboxOf(t)
    const daemon = await startDaemon(t, { kubeconfig })
    await daemon.ready()
    sandbox.faults.muteStreams()
    const shown = async () => (await daemon.api('GET', daemon.path(ID))).body
    const made = await create(daemon)
    const read = await shown()
    assert.deepEqual([read.uid, read.state], [made.uid, 'creating'])
    const list = (await daemon.api('GET', '/v1/runtimes')).body.items
    assert.deepEqual(
      list.map((item: { id: string }) => item.id),
      [ID],
    )
    await daemon.api('POST', daemon.path(ID, '/stop'))
    assert.match((await shown()).state, /^stop/)
    await daemon.api('POST', daemon.path(ID, '/start'))
    assert.deepEqual([(await shown()).state, (await shown()).run], ['creating', 2])
    await daemon.api('DELETE', daemon.path(ID))
    assert.ok([undefined, 'deleting'].includes((await shown()).state))
    sandbox.faults.unmuteStreams()
    await state(daemon, 'deleted')
    assert.equal((await story(daemon)).at(-1), 'Deleted 2 DeletedByRequest')
  })

  test('F9, B-134, F-14: a hanging API: every verb answers in its time, nothing else waits, the verb is finished', async t => {
    const { sandbox, kubeconfig } = await sandboxOf(t)
    const daemon = await startDaemon(t, { kubeconfig, profile: 'test' })
    await daemon.ready()
    const other = { ...WEB, name: 'other', start: false }
    await create(daemon)
    await create(daemon, other)
    await state(daemon, 'running')
    const hang = sandbox.faults.fail(({ method, resource }) => method !== 'GET' && resource !== undefined, {
      hang: true,
    })
    const calls = Promise.all([
      timed(daemon.api('POST', daemon.path(ID, '/stop'))),
      timed(daemon.api('DELETE', daemon.path('k8s-default|deployment|other'))),
      timed(daemon.api('POST', '/v1/runtimes', { ...WEB, name: 'third' })),
    ])
    const [alive, waited] = await timed(daemon.api('GET', '/livez'))
    assert.deepEqual([alive.status, waited < 300], [200, true])
    for (const [reply, ms] of await calls) {
      assert.deepEqual([reply.status, reply.body.code], [504, 'BACKEND_TIMEOUT'], JSON.stringify(reply.body))
      assert.ok(reply.body.runtimeId?.startsWith('k8s-default|deployment|'))
      assert.match(
        reply.body.detail,
        /^cannot tell whether the \w+ of k8s-default\|deployment\|\w+ was done: .* it goes on/,
      )
      assert.ok(ms < 3_000, `${ms} ms`)
    }
    hang.remove()
    await state(daemon, 'stopped')
    await state(daemon, 'deleted', 'k8s-default|deployment|other')
    await state(daemon, 'running', 'k8s-default|deployment|third')
    assert.deepEqual(await story(daemon), ['Started 1 -', 'Exited 1 StoppedByRequest 0'])
    assert.deepEqual(await story(daemon, 'k8s-default|deployment|third'), ['Started 1 -'])
    assert.equal(sandbox.store.list('deployments', 'default').length, 2)
  })

  for (const resource of ['deployments', 'services']) {
    for (const failure of [{ hang: true }, { reset: true }]) {
      const how = failure.hang ? 'late' : 'cut off'
      test(`F-20, B-64, B-65, E5: the answer to the create of ${resource} is ${how}: it may be repeated, and is made once`, async t => {
        const { sandbox, kubeconfig } = await sandboxOf(t)
        const daemon = await startDaemon(t, { kubeconfig, profile: 'test' })
        await daemon.ready()
        sandbox.faults.fail({ verb: 'create', resource }, { ...failure, performed: true, times: 1 })
        const spec = { ...WEB, port: 8080, exposeService: true }
        const key = { 'idempotency-key': 'one' }
        const lost = await daemon.api('POST', '/v1/runtimes', spec, key)
        assert.deepEqual([lost.status, lost.body.code, lost.body.runtimeId], [504, 'BACKEND_TIMEOUT', ID])
        const again = await daemon.api('POST', '/v1/runtimes', spec, key)
        assert.deepEqual([again.status, again.body.id], [201, ID])
        await state(daemon, 'running')
        const [deployment, ...others] = sandbox.store.list('deployments', 'default')
        const services = sandbox.store.list('services', 'default')
        assert.deepEqual([others.length, services.length], [0, 1])
        assert.equal(services[0]?.metadata.ownerReferences?.[0]?.uid, deployment?.metadata.uid)
        assert.equal((await daemon.api('GET', daemon.path(ID))).body.uid, deployment?.metadata.uid)
        await daemon.api('DELETE', daemon.path(ID))
        await state(daemon, 'deleted')
        assert.deepEqual(await story(daemon), ['Started 1 -', 'Deleted 1 DeletedByRequest'])
      })
    }
  }

  for (const when of ['before', 'after'] as const) {
    for (const n of [1, 2]) {
      test(`C12, F-18, K5: killed ${when} the answer to write ${n} of a create, it ends as without the crash`, async t => {
        const { sandbox, kubeconfig } = await sandboxOf(t)
        const first = await spawnDaemon(t, { kubeconfig })
        await first.ready()
        sandbox.faults.onWrite(n, when, () => first.kill())
        const spec = { ...WEB, port: 8080, exposeService: true }
        const key = { 'idempotency-key': 'one' }
        await first.api('POST', '/v1/runtimes', spec, key).catch(() => {})
        await first.ended
        const second = await spawnDaemon(t, { kubeconfig, env: { DATABASE_PATH: first.database } })
        await second.ready()
        const again = await second.api('POST', '/v1/runtimes', spec, key)
        assert.equal(again.status, 201)
        await state(second, 'running')
        assert.deepEqual(await story(second), ['Started 1 -'])
        const counts = [sandbox.store.list('deployments', 'default'), sandbox.store.list('services', 'default')]
        assert.deepEqual(
          counts.map(found => found.length),
          [1, 1],
        )
        const [deployment] = counts[0] ?? []
        assert.equal(deployment?.metadata.uid, again.body.uid)
      })
    }
  }

  test('K5, K10, F-19, B-107: killed between stop or delete and their end, both are finished', async t => {
    const { sandbox, kubeconfig } = await sandboxOf(t)
    const first = await spawnDaemon(t, { kubeconfig })
    await first.ready()
    const slow = { ...WEB, command: ['trap "" TERM; sleep 3600'], terminationGracePeriodSeconds: 2 }
    await create(first, slow)
    await create(first, { ...slow, name: 'other' })
    const other = 'k8s-default|deployment|other'
    await Promise.all([state(first, 'running'), state(first, 'running', other)])
    await first.api('POST', first.path(ID, '/stop'))
    await first.api('DELETE', first.path(other))
    await first.kill()
    const second = await spawnDaemon(t, { kubeconfig, env: { DATABASE_PATH: first.database } })
    await second.ready()
    await state(second, 'stopped')
    await state(second, 'deleted', other)
    assert.deepEqual(
      (await story(second)).map(line => line.replace(/ [-\d]+$/, '')),
      ['Started 1', 'Exited 1 StoppedByRequest'],
    )
    assert.deepEqual(await story(second, other), ['Started 1 -', 'Deleted 1 DeletedByRequest'])
    assert.equal(sandbox.store.list('deployments', 'default').length, 1)
  })
})
