import assert from 'node:assert/strict'
import { poll, type Register, stubborn, waiting } from './world.ts'

export function jobCases(test: Register): void {
  test('C1, C7, J1, J2, K1, M3, F8, G5, B-45: a Job that ends well stays, and says so once', async w => {
    const made = await w.job('echo hello; exit 0')
    assert.deepEqual([made.state, made.run], ['creating', 1])
    const object = await w.object(made)
    assert.deepEqual(
      [object.spec.backoffLimit, object.spec.suspend, object.spec.template.spec.restartPolicy],
      [0, false, 'Never'],
    )
    const ended = await w.state(made.id, 'stopped')
    assert.deepEqual([ended.exitCode, ended.reason, ended.monitored, ended.ready], [0, null, false, false])
    assert.notEqual(ended.startedAt, null)
    for (const verb of ['start', 'resume'] as const) {
      const refused = await w.verb(made.id, verb)
      assert.deepEqual([refused.status, refused.body.code], [409, 'JOB_NOT_RESTARTABLE'])
    }
    assert.equal((await w.accepted(made.id, 'stop')).state, 'stopped')
    assert.equal((await w.object(made)).metadata.uid, made.uid)
    assert.deepEqual(await w.end(made.id), ['Started 1 -', 'Exited 1 - 0', 'Deleted 1 DeletedByRequest'])
    assert.deepEqual(await w.pods(made), [])
  })

  test('J3, J6, K1, B-45: a Job without retries fails once; its exit code is the container, its message is not', async w => {
    const made = await w.job('exit 3')
    const failed = await w.state(made.id, 'failed')
    assert.deepEqual([failed.exitCode, failed.reason], [3, 'BackoffLimitExceeded'])
    const event = (await w.client.eventsOf(made.id)).at(-1)
    assert.equal(event?.message, 'Job has reached the specified backoff limit')
    assert.equal((await w.accepted(made.id, 'stop')).state, 'failed')
    assert.deepEqual(await w.end(made.id), [
      'Started 1 -',
      'Failed 1 BackoffLimitExceeded 3',
      'Deleted 1 DeletedByRequest',
    ])
  })

  test('J4, B-27: a Job whose first try fails and a later one ends well has not failed', async w => {
    const well = Math.floor(Date.now() / 1000) + w.stage.environment.podStartSeconds
    const made = await w.job(`[ $(date +%s) -ge ${well} ] || exit 1`, { backoffLimit: 8 })
    const ended = await w.state(made.id, 'stopped', 60)
    assert.equal(ended.exitCode, 0)
    assert.ok(ended.restarts >= 1, `failed pods count as restarts: ${ended.restarts}`)
    assert.deepEqual(await w.end(made.id), ['Started 1 -', 'Exited 1 - 0', 'Deleted 1 DeletedByRequest'])
  })

  test('J3, B-28: a Job that has used up its retries fails once', async w => {
    const made = await w.job('exit 4', { backoffLimit: 1 })
    await w.state(made.id, 'failed', 60)
    assert.deepEqual(await w.end(made.id), [
      'Started 1 -',
      'Failed 1 BackoffLimitExceeded 4',
      'Deleted 1 DeletedByRequest',
    ])
  })

  test('G2, F4, H4, C9: stop deletes a Job; its record stays until the name is used again', async w => {
    const made = await w.job(waiting)
    await w.state(made.id, 'running')
    assert.equal((await w.accepted(made.id, 'stop')).state, 'stopping')
    const stopped = await w.state(made.id, 'stopped')
    assert.deepEqual([stopped.exitCode, stopped.monitored], [0, false])
    assert.equal((await w.send('GET', w.at('jobs', made.name))).status, 404)
    assert.deepEqual(await w.pods(made), [])
    const refused = await w.verb(made.id, 'start')
    assert.deepEqual([refused.status, refused.body.code], [409, 'JOB_NOT_RESTARTABLE'])
    const next = await w.job('exit 0', { name: made.name })
    assert.notEqual(next.uid, made.uid)
    await w.state(next.id, 'stopped')
    assert.deepEqual(await w.end(next.id), [
      'Started 1 -',
      'Exited 1 StoppedByRequest 0',
      'Deleted 1 Replaced',
      'Started 1 -',
      'Exited 1 - 0',
      'Deleted 1 DeletedByRequest',
    ])
  })

  test('G8, K2: with jobStop suspend it is suspended and starts again', async w => {
    const made = await w.job(waiting, { jobStop: 'suspend' })
    await w.state(made.id, 'running')
    await w.accepted(made.id, 'stop')
    await w.state(made.id, 'stopped')
    assert.equal((await w.object(made)).spec.suspend, true)
    assert.equal((await w.accepted(made.id, 'start')).run, 2)
    await w.state(made.id, 'running')
    assert.equal((await w.object(made)).metadata.uid, made.uid)
    const story = await w.end(made.id)
    assert.deepEqual(
      story.map(line => line.replace(/ [-\d]+$/, '')),
      ['Started 1', 'Exited 1 StoppedByRequest', 'Started 2', 'Deleted 2 DeletedByRequest'],
    )
  })

  test('C11, F3, F7: a Job made with start false is suspended; start lets it run', async w => {
    const made = await w.job('exit 0', { start: false })
    assert.deepEqual([made.state, made.run, made.monitored], ['created', 0, false])
    assert.equal((await w.object(made)).spec.suspend, true)
    assert.deepEqual(await w.pods(made), [])
    await Promise.all([w.accepted(made.id, 'start'), w.accepted(made.id, 'resume')])
    await w.state(made.id, 'stopped')
    assert.deepEqual(await w.end(made.id), ['Started 1 -', 'Exited 1 - 0', 'Deleted 1 DeletedByRequest'])
  })

  test('J5, I4, I6: deleted by others while it runs: Deleted; after its end: nothing more', async w => {
    const running = await w.job(waiting)
    const ended = await w.job('exit 0')
    await Promise.all([w.state(running.id, 'running'), w.state(ended.id, 'stopped')])
    await w.deleteByHand(running, 'Foreground')
    await w.deleteByHand(ended, 'Foreground')
    await w.gone(running.id)
    assert.deepEqual(await w.story(running.id), ['Started 1 -', 'Deleted 1 NotFound'])
    await poll(
      () => w.send('GET', w.at('jobs', ended.name)),
      ({ status }) => status === 404,
    )
    assert.equal((await w.get(ended.id)).body.state, 'stopped')
    assert.deepEqual(await w.end(ended.id), ['Started 1 -', 'Exited 1 - 0', 'Deleted 1 DeletedByRequest'])
  })

  test(
    'G4: stop finds no Job any more: Exited, reason NotFound, the record stays',
    async w => {
      const made = await w.job(waiting)
      await w.state(made.id, 'running')
      const show = w.faults.hideFromWatch(({ object }) => object.metadata.name.startsWith(made.name))
      w.t.after(show)
      await w.deleteByHand(made)
      assert.equal((await w.accepted(made.id, 'stop')).state, 'stopped')
      const event = (await w.client.eventsOf(made.id)).at(-1)
      assert.deepEqual([event?.type, event?.reason, event?.message], ['ContainerExited', 'NotFound', 'not found'])
      assert.equal((await w.verb(made.id, 'start')).body.code, 'JOB_NOT_RESTARTABLE')
    },
    { needsFaults: true },
  )

  test('B-43: past its deadline it has failed, whatever its process does', async w => {
    const made = await w.job(stubborn, { terminationGracePeriodSeconds: 2 })
    await w.state(made.id, 'running')
    await w.byHand(made, { spec: { activeDeadlineSeconds: 1 } })
    const failed = await w.state(made.id, 'failed')
    assert.deepEqual([failed.reason, failed.exitCode], ['DeadlineExceeded', 137])
    assert.deepEqual(await w.story(made.id), ['Started 1 -', 'Failed 1 DeadlineExceeded 137'])
  })

  test('J5, H7: delete of a running Job takes its pods along and says Deleted last', async w => {
    const made = await w.job(waiting)
    await w.state(made.id, 'running')
    assert.deepEqual(await w.end(made.id), ['Started 1 -', 'Deleted 1 DeletedByRequest'])
    assert.deepEqual(await w.pods(made), [])
  })

  test('B-41, C9: create of a name that is taken, and of one whose Job is being deleted', async w => {
    const made = await w.job(waiting, { terminationGracePeriodSeconds: 2 })
    await w.state(made.id, 'running')
    const taken = await w.post({ kind: 'job', name: made.name, ...w.script('exit 9') })
    assert.deepEqual([taken.status, taken.body.code, taken.body.runtimeId], [409, 'RUNTIME_EXISTS', made.id])
    assert.equal((await w.object(made)).metadata.uid, made.uid)
    await w.deleteByHand(made, 'Foreground')
    await w.byHand(made, {}).catch(() => {})
    const busy = await w.post({ kind: 'job', name: made.name, ...w.script('exit 0') })
    assert.equal(busy.status, 409)
    await w.gone(made.id)
    await w.create({ kind: 'job', name: made.name, ...w.script('exit 0') })
    await w.state(made.id, 'stopped')
    assert.deepEqual(await w.story(made.id), ['Started 1 -', 'Deleted 1 NotFound', 'Started 1 -', 'Exited 1 - 0'])
  })
}
