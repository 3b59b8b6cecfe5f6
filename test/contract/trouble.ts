import assert from 'node:assert/strict'
import { poll, type Register, waiting } from './world.ts'

/** A Warning of what passes quickly may be missed. */
const withoutWarnings = (story: string[]): string[] => story.filter(line => !line.startsWith('Warning'))

/** Without exit codes; which of the two reasons of a failed pull was there when it was looked at is chance. */
const withoutCode = (story: string[]): string[] =>
  story.map(line => line.replace(/ [-\d]+$/, '').replace('ImagePullBackOff', 'ErrImagePull'))

export function troubleCases(test: Register): void {
  test('J13, B-30: an image that cannot be pulled is said at once, and the start time-out stops the Job', async w => {
    const { badImage, podStartSeconds } = w.stage.environment
    const made = await w.job('exit 0', { image: badImage, startTimeoutSeconds: podStartSeconds })
    const seen = await w.reach(made.id, runtime => runtime.reason !== null)
    assert.deepEqual([seen.state, seen.ready], ['creating', false])
    assert.match(seen.reason, /^(ErrImagePull|ImagePullBackOff)$/)
    assert.ok(seen.message.length > 0 && seen.hint.length > 0)
    const failed = await w.state(made.id, 'failed')
    assert.equal(failed.reason, 'StartTimeout')
    assert.equal((await w.send('GET', w.at('jobs', made.name))).status, 404)
    assert.deepEqual(withoutCode(await w.story(made.id)), ['Warning 1 ErrImagePull', 'Failed 1 StartTimeout'])
  })

  test('J13: the start time-out of a Deployment scales it to 0; start opens the next run', async w => {
    const made = await w.deployment(waiting, { image: w.stage.environment.badImage, startTimeoutSeconds: 2 })
    const failed = await w.state(made.id, 'failed')
    assert.equal(failed.reason, 'StartTimeout')
    assert.equal((await w.object(made)).spec.replicas, 0)
    assert.deepEqual([(await w.accepted(made.id, 'start')).run], [2])
    const story = withoutCode(await w.end(made.id))
    assert.deepEqual(withoutWarnings(story), ['Failed 1 StartTimeout', 'Deleted 2 DeletedByRequest'])
  })

  test('J1, B-31, J13: an unschedulable Job has not started; the scheduler says why', async w => {
    const made = await w.job('exit 0', { cpu: 10_000 })
    const seen = await w.reach(made.id, runtime => runtime.reason === 'Unschedulable')
    assert.equal(seen.state, 'creating')
    assert.match(seen.message, /nodes are available/)
    assert.ok(seen.hint)
    assert.deepEqual(await w.end(made.id), ['Warning 1 Unschedulable', 'Deleted 1 DeletedByRequest'])
  })

  test('J13: a command that does not exist never started', async w => {
    const made = await w.job('', { entrypoint: ['/no/such/program'], command: [] })
    const failed = await w.state(made.id, 'failed')
    assert.equal(failed.exitCode, 128)
    assert.deepEqual(await w.end(made.id), [
      'Warning 1 StartError',
      'Failed 1 BackoffLimitExceeded 128',
      'Deleted 1 DeletedByRequest',
    ])
  })

  test('J13, B-37: a Job killed for its memory says OOMKilled', async w => {
    const made = await w.job('', { ...w.stage.environment.hungry, command: [] })
    const failed = await w.state(made.id, 'failed')
    assert.equal(failed.exitCode, 137)
    assert.deepEqual(await w.end(made.id), [
      'Started 1 -',
      'Warning 1 OOMKilled',
      'Failed 1 BackoffLimitExceeded 137',
      'Deleted 1 DeletedByRequest',
    ])
  })

  test('J13, B-37, B-60: a Deployment that crashes again and again runs on, not ready, with its reason', async w => {
    const made = await w.deployment('sleep 0.5; exit 3')
    const seen = await w.reach(made.id, runtime => runtime.reason === 'CrashLoopBackOff' && runtime.restarts > 0)
    assert.equal(seen.state, 'running')
    assert.ok(seen.hint)
    const story = await w.end(made.id)
    assert.deepEqual(story, ['Started 1 -', 'Warning 1 CrashLoopBackOff', 'Deleted 1 DeletedByRequest'])
  })

  test('J13, B-37: a Deployment killed for its memory warns once a cause', async w => {
    const made = await w.deployment('', { ...w.stage.environment.hungry, command: [] })
    await w.reach(made.id, seen => seen.restarts >= 2)
    await poll(
      () => w.story(made.id),
      story => story.includes('Warning 1 OOMKilled'),
    )
    const story = await w.end(made.id)
    assert.deepEqual(story, [...new Set(story)])
    assert.deepEqual(withoutWarnings(story), ['Started 1 -', 'Deleted 1 DeletedByRequest'])
  })

  test('B-60, B-48: a pod lost is no end: the Deployment runs on with the next', async w => {
    const made = await w.deployment(waiting)
    const { podName } = await w.state(made.id, 'running')
    const deleted = await w.send('DELETE', w.at('pods', podName))
    assert.equal(deleted.status, 200)
    await w.reach(made.id, seen => seen.state === 'running' && seen.ready && seen.podName !== podName)
    assert.deepEqual(await w.end(made.id), ['Started 1 -', 'Deleted 1 DeletedByRequest'])
  })

  test('B-33, J13: an evicted Deployment warns and runs on', async w => {
    const made = await w.deployment(waiting)
    const { podName } = await w.state(made.id, 'running')
    await w.evict({ metadata: { name: podName } })
    await w.reach(made.id, seen => seen.ready && seen.podName !== podName)
    assert.deepEqual(await w.end(made.id), [
      'Started 1 -',
      'Warning 1 EvictionByEvictionAPI',
      'Deleted 1 DeletedByRequest',
    ])
  })

  test('B-33: an evicted Job without retries has failed', async w => {
    const made = await w.job('trap "exit 5" TERM; sleep 3600 & wait')
    const { podName } = await w.state(made.id, 'running')
    await w.evict({ metadata: { name: podName } })
    await w.state(made.id, 'failed')
    assert.deepEqual(await w.end(made.id), [
      'Started 1 -',
      'Warning 1 EvictionByEvictionAPI',
      'Failed 1 BackoffLimitExceeded 5',
      'Deleted 1 DeletedByRequest',
    ])
  })

  test('B-33: an evicted Job with retries left runs on in the next pod', async w => {
    const made = await w.job('trap "exit 5" TERM; sleep 3600 & wait', { backoffLimit: 3 })
    const { podName } = await w.state(made.id, 'running')
    await w.evict({ metadata: { name: podName } })
    await w.reach(made.id, seen => seen.state === 'running' && seen.podName !== podName, 40)
    assert.deepEqual(await w.end(made.id), [
      'Started 1 -',
      'Warning 1 EvictionByEvictionAPI',
      'Deleted 1 DeletedByRequest',
    ])
  })

  test('J8, F-31: past its progress deadline a Deployment has failed; healed it is the next run', async w => {
    const made = await w.deployment(waiting)
    const { spec } = await w.object(made)
    const [container] = spec.template.spec.containers
    const withImage = (image: string) => ({ spec: { template: { spec: { containers: [{ ...container, image }] } } } })
    await w.state(made.id, 'running')
    await w.accepted(made.id, 'stop')
    await w.state(made.id, 'stopped')
    await w.byHand(made, { spec: { progressDeadlineSeconds: 2 } })
    await w.byHand(made, withImage(w.stage.environment.badImage))
    await w.byHand(made, { spec: { replicas: 1 } })
    await w.byHand(made, withImage(`${w.stage.environment.badImage}x`))
    const failed = await w.state(made.id, 'failed')
    assert.equal(failed.reason, 'ProgressDeadlineExceeded')
    await w.byHand(made, withImage(w.stage.environment.image))
    await w.reach(made.id, seen => seen.state === 'running' && seen.run === 3)
    const story = await w.end(made.id)
    assert.deepEqual(withoutWarnings(withoutCode(story)), [
      ...['Started 1', 'Exited 1 StoppedByRequest', 'Failed 2 ProgressDeadlineExceeded'],
      ...['Started 3', 'Deleted 3 DeletedByRequest'],
    ])
  })

  test('J8, B-48: a rollout that cannot go on while the old pod is ready warns and changes no state', async w => {
    const made = await w.deployment(waiting)
    await w.state(made.id, 'running')
    await w.byHand(made, { spec: { progressDeadlineSeconds: 5 } })
    const [container] = (await w.object(made)).spec.template.spec.containers
    const { badImage } = w.stage.environment
    await w.byHand(made, { spec: { template: { spec: { containers: [{ ...container, image: badImage }] } } } })
    await poll(
      () => w.story(made.id),
      story => story.length >= 3,
    )
    const seen = (await w.get(made.id)).body
    assert.deepEqual([seen.state, seen.ready], ['running', true])
    assert.deepEqual(withoutCode(await w.end(made.id)), [
      ...['Started 1', 'Warning 1 ErrImagePull', 'Warning 1 ProgressDeadlineExceeded', 'Deleted 1 DeletedByRequest'],
    ])
  })

  test('J9: a paused rollout, and Progressing=False for another reason, are no news', async w => {
    const made = await w.deployment(waiting)
    await w.state(made.id, 'running')
    await w.byHand(made, { spec: { paused: true } })
    const { status } = await w.object(made)
    const others = status.conditions.filter(({ type }: { type: string }) => type !== 'Progressing')
    const now = new Date().toISOString().replace(/\.\d+/, '')
    const odd = { type: 'Progressing', status: 'False', reason: 'SomethingElse', lastTransitionTime: now }
    const path = `${w.at('deployments', made.name)}/status`
    const { status: answered } = await w.send('PATCH', path, { status: { conditions: [...others, odd] } })
    assert.equal(answered, 200)
    const seen = (await w.get(made.id)).body
    assert.deepEqual([seen.state, seen.ready, seen.reason], ['running', true, null])
    assert.deepEqual(await w.end(made.id), ['Started 1 -', 'Deleted 1 DeletedByRequest'])
  })

  test('J8, J13: no pod by quota: the Deployment has failed after 10 s, the Job waits and warns', async w => {
    const namespace = await w.newNamespace('quota')
    const quota = { metadata: { name: 'none' }, spec: { hard: { pods: '0' } } }
    assert.equal((await w.send('POST', w.at('resourcequotas', '', namespace), quota)).status, 201)
    await poll(
      () => w.send('GET', w.at('resourcequotas', 'none', namespace)),
      ({ body }) => w.stage.environment.faults !== undefined || body.status?.hard !== undefined,
    )
    const deployment = await w.deployment(waiting, { namespace })
    const job = await w.job('exit 0', { namespace })
    const failed = await w.state(deployment.id, 'failed')
    assert.equal(failed.reason, 'FailedCreate')
    assert.match(failed.message, /exceeded quota/)
    const stuck = await w.reach(job.id, seen => seen.reason === 'FailedCreate')
    assert.equal(stuck.state, 'creating')
    assert.equal((await w.send('DELETE', w.at('resourcequotas', 'none', namespace))).status, 200)
    await w.state(job.id, 'stopped', 60)
    await w.reach(deployment.id, seen => seen.state === 'running' && seen.run === 2, 60)
    assert.deepEqual(await w.end(job.id), [
      ...['Warning 1 FailedCreate', 'Started 1 -', 'Exited 1 - 0', 'Deleted 1 DeletedByRequest'],
    ])
    assert.deepEqual(withoutCode(await w.end(deployment.id)), [
      ...['Warning 1 FailedCreate', 'Failed 1 FailedCreate', 'Started 2', 'Deleted 2 DeletedByRequest'],
    ])
  })
}
