import assert from 'node:assert/strict'
import { poll, type Register, waiting } from './world.ts'

const lines = (count: number, from = 1): string => Array.from({ length: count }, (_, n) => `${from + n}\n`).join('')

export function logCases(test: Register): void {
  test('L1, L3, M3: the last 200 lines, as many as asked, none; each kind of one name its own', async w => {
    const job = await w.job('seq 1 250; sleep 3600')
    const web = await w.deployment(waiting, { name: job.name })
    await Promise.all([w.state(job.id, 'running'), w.state(web.id, 'running')])
    await poll(
      () => w.logs(job.id, '?tail=1000'),
      ({ body }) => body === lines(250),
    )
    assert.equal((await w.logs(job.id)).body, lines(200, 51))
    assert.equal((await w.logs(job.id, '?tail=50')).body, lines(50, 201))
    assert.equal((await w.logs(job.id, '?tail=0')).body, '')
    for (const tail of ['-1', 'all', '1.5']) assert.equal((await w.logs(job.id, `?tail=${tail}`)).status, 400)
    const own = await w.logs(web.id)
    assert.deepEqual(
      [own.status, own.body, own.headers.get('content-type')],
      [200, 'up\n', 'text/plain; charset=utf-8'],
    )
    assert.equal((await w.logs(job.id, '?tail=1000&limitBytes=10')).body.length, 10)
    assert.match((await w.logs(web.id, '?timestamps=true')).body, /^\d{4}-\d\d-\d\dT[\d:.]+Z up\n$/)
    assert.equal((await w.logs(web.id, '?since=2020-01-01T00:00:00Z')).body, 'up\n')
    assert.equal((await w.logs(web.id, '?since=3600')).body, 'up\n')
  })

  test('L6, B-104: the container by name, and the one before the last restart', async w => {
    const made = await w.deployment('echo try; sleep 1; exit 3')
    await w.reach(made.id, seen => seen.restarts > 0)
    const main = await w.logs(made.id, '?container=main')
    assert.equal(main.status, 200)
    // Of a container that is gone again a kubelet says with 200 that it cannot retrieve its log.
    await poll(
      () => w.logs(made.id, '?previous=true'),
      ({ status, body }) => status === 200 && body === 'try\n',
    )
    const none = await w.logs(made.id, '?container=sidecar')
    assert.deepEqual([none.status, none.headers.get('content-type')?.split(';')[0]], [400, 'application/problem+json'])
    const fresh = await w.deployment(waiting)
    await w.state(fresh.id, 'running')
    assert.notEqual((await w.logs(fresh.id, '?previous=true')).status, 200)
  })

  test('L4, B-101, B-102: after its end the log of a Job; once it is gone the kept tail, also when deleted', async w => {
    const made = await w.job('echo hello; exit 3')
    await w.state(made.id, 'failed')
    assert.equal((await w.logs(made.id)).body, 'hello\n')
    await w.deleteByHand(made, 'Foreground')
    const kept = await poll(
      () => w.logs(made.id),
      ({ headers, status }) => headers.get('x-log-kept') === 'true' || status !== 200,
    )
    assert.deepEqual([kept.status, kept.body], [200, 'hello\n'])
    assert.equal((await w.get(made.id)).body.state, 'failed')
    await w.end(made.id)
    const deleted = await w.logs(made.id)
    assert.deepEqual([deleted.status, deleted.body, deleted.headers.get('x-log-kept')], [200, 'hello\n', 'true'])
    const stopped = await w.job(waiting)
    await w.state(stopped.id, 'running')
    await w.end(stopped.id)
    const gone = await w.logs(stopped.id)
    assert.equal(gone.status, 404)
    assert.match(gone.body.detail, /DeletedByRequest/)
  })

  test('L4, L5: no pod yet: 409; no pod any more: 404, and why', async w => {
    const made = await w.deployment(waiting, { start: false })
    const reply = await w.logs(made.id)
    assert.deepEqual([reply.status, reply.body.code], [409, 'LOGS_NOT_READY'])
    assert.match(reply.body.detail, /it is created and has no pod; start it first/)
    await w.accepted(made.id, 'start')
    await w.state(made.id, 'running')
    await w.accepted(made.id, 'stop')
    await w.state(made.id, 'stopped')
    const stopped = await poll(
      () => w.logs(made.id),
      ({ status }) => status !== 200,
    )
    assert.deepEqual([stopped.status, stopped.body.code], [404, 'POD_NOT_FOUND'])
    assert.match(stopped.body.detail, /it has no pod; it is stopped since 20/)
  })

  test('L5, B-94: not started yet is 409 with the reason why it waits', async w => {
    const made = await w.job('exit 0', { image: w.stage.environment.badImage })
    await w.reach(made.id, seen => seen.reason !== null)
    const reply = await w.logs(made.id)
    assert.deepEqual([reply.status, reply.body.code], [409, 'LOGS_NOT_READY'])
    assert.match(reply.body.reason, /^(ErrImagePull|ImagePullBackOff)$/)
    const unschedulable = await w.job('exit 0', { cpu: 10_000 })
    await w.reach(unschedulable.id, seen => seen.reason === 'Unschedulable')
    const waits = await w.logs(unschedulable.id)
    assert.deepEqual([waits.status, waits.body.code], [409, 'LOGS_NOT_READY'])
  })

  test('L5, L6: follow waits for the start, streams what is written, and ends with the container', async w => {
    const made = await w.job('for i in 1 2 3; do echo line $i; sleep 0.3; done')
    const reply = await w.logs(made.id, '?follow=true')
    assert.deepEqual([reply.status, reply.body], [200, 'line 1\nline 2\nline 3\n'])
    await w.state(made.id, 'stopped')
  })

  test('L6, L1: a follower from now on; who leaves hurts nobody, and the stream behind is closed', async w => {
    const made = await w.job('echo old; while sleep 0.3; do echo new; done')
    await w.state(made.id, 'running')
    const leave = new AbortController()
    const response = await fetch(w.client.url + w.client.path(made.id, '/logs?follow=true&tail=0'), {
      signal: leave.signal,
    })
    const reader = response.body?.getReader()
    const first = await reader?.read()
    assert.match(new TextDecoder().decode(first?.value), /^(new\n)+$/)
    leave.abort()
    assert.match((await w.logs(made.id)).body, /^old\n(new\n)+$/)
    const { podName } = (await w.get(made.id)).body
    await poll(
      () => [...(w.stage.environment.faults?.streams ?? [])].filter(({ facts }) => facts.name === podName),
      open => open.length === 0,
    )
  })

  test('L7, B-97: bytes come as they were written', async w => {
    const made = await w.job(String.raw`printf '\377\376\0 caf\303\251\rx\n\033[1mb\303'; sleep 3600`)
    await w.state(made.id, 'running')
    const bytes = await poll(
      async () => {
        const reply = await fetch(w.client.url + w.client.path(made.id, '/logs'))
        return Buffer.from(await reply.arrayBuffer()).toString('hex')
      },
      hex => hex.startsWith('fffe00'),
    )
    const written = Buffer.from('\xff\xfe\0 caf\xc3\xa9\rx\n', 'latin1').toString('hex')
    assert.equal(bytes.slice(0, written.length), written)
  })

  test('L2, B-99: a Job whose earlier tries failed shows the newest try', async w => {
    const made = await w.job('echo $HOSTNAME; sleep 0.2; exit 1', { backoffLimit: 1 })
    await w.state(made.id, 'failed', 60)
    const pods = (await w.pods(made)).sort((a, b) =>
      a.metadata.creationTimestamp.localeCompare(b.metadata.creationTimestamp),
    )
    assert.equal(pods.length, 2)
    const own = await Promise.all(
      pods.map(pod => w.send('GET', `${w.at('pods', pod.metadata.name)}/log`).then(({ body }) => body)),
    )
    const { body } = await w.logs(made.id)
    assert.ok(own.includes(body), `${body} is none of ${own}`)
    const evicted = await w.job('trap "exit 5" TERM; echo up; sleep 3600 & wait', { backoffLimit: 3 })
    const { podName } = await w.state(evicted.id, 'running')
    await w.evict({ metadata: { name: podName } })
    await w.reach(evicted.id, seen => seen.state === 'running' && seen.podName !== podName, 40)
    await poll(
      () => w.logs(evicted.id),
      reply => reply.status === 200 && reply.body === 'up\n',
    )
  })

  test('L2: a rollout that waits does not hide the pod that runs', async w => {
    const made = await w.deployment(waiting)
    await w.state(made.id, 'running')
    const [container] = (await w.object(made)).spec.template.spec.containers
    const { badImage } = w.stage.environment
    await w.byHand(made, { spec: { template: { spec: { containers: [{ ...container, image: badImage }] } } } })
    await poll(
      () => w.pods(made),
      found => found.length === 2,
    )
    const reply = await w.logs(made.id)
    assert.deepEqual([reply.status, reply.body], [200, 'up\n'])
  })

  test('B-100: a follower of an evicted pod comes to an end, and nothing of ours is in it', async w => {
    const made = await w.job('trap "exit 5" TERM; echo up; sleep 3600 & wait')
    const { podName } = await w.state(made.id, 'running')
    const response = await fetch(w.client.url + w.client.path(made.id, '/logs?follow=true'))
    const text: string[] = []
    for await (const chunk of response.body ?? []) {
      if (text.length === 0) await w.evict({ metadata: { name: podName } })
      text.push(new TextDecoder().decode(chunk))
    }
    assert.deepEqual([response.status, text.join('')], [200, 'up\n'])
  })

  test('L2, B-56: a foreign pod with our labels is never read', async w => {
    const made = await w.deployment(waiting)
    await w.state(made.id, 'running')
    const [own] = await w.pods(made)
    const name = w.name('foreign')
    const { labels } = own.metadata
    delete labels['pod-template-hash']
    const containers = [{ name: 'main', ...toContainer(w.script('echo foreign; sleep 3600')) }]
    const pod = { metadata: { name, labels }, spec: { containers, terminationGracePeriodSeconds: 1 } }
    assert.equal((await w.send('POST', w.at('pods'), pod)).status, 201)
    await poll(
      () => w.send('GET', w.at('pods', name)),
      ({ body }) => body.status?.phase === 'Running',
    )
    assert.equal((await w.logs(made.id)).body, 'up\n')
    assert.equal((await w.get(made.id)).body.podName, own.metadata.name)
    assert.deepEqual(await w.end(made.id), ['Started 1 -', 'Deleted 1 DeletedByRequest'])
    await w.send('DELETE', w.at('pods', name))
  })
}

const toContainer = ({ image, entrypoint, command }: { image: string; entrypoint: string[]; command: string[] }) => ({
  image,
  command: entrypoint,
  args: command,
})
