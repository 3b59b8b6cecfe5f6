import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { type ReflectorProfile, testProfile } from '../../src/kube/reflector-profile.ts'
import { type Faults, type Sandbox, startSandbox, TEST_TIMING } from '../../src/sandbox/index.ts'
import { type Client, type Daemon, kubeconfigFile, poll, startDaemon } from '../helpers/daemon.ts'
import { startProxy } from './proxy.ts'
import {
  create,
  deployment,
  endPod,
  inState,
  isGone,
  job,
  objectOf,
  type Spec,
  stageOf,
  storyOf,
  verb,
} from './stage.ts'

/** The watches of the test profile, with calls that a loaded machine answers in time. */
const brisk: ReflectorProfile = { ...testProfile, callDeadlineMs: 3_000, pageDeadlineMs: 5_000 }
/** P4: one back-off step when the fault broke the stream, one watch timeout more when it left a silent one; and the load. */
const BOUND_SECONDS = 6

const scene: readonly Spec[] = [
  { kind: 'job', name: 'stays' },
  { kind: 'job', name: 'ends' },
  { kind: 'job', name: 'fails' },
  { kind: 'job', name: 'goes' },
  { kind: 'job', name: 'blinks', start: false },
  { kind: 'deployment', name: 'falls' },
  { kind: 'deployment', name: 'rises', start: false },
  { kind: 'deployment', name: 'anew' },
]
const idOf = ({ kind, name }: Spec): string => (kind === 'job' ? job(name) : deployment(name))

/** What must have been told in the end, whatever was seen on the way; and the state. */
const outcome: Readonly<Record<string, readonly string[]>> = {
  stays: ['Started 1 -', 'running'],
  ends: ['Started 1 -', 'Exited 1 -', 'stopped'],
  fails: ['Started 1 -', 'Failed 1 BackoffLimitExceeded', 'failed'],
  goes: ['Started 1 -', 'Deleted 1 NotFound', 'gone'],
  blinks: ['Started 1 -', 'Exited 1 -', 'stopped'],
  falls: ['Started 1 -', 'Exited 1 ScaledToZero', 'stopped'],
  rises: ['Started 1 -', 'running'],
  anew: ['Started 1 -', 'Deleted 1 NotFound', 'running'],
}

async function setScene(daemon: Client): Promise<void> {
  for (const spec of scene) {
    assert.equal((await create(daemon, spec)).status, 201)
    await inState(daemon, idOf(spec), spec.start === false ? 'created' : 'running')
  }
}

/** What others do to the scene, each to its end. */
async function play(sandbox: Sandbox): Promise<void> {
  const { registry, store } = sandbox
  const scale = (name: string, replicas: number) =>
    registry.update('deployments', 'default', name, draft => {
      draft.spec.replicas = replicas
    })
  endPod(sandbox, 'ends', 0)
  endPod(sandbox, 'fails', 1)
  registry.delete('jobs', 'default', 'goes', { propagationPolicy: 'Background' })
  registry.update('jobs', 'default', 'blinks', draft => {
    draft.spec.suspend = false
  })
  scale('falls', 0)
  scale('rises', 1)
  const { metadata, spec } = structuredClone(objectOf(sandbox, 'deployments', 'anew'))
  registry.delete('deployments', 'default', 'anew', { propagationPolicy: 'Background' })
  registry.create('deployments', 'default', { metadata: { name: 'anew', labels: metadata.labels }, spec })
  const podOf = (name: string) =>
    store
      .list('pods')
      .find(pod => pod.metadata.labels?.['gobrave-workload'] === name && pod.status?.phase === 'Running')
  await poll(
    () => podOf('blinks'),
    pod => pod !== undefined,
  )
  endPod(sandbox, 'blinks', 0)
  const finished = (name: string) => objectOf(sandbox, 'jobs', name).status?.conditions?.length > 0
  const settled = () =>
    ['ends', 'fails', 'blinks'].every(finished) &&
    (objectOf(sandbox, 'deployments', 'falls').status.replicas ?? 0) === 0 &&
    ['rises', 'anew'].every(name => objectOf(sandbox, 'deployments', name).status?.readyReplicas === 1)
  await poll(settled, done => done)
}

async function told(daemon: Client): Promise<Record<string, string[]>> {
  const entries = scene.map(async (spec): Promise<[string, string[]]> => {
    const { status, body } = await daemon.api('GET', daemon.path(idOf(spec)))
    return [spec.name, [...(await storyOf(daemon, idOf(spec))), status === 404 ? 'gone' : body.state]]
  })
  return Object.fromEntries(await Promise.all(entries))
}

/** In the bound, and it stays. Answers the seconds it took. */
async function converges(daemon: Daemon): Promise<number> {
  const begun = performance.now()
  const same = (found: object): boolean => JSON.stringify(found) === JSON.stringify(outcome)
  await poll(() => told(daemon), same, BOUND_SECONDS).catch(() => {})
  const seconds = (performance.now() - begun) / 1000
  assert.deepEqual(await told(daemon), outcome)
  await sleep(200)
  await daemon.app.queue.whenIdle()
  assert.deepEqual(await told(daemon), outcome)
  await daemon.ready()
  assert.deepEqual(daemon.fatal, [])
  return seconds
}

type Inject = (faults: Faults, daemon: Daemon) => (() => void) | undefined

const watches = { verb: 'watch' } as const
const faultsOnTheWatch: [string, Inject][] = [
  [
    'F-3, B-1: the streams fall silent for ever',
    faults => {
      faults.muteStreams()
      return undefined
    },
  ],
  [
    'F-3, F-8: the streams are silent, new ones too, then all is told late',
    faults => {
      faults.muteStreams({ future: true })
      return () => faults.unmuteStreams()
    },
  ],
  [
    'I9, B-5: the streams are reset all the time',
    faults => {
      const timer = setInterval(() => faults.closeStreams('reset'), 20)
      return () => clearInterval(timer)
    },
  ],
  [
    'B-8: the streams are ended properly all the time',
    faults => {
      const timer = setInterval(() => faults.closeStreams('end'), 60)
      return () => clearInterval(timer)
    },
  ],
  [
    'F-7, F-8, F-9, B-11, B-16: everything is hidden, then the version is too old (410)',
    faults => {
      const show = faults.hideFromWatch(() => true)
      return () => {
        show()
        faults.compact()
        faults.closeStreams('reset')
      }
    },
  ],
  [
    'F-7, B-16: 410 as the status of the answer, and the first lists after it fail',
    faults => {
      const show = faults.hideFromWatch(() => true)
      return () => {
        show()
        faults.fail(watches, { status: 410, reason: 'Expired', times: 3 })
        faults.fail({ verb: 'list' }, { status: 500, times: 3 })
        faults.closeStreams('reset')
      }
    },
  ],
  [
    'B-3, B-12, B-13: events are lost on the way, the streams live on: the timed list makes up for it',
    faults => faults.hideFromWatch(() => true),
  ],
  [
    'F-11, B-13: lines are cut',
    faults => {
      faults.corruptLine(undefined, 5)
      faults.corruptLine('not JSON', 3)
      return undefined
    },
  ],
  [
    'F-1: watches are answered 500, 502, 503, 429',
    faults => {
      for (const status of [500, 502, 503]) faults.fail(watches, { status, times: 3 })
      faults.fail(watches, { status: 429, retryAfter: 1, times: 3 })
      faults.closeStreams('end')
      return undefined
    },
  ],
  [
    'F-14: watches and lists are not answered',
    faults => {
      const fault = faults.fail(({ verb }) => verb === 'watch' || verb === 'list', { hang: true })
      faults.closeStreams('reset')
      return () => fault.remove()
    },
  ],
  [
    'B-20: nothing can be watched or listed (403)',
    faults => {
      faults.enforceRole([])
      faults.closeStreams('reset')
      return () => faults.enforceRole(undefined)
    },
  ],
]

suite('P4: whatever breaks the watch, in the end the rows are the cluster', { concurrency: 6 }, () => {
  for (const [name, inject] of faultsOnTheWatch) {
    test(name, async t => {
      const profile = name.startsWith('B-3') ? { ...brisk, relistMs: 1_500 } : brisk
      const { sandbox, daemon } = await stageOf(t, { profile })
      await setScene(daemon)
      const cease = inject(sandbox.faults, daemon)
      await play(sandbox)
      cease?.()
      t.diagnostic(`${(await converges(daemon)).toFixed(1)} s`)
    })
  }
})

suite('what else happens to a line', { concurrency: true }, () => {
  test('P4, P6: a cluster restored from a backup is believed, and followed', async t => {
    const { sandbox, daemon } = await stageOf(t, { profile: brisk })
    for (const name of ['old', 'ends']) {
      assert.equal((await create(daemon, { kind: 'job', name })).status, 201)
      await inState(daemon, job(name), 'running')
    }
    const backup = sandbox.store.version
    assert.equal((await create(daemon, { kind: 'job', name: 'young' })).status, 201)
    await inState(daemon, job('young'), 'running')
    sandbox.registry.update('jobs', 'default', 'old', draft => {
      draft.metadata.annotations = { ...draft.metadata.annotations, touched: 'after the backup' }
    })
    sandbox.faults.travelBack(backup)
    await isGone(daemon, job('young'))
    assert.deepEqual(await storyOf(daemon, job('young')), ['Started 1 -', 'Deleted 1 NotFound'])
    endPod(sandbox, 'ends', 0)
    await inState(daemon, job('ends'), 'stopped', BOUND_SECONDS)
    assert.equal((await verb(daemon, job('old'), 'stop')).status, 202)
    await inState(daemon, job('old'), 'stopped', BOUND_SECONDS)
    assert.deepEqual(await storyOf(daemon, job('old')), ['Started 1 -', 'Exited 1 StoppedByRequest'])
    assert.deepEqual(await storyOf(daemon, job('ends')), ['Started 1 -', 'Exited 1 -'])
  })

  for (const moment of ['while we watch', 'while we are down'] as const) {
    test(`P4, P6: restored from a backup ${moment}: rows written since are not deaf to the older versions`, async t => {
      const stage = await stageOf(t, { profile: brisk })
      const { sandbox } = stage
      for (const name of ['was-up', 'was-at-0']) {
        assert.equal((await create(stage.daemon, { name })).status, 201)
        await inState(stage.daemon, deployment(name), 'running')
      }
      assert.equal((await verb(stage.daemon, deployment('was-at-0'), 'stop')).status, 202)
      await inState(stage.daemon, deployment('was-at-0'), 'stopped')
      const backup = sandbox.store.version
      assert.equal((await verb(stage.daemon, deployment('was-up'), 'stop')).status, 202)
      assert.equal((await verb(stage.daemon, deployment('was-at-0'), 'start')).status, 202)
      await inState(stage.daemon, deployment('was-up'), 'stopped')
      await inState(stage.daemon, deployment('was-at-0'), 'running')
      if (moment === 'while we are down') await stage.daemon.stop()
      sandbox.faults.travelBack(backup)
      const daemon = moment === 'while we are down' ? await stage.restart() : stage.daemon
      await inState(daemon, deployment('was-up'), 'running', 2 * BOUND_SECONDS)
      await inState(daemon, deployment('was-at-0'), 'stopped', 2 * BOUND_SECONDS)
      await daemon.ready()
      assert.deepEqual(await storyOf(daemon, deployment('was-up')), [
        'Started 1 -',
        'Exited 1 StoppedByRequest',
        'Started 2 -',
      ])
      assert.equal((await storyOf(daemon, deployment('was-at-0'))).at(-1), 'Exited 2 ScaledToZero')
      assert.equal((await verb(daemon, deployment('was-up'), 'stop')).status, 202)
      await inState(daemon, deployment('was-up'), 'stopped', BOUND_SECONDS)
    })
  }

  test('B-19: deleted between the list and the watch: it is told', async t => {
    const stage = await stageOf(t, { profile: brisk })
    assert.equal((await create(stage.daemon, { kind: 'job', name: 'j' })).status, 201)
    await inState(stage.daemon, job('j'), 'running')
    await stage.daemon.stop()
    const { faults, registry } = stage.sandbox
    const fault = faults.fail(watches, { slowMs: 400 })
    const daemon = await stage.restart()
    await poll(
      () => fault.hits,
      hits => hits === 3,
    )
    registry.delete('jobs', 'default', 'j', { propagationPolicy: 'Background' })
    await isGone(daemon, job('j'))
    assert.deepEqual(await storyOf(daemon, job('j')), ['Started 1 -', 'Deleted 1 NotFound'])
  })

  test('B-1, B-2, B-61: the line goes dead without a word: red in time, nothing harmed, told after, calls end in time', async t => {
    const sandbox = await startSandbox({ kubelet: 'instant', timing: { ...TEST_TIMING, bookmarkMs: 200 } })
    t.after(() => sandbox.close())
    const proxy = await startProxy(t, sandbox.port)
    const kubeconfig = kubeconfigFile(t, sandbox.kubeconfig().replace(String(sandbox.port), String(proxy.port)))
    const profile = { ...testProfile, callDeadlineMs: 1_000, watchMs: 1_000, idleMs: 800 }
    const daemon = await startDaemon(t, { kubeconfig, profile })
    await daemon.ready()
    for (const name of ['stays', 'ends']) {
      assert.equal((await create(daemon, { kind: 'job', name })).status, 201)
      await inState(daemon, job(name), 'running')
    }
    proxy.blackhole()
    endPod(sandbox, 'ends', 0)
    const begun = performance.now()
    const replies = await Promise.all([create(daemon, { name: 'new' }), verb(daemon, job('stays'), 'stop')])
    assert.ok(performance.now() - begun < 2_500, 'a call beyond its deadline')
    for (const { status } of replies) assert.ok(status === 503 || status === 504, `${status}`)
    const { body } = await poll(
      () => daemon.api('GET', '/readyz'),
      ({ status }) => status === 503,
      5,
    )
    assert.match(JSON.stringify(body.checks), /silent|heard|answer|reached/)
    const shown = await daemon.waitFor(job('ends'), runtime => runtime?.stale === true, 5)
    assert.equal(shown.state, 'running')
    assert.equal((await daemon.api('GET', '/livez')).status, 200)
    assert.ok(objectOf(sandbox, 'jobs', 'stays'), 'nothing was deleted')
    await proxy.restore()
    await inState(daemon, job('ends'), 'stopped', BOUND_SECONDS)
    await daemon.ready(BOUND_SECONDS)
    assert.deepEqual(await storyOf(daemon, job('ends')), ['Started 1 -', 'Exited 1 -'])
    await inState(daemon, deployment('new'), 'running')
  })

  test('G7, H8, B-52: the controllers stand still: nothing is told before they did it', async t => {
    const { sandbox, daemon } = await stageOf(t, { profile: brisk })
    for (const name of ['stop', 'delete']) {
      assert.equal((await create(daemon, { name })).status, 201)
      await inState(daemon, deployment(name), 'running')
    }
    sandbox.faults.pauseControllers()
    assert.equal((await create(daemon, { name: 'make' })).status, 201)
    assert.equal((await verb(daemon, deployment('stop'), 'stop')).body.state, 'stopping')
    assert.equal((await verb(daemon, deployment('delete'), 'delete')).body.state, 'deleting')
    sandbox.faults.closeStreams('reset')
    await sleep(300)
    await daemon.app.queue.whenIdle()
    const states = async (name: string) => (await daemon.api('GET', daemon.path(deployment(name)))).body.state
    assert.deepEqual(await Promise.all(['make', 'stop', 'delete'].map(states)), ['creating', 'stopping', 'deleting'])
    assert.equal((await daemon.events()).length, 2)
    sandbox.faults.resumeControllers()
    await inState(daemon, deployment('make'), 'running')
    await inState(daemon, deployment('stop'), 'stopped')
    await isGone(daemon, deployment('delete'))
  })
})
