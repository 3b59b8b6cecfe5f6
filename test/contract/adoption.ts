import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { startDaemon } from '../helpers/daemon.ts'
import { poll, type Register, type World, waiting } from './world.ts'

export function adoptionCases(test: Register): void {
  test('B10, K9, T3: a labelled workload without a row is shown and listed; a verb takes it up', async w => {
    const orphan = await orphanDeployment(w)
    const id = w.id('deployment', orphan)
    const seen = await w.reach(id, runtime => runtime.ready)
    assert.deepEqual([seen.run, seen.monitored, seen.state], [0, false, 'running'])
    assert.equal((await w.logs(id)).body, 'up\n')
    await listed(w, id)
    assert.deepEqual(await idsListed(w, orphan), [])
    const taken = await w.accepted(id, 'stop')
    assert.equal(taken.run, 1)
    await w.state(id, 'stopped')
    const object = await w.object({ kind: 'deployment', name: orphan, namespace: w.namespace })
    assert.equal(object.metadata.labels['runtimed.dev/instance'], 'default')
    assert.deepEqual(await idsListed(w, orphan), [id])
    assert.deepEqual(await w.end(id), ['Started 1 -', 'Exited 1 StoppedByRequest 0', 'Deleted 1 DeletedByRequest'])
  })

  test('B10, K9: start and delete by the ID alone take an orphan up', async w => {
    const [started, deleted] = [await orphanDeployment(w), await orphanDeployment(w)]
    const [startedId, deletedId] = [w.id('deployment', started), w.id('deployment', deleted)]
    await Promise.all([startedId, deletedId].map(id => w.reach(id, runtime => runtime.ready)))
    const joined = await w.accepted(startedId, 'start')
    assert.deepEqual([joined.state, joined.run, joined.monitored], ['running', 1, true])
    assert.deepEqual(await w.end(startedId), ['Started 1 -', 'Deleted 1 DeletedByRequest'])
    assert.deepEqual(await w.end(deletedId), ['Started 1 -', 'Deleted 1 DeletedByRequest'])
    assert.equal((await w.send('GET', w.at('deployments', deleted))).status, 404)
  })

  test('K9, T3, J6: adopted on request, a finished Job gives Started and its ending; removed on request', async w => {
    const name = w.name('orphan')
    const labels = { app: name, 'gobrave-workload': name, 'runtimed.dev/kind': 'job' }
    const job = { metadata: { name, labels }, spec: { backoffLimit: 0, template: podTemplate(w, labels, 'exit 3') } }
    assert.equal((await w.send('POST', w.at('jobs'), job)).status, 201)
    await poll(
      () => w.send('GET', w.at('jobs', name)),
      ({ body }) => body.status?.conditions?.some((condition: { type: string }) => condition.type === 'Failed'),
    )
    const id = w.id('job', name)
    await listed(w, id)
    const other = await orphanDeployment(w)
    await listed(w, w.id('deployment', other))
    const act = (ids: string[], action: string) => w.client.api('POST', '/v1/adoption', { ids, action })
    const adopted = await act([id, w.id('job', 'no-such-job')], 'adopt')
    assert.equal(adopted.status, 200)
    assert.deepEqual(adopted.body.items, [
      { id, done: true, code: null },
      { id: w.id('job', 'no-such-job'), done: false, code: 'RUNTIME_NOT_FOUND' },
    ])
    const failed = await w.state(id, 'failed')
    assert.deepEqual([failed.exitCode, failed.run, failed.spec], [3, 1, null])
    const again = await act([id], 'adopt')
    assert.deepEqual(again.body.items, [{ id, done: false, code: 'RUNTIME_EXISTS' }])
    const removed = await act([w.id('deployment', other)], 'remove')
    assert.deepEqual(removed.body.items, [{ id: w.id('deployment', other), done: true, code: null }])
    await poll(
      () => w.send('GET', w.at('deployments', other)),
      ({ status }) => status === 404,
    )
    assert.deepEqual(await w.end(id), ['Started 1 -', 'Failed 1 BackoffLimitExceeded 3', 'Deleted 1 DeletedByRequest'])
  })

  test('B-38: a sidecar that runs on hides neither the exit code of main nor the verdict', async w => {
    const name = w.name('sidecar')
    const labels = { app: name, 'gobrave-workload': name, 'runtimed.dev/kind': 'job' }
    const template = podTemplate(w, labels, 'echo main; exit 0')
    template.spec.containers.push({ name: 'sidecar', ...container(w, 'echo side; sleep 4') })
    const made = await w.send('POST', w.at('jobs'), { metadata: { name, labels }, spec: { backoffLimit: 0, template } })
    assert.equal(made.status, 201)
    const id = w.id('job', name)
    await w.reach(id, () => true)
    await w.client.api('POST', '/v1/adoption', { ids: [id], action: 'adopt' })
    const seen = await w.reach(id, runtime => runtime.exitCode === 0)
    assert.equal(seen.state, 'running')
    assert.equal((await w.logs(id)).body, 'main\n')
    assert.equal((await w.logs(id, '?container=sidecar')).body, 'side\n')
    await w.state(id, 'stopped')
    assert.deepEqual(await w.end(id), ['Started 1 -', 'Exited 1 - 0', 'Deleted 1 DeletedByRequest'])
  })

  test('F-27, B-81, P6, B10: two instances in one namespace leave each other alone', async w => {
    const made = await w.deployment(waiting)
    await w.state(made.id, 'running')
    const other = w.through(await w.daemon())
    for (const reply of [await other.get(made.id), await other.logs(made.id)]) assert.equal(reply.status, 404)
    for (const reply of [
      await other.verb(made.id, 'stop'),
      await other.verb(made.id, 'start'),
      await other.delete(made.id),
    ])
      assert.deepEqual([reply.status, reply.body.code], [409, 'FOREIGN_WORKLOAD'])
    const taken = await other.post({ name: made.name, ...w.script(waiting) })
    assert.deepEqual([taken.status, taken.body.code], [409, 'FOREIGN_WORKLOAD'])
    const { body } = await other.client.api('GET', '/v1/adoption')
    assert.deepEqual([body.orphaned.includes(made.id), body.adopted], [false, []])
    const theirs = await other.job(waiting)
    await other.state(theirs.id, 'running')
    assert.equal((await w.get(theirs.id)).status, 404)
    assert.deepEqual(await w.end(made.id), ['Started 1 -', 'Deleted 1 DeletedByRequest'])
    assert.deepEqual(await other.end(theirs.id), ['Started 1 -', 'Deleted 1 DeletedByRequest'])
    assert.deepEqual(await other.client.events(), await other.client.eventsOf(theirs.id))
  })

  test('K3, K4, K5, K6, F-24, B-109, B-107: what happened while the daemon was down is told once', async w => {
    const env = { INSTANCE: w.name('restarted'), NAMESPACE: w.namespace }
    const first = await startDaemon(w.t, { kubeconfig: w.stage.environment.kubeconfig, env })
    await first.ready()
    const before = w.through(first)
    const made = {
      kept: await before.deployment(waiting),
      scaled: await before.deployment(waiting),
      deleted: await before.deployment(waiting),
      replaced: await before.deployment(waiting),
      ended: await before.job('exit 0'),
      well: await before.job('sleep 8'),
      badly: await before.job('sleep 8; exit 3'),
    }
    await Promise.all(
      Object.values(made).map(({ id }) => before.state(id, id === made.ended.id ? 'stopped' : 'running')),
    )
    await first.stop()
    await w.byHand(made.scaled, { spec: { replicas: 0 } })
    await w.deleteByHand(made.deleted, 'Foreground')
    const { spec } = await w.object(made.replaced)
    await w.deleteByHand(made.replaced, 'Foreground')
    const again = await poll(
      () => w.send('POST', w.at('deployments'), { metadata: { name: made.replaced.name }, spec }),
      ({ status }) => status === 201,
    )
    await Promise.all(
      [made.well, made.badly].map(job =>
        poll(
          () => w.object(job),
          ({ status }) =>
            status.conditions?.some(({ type }: { type: string }) => ['Complete', 'Failed'].includes(type)),
        ),
      ),
    )
    const second = await startDaemon(w.t, {
      kubeconfig: w.stage.environment.kubeconfig,
      env: { ...env, DATABASE_PATH: first.database },
    })
    await second.ready()
    const after = w.through(second)
    await after.state(made.scaled.id, 'stopped')
    const stories = await Promise.all(Object.values(made).map(({ id }) => after.story(id)))
    assert.deepEqual(stories, [
      ['Started 1 -'],
      ['Started 1 -', 'Exited 1 ScaledToZero -'],
      ['Started 1 -', 'Deleted 1 NotFound'],
      ['Started 1 -', 'Deleted 1 NotFound'],
      ['Started 1 -', 'Exited 1 - 0'],
      ['Started 1 -', 'Exited 1 - 0'],
      ['Started 1 -', 'Failed 1 BackoffLimitExceeded 3'],
    ])
    const { body } = await second.api('GET', '/v1/monitoring')
    assert.deepEqual(body.items, [made.kept.id])
    assert.equal((await second.api('GET', '/v1/adoption')).body.vanished.includes(made.deleted.id), true)
    assert.notEqual(again.body.metadata.uid, made.replaced.uid)
    await w.send('DELETE', w.at('deployments', made.replaced.name))
    for (const runtime of [made.kept, made.scaled, made.well, made.badly, made.ended]) await after.end(runtime.id)
  })

  test('K9, C10: with the database lost and ADOPT_ORPHANS all is taken up again', async w => {
    const env = { INSTANCE: w.name('lost'), NAMESPACE: w.namespace }
    const first = await startDaemon(w.t, { kubeconfig: w.stage.environment.kubeconfig, env })
    await first.ready()
    const before = w.through(first)
    const [web, job] = [await before.deployment(waiting), await before.job('exit 0')]
    await Promise.all([before.state(web.id, 'running'), before.state(job.id, 'stopped')])
    await first.stop()
    const second = await startDaemon(w.t, {
      kubeconfig: w.stage.environment.kubeconfig,
      env: { ...env, ADOPT_ORPHANS: 'true' },
    })
    await second.ready()
    const after = w.through(second)
    await after.reach(web.id, seen => seen.run === 1 && seen.state === 'running')
    await after.reach(job.id, seen => seen.run === 1 && seen.state === 'stopped')
    assert.deepEqual(await after.end(web.id), ['Started 1 -', 'Deleted 1 DeletedByRequest'])
    assert.deepEqual(await after.end(job.id), ['Started 1 -', 'Exited 1 - 0', 'Deleted 1 DeletedByRequest'])
  })

  test('F-33, I8: our label taken off by others: the row rests, and comes back with the label', async w => {
    const made = await w.deployment(waiting)
    await w.state(made.id, 'running')
    await w.byHand(made, { metadata: { labels: { 'gobrave-workload': null } } })
    const resting = await w.reach(made.id, seen => seen.stale)
    assert.equal(resting.state, 'running')
    assert.ok((await w.client.api('GET', '/v1/adoption')).body.foreign.includes(made.id))
    const refused = await w.verb(made.id, 'stop')
    assert.deepEqual([refused.status, refused.body.code], [409, 'FOREIGN_WORKLOAD'])
    assert.equal((await w.object(made)).spec.replicas, 1)
    await w.byHand(made, { metadata: { labels: { 'gobrave-workload': made.name } } })
    await w.reach(made.id, seen => !seen.stale)
    assert.deepEqual(await w.end(made.id), ['Started 1 -', 'Deleted 1 DeletedByRequest'])
  })

  test('B-114: a namespace deleted by others ends what is in it', async w => {
    const namespace = await w.newNamespace('ends')
    const [web, job] = [await w.deployment(waiting, { namespace }), await w.job(waiting, { namespace })]
    await Promise.all([w.state(web.id, 'running'), w.state(job.id, 'running')])
    await w.send('DELETE', `/api/v1/namespaces/${namespace}`)
    await w.gone(web.id, 60)
    assert.deepEqual(await w.story(web.id), ['Started 1 -', 'Deleted 1 NotFound'])
    // Its pod goes first: how that ended may be the verdict of a Job before it goes too.
    await w.client.waitFor(job.id, seen => seen === null || ['failed', 'stopped'].includes(seen.state), 60)
    const story = await w.story(job.id)
    assert.equal(story[0], 'Started 1 -')
    assert.match(story[1] ?? '', /^(Deleted 1 NotFound|Failed 1 BackoffLimitExceeded \d+|Exited 1 - 0)$/)
    assert.equal(story.length, 2)
  })

  test('B-19: deleted by others the moment it was created, it is never shown as there', async w => {
    const made = await Promise.all(
      Array.from({ length: 4 }, async (_, round) => {
        const job = await w.job(waiting)
        await sleep(round * 7)
        await w.deleteByHand(job)
        return job
      }),
    )
    for (const { id } of made) {
      await w.gone(id)
      const story = await w.story(id)
      assert.equal(story.at(-1), 'Deleted 1 NotFound')
      assert.ok(story.length <= 2)
    }
  })
}

const container = (w: World, script: string) => {
  const { image, entrypoint, command } = w.script(script)
  return { image, command: entrypoint, args: command }
}

const podTemplate = (w: World, labels: Record<string, string>, script: string) => ({
  metadata: { labels },
  spec: {
    restartPolicy: 'Never',
    terminationGracePeriodSeconds: 1,
    containers: [{ name: 'main', ...container(w, script) }],
  },
})

/** A Deployment by others that carries our label and no instance. */
async function orphanDeployment(w: World): Promise<string> {
  const name = w.name('orphan')
  const labels = { app: name, 'gobrave-workload': name, 'runtimed.dev/kind': 'deployment' }
  const template = podTemplate(w, labels, waiting)
  template.spec.restartPolicy = 'Always'
  const spec = { replicas: 1, selector: { matchLabels: labels }, template }
  assert.equal((await w.send('POST', w.at('deployments'), { metadata: { name, labels }, spec })).status, 201)
  return name
}

async function listed(w: World, id: string): Promise<void> {
  await poll(
    async () => (await w.client.api('GET', '/v1/adoption')).body.orphaned,
    (orphaned: string[]) => orphaned.includes(id),
  )
}

const idsListed = async (w: World, name: string): Promise<string[]> =>
  (await w.client.api('GET', '/v1/runtimes?limit=1000')).body.items
    .map((item: { id: string }) => item.id)
    .filter((id: string) => id.endsWith(`|${name}`))
