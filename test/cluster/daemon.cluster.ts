import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { told } from '../contract/world.ts'
import { type Client, type Daemon, poll, type Scope, startDaemon } from '../helpers/daemon.ts'
import { apiReady, expireHistory, onOwnCluster, signal, withoutPackets } from './faults.ts'

const image = process.env.RUNTIMED_CLUSTER_IMAGE ?? 'registry.local/busybox:1'
const namespace = 'runtimed-test'

const spec = (kind: string, name: string, script: string) => ({
  ...{ kind, name, image, entrypoint: ['/bin/sh', '-c'], command: [script], terminationGracePeriodSeconds: 1 },
})
const up = 'trap "exit 0" TERM; echo up; sleep 3600 & wait'
const idOf = (kind: string, name: string): string => `k8s-${namespace}|${kind}|${name}`

/** The daemon with the rights of the chart, on a cluster that is broken under it. */
describe('the daemon on a real cluster that fails', onOwnCluster, () => {
  const ends: Array<() => Promise<void> | void> = []
  const scope: Scope = { after: end => void ends.unshift(end) }
  let daemon: Daemon

  before(async () => {
    const kubeconfig = `${process.env.KUBECONFIG}.runtimed`
    const env = { NAMESPACE: namespace, INSTANCE: `failing-${process.pid}` }
    daemon = await startDaemon(scope, { kubeconfig, env, profile: 'test' })
    await daemon.ready()
  })
  after(async () => {
    for (const end of ends) await end()
  })

  async function create(kind: string, script: string): Promise<string> {
    const name = `${kind}-${process.pid}-${Math.random().toString(36).slice(2, 8)}`
    const reply = await daemon.api('POST', '/v1/runtimes', spec(kind, name, script))
    assert.equal(reply.status, 201, JSON.stringify(reply.body))
    return idOf(kind, name)
  }
  const state = (id: string, wanted: string) => daemon.waitFor(id, found => (found?.state ?? 'deleted') === wanted, 60)
  const story = async (client: Client, id: string) => (await client.eventsOf(id)).map(told)

  test('I9, F-2, F-6, B-16: the API server restarts without its history: nothing lost, nothing twice', async () => {
    const [web, job] = [await create('deployment', up), await create('job', 'sleep 2; exit 3')]
    await Promise.all([state(web, 'running'), state(job, 'running')])
    await expireHistory()
    await state(job, 'failed')
    await daemon.ready(30)
    assert.equal((await daemon.api('GET', daemon.path(web))).body.state, 'running')
    assert.deepEqual(await story(daemon, job), ['Started 1 -', 'Failed 1 BackoffLimitExceeded 3'])
    await daemon.api('DELETE', daemon.path(web))
    await daemon.api('DELETE', daemon.path(job))
    await state(web, 'deleted')
    assert.deepEqual(await story(daemon, web), ['Started 1 -', 'Deleted 1 DeletedByRequest'])
  })

  test('F9, B-134, F-14: the API server hangs: a verb answers in its time and is finished later', async () => {
    const web = await create('deployment', up)
    await state(web, 'running')
    await signal('apiserver', 'STOP')
    try {
      const start = performance.now()
      const reply = await daemon.api('POST', daemon.path(web, '/stop'))
      assert.ok([503, 504].includes(reply.status), JSON.stringify(reply.body))
      assert.ok(performance.now() - start < 5_000)
      assert.equal((await daemon.api('GET', '/livez')).status, 200)
      const sick = await poll(
        () => daemon.api('GET', '/readyz'),
        ({ status }) => status === 503,
      )
      assert.match(JSON.stringify(sick.body), /k8s/)
      assert.deepEqual(await story(daemon, web), ['Started 1 -'])
    } finally {
      await signal('apiserver', 'CONT')
    }
    await apiReady()
    await daemon.ready(30)
    await daemon.api('POST', daemon.path(web, '/stop'))
    await state(web, 'stopped')
    await daemon.api('DELETE', daemon.path(web))
    await state(web, 'deleted')
    assert.deepEqual(await story(daemon, web), [
      ...['Started 1 -', 'Exited 1 StoppedByRequest 0', 'Deleted 1 DeletedByRequest'],
    ])
  })

  test('F-3, B-1: packets vanish: not ready, nothing is told, and what happened meanwhile is told after', async () => {
    const job = await create('job', 'sleep 4; exit 0')
    await state(job, 'running')
    await withoutPackets(async () => {
      await poll(
        () => daemon.api('GET', '/readyz'),
        ({ status }) => status === 503,
      )
      const seen = (await daemon.api('GET', daemon.path(job))).body
      assert.equal(seen.state, 'running')
      assert.deepEqual(await story(daemon, job), ['Started 1 -'])
    })
    await daemon.ready(30)
    await state(job, 'stopped')
    assert.deepEqual(await story(daemon, job), ['Started 1 -', 'Exited 1 - 0'])
    await daemon.api('DELETE', daemon.path(job))
    await state(job, 'deleted')
  })
})
