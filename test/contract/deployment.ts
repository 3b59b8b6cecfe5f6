import assert from 'node:assert/strict'
import { poll, type Register, stubborn, waiting } from './world.ts'

export function deploymentCases(test: Register): void {
  test('C1, C4, C7, C11, D16, J7, K1, M2, M4, J12: a Deployment is created, runs and is deleted', async w => {
    const name = w.name('web')
    const reply = await w.post({ name, ...w.script(waiting), terminationGracePeriodSeconds: 1, labels: { team: 'a' } })
    const made = reply.body
    assert.equal(reply.status, 201)
    assert.equal(made.id, w.id('deployment', name))
    assert.equal(reply.headers.get('location'), `/v1/runtimes/${encodeURIComponent(made.id)}`)
    assert.deepEqual([made.state, made.run, made.monitored], ['creating', 1, true])

    const up = await w.reach(made.id, seen => seen.state === 'running' && seen.ready)
    assert.deepEqual(up.replicas, { desired: 1, current: 1, ready: 1 })
    assert.deepEqual([up.endedAt, up.exitCode, up.reason, up.hint], [null, null, null, null])
    const [pod] = await w.pods(made)
    assert.deepEqual(
      [up.podName, up.podIp, up.address, up.nodeName],
      [pod.metadata.name, pod.status.podIP, pod.status.podIP, pod.spec.nodeName],
    )
    const object = await w.object(made)
    const labels = { app: name, 'gobrave-workload': name, team: 'a' }
    for (const { metadata } of [object, object.spec.template]) {
      assert.deepEqual({ ...metadata.labels, ...labels }, metadata.labels)
      assert.equal(metadata.labels['runtimed.dev/instance'], 'default')
    }
    assert.equal(object.metadata.uid, made.uid)
    assert.deepEqual([object.spec.replicas, object.spec.template.spec.restartPolicy], [1, 'Always'])
    assert.deepEqual(
      object.spec.template.spec.containers.map((container: { name: string }) => container.name),
      ['main'],
    )
    const [event] = await w.client.eventsOf(made.id)
    assert.deepEqual(
      { ...event, id: null, seq: null, time: null },
      {
        ...{ id: null, seq: null, type: 'ContainerStarted', runtimeId: made.id, uid: made.uid, run: 1 },
        ...{ reason: null, message: null, exitCode: null, time: null },
      },
    )
    assert.equal(event?.time, up.startedAt)
    assert.deepEqual(up.events, [event])
    assert.deepEqual(await w.end(made.id), ['Started 1 -', 'Deleted 1 DeletedByRequest'])
    assert.deepEqual(await w.pods(made), [])
  })

  test('C11, F1, F6, F7: one made with start false waits at 0; start and resume scale it to 1 and join', async w => {
    const made = await w.deployment(waiting, { start: false })
    assert.deepEqual([made.state, made.run, made.monitored], ['created', 0, false])
    assert.equal((await w.object(made)).spec.replicas, 0)
    const starts = await Promise.all(['start', 'start', 'resume'].map(() => w.accepted(made.id, 'start')))
    for (const started of starts) assert.deepEqual([started.state, started.run], ['creating', 1])
    await w.state(made.id, 'running')
    assert.deepEqual(await w.end(made.id), ['Started 1 -', 'Deleted 1 DeletedByRequest'])
  })

  test('F2: start of one that is up writes nothing', async w => {
    const made = await w.deployment(waiting)
    await w.state(made.id, 'running')
    const { generation } = (await w.object(made)).metadata
    const again = await w.accepted(made.id, 'start')
    assert.deepEqual([again.state, again.run], ['running', 1])
    await w.accepted(made.id, 'resume')
    assert.equal((await w.object(made)).metadata.generation, generation)
  })

  test('G1, G3, G5, G6, B-62, K1: stop scales to 0 and ends the run; repeated it says nothing; resume opens the next', async w => {
    const made = await w.deployment(waiting)
    const first = await w.state(made.id, 'running')
    const stopping = await w.accepted(made.id, 'pause')
    assert.equal(stopping.state, 'stopping')
    const stopped = await w.state(made.id, 'stopped')
    assert.deepEqual([stopped.exitCode, stopped.monitored, stopped.startedAt], [0, false, first.startedAt])
    assert.notEqual(stopped.endedAt, null)
    assert.deepEqual(
      (await w.pods(made)).filter(({ status }) => !['Succeeded', 'Failed'].includes(status.phase)),
      [],
    )
    assert.equal((await w.client.eventsOf(made.id)).at(-1)?.message, '0')
    assert.equal((await w.accepted(made.id, 'stop')).state, 'stopped')
    const again = await w.accepted(made.id, 'resume')
    assert.deepEqual([again.state, again.run, again.endedAt], ['creating', 2, null])
    await w.state(made.id, 'running')
    assert.deepEqual(await w.end(made.id), [
      'Started 1 -',
      'Exited 1 StoppedByRequest 0',
      'Started 2 -',
      'Deleted 2 DeletedByRequest',
    ])
  })

  test('G5: stop of one that never started says nothing and changes nothing', async w => {
    const made = await w.deployment(waiting, { start: false })
    const stopped = await w.accepted(made.id, 'stop')
    assert.deepEqual([stopped.state, stopped.run], ['created', 0])
    assert.deepEqual(await w.end(made.id), ['Deleted 0 DeletedByRequest'])
  })

  test('G7, B-51: stopping until a process that ignores SIGTERM is gone', async w => {
    const made = await w.deployment(stubborn, { terminationGracePeriodSeconds: 2 })
    await w.state(made.id, 'running')
    await w.accepted(made.id, 'stop')
    await poll(
      () => w.object(made),
      ({ status }) => !status.replicas,
    )
    assert.equal((await w.get(made.id)).body.state, 'stopping')
    assert.equal((await w.pods(made)).length, 1)
    const stopped = await w.state(made.id, 'stopped')
    assert.deepEqual([stopped.exitCode, stopped.reason], [137, 'StoppedByRequest'])
    assert.deepEqual(
      (await w.pods(made)).filter(pod => pod.status.phase === 'Running'),
      [],
    )
    assert.deepEqual(await w.story(made.id), ['Started 1 -', 'Exited 1 StoppedByRequest 137'])
  })

  test('G6, B-51: start while still stopping ends the old run and starts the next beside the old pod', async w => {
    const made = await w.deployment(stubborn, { terminationGracePeriodSeconds: 3 })
    await w.state(made.id, 'running')
    await w.accepted(made.id, 'stop')
    const again = await w.accepted(made.id, 'start')
    assert.deepEqual([again.state, again.run], ['creating', 2])
    const up = await w.state(made.id, 'running')
    assert.equal(up.run, 2)
    const story = await w.end(made.id)
    assert.deepEqual(
      story.map(line => line.replace(/ [-\d]+$/, '')),
      ['Started 1', 'Exited 1 StoppedByRequest', 'Started 2', 'Deleted 2 DeletedByRequest'],
    )
  })

  test('B-53, J10, F-24: scaled to 0 and up again by others: its run ends, the next starts', async w => {
    const made = await w.deployment(waiting)
    await w.state(made.id, 'running')
    await w.byHand(made, { spec: { replicas: 0 } })
    await w.state(made.id, 'stopped')
    await w.byHand(made, { spec: { replicas: 1 } })
    await w.reach(made.id, seen => seen.state === 'running' && seen.run === 2)
    await w.byHand(made, { spec: { replicas: 2 } })
    const two = await w.reach(made.id, seen => seen.replicas.ready === 2)
    assert.deepEqual([two.run, two.replicas.desired], [2, 2])
    assert.deepEqual(await w.end(made.id), [
      'Started 1 -',
      'Exited 1 ScaledToZero 0',
      'Started 2 -',
      'Deleted 2 DeletedByRequest',
    ])
  })

  test('J11, H5, I11, I6, F5: deleted by others it is gone for good; a new one of the name is an orphan', async w => {
    const made = await w.deployment(waiting)
    await w.state(made.id, 'running')
    const { metadata, spec } = await w.object(made)
    await w.deleteByHand(made, 'Foreground')
    await w.gone(made.id)
    const answer = await w.get(made.id)
    assert.equal(answer.body.code, 'RUNTIME_NOT_FOUND')
    assert.match(answer.body.detail, /deleted at .* \(NotFound\)/)
    assert.equal((await w.verb(made.id, 'start')).status, 404)
    assert.equal((await w.verb(made.id, 'stop')).status, 404)
    assert.equal((await w.accepted(made.id, 'delete')).state, 'deleted')
    const { name, labels } = metadata
    const back = await w.send('POST', w.at('deployments'), { metadata: { name, labels }, spec })
    assert.equal(back.status, 201)
    const seen = await poll(
      () => w.get(made.id),
      ({ status, body }) => status === 200 && body.ready,
    )
    assert.deepEqual([seen.body.uid, seen.body.run, seen.body.monitored], [back.body.metadata.uid, 0, false])
    const { body } = await w.client.api('GET', '/v1/adoption')
    assert.ok(body.orphaned.includes(made.id))
    assert.deepEqual(await w.story(made.id), ['Started 1 -', 'Deleted 1 NotFound'])
    await w.deleteByHand(made)
  })

  test('I11, B-59: made anew while the old pod still ends: the pod shown is of the new life', async w => {
    const made = await w.deployment(stubborn, { terminationGracePeriodSeconds: 3 })
    const old = await w.state(made.id, 'running')
    await w.deleteByHand(made)
    await w.gone(made.id)
    const next = await w.create({ name: made.name, ...w.script(waiting) })
    assert.equal(next.id, made.id)
    assert.equal(next.podName, null)
    const up = await w.state(next.id, 'running')
    assert.notEqual(up.podName, old.podName)
    assert.deepEqual([up.uid, up.run], [next.uid, 1])
    assert.deepEqual(await w.end(next.id), [
      'Started 1 -',
      'Deleted 1 NotFound',
      'Started 1 -',
      'Deleted 1 DeletedByRequest',
    ])
  })

  test('H8, H9, F-34, B-41, K2, B-61: held by a finalizer it is deleting and says so; the name is free once it is gone', async w => {
    const made = await w.deployment(waiting)
    await w.state(made.id, 'running')
    await w.byHand(made, { metadata: { finalizers: ['example.com/hold'] } })
    assert.equal((await w.accepted(made.id, 'delete')).state, 'deleting')
    const held = await w.reach(made.id, seen => /example\.com\/hold/.test(seen.message ?? ''))
    assert.deepEqual([held.state, held.reason], ['deleting', 'Terminating'])
    assert.equal((await w.accepted(made.id, 'delete')).state, 'deleting')
    for (const verb of ['start', 'stop', 'pause', 'resume'] as const) {
      const refused = await w.verb(made.id, verb)
      assert.deepEqual([refused.status, refused.body.code], [409, 'RUNTIME_BUSY'], verb)
    }
    const taken = await w.post({ name: made.name, ...w.script(waiting) })
    assert.deepEqual([taken.status, taken.body.code], [409, 'RUNTIME_BUSY'])
    assert.deepEqual(await w.story(made.id), ['Started 1 -'])
    await w.byHand(made, { metadata: { finalizers: null } })
    await w.gone(made.id)
    const next = await w.create({ name: made.name, ...w.script(waiting) })
    await w.state(next.id, 'running')
    assert.deepEqual(await w.end(next.id), [
      'Started 1 -',
      'Deleted 1 DeletedByRequest',
      'Started 1 -',
      'Deleted 1 DeletedByRequest',
    ])
  })

  test('H7, B-61: delete is accepted while creating, stopping and stopped, and again', async w => {
    const creating = await w.deployment(waiting, { image: w.stage.environment.badImage })
    const stopping = await w.deployment(stubborn, { terminationGracePeriodSeconds: 1 })
    const stopped = await w.deployment(waiting)
    await Promise.all([w.state(stopping.id, 'running'), w.state(stopped.id, 'running')])
    await w.accepted(stopped.id, 'stop')
    await w.state(stopped.id, 'stopped')
    await w.accepted(stopping.id, 'stop')
    for (const { id } of [creating, stopping, stopped]) {
      assert.equal((await w.accepted(id, 'delete')).state, 'deleting')
      await w.accepted(id, 'delete')
    }
    await Promise.all([creating, stopping, stopped].map(({ id }) => w.gone(id)))
    assert.equal((await w.story(creating.id)).at(-1), 'Deleted 1 DeletedByRequest')
    assert.equal((await w.story(stopping.id)).at(-1), 'Deleted 1 DeletedByRequest')
    assert.deepEqual(await w.story(stopped.id), [
      'Started 1 -',
      'Exited 1 StoppedByRequest 0',
      'Deleted 1 DeletedByRequest',
    ])
  })

  test(
    'G4: stop finds nothing any more: Exited and Deleted, reason NotFound',
    async w => {
      const made = await w.deployment(waiting)
      await w.state(made.id, 'running')
      const show = w.faults.hideFromWatch(({ object }) => object.metadata.name.startsWith(made.name))
      w.t.after(show)
      await w.deleteByHand(made)
      assert.equal((await w.accepted(made.id, 'stop')).state, 'deleted')
      const events = await w.client.eventsOf(made.id)
      assert.equal(events.at(-2)?.message, 'not found')
      assert.deepEqual(
        (await w.story(made.id)).map(line => line.replace(/ [-\d]+$/, '')),
        ['Started 1 -', 'Exited 1 NotFound', 'Deleted 1 NotFound'].map(line => line.replace(/ [-\d]+$/, '')),
      )
    },
    { needsFaults: true },
  )

  test('F10, B-19, H9: thrown about without a pause, it ends where the last verb said', async w => {
    const made = await w.deployment(waiting)
    for (let round = 0; round < 4; round++) {
      await w.accepted(made.id, 'stop')
      await w.accepted(made.id, 'start')
    }
    const up = await w.reach(made.id, seen => seen.state === 'running' && seen.ready)
    const lines = (await w.story(made.id)).filter(line => line.startsWith('Started'))
    assert.equal(lines.at(-1), `Started ${up.run} -`)
    await w.accepted(made.id, 'stop')
    await w.state(made.id, 'stopped')
    const story = await w.end(made.id)
    for (const kind of ['Started', 'Exited']) {
      const runs = story.filter(line => line.startsWith(kind)).map(line => line.split(' ')[1])
      assert.deepEqual(runs, [...new Set(runs)], `${kind} once a run: ${story}`)
    }
    assert.equal(story.at(-1), `Deleted ${up.run} DeletedByRequest`)
  })
}
