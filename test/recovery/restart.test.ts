import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { suite, test } from 'node:test'
import { startSandbox, TEST_TIMING } from '../../src/sandbox/index.ts'
import { kubeconfigFile, poll, spawnDaemon, spawnMain, startDaemon, temporaryFolder } from '../helpers/daemon.ts'
import { startProxy } from './proxy.ts'
import {
  create,
  deployment,
  endPod,
  impatient,
  inState,
  isGone,
  job,
  objectOf,
  type Spec,
  type Stage,
  stageOf,
  storyOf,
  verb,
} from './stage.ts'

const Database = createRequire(import.meta.url)('better-sqlite3')
const SOAK = process.env.SOAK === '1'

/** Makes them all and waits until they are settled. */
async function make({ daemon }: Stage, specs: readonly Spec[]): Promise<void> {
  await Promise.all(
    specs.map(async spec => {
      const { status, body } = await create(daemon, spec)
      assert.equal(status, 201, JSON.stringify(body))
      await inState(daemon, body.id, spec.start === false ? 'created' : 'running')
    }),
  )
}

test('F-23, K3, K8, A12: a restart with 1,000 live rows: lists only, nothing told again, ready when all are taken up', async t => {
  const stage = await stageOf(t)
  const { sandbox } = stage
  const kindOf = (n: number) => (n < 60 && n % 2 ? 'job' : 'deployment')
  const specs = Array.from({ length: 1000 }, (_, n): Spec => ({ kind: kindOf(n), name: `w${n}` }))
  await make(stage, specs.slice(0, 60))
  sandbox.faults.pauseControllers()
  for (let n = 60; n < specs.length; n += 60) {
    const replies = await Promise.all(specs.slice(n, n + 60).map(spec => create(stage.daemon, spec)))
    assert.ok(replies.every(({ status }) => status === 201))
  }
  const events = await stage.daemon.events()
  sandbox.faults.journal.length = 0
  const begun = performance.now()
  const daemon = await stage.restart()
  assert.equal((await daemon.api('GET', '/readyz')).status, 503)
  await daemon.ready()
  const seconds = (performance.now() - begun) / 1000
  const { body } = await daemon.api('GET', '/v1/adoption')
  assert.equal(body.adopted.length, 1000)
  assert.equal((await daemon.api('GET', '/v1/monitoring')).body.total, 1000)
  assert.ok(seconds < 10, `ready after ${seconds.toFixed(1)} s`)
  assert.deepEqual(sandbox.faults.requests({ resource: 'replicasets' }), [], 'whose its pods are is in the row')
  for (const resource of ['deployments', 'jobs', 'pods']) {
    assert.ok(sandbox.faults.requests({ resource, verb: 'list' }).length <= 3, `lists of ${resource}`)
    assert.equal(sandbox.faults.requests({ resource, verb: 'watch' }).length, 1, `watches of ${resource}`)
    assert.equal(sandbox.faults.requests({ resource, verb: 'get' }).length, 0, `gets of ${resource}`)
  }
  assert.deepEqual(sandbox.faults.writes(), [])
  await daemon.app.queue.whenIdle()
  assert.deepEqual(await daemon.events(), events)
  assert.deepEqual(problems(daemon.lines), [])
})

/** Log lines of level warn and above. */
const problems = (lines: readonly { level: string | number }[]) =>
  lines.filter(({ level }) => ['warn', 'error', 'fatal'].includes(String(level)) || Number(level) >= 40)

test('K3, F-23: ready in time also while callers never let the daemon rest', async t => {
  const stage = await stageOf(t)
  await make(
    stage,
    ['a', 'b', 'c'].map(name => ({ kind: 'job', name }) as const),
  )
  stage.sandbox.faults.fail({ verb: 'create' }, { slowMs: 40 })
  const daemon = await stage.restart()
  const stop = new AbortController()
  const callers = Array.from({ length: 12 }, async (_, caller) => {
    for (let n = 0; !stop.signal.aborted; n++) await create(daemon, { kind: 'job', name: `load-${caller}-${n}` })
  })
  const ready = await daemon.ready(6).catch(error => error)
  stop.abort()
  await Promise.all(callers)
  assert.equal(ready, undefined)
  const { body } = await daemon.api('GET', '/v1/adoption')
  assert.deepEqual(
    body.adopted.filter((id: string) => !id.includes('load')),
    [job('a'), job('b'), job('c')],
  )
})

test('F-24, F-8, J6, K4, K6, K8, B-109: what happened while we were down', async t => {
  const stage = await stageOf(t)
  const { sandbox, daemon } = stage
  const { registry } = sandbox
  const D = 'deployment'
  const J = 'job'
  const by = { hand: { propagationPolicy: 'Background' } } as const
  const scale = (name: string, replicas: number) =>
    registry.update('deployments', 'default', name, draft => {
      draft.spec.replicas = replicas
    })
  const resource = (id: string) => (id.includes('|job|') ? 'jobs' : 'deployments')
  const drop = (id: string) => registry.delete(resource(id), 'default', nameOf(id), by.hand)
  const cases: [Spec, (id: string) => unknown, string[], string][] = [
    [{ kind: J, name: 'j-well' }, () => endPod(sandbox, 'j-well', 0), ['Started 1 -', 'Exited 1 -'], 'stopped 1 0'],
    [
      { kind: J, name: 'j-failed' },
      () => endPod(sandbox, 'j-failed', 3),
      ['Started 1 -', 'Failed 1 BackoffLimitExceeded'],
      'failed 1 3',
    ],
    [{ kind: J, name: 'j-deleted' }, drop, ['Started 1 -', 'Deleted 1 NotFound'], 'gone'],
    [{ kind: J, name: 'j-runs-on' }, () => {}, ['Started 1 -'], 'running 1 null'],
    [{ kind: D, name: 'd-runs-on' }, () => {}, ['Started 1 -'], 'running 1 null'],
    [{ kind: D, name: 'd-deleted' }, drop, ['Started 1 -', 'Deleted 1 NotFound'], 'gone'],
    [{ kind: D, name: 'd-to-0' }, () => scale('d-to-0', 0), ['Started 1 -', 'Exited 1 ScaledToZero'], 'stopped 1 null'],
    [{ kind: D, name: 'd-to-3' }, () => scale('d-to-3', 3), ['Started 1 -'], 'running 1 null'],
    [{ kind: D, name: 'd-up', start: false }, () => scale('d-up', 1), ['Started 1 -'], 'running 1 null'],
    [
      { kind: J, name: 'j-up', start: false },
      () =>
        registry.update('jobs', 'default', 'j-up', draft => {
          draft.spec.suspend = false
        }),
      ['Started 1 -'],
      'running 1 null',
    ],
    [
      { kind: D, name: 'd-off-and-on' },
      async () => {
        scale('d-off-and-on', 0)
        await poll(
          () => objectOf(sandbox, 'deployments', 'd-off-and-on').status.replicas ?? 0,
          replicas => replicas === 0,
        )
        scale('d-off-and-on', 1)
      },
      ['Started 1 -'],
      'running 1 null',
    ],
    [
      { kind: D, name: 'd-anew' },
      async id => {
        drop(id)
        const model = JSON.stringify(objectOf(sandbox, 'deployments', 'd-runs-on')).replaceAll('d-runs-on', 'd-anew')
        const { metadata, spec } = JSON.parse(model)
        registry.create('deployments', 'default', { metadata: { name: 'd-anew', labels: metadata.labels }, spec })
      },
      ['Started 1 -', 'Deleted 1 NotFound'],
      'running 0 null',
    ],
  ]
  await make(
    stage,
    cases.map(([spec]) => spec),
  )
  await make(stage, [{ kind: J, name: 'j-ended-before' }])
  endPod(sandbox, 'j-ended-before', 0)
  await inState(daemon, job('j-ended-before'), 'stopped')
  await daemon.stop()
  const idOf = ({ kind, name }: Spec): string => (kind === J ? job(name) : deployment(name))
  for (const [spec, act] of cases) await act(idOf(spec))
  drop(job('j-ended-before'))
  await poll(
    () => sandbox.store.get('jobs', 'default', 'j-ended-before'),
    found => found === undefined,
  )
  const writes = sandbox.faults.writes().length

  const after = await stage.restart()
  await after.ready()
  const shown = async (id: string): Promise<string> => {
    const { status, body } = await after.api('GET', after.path(id))
    return status === 404 ? 'gone' : `${body.state} ${body.run} ${body.exitCode}`
  }
  const expected = [
    ...cases,
    [{ kind: J, name: 'j-ended-before' }, null, ['Started 1 -', 'Exited 1 -'], 'stopped 1 0'] as const,
  ]
  for (const [spec, , story, state] of expected) {
    await poll(
      () => shown(idOf(spec)),
      found => found === state,
      5,
    )
    assert.deepEqual(await storyOf(after, idOf(spec)), story, spec.name)
  }
  const monitored = (await after.api('GET', '/v1/monitoring')).body.items
  const open = ['d-off-and-on', 'd-runs-on', 'd-to-3', 'd-up'].map(name => deployment(name))
  assert.deepEqual(monitored, [...open, ...['j-runs-on', 'j-up'].map(name => job(name))])
  const { body } = await after.api('GET', '/v1/adoption')
  assert.deepEqual(body.orphaned, [deployment('d-anew')])
  assert.deepEqual(body.vanished, [
    deployment('d-anew'),
    deployment('d-deleted'),
    job('j-deleted'),
    job('j-ended-before'),
  ])
  assert.equal(sandbox.faults.writes().length, writes, 'nothing is fought')
  await after.app.queue.whenIdle()
  const events = await after.events()
  await (await stage.restart()).ready()
  assert.deepEqual(await stage.daemon.events(), events, 'a second restart tells nothing new')
})

const nameOf = (id: string): string => id.slice(id.lastIndexOf('|') + 1)

suite('one restart, one trouble', { concurrency: true }, () => {
  test('F-19, F-24, P6, P10: verbs in hand when we went down, and others act on the same workloads meanwhile', async t => {
    const stage = await stageOf(t, { profile: impatient })
    const { sandbox, daemon } = stage
    const { registry } = sandbox
    const remove = (resource: string, name: string) =>
      registry.delete(resource, 'default', name, { propagationPolicy: 'Background' })
    const foreign = (name: string) => {
      const template = { spec: { restartPolicy: 'Never', containers: [{ name: 'x', image: 'busybox' }] } }
      registry.create('jobs', 'default', { metadata: { name }, spec: { template } })
    }
    const replicas = (name: string, count: number) =>
      registry.update('deployments', 'default', name, draft => {
        draft.spec.replicas = count
      })
    /** The verb that hangs, what others do, the story, the state in the end. */
    const cases: [Spec, 'create' | 'start' | 'stop' | 'delete', (name: string) => unknown, string[], string][] = [
      [{ kind: 'job', name: 'c-taken' }, 'create', foreign, [], 'gone'],
      [{ kind: 'job', name: 'c-free' }, 'create', () => {}, ['Started 1 -'], 'running'],
      [
        { kind: 'job', name: 's-gone' },
        'stop',
        name => remove('jobs', name),
        ['Started 1 -', 'Exited 1 StoppedByRequest'],
        'stopped',
      ],
      [
        { name: 's-d-gone' },
        'stop',
        name => remove('deployments', name),
        ['Started 1 -', 'Exited 1 StoppedByRequest', 'Deleted 1 NotFound'],
        'gone',
      ],
      [
        { name: 's-d-at-0' },
        'stop',
        name => replicas(name, 0),
        ['Started 1 -', 'Exited 1 StoppedByRequest'],
        'stopped',
      ],
      [{ name: 'u-d-up', start: false }, 'start', name => replicas(name, 2), ['Started 1 -'], 'running'],
      [
        { name: 'u-d-gone', start: false },
        'start',
        name => remove('deployments', name),
        ['Deleted 0 NotFound'],
        'gone',
      ],
      [
        { kind: 'job', name: 'd-anew' },
        'delete',
        name => {
          remove('jobs', name)
          foreign(name)
        },
        ['Started 1 -', 'Deleted 1 DeletedByRequest'],
        'gone',
      ],
      [
        { name: 'd-gone' },
        'delete',
        name => remove('deployments', name),
        ['Started 1 -', 'Deleted 1 DeletedByRequest'],
        'gone',
      ],
    ]
    const idOf = ({ kind, name }: Spec): string => (kind === 'job' ? job(name) : deployment(name))
    await make(
      stage,
      cases.filter(([, what]) => what !== 'create').map(([spec]) => spec),
    )
    const fault = sandbox.faults.fail(({ method }) => method !== 'GET', { hang: true })
    const replies = await Promise.all(
      cases.map(([spec, what]) => (what === 'create' ? create(daemon, spec) : verb(daemon, idOf(spec), what))),
    )
    for (const { status, body } of replies) assert.equal(status, 504, JSON.stringify(body))
    await daemon.stop()
    fault.remove()
    for (const [{ name }, , act] of cases) act(name)
    const kept = ['c-taken', 'd-anew'].map(name => objectOf(sandbox, 'jobs', name).metadata.uid)

    const after = await stage.restart()
    for (const [spec, , , story, state] of cases) {
      const found = await poll(
        async () => {
          const { status, body } = await after.api('GET', after.path(idOf(spec)))
          return status === 404 ? 'gone' : body.state
        },
        found => found === state,
        6,
      ).catch(error => String(error))
      const told = await after.eventsOf(idOf(spec)).then(
        () => storyOf(after, idOf(spec)),
        () => [],
      )
      assert.deepEqual({ found, told }, { found: state, told: story }, spec.name)
    }
    assert.deepEqual(
      ['c-taken', 'd-anew'].map(name => objectOf(sandbox, 'jobs', name).metadata.uid),
      kept,
    )
    await after.ready()
  })

  test('F-25, A6, P8: restarted while the cluster cannot be reached, then it can', async t => {
    const sandbox = await startSandbox({ kubelet: 'instant', timing: TEST_TIMING })
    t.after(() => sandbox.close())
    const proxy = await startProxy(t, sandbox.port)
    const kubeconfig = kubeconfigFile(t, sandbox.kubeconfig().replace(String(sandbox.port), String(proxy.port)))
    const first = await startDaemon(t, { kubeconfig })
    await first.ready()
    for (const name of ['stays', 'goes']) assert.equal((await create(first, { kind: 'job', name })).status, 201)
    for (const name of ['stays', 'goes']) await inState(first, job(name), 'running')
    await first.stop()
    await proxy.unplug()
    sandbox.registry.delete('jobs', 'default', 'goes', { propagationPolicy: 'Background' })

    const daemon = await startDaemon(t, { kubeconfig, env: { DATABASE_PATH: first.database }, profile: impatient })
    assert.equal((await daemon.api('GET', '/livez')).status, 200)
    const ready = await daemon.api('GET', '/readyz')
    assert.equal(ready.status, 503)
    assert.match(JSON.stringify(ready.body.checks), /runtime k8s/)
    for (const name of ['stays', 'goes']) {
      const { status, body } = await daemon.api('GET', daemon.path(job(name)))
      assert.deepEqual([status, body.state, body.stale], [200, 'running', true])
    }
    const begun = performance.now()
    const replies = await Promise.all([create(daemon, { name: 'new' }), verb(daemon, job('stays'), 'stop')])
    assert.ok(performance.now() - begun < impatient.callDeadlineMs + 1_500)
    for (const { status, body } of replies) assert.deepEqual([status, body.code], [503, 'BACKEND_UNAVAILABLE'])
    assert.equal((await daemon.api('GET', daemon.path(job('stays')))).body.state, 'running')

    await proxy.restore()
    const back = performance.now()
    await daemon.ready()
    await isGone(daemon, job('goes'))
    assert.ok(performance.now() - back < 4_000, `back after ${Math.round(performance.now() - back)} ms`)
    assert.deepEqual(await storyOf(daemon, job('goes')), ['Started 1 -', 'Deleted 1 NotFound'])
    assert.deepEqual(await storyOf(daemon, job('stays')), ['Started 1 -'])
    assert.equal((await daemon.api('GET', daemon.path(deployment('new')))).status, 404)
  })

  test('K7, K3: a row whose object cannot be looked at, and a row that cannot be read: the others go on', async t => {
    const stage = await stageOf(t)
    const { sandbox } = stage
    await make(
      stage,
      ['fine', 'deaf', 'broken'].map(name => ({ name })),
    )
    await stage.daemon.stop()
    sandbox.registry.delete('deployments', 'default', 'deaf', { propagationPolicy: 'Background' })
    const db = new Database(stage.daemon.database)
    const { changes } = db.prepare("UPDATE lives SET row = '{' WHERE name = 'broken'").run()
    assert.equal(changes, 1)
    db.close()
    const fault = sandbox.faults.fail({ verb: 'get', name: 'deaf' }, { status: 403 })
    const daemon = await stage.restart()
    await daemon.ready()
    assert.ok(daemon.lines.some(({ runtimeId, level }) => runtimeId === deployment('broken') && level === 'error'))
    assert.deepEqual((await daemon.api('GET', '/v1/adoption')).body.adopted, [deployment('deaf'), deployment('fine')])
    assert.equal((await verb(daemon, deployment('fine'), 'stop')).status, 202)
    await inState(daemon, deployment('fine'), 'stopped')
    assert.equal((await daemon.api('GET', daemon.path(deployment('deaf')))).body.state, 'running')
    assert.ok(fault.hits > 0)
    fault.remove()
    await isGone(daemon, deployment('deaf'))
    assert.deepEqual(await storyOf(daemon, deployment('deaf')), ['Started 1 -', 'Deleted 1 NotFound'])
    assert.ok(objectOf(sandbox, 'deployments', 'broken'))
  })

  test('F-33, B10, D2: our label is removed by others: the row rests and is reported, nothing is written; put back, it goes on', async t => {
    const { sandbox, daemon } = await stageOf(t)
    await make({ sandbox, daemon } as Stage, [{ name: 'web' }])
    const label = (value: string | undefined) =>
      sandbox.registry.update('deployments', 'default', 'web', draft => {
        const { 'gobrave-workload': _, ...others } = draft.metadata.labels ?? {}
        draft.metadata.labels = value === undefined ? others : { ...others, 'gobrave-workload': value }
      })
    label(undefined)
    await poll(
      () => daemon.api('GET', '/v1/adoption'),
      ({ body }) => body.foreign.length === 1,
    )
    const { body } = await daemon.api('GET', daemon.path(deployment('web')))
    assert.deepEqual([body.state, body.stale], ['running', true])
    const writes = sandbox.faults.writes().length
    for (const what of ['start', 'stop', 'delete'] as const) {
      const reply = await verb(daemon, deployment('web'), what)
      assert.deepEqual([reply.status, reply.body.code], [409, 'FOREIGN_WORKLOAD'])
    }
    assert.equal(sandbox.faults.writes().length, writes)
    assert.deepEqual(await storyOf(daemon, deployment('web')), ['Started 1 -'])
    label('web')
    await poll(
      () => daemon.api('GET', '/v1/adoption'),
      ({ body }) => body.foreign.length === 0,
    )
    assert.equal((await verb(daemon, deployment('web'), 'stop')).status, 202)
    await inState(daemon, deployment('web'), 'stopped')
    assert.deepEqual(await storyOf(daemon, deployment('web')), ['Started 1 -', 'Exited 1 StoppedByRequest'])
  })

  test('B-111: another default namespace in the configuration: old IDs are what they were', async t => {
    const NAMESPACES = 'default,ai'
    const stage = await stageOf(t, { sandbox: { namespaces: ['ai'] }, env: { NAMESPACES, NAMESPACE: 'default' } })
    await make(stage, [{ name: 'web' }])
    const daemon = await stage.restart({ NAMESPACES, NAMESPACE: 'ai' })
    await daemon.ready()
    await make(stage, [{ name: 'web' }])
    assert.equal((await verb(daemon, deployment('web'), 'stop')).body.namespace, 'default')
    await inState(daemon, deployment('web'), 'stopped')
    assert.equal((await inState(daemon, deployment('web', 'ai'), 'running')).namespace, 'ai')
    assert.equal(objectOf(stage.sandbox, 'deployments', 'web', 'ai').spec.replicas, 1)
  })

  test('B-105, J12: a clock of the node 10 minutes ahead: times are the object’s, and never go back', async t => {
    const { sandbox, daemon } = await stageOf(t, { sandbox: { kubelet: 'none' } })
    const ahead = new Date(Date.now() + 600_000).toISOString().replace(/\.\d+/, '')
    assert.equal((await create(daemon, { kind: 'job', name: 'j', backoffLimit: 0 })).status, 201)
    await poll(
      () => sandbox.store.list('pods').length,
      count => count === 1,
    )
    const pod = sandbox.store.list('pods')[0]?.metadata.name ?? ''
    const status = (state: object, phase: string) => (draft: { status?: unknown }) => {
      draft.status = {
        phase,
        conditions: [{ type: 'Ready', status: phase === 'Running' ? 'True' : 'False' }],
        containerStatuses: [
          { name: 'main', image: 'busybox', imageID: '', ready: phase === 'Running', restartCount: 0, state },
        ],
      }
    }
    sandbox.registry.updateStatus('pods', 'default', pod, status({ running: { startedAt: ahead } }, 'Running'))
    await inState(daemon, job('j'), 'running')
    const terminated = { exitCode: 0, reason: 'Completed', startedAt: ahead, finishedAt: ahead }
    sandbox.registry.updateStatus('pods', 'default', pod, status({ terminated }, 'Succeeded'))
    await inState(daemon, job('j'), 'stopped')
    assert.equal((await verb(daemon, job('j'), 'delete')).status, 202)
    await isGone(daemon, job('j'))
    const events = await daemon.eventsOf(job('j'))
    assert.deepEqual(
      events.map(({ type }) => type.slice(9)),
      ['Started', 'Exited', 'Deleted'],
    )
    const times = events.map(({ time }) => Date.parse(time))
    assert.equal(times[0], Date.parse(ahead))
    assert.deepEqual(
      times,
      times.toSorted((a, b) => a - b),
    )
  })
})

suite('the database is lost', { concurrency: true }, () => {
  const specs: Spec[] = [
    { kind: 'deployment', name: 'up' },
    { kind: 'deployment', name: 'at-0', start: false },
    { kind: 'job', name: 'runs' },
    { kind: 'job', name: 'held', start: false },
    { kind: 'job', name: 'done' },
  ]
  const ids = specs.map(({ kind, name }) => (kind === 'job' ? job(name) : deployment(name))).sort()
  const without = async (stage: Stage, t: Parameters<typeof temporaryFolder>[0], env = {}) => {
    await make(stage, specs)
    endPod(stage.sandbox, 'done', 0)
    await inState(stage.daemon, job('done'), 'stopped')
    const daemon = await stage.restart({ DATABASE_PATH: `${temporaryFolder(t)}/new.db`, ...env })
    await daemon.ready()
    return daemon
  }
  const taken = async (daemon: Stage['daemon']) => {
    await inState(daemon, deployment('up'), 'running')
    await inState(daemon, job('runs'), 'running')
    await inState(daemon, deployment('at-0'), 'stopped')
    await inState(daemon, job('held'), 'created')
    await inState(daemon, job('done'), 'stopped')
    assert.deepEqual(await storyOf(daemon, deployment('up')), ['Started 1 -'])
    assert.deepEqual(await storyOf(daemon, job('runs')), ['Started 1 -'])
    assert.deepEqual(await storyOf(daemon, deployment('at-0')), [])
    assert.deepEqual(await storyOf(daemon, job('done')), ['Started 1 -', 'Exited 1 -'])
  }

  test('K9, P6: all is reported and taken up on request, unchanged; one is removed on request', async t => {
    const stage = await stageOf(t)
    const daemon = await without(stage, t)
    assert.deepEqual((await daemon.api('GET', '/v1/adoption')).body.orphaned, ids)
    assert.deepEqual(await daemon.events(), [])
    const { body } = await daemon.api('POST', '/v1/adoption', { ids, action: 'adopt' })
    assert.deepEqual(
      body.items,
      ids.map(id => ({ id, done: true, code: null })),
    )
    await taken(daemon)
    const again = await daemon.api('POST', '/v1/adoption', { ids: [ids[0]], action: 'adopt' })
    assert.deepEqual(again.body.items, [{ id: ids[0], done: false, code: 'RUNTIME_EXISTS' }])
    assert.deepEqual((await daemon.api('GET', '/v1/adoption')).body.orphaned, [])
    assert.ok(Object.values(stage.ledger.counts()).every(({ made, ended }) => made === 1 && ended === 0))

    const third = await stage.restart({ DATABASE_PATH: `${temporaryFolder(t)}/third.db` })
    await third.ready()
    const removed = await third.api('POST', '/v1/adoption', { ids: [deployment('up')], action: 'remove' })
    assert.deepEqual(removed.body.items, [{ id: deployment('up'), done: true, code: null }])
    await poll(
      () => stage.sandbox.store.get('deployments', 'default', 'up'),
      found => found === undefined,
    )
    assert.deepEqual(await third.events(), [])
    assert.equal((await verb(third, job('runs'), 'stop')).status, 202)
    await inState(third, job('runs'), 'stopped')
    assert.deepEqual(await storyOf(third, job('runs')), ['Started 1 -', 'Exited 1 StoppedByRequest'])
  })

  test('K9: ADOPT_ORPHANS takes them up at the start; a restart does not again', async t => {
    const stage = await stageOf(t)
    const daemon = await without(stage, t, { ADOPT_ORPHANS: 'true' })
    await taken(daemon)
    const events = await daemon.events()
    await (await stage.restart({ ADOPT_ORPHANS: 'true' })).ready()
    await stage.daemon.app.queue.whenIdle()
    assert.deepEqual(await stage.daemon.events(), events)
  })
})

suite('two daemons', { concurrency: true }, () => {
  test('B-81, B-106, F-27, P6, P10: two instances in one namespace: neither takes, tells of, or deletes what the other has', async t => {
    const stage = await stageOf(t, { env: { INSTANCE: 'one', ADOPT_ORPHANS: 'true' } })
    const kubeconfig = kubeconfigFile(t, stage.sandbox.kubeconfig())
    const two = await startDaemon(t, { kubeconfig, env: { INSTANCE: 'two', ADOPT_ORPHANS: 'true' } })
    await two.ready()
    await make(stage, [
      { name: 'a', port: 8080, exposeService: true },
      { kind: 'job', name: 'b' },
    ])
    await make({ ...stage, daemon: two }, [{ name: 'c' }])
    const taken = await create(two, { name: 'a' })
    assert.deepEqual([taken.status, taken.body.code], [409, 'FOREIGN_WORKLOAD'])
    for (const id of [deployment('a'), job('b')]) {
      assert.equal((await two.api('GET', two.path(id))).status, 404)
      for (const what of ['start', 'stop', 'delete'] as const) {
        const { status, body } = await verb(two, id, what)
        assert.deepEqual([status, body.code], [409, 'FOREIGN_WORKLOAD'])
      }
      for (const action of ['adopt', 'remove']) {
        const { body } = await two.api('POST', '/v1/adoption', { ids: [id], action })
        assert.deepEqual(body.items, [{ id, done: false, code: 'FOREIGN_WORKLOAD' }])
      }
    }
    await (await stage.restart({ INSTANCE: 'one', ADOPT_ORPHANS: 'true' })).ready()
    for (const daemon of [two, stage.daemon]) {
      assert.deepEqual((await daemon.api('GET', '/v1/adoption')).body.orphaned, [])
    }
    const idsOf = async (daemon: Stage['daemon']) => new Set((await daemon.events()).map(({ runtimeId }) => runtimeId))
    assert.deepEqual(await idsOf(two), new Set([deployment('c')]))
    assert.deepEqual(await idsOf(stage.daemon), new Set([deployment('a'), job('b')]))
    assert.ok(Object.values(stage.ledger.counts()).every(({ made, ended }) => made === 1 && ended === 0))
  })

  test('F-27, K10, B-116: a second daemon on the file refuses, exit 1, and says who has it', async t => {
    const stage = await stageOf(t)
    const second = spawnMain(t, {
      KUBECONFIG: kubeconfigFile(t, stage.sandbox.kubeconfig()),
      DATABASE_PATH: stage.daemon.database,
    })
    assert.equal(await second.ended, 1)
    assert.match(second.output(), new RegExp(`pid ${process.pid}|process ${process.pid}|${process.pid}`))
    assert.equal((await create(stage.daemon, { name: 'a' })).status, 201)
  })
})

test('B-107, K10: killed with running work, again and again: the same work runs on, nothing is told twice', async t => {
  const stage = await stageOf(t)
  const kubeconfig = kubeconfigFile(t, stage.sandbox.kubeconfig())
  await make(
    stage,
    Array.from({ length: 50 }, (_, n) => ({ kind: 'job', name: `j${n}` }) as const),
  )
  const events = await stage.daemon.events()
  const uids = stage.sandbox.store.list('pods').map(({ metadata }) => metadata.uid)
  await stage.daemon.stop()
  const writes = stage.sandbox.faults.writes().length
  for (let life = 0; life < (SOAK ? 10 : 2); life++) {
    const child = await spawnDaemon(t, { kubeconfig, env: { DATABASE_PATH: stage.daemon.database } })
    await child.ready()
    assert.deepEqual(await child.events(), events)
    assert.equal((await child.api('GET', '/v1/monitoring')).body.total, 50)
    await child.kill()
  }
  assert.deepEqual(
    stage.sandbox.store.list('pods').map(({ metadata }) => metadata.uid),
    uids,
  )
  assert.equal(stage.sandbox.faults.writes().length, writes)
})

test('B-108: thousands of finished objects beside the live ones: up in seconds, and the log is quiet', async t => {
  const count = SOAK ? 10_000 : 1_500
  const stage = await stageOf(t)
  await make(
    stage,
    Array.from({ length: 20 }, (_, n) => ({ kind: 'job', name: `live${n}` }) as const),
  )
  const { registry, faults } = stage.sandbox
  await stage.daemon.stop()
  faults.pauseControllers()
  const { metadata, spec } = objectOf(stage.sandbox, 'jobs', 'live0')
  const at = new Date().toISOString()
  for (let n = 0; n < count; n++) {
    const name = `done${n}`
    const labels = { ...metadata.labels, app: name, 'gobrave-workload': name }
    const { selector: _, ...template } = structuredClone(spec)
    template.template.metadata.labels = labels
    registry.create('jobs', 'default', { metadata: { name, labels }, spec: template })
    registry.updateStatus('jobs', 'default', name, draft => {
      draft.status = {
        succeeded: 1,
        startTime: at,
        completionTime: at,
        conditions: ['SuccessCriteriaMet', 'Complete'].map(type => ({ type, status: 'True', lastTransitionTime: at })),
      }
    })
  }
  const begun = performance.now()
  const daemon = await stage.restart()
  await daemon.ready()
  const seconds = (performance.now() - begun) / 1000
  assert.ok(seconds < 5, `ready after ${seconds.toFixed(1)} s`)
  assert.ok(daemon.lines.length < 100, `${daemon.lines.length} lines`)
  assert.deepEqual(problems(daemon.lines), [])
  assert.equal((await daemon.api('GET', '/v1/adoption')).body.orphaned.length, count)
})
