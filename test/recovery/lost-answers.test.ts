import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import type { Failure, Match } from '../../src/sandbox/index.ts'
import { poll, temporaryFolder } from '../helpers/daemon.ts'
import {
  create,
  deployment,
  impatient,
  inState,
  isGone,
  job,
  leftovers,
  NOTHING,
  objectOf,
  type Stage,
  stageOf,
  storyOf,
  verb,
} from './stage.ts'

const post = (resource: string): Match => ({ verb: 'create', resource })
const MADE_ONCE = { made: 1, ended: 0 }

suite('a create whose answer is lost', { concurrency: true }, () => {
  const lost: [string, Failure, number][] = [
    ['the cluster never answers', { hang: true }, 504],
    ['the connection breaks', { reset: true }, 504],
    ['a proxy answers 502 in its place', { status: 502, body: '<html>bad gateway</html>', times: 1 }, 201],
    ['the cluster answers 500', { status: 500, times: 1 }, 201],
  ]
  for (const [name, failure, status] of lost) {
    test(`F-20, B-64, P5: ${name}: one workload, ours by its nonce`, async t => {
      const { sandbox, daemon, ledger } = await stageOf(t, { profile: impatient })
      for (const resource of ['deployments', 'services']) {
        sandbox.faults.fail(post(resource), { times: 1, ...failure, performed: true })
      }
      const spec = { name: 'web', port: 8080, exposeService: true }
      const headers = { 'idempotency-key': 'once' }
      const reply = await create(daemon, spec, headers)
      assert.equal(reply.status, status, JSON.stringify(reply.body))
      if (status === 504) {
        assert.equal(reply.body.code, 'BACKEND_TIMEOUT')
        assert.equal(reply.body.runtimeId, deployment('web'))
      }
      await inState(daemon, deployment('web'), 'running')
      const again = await create(daemon, spec, headers)
      assert.equal(again.status, 201)
      assert.equal(again.body.uid, objectOf(sandbox, 'deployments', 'web').metadata.uid)
      assert.equal((await create(daemon, spec)).body.code, 'RUNTIME_EXISTS')
      assert.deepEqual(ledger.counts(), { 'deployments/web': MADE_ONCE, 'services/web-svc': MADE_ONCE })
      assert.deepEqual(await storyOf(daemon, deployment('web')), ['Started 1 -'])
    })
  }

  test('F-18, P6: a create that lands after its life was deleted: the object goes at sight, without a word', async t => {
    const { sandbox, daemon, ledger } = await stageOf(t, { profile: impatient })
    assert.equal((await create(daemon, { kind: 'job', name: 'model' })).status, 201)
    const fault = sandbox.faults.fail(post('jobs'), { hang: true })
    assert.equal((await create(daemon, { kind: 'job', name: 'late' })).status, 504)
    const nonce = daemon.app.store.newest(job('late'))?.nonce ?? ''
    assert.equal((await verb(daemon, job('late'), 'delete')).status, 202)
    await isGone(daemon, job('late'))
    fault.remove()
    const model = JSON.stringify(objectOf(sandbox, 'jobs', 'model')).replaceAll('"model"', '"late"')
    const { metadata, spec } = JSON.parse(model)
    const { selector: _, ...template } = spec
    for (const label of Object.keys(template.template.metadata.labels)) {
      if (/controller-uid|job-name/.test(label)) delete template.template.metadata.labels[label]
    }
    const annotations = { ...metadata.annotations, 'runtimed.dev/create-nonce': nonce }
    sandbox.registry.create('jobs', 'default', {
      metadata: { name: 'late', labels: metadata.labels, annotations },
      spec: template,
    })
    await poll(
      () => ledger.counts()['jobs/late'],
      count => count !== undefined && count.made > 0 && count.made === count.ended,
    )
    await daemon.app.queue.whenIdle()
    assert.deepEqual(await storyOf(daemon, job('late')), ['Deleted 1 DeletedByRequest'])
    assert.deepEqual((await daemon.api('GET', '/v1/adoption')).body.orphaned, [])
  })

  for (const performed of [true, false]) {
    test(`H7, C12: stop and delete over a create ${performed ? 'whose answer' : 'that'} is lost: it is finished first`, async t => {
      const { sandbox, daemon } = await stageOf(t, { profile: impatient })
      const fault = sandbox.faults.fail(({ verb }) => verb === 'create', { hang: true, performed })
      const names = ['stop', 'delete'] as const
      for (const name of names) assert.equal((await create(daemon, { name })).status, 504)
      await Promise.all(names.map(name => verb(daemon, deployment(name), name)))
      fault.remove()
      await inState(daemon, deployment('stop'), 'stopped')
      await isGone(daemon, deployment('delete'))
      assert.equal(objectOf(sandbox, 'deployments', 'stop').spec.replicas, 0)
      await poll(
        () => sandbox.store.get('deployments', 'default', 'delete'),
        found => found === undefined,
      )
      assert.equal((await storyOf(daemon, deployment('delete'))).at(-1), 'Deleted 1 DeletedByRequest')
      const story = await storyOf(daemon, deployment('stop'))
      assert.deepEqual(
        story.filter(line => !line.startsWith('Started')),
        ['Exited 1 StoppedByRequest'],
      )
      assert.equal((await verb(daemon, deployment('stop'), 'start')).status, 202)
      assert.equal((await inState(daemon, deployment('stop'), 'running')).run, 2)
    })
  }

  test('F-20, C9: another object of that name: 409, and it is not touched', async t => {
    const stage = await stageOf(t)
    const { sandbox, daemon } = stage
    const foreign = sandbox.registry.create('jobs', 'default', foreignJob('taken'))
    const reply = await create(daemon, { kind: 'job', name: 'taken' })
    assert.deepEqual([reply.status, reply.body.code], [409, 'FOREIGN_WORKLOAD'])
    assert.equal(objectOf(sandbox, 'jobs', 'taken').metadata.uid, foreign.metadata.uid)
    assert.equal((await daemon.api('GET', daemon.path(job('taken')))).status, 404)
    assert.deepEqual(await daemon.events(), [])
  })

  test('F-20, B-81: not carried out, and another takes the name meanwhile: withdrawn without event', async t => {
    const { sandbox, daemon } = await stageOf(t, { profile: impatient })
    const fault = sandbox.faults.fail(post('jobs'), { hang: true })
    assert.equal((await create(daemon, { kind: 'job', name: 'late' })).status, 504)
    const foreign = sandbox.registry.create('jobs', 'default', foreignJob('late'))
    fault.remove()
    await isGone(daemon, job('late'))
    await daemon.app.queue.whenIdle()
    const tries = sandbox.faults.requests({ verb: 'create' }).filter(({ status }) => status === 409)
    assert.equal(tries.length, 1, 'a create that was withdrawn is not tried again')
    assert.equal(objectOf(sandbox, 'jobs', 'late').metadata.uid, foreign.metadata.uid)
    assert.deepEqual(await daemon.events(), [])
  })

  test('B-41, H9: create while one of that name is being deleted: 409, and it works once that is gone', async t => {
    const { sandbox, daemon } = await stageOf(t)
    const spec = { kind: 'job', name: 'again' } as const
    assert.equal((await create(daemon, spec)).status, 201)
    await inState(daemon, job('again'), 'running')
    holdByFinalizer(sandbox, 'again')
    assert.equal((await verb(daemon, job('again'), 'delete')).status, 202)
    assert.equal((await create(daemon, spec)).body.code, 'RUNTIME_BUSY')
    sandbox.registry.create('jobs', 'default', foreignJob('others'))
    holdByFinalizer(sandbox, 'others')
    sandbox.registry.delete('jobs', 'default', 'others', { propagationPolicy: 'Foreground' })
    assert.equal((await create(daemon, { ...spec, name: 'others' })).body.code, 'RUNTIME_BUSY')
    for (const name of ['again', 'others']) {
      sandbox.registry.update('jobs', 'default', name, draft => {
        draft.metadata.finalizers = draft.metadata.finalizers?.filter(finalizer => finalizer !== 'example.com/hold')
      })
      await poll(
        () => create(daemon, { ...spec, name }),
        ({ status }) => status === 201,
      )
    }
    await inState(daemon, job('again'), 'running')
    assert.deepEqual(await storyOf(daemon, job('again')), ['Started 1 -', 'Deleted 1 DeletedByRequest', 'Started 1 -'])
  })
})

const foreignJob = (name: string) => ({
  metadata: { name },
  spec: { template: { spec: { restartPolicy: 'Never', containers: [{ name: 'x', image: 'busybox' }] } } },
})

function holdByFinalizer({ registry }: Stage['sandbox'], name: string): void {
  registry.update('jobs', 'default', name, draft => {
    draft.metadata.finalizers = [...(draft.metadata.finalizers ?? []), 'example.com/hold']
  })
}

suite('a create that the cluster refuses', { concurrency: true }, () => {
  const quota = 'pods "web" is forbidden: exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1'
  const hook = 'admission webhook "policy.example.com" denied the request: no'
  const role = 'deployments.apps is forbidden: User "x" cannot create resource "deployments" in API group "apps"'
  const refusals: [string, Failure, number, string][] = [
    ['422', { status: 422, reason: 'Invalid', message: 'spec.replicas: Invalid value' }, 422, 'SPEC_REFUSED'],
    ['quota', { status: 403, reason: 'Forbidden', message: quota }, 409, 'QUOTA_EXCEEDED'],
    ['webhook', { status: 400, message: hook }, 422, 'SPEC_REFUSED'],
    ['our missing rights', { status: 403, reason: 'Forbidden', message: role }, 502, 'CLUSTER_FORBIDDEN'],
    ['500 for ever', { status: 500 }, 502, 'KUBERNETES_ERROR'],
    ['503 for ever', { status: 503 }, 503, 'BACKEND_UNAVAILABLE'],
  ]
  for (const [name, failure, status, code] of refusals) {
    test(`C13, E5, B-55, B-65: ${name}, of the Deployment or of its Service: nothing is left, the key is free`, async t => {
      const stage = await stageOf(t, { profile: impatient })
      const { sandbox, daemon } = stage
      const spec = { name: 'web', port: 8080, exposeService: true }
      for (const resource of ['deployments', 'services']) {
        const fault = sandbox.faults.fail(post(resource), failure)
        const reply = await create(daemon, spec, { 'idempotency-key': 'k' })
        assert.deepEqual([reply.status, reply.body.code], [status, code], JSON.stringify(reply.body))
        assert.equal(reply.body.reason, failure.reason ?? reply.body.reason)
        assert.equal(reply.headers.has('retry-after'), status === 503)
        fault.remove()
        await poll(
          () => leftovers(stage),
          found => JSON.stringify(found) === JSON.stringify(NOTHING),
          5,
        )
      }
      const reply = await create(daemon, { ...spec, image: 'busybox:2' }, { 'idempotency-key': 'k' })
      assert.equal(reply.status, 201, JSON.stringify(reply.body))
      await inState(daemon, deployment('web'), 'running')
      assert.deepEqual(await storyOf(daemon, deployment('web')), ['Started 1 -'])
    })
  }

  for (const restarted of [false, true]) {
    test(`E5, B-65: a refused Service whose Deployment cannot be taken back at once: it is${restarted ? ' after a restart' : ''}, without event, and the name is free`, async t => {
      const stage = await stageOf(t, { profile: impatient })
      const { sandbox, daemon } = stage
      sandbox.faults.fail(post('services'), { status: 422, times: 1 })
      const fault = sandbox.faults.fail({ verb: 'delete', resource: 'deployments' }, { hang: true })
      const reply = await create(daemon, { name: 'web', port: 8080, exposeService: true })
      assert.deepEqual([reply.status, reply.body.code], [422, 'SPEC_REFUSED'], JSON.stringify(reply.body))
      assert.equal((await create(daemon, { name: 'web' })).body.code, 'RUNTIME_BUSY')
      if (restarted) await stage.restart()
      fault.remove()
      await poll(
        () => leftovers(stage),
        found => JSON.stringify(found) === JSON.stringify(NOTHING),
      )
      assert.equal((await create(stage.daemon, { name: 'web' })).status, 201)
    })
  }

  test('E4: a foreign Service of that name: 409, the Deployment is not left behind, the Service not touched', async t => {
    const stage = await stageOf(t)
    const { sandbox, daemon } = stage
    const spec = { ports: [{ port: 80 }], selector: { app: 'other' } }
    const foreign = sandbox.registry.create('services', 'default', { metadata: { name: 'web-svc' }, spec })
    const reply = await create(daemon, { name: 'web', port: 8080, exposeService: true })
    assert.deepEqual([reply.status, reply.body.code], [409, 'FOREIGN_WORKLOAD'])
    await poll(
      () => leftovers(stage),
      found => JSON.stringify(found) === JSON.stringify({ ...NOTHING, objects: ['services/web-svc'] }),
    )
    assert.equal(objectOf(sandbox, 'services', 'web-svc').metadata.uid, foreign.metadata.uid)
  })

  test('H3, B-63: a Service that cannot be deleted: an error, the Deployment stays, and again it works', async t => {
    const { sandbox, daemon } = await stageOf(t, { profile: impatient })
    assert.equal((await create(daemon, { name: 'web', port: 8080, exposeService: true })).status, 201)
    await inState(daemon, deployment('web'), 'running')
    const fault = sandbox.faults.fail({ verb: 'delete', resource: 'services' }, { status: 403 })
    const reply = await verb(daemon, deployment('web'), 'delete')
    assert.deepEqual([reply.status, reply.body.code], [502, 'CLUSTER_FORBIDDEN'])
    assert.equal((await inState(daemon, deployment('web'), 'running')).monitored, true)
    assert.ok(objectOf(sandbox, 'deployments', 'web'))
    fault.remove()
    assert.equal((await verb(daemon, deployment('web'), 'delete')).status, 202)
    await isGone(daemon, deployment('web'))
    assert.deepEqual(await storyOf(daemon, deployment('web')), ['Started 1 -', 'Deleted 1 DeletedByRequest'])
  })
})

suite('Idempotency-Key', { concurrency: true }, () => {
  test('C10, F-56, B-64: 100 at once and again after a restart: one workload, one answer; another body is 409', async t => {
    const stage = await stageOf(t)
    const headers = { 'idempotency-key': 'one' }
    const spec = { name: 'web', labels: { a: '1', b: '2' } }
    const replies = await Promise.all(Array.from({ length: 100 }, () => create(stage.daemon, spec, headers)))
    const uid = objectOf(stage.sandbox, 'deployments', 'web').metadata.uid
    assert.deepEqual(
      new Set(replies.map(({ status, body }) => `${status} ${body.id} ${body.uid}`)),
      new Set([`201 ${deployment('web')} ${uid}`]),
    )
    await stage.restart()
    const again = await create(stage.daemon, { ...spec, labels: { b: '2', a: '1' } }, headers)
    assert.deepEqual([again.status, again.body.uid], [201, uid])
    const other = await create(stage.daemon, { ...spec, labels: { a: '1' } }, headers)
    assert.deepEqual([other.status, other.body.code], [409, 'IDEMPOTENCY_KEY_REUSED'])
    await stage.daemon.ready()
    assert.equal((await verb(stage.daemon, deployment('web'), 'delete')).status, 202)
    await isGone(stage.daemon, deployment('web'))
    const deleted = await create(stage.daemon, spec, headers)
    assert.deepEqual([deleted.status, deleted.body.uid, deleted.body.state], [201, uid, 'deleted'])
    assert.deepEqual(stage.ledger.counts(), { 'deployments/web': { made: 1, ended: 1 } })
  })

  test('F-56, P5, O8: 100 creates of one name at once without a key: one is made, 99 are told 409', async t => {
    const { daemon, ledger } = await stageOf(t)
    const replies = await Promise.all(Array.from({ length: 100 }, () => create(daemon, { name: 'one' })))
    const codes = replies.map(({ status, body }) => `${status} ${body.code ?? ''}`).sort()
    assert.deepEqual(codes, ['201 ', ...Array(99).fill('409 RUNTIME_EXISTS')])
    assert.deepEqual(ledger.counts(), { 'deployments/one': MADE_ONCE })
  })
})

suite('a cluster that hangs, throttles or refuses us', { concurrency: true }, () => {
  test('F9, B-134, F-14: it hangs: 504 in time, others go on, each verb is finished once it answers', async t => {
    const { sandbox, daemon } = await stageOf(t, { profile: impatient })
    for (const name of ['start', 'stop', 'delete', 'other']) {
      assert.equal((await create(daemon, { name, start: name !== 'start' })).status, 201)
      await inState(daemon, deployment(name), name === 'start' ? 'created' : 'running')
    }
    const hung = (facts: { name: string | undefined }) => facts.name !== undefined && facts.name !== 'other'
    const fault = sandbox.faults.fail(hung, { hang: true })
    const begun = performance.now()
    const calls = (['start', 'stop', 'delete'] as const).map(name => verb(daemon, deployment(name), name))
    const other = await verb(daemon, deployment('other'), 'stop')
    assert.equal(other.status, 202)
    assert.ok(performance.now() - begun < impatient.callDeadlineMs, 'a call to another one waited')
    for (const reply of await Promise.all(calls)) {
      assert.deepEqual([reply.status, reply.body.code], [504, 'BACKEND_TIMEOUT'], JSON.stringify(reply.body))
    }
    assert.ok(performance.now() - begun < 4 * impatient.callDeadlineMs)
    await inState(daemon, deployment('other'), 'stopped')
    fault.remove()
    await inState(daemon, deployment('start'), 'running')
    await inState(daemon, deployment('stop'), 'stopped')
    await isGone(daemon, deployment('delete'))
    assert.deepEqual(await storyOf(daemon, deployment('start')), ['Started 1 -'])
    assert.deepEqual(await storyOf(daemon, deployment('stop')), ['Started 1 -', 'Exited 1 StoppedByRequest'])
    assert.deepEqual(await storyOf(daemon, deployment('delete')), ['Started 1 -', 'Deleted 1 DeletedByRequest'])
  })

  test('F-14: lists that never answer at the start: alive, not ready, no request beyond its deadline; then ready', async t => {
    const stage = await stageOf(t, { profile: impatient })
    assert.equal((await create(stage.daemon, { name: 'web' })).status, 201)
    await inState(stage.daemon, deployment('web'), 'running')
    const fault = stage.sandbox.faults.fail({ verb: 'list' }, { hang: true })
    const daemon = await stage.restart()
    assert.equal((await daemon.api('GET', '/livez')).status, 200)
    assert.equal((await daemon.api('GET', '/readyz')).status, 503)
    const { body } = await daemon.api('GET', daemon.path(deployment('web')))
    assert.deepEqual([body.state, body.stale], ['running', true])
    await poll(
      () => fault.hits,
      hits => hits > 6,
    )
    fault.remove()
    await daemon.ready()
    assert.deepEqual(await storyOf(daemon, deployment('web')), ['Started 1 -'])
  })

  test('F-15: 429 with Retry-After: nobody asks before it is over, no list is repeated, callers get 503 with Retry-After', async t => {
    const { sandbox, daemon } = await stageOf(t, { profile: impatient })
    assert.equal((await create(daemon, { name: 'web' })).status, 201)
    await inState(daemon, deployment('web'), 'running')
    const lists = () => sandbox.faults.requests({ verb: 'list', resource: 'deployments' }).length
    const before = lists()
    const asked: number[] = []
    const fault = sandbox.faults.fail(() => asked.push(performance.now()) > 0, { status: 429, retryAfter: 1 })
    sandbox.faults.closeStreams('reset')
    const replies = await Promise.all([create(daemon, { name: 'b' }), verb(daemon, deployment('web'), 'stop')])
    for (const { status, body, headers } of replies) {
      assert.deepEqual([status, body.code], [503, 'BACKEND_UNAVAILABLE'])
      assert.ok(Number(headers.get('retry-after')) >= 1)
    }
    await poll(
      () => asked.length,
      count => count >= 12,
    )
    fault.remove()
    const perSecond = asked.filter(at => at < (asked[0] as number) + 900).length
    assert.ok(perSecond <= 8, `${perSecond} requests within Retry-After, at most one for each watch and call`)
    await poll(
      () => create(daemon, { name: 'b' }),
      ({ status }) => status === 201,
    )
    await inState(daemon, deployment('b'), 'running')
    assert.equal(lists(), before)
    assert.deepEqual(await storyOf(daemon, deployment('web')), ['Started 1 -'])
  })

  const deaf: [string, Failure][] = [
    ['500', { status: 500 }],
    ['a broken connection', { reset: true }],
    ['no answer', { hang: true }],
    ['401', { status: 401 }],
    ['403', { status: 403 }],
    ['429', { status: 429, retryAfter: 1 }],
  ]
  for (const [name, failure] of deaf) {
    test(`F-28, B-25, I5, P8: every look gets ${name}: no event, no state changes, the truth follows`, async t => {
      const { sandbox, daemon } = await stageOf(t, { profile: impatient })
      const { faults, registry } = sandbox
      for (const name of ['alive', 'gone']) {
        assert.equal((await create(daemon, { kind: 'job', name })).status, 201)
        await inState(daemon, job(name), 'running')
      }
      const looks = faults.fail(({ verb }) => verb === 'get' || verb === 'list' || verb === 'watch', failure)
      registry.delete('jobs', 'default', 'gone', { propagationPolicy: 'Background' })
      faults.closeStreams('reset')
      await poll(
        () => looks.hits,
        hits => hits >= 5,
      )
      for (const name of ['alive', 'gone']) {
        const { body } = await daemon.api('GET', daemon.path(job(name)))
        assert.equal(body.state, 'running')
        assert.deepEqual(await storyOf(daemon, job(name)), ['Started 1 -'])
      }
      looks.remove()
      await isGone(daemon, job('gone'))
      assert.deepEqual(await storyOf(daemon, job('gone')), ['Started 1 -', 'Deleted 1 NotFound'])
      assert.deepEqual(await storyOf(daemon, job('alive')), ['Started 1 -'])
    })
  }

  test('F-16: the token is rotated, the old one refused: the new one is used at once', async t => {
    const tokenFile = join(temporaryFolder(t), 'token')
    writeFileSync(tokenFile, 'old')
    const { sandbox, daemon } = await stageOf(t, {
      profile: impatient,
      sandbox: { tokens: ['old'] },
      kubeconfig: sandbox =>
        sandbox.kubeconfig().replace('"token": "old"', `"tokenFile": ${JSON.stringify(tokenFile)}`),
    })
    assert.equal((await create(daemon, { name: 'before' })).status, 201)
    writeFileSync(tokenFile, 'new')
    sandbox.faults.setTokens(['new'])
    sandbox.faults.closeStreams('reset')
    const begun = performance.now()
    assert.equal((await create(daemon, { name: 'after' })).status, 201)
    await inState(daemon, deployment('after'), 'running')
    assert.ok(performance.now() - begun < 3_000)
    await daemon.ready()
  })

  test('F-16, P8, B-74: our rights are taken away and given back: 502, nothing changes, back within one step', async t => {
    const { sandbox, daemon } = await stageOf(t, { profile: impatient })
    assert.equal((await create(daemon, { name: 'web' })).status, 201)
    await inState(daemon, deployment('web'), 'running')
    sandbox.faults.enforceRole([])
    sandbox.faults.closeStreams('reset')
    const replies = await Promise.all([create(daemon, { name: 'b' }), verb(daemon, deployment('web'), 'stop')])
    for (const { status, body } of replies) assert.deepEqual([status, body.code], [502, 'CLUSTER_FORBIDDEN'])
    sandbox.registry.delete('deployments', 'default', 'web', { propagationPolicy: 'Background' })
    await poll(
      () => sandbox.faults.requests({ verb: 'watch' }).length,
      count => count >= 12,
    )
    assert.equal((await daemon.api('GET', daemon.path(deployment('web')))).body.state, 'running')
    sandbox.faults.enforceRole(undefined)
    const begun = performance.now()
    await isGone(daemon, deployment('web'))
    assert.ok(performance.now() - begun < 4_000)
    assert.deepEqual(await storyOf(daemon, deployment('web')), ['Started 1 -', 'Deleted 1 NotFound'])
    assert.deepEqual(daemon.fatal, [])
  })
})

suite('old news', { concurrency: true }, () => {
  test('F-29, G6, F10: the cache still shows what was before our write: it is not believed', async t => {
    const { sandbox, daemon } = await stageOf(t)
    const id = deployment('web')
    assert.equal((await create(daemon, { name: 'web' })).status, 201)
    await inState(daemon, id, 'running')
    const decideAgain = async (): Promise<void> => {
      await daemon.app.queue.whenIdle()
      daemon.app.queue.add(id)
      await daemon.app.queue.whenIdle()
    }
    sandbox.faults.muteStreams()
    assert.equal((await verb(daemon, id, 'stop')).status, 202)
    await decideAgain()
    assert.match((await daemon.api('GET', daemon.path(id))).body.state, /^stop/)
    await poll(
      () => sandbox.store.list('pods').length,
      count => count === 0,
    )
    await decideAgain()
    assert.match((await daemon.api('GET', daemon.path(id))).body.state, /^stop/)
    sandbox.faults.unmuteStreams()
    await inState(daemon, id, 'stopped')

    sandbox.faults.muteStreams()
    assert.equal((await verb(daemon, id, 'start')).status, 202)
    await decideAgain()
    await poll(
      () => objectOf(sandbox, 'deployments', 'web').status.readyReplicas,
      ready => ready === 1,
    )
    await decideAgain()
    assert.match((await daemon.api('GET', daemon.path(id))).body.state, /creating|running/)
    sandbox.faults.unmuteStreams()
    assert.equal((await inState(daemon, id, 'running')).run, 2)
    assert.deepEqual(await storyOf(daemon, id), ['Started 1 -', 'Exited 1 StoppedByRequest', 'Started 2 -'])
  })

  test('F-30, I12, B-52: the controllers have not looked yet: their old counts prove nothing', async t => {
    const { sandbox, daemon } = await stageOf(t)
    assert.equal((await create(daemon, { name: 'web' })).status, 201)
    await inState(daemon, deployment('web'), 'running')
    sandbox.faults.pauseControllers()
    assert.equal((await verb(daemon, deployment('web'), 'stop')).status, 202)
    assert.equal((await verb(daemon, deployment('web'), 'start')).status, 202)
    const { status, metadata } = objectOf(sandbox, 'deployments', 'web')
    assert.ok(status.readyReplicas === 1 && status.observedGeneration < (metadata.generation ?? 0))
    sandbox.registry.update('deployments', 'default', 'web', draft => {
      draft.metadata.annotations = { ...draft.metadata.annotations, touched: 'true' }
    })
    const seen = objectOf(sandbox, 'deployments', 'web').metadata.resourceVersion
    await poll(
      () => daemon.app.queue.depth,
      depth => depth === 0,
    )
    assert.ok(Number(seen) > 0)
    const { body } = await daemon.api('GET', daemon.path(deployment('web')))
    assert.deepEqual([body.state, body.run], ['creating', 2])
    sandbox.faults.resumeControllers()
    await inState(daemon, deployment('web'), 'running')
    const story = ['Started 1 -', 'Exited 1 StoppedByRequest', 'Started 2 -']
    assert.deepEqual(await storyOf(daemon, deployment('web')), story)
  })
})
