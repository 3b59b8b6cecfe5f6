import assert from 'node:assert/strict'
import { poll, type Register, waiting } from './world.ts'

const exposed = { port: 8080, exposeService: true }

export function serviceCases(test: Register): void {
  test('E1, C6, M1, H1: a Service in front of exactly its pods; delete takes it first', async w => {
    const made = await w.deployment(waiting, exposed)
    const name = `${made.name}-svc`
    assert.equal(made.address, `${name}.${w.namespace}.svc.cluster.local`)
    const { body: service } = await w.send('GET', w.at('services', name))
    const [port] = service.spec.ports
    assert.deepEqual([service.spec.type, port.port, port.targetPort, port.protocol], ['ClusterIP', 8080, 8080, 'TCP'])
    assert.equal(service.metadata.ownerReferences[0].uid, made.uid)
    const job = await w.job(waiting, { name: made.name })
    await Promise.all([w.state(made.id, 'running'), w.state(job.id, 'running')])
    const selector = Object.entries(service.spec.selector)
    const chosen = (await w.pods(made)).filter(pod =>
      selector.every(([key, value]) => pod.metadata.labels[key] === value),
    )
    assert.deepEqual(
      chosen.map(pod => pod.metadata.name),
      [(await w.get(made.id)).body.podName],
    )
    const object = await w.object(made)
    const chosenByDeployment = Object.entries(object.spec.selector.matchLabels)
    const [jobPod] = (await w.pods(job)).filter(pod => pod.metadata.ownerReferences[0].kind === 'Job')
    assert.ok(chosenByDeployment.some(([key, value]) => jobPod.metadata.labels[key] !== value))
    assert.deepEqual(await w.end(made.id), ['Started 1 -', 'Deleted 1 DeletedByRequest'])
    assert.equal((await w.send('GET', w.at('services', name))).status, 404)
    assert.equal((await w.get(job.id)).body.state, 'running')
    const writes = w.stage.environment.faults?.writes() ?? []
    const order = writes.filter(entry => entry.verb === 'delete' && [name, made.name].includes(entry.name ?? ''))
    if (writes.length > 0) assert.equal(order[0]?.resource, 'services')
  })

  test('E2: no Service without a port, without the wish, and for a Job', async w => {
    const ids = [
      await w.deployment(waiting, { port: 8080, start: false }),
      await w.deployment(waiting, { port: 0, exposeService: false, start: false }),
      await w.job('exit 0', { ...exposed, start: false }),
    ]
    for (const { name } of ids) assert.equal((await w.send('GET', w.at('services', `${name}-svc`))).status, 404)
  })

  test('E3: names no Service can have are refused before anything is made', async w => {
    for (const name of ['a'.repeat(60), '1web']) {
      const reply = await w.post({ name, ...w.script(waiting), ...exposed })
      assert.deepEqual([reply.status, reply.body.errors[0]?.path], [400, '/name'])
      assert.equal((await w.send('GET', w.at('deployments', name))).status, 404)
    }
  })

  test('E4, F-35: a Service of that name that is not ours is foreign; no Deployment is left, and no row', async w => {
    const name = w.name('web')
    const theirs = { metadata: { name: `${name}-svc` }, spec: { ports: [{ port: 1 }] } }
    assert.equal((await w.send('POST', w.at('services'), theirs)).status, 201)
    const reply = await w.post({ name, ...w.script(waiting), ...exposed, terminationGracePeriodSeconds: 1 })
    assert.deepEqual([reply.status, reply.body.code], [409, 'FOREIGN_WORKLOAD'])
    await poll(
      () => w.send('GET', w.at('deployments', name)),
      ({ status }) => status === 404,
    )
    await w.client.waitFor(w.id('deployment', name), runtime => runtime === null)
    assert.equal((await w.send('GET', w.at('services', `${name}-svc`))).status, 200)
    assert.equal((await w.send('DELETE', w.at('services', `${name}-svc`))).status, 200)
    const made = await w.create({ name, ...w.script(waiting), ...exposed })
    await w.state(made.id, 'running')
    assert.deepEqual(await w.end(made.id), ['Started 1 -', 'Deleted 1 DeletedByRequest'])
  })

  test(
    'E5, B-65: a Service that is refused otherwise leaves no Deployment, no row and no event',
    async w => {
      const name = w.name('web')
      const namespace = await w.newNamespace('refuses')
      const fault = w.faults.fail(
        { verb: 'create', resource: 'services', namespace },
        { status: 422, reason: 'Invalid', message: 'Service "x" is invalid: spec: no' },
      )
      const spec = { name, namespace, ...w.script(waiting), ...exposed }
      const reply = await w.post(spec).finally(() => fault.remove())
      assert.deepEqual([reply.status, reply.body.code], [422, 'SPEC_REFUSED'])
      await poll(
        () => w.send('GET', w.at('deployments', name, namespace)),
        ({ status }) => status === 404,
      )
      const id = w.id('deployment', name, namespace)
      await w.gone(id)
      assert.equal((await w.client.api('GET', w.client.path(id, '/events'))).status, 404)
    },
    { needsFaults: true },
  )

  test('E6, H2: deleted by hand the Deployment takes its Service along; a Service already gone is ignored', async w => {
    const [made, other] = [await w.deployment(waiting, exposed), await w.deployment(waiting, exposed)]
    await Promise.all([w.state(made.id, 'running'), w.state(other.id, 'running')])
    await w.deleteByHand(made)
    await w.gone(made.id)
    await poll(
      () => w.send('GET', w.at('services', `${made.name}-svc`)),
      ({ status }) => status === 404,
    )
    assert.equal((await w.send('DELETE', w.at('services', `${other.name}-svc`))).status, 200)
    assert.deepEqual(await w.end(other.id), ['Started 1 -', 'Deleted 1 DeletedByRequest'])
  })

  test(
    'H3: a Service that cannot be deleted leaves the Deployment; delete can be repeated',
    async w => {
      const made = await w.deployment(waiting, exposed)
      await w.state(made.id, 'running')
      const name = `${made.name}-svc`
      const fault = w.faults.fail(
        { verb: 'delete', resource: 'services', name },
        { status: 403, message: 'User "x" cannot' },
      )
      const reply = await w.delete(made.id)
      assert.deepEqual([reply.status, reply.body.code], [502, 'CLUSTER_FORBIDDEN'])
      assert.equal((await w.object(made)).metadata.deletionTimestamp, undefined)
      assert.equal((await w.get(made.id)).body.state, 'running')
      fault.remove()
      assert.deepEqual(await w.end(made.id), ['Started 1 -', 'Deleted 1 DeletedByRequest'])
    },
    { needsFaults: true },
  )

  test(
    'B-63: a delete that the API does not answer is no success',
    async w => {
      const made = await w.job(waiting)
      await w.state(made.id, 'running')
      const fault = w.faults.fail({ verb: 'delete', resource: 'jobs', name: made.name }, { status: 500 })
      const reply = await w.delete(made.id)
      assert.ok(reply.status >= 500, `${reply.status}`)
      fault.remove()
      assert.equal((await w.object(made)).metadata.deletionTimestamp, undefined)
      assert.deepEqual(await w.end(made.id), ['Started 1 -', 'Deleted 1 DeletedByRequest'])
    },
    { needsFaults: true },
  )
}
