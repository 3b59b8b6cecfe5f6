import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { startSandbox, TEST_TIMING } from '../../src/sandbox/index.ts'
import { Client, condition, DEPLOYMENTS, deployment, PODS, POLITE, pod, STUBBORN, sandboxFor, until } from './client.ts'

const phase = (client: Client, wanted: string) => client.pod(({ status }) => status.phase === wanted, `phase ${wanted}`)

/** Is there a process with this pid that is no zombie? */
function lives(pid: number): boolean {
  try {
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))
  } catch {
    return false
  }
}

test('a pod ends: first its container is terminated, a moment later its phase says so (recording p-exit-0)', async t => {
  const client = await sandboxFor(t)
  const seen: string[] = []
  client.sandbox.store.subscribe(({ resource, object }) => {
    if (resource !== 'pods') return
    const { phase: now, containerStatuses } = object.status
    const ready = condition(object, 'Ready')
    const line = [
      now,
      Object.keys(containerStatuses?.[0].state ?? {}),
      ready ? `${ready.status}/${ready.reason ?? ''}` : '-',
    ].join(' ')
    if (seen.at(-1) !== line) seen.push(line)
  })
  await client.post(PODS, pod('one', ['sh', '-c', 'sleep 0.1']))
  await phase(client, 'Succeeded')
  assert.deepEqual(seen, [
    'Pending  -',
    'Pending waiting False/ContainersNotReady',
    'Running running True/',
    'Running terminated False/PodCompleted',
    'Succeeded terminated False/PodCompleted',
  ])
})

test('environment: the container’s own with $(NAME) expanded, PATH, HOSTNAME; nothing of ours', async t => {
  const client = await sandboxFor(t)
  const env = [
    { name: 'A', value: 'x' },
    { name: 'B', value: '$(A)-$(NONE)-$$(A)' },
    { name: 'NS', valueFrom: { fieldRef: { fieldPath: 'metadata.namespace' } } },
  ]
  process.env.SANDBOX_SECRET_CANARY = 'leaked'
  t.after(() => {
    delete process.env.SANDBOX_SECRET_CANARY
  })
  await client.post(PODS, pod('env', ['sh', '-c', 'env; echo "arg=$0"; pwd'], { env, args: ['$(A)!'] }))
  await phase(client, 'Succeeded')
  const log = (await client.get(`${PODS}/env/log`)).text
  for (const line of ['A=x', 'B=x-$(NONE)-$(A)', 'NS=default', 'HOSTNAME=env', 'arg=x!'])
    assert.ok(log.split('\n').includes(line), line)
  assert.match(log, /^PATH=/m)
  assert.match(log, /runtimed-sandbox-/)
  assert.ok(!log.includes('leaked'))
})

test('args alone are run when there is no command; with neither a built-in prints one line and waits', async t => {
  const client = await sandboxFor(t)
  await client.post(PODS, pod('args', undefined, { args: ['echo', 'from args'] }))
  await phase(client, 'Succeeded')
  assert.equal((await client.get(`${PODS}/args/log`)).text, 'from args\n')
  await client.post(PODS, pod('none', undefined))
  await phase(client, 'Running')
  assert.match(
    (await client.get(`${PODS}/none/log`)).text,
    /^sandbox: container main of pod none waits until it is stopped\n$/,
  )
  await client.delete(`${PODS}/none`)
  await until('it is gone', () => !client.sandbox.store.get('pods', 'default', 'none'))
})

test('restartPolicy OnFailure restarts until it ends well', async t => {
  const client = await sandboxFor(t)
  await client.post(
    PODS,
    pod('twice', ['sh', '-c', 'test -e done && exit 0; touch done; exit 1'], {}, { restartPolicy: 'OnFailure' }),
  )
  const ended = await phase(client, 'Succeeded')
  assert.equal(ended.status.containerStatuses[0].restartCount, 1)
  assert.equal(ended.status.containerStatuses[0].lastState.terminated.exitCode, 1)
})

test('every container of a pod is run; the pod ends with the last', async t => {
  const client = await sandboxFor(t)
  const body = pod('two', ['sh', '-c', 'echo main'])
  body.spec.containers.push({ name: 'side', image: 'x:1', command: ['sh', '-c', 'echo side; sleep 0.2; exit 4'] })
  await client.post(PODS, body)
  const ended = await phase(client, 'Failed')
  assert.deepEqual(
    ended.status.containerStatuses.map(
      (status: { state: { terminated: { exitCode: number } } }) => status.state.terminated.exitCode,
    ),
    [0, 4],
  )
  assert.equal((await client.get(`${PODS}/two/log?container=side`)).text, 'side\n')
  assert.equal(
    (await client.get(`${PODS}/two/log`)).body.message,
    'a container name must be specified for pod two, choose one of: [main side]',
  )
})

test('a readiness probe: Running before Ready (recording d-probe)', async t => {
  const client = await sandboxFor(t)
  const readinessProbe = { exec: { command: ['test', '-e', 'ready'] }, periodSeconds: 0.02 }
  await client.post(
    PODS,
    pod('probed', ['sh', '-c', 'sleep 0.3; touch ready; while :; do sleep 0.05; done'], { readinessProbe }),
  )
  const running = await phase(client, 'Running')
  assert.equal(condition(running, 'Ready').status, 'False')
  await client.pod(object => condition(object, 'Ready')?.status === 'True', 'readiness')
})

test('delete: SIGTERM, the end while terminating, then the object goes; DELETE again keeps the first deadline (recording p-deleted)', async t => {
  const client = await sandboxFor(t)
  await client.post(PODS, pod('one', POLITE, {}, { terminationGracePeriodSeconds: 5 }))
  await client.pod(({ status }) => status.containerStatuses?.[0].ready, 'it runs')
  await until('its line', async () => (await client.get(`${PODS}/one/log`)).text === 'up\n')
  const changes: string[] = []
  client.sandbox.store.subscribe(({ resource, type, object }) => {
    const { deletionGracePeriodSeconds, generation } = object.metadata
    if (resource === 'pods')
      changes.push(
        [
          type,
          object.status.phase,
          `g${generation}/${object.status.observedGeneration}`,
          deletionGracePeriodSeconds,
        ].join(' '),
      )
  })
  assert.equal((await client.delete(`${PODS}/one`)).body.metadata.deletionGracePeriodSeconds, 5)
  await until('it is gone', () => client.sandbox.store.count('pods') === 0)
  assert.deepEqual(changes, [
    'MODIFIED Running g2/1 5',
    'MODIFIED Running g2/2 5',
    'MODIFIED Succeeded g2/2 5',
    'MODIFIED Succeeded g2/2 0',
    'DELETED Succeeded g2/2 0',
  ])
})

test('forced delete: gone within the DELETE, still Running in the tombstone, the process is ended (recording p-deleted-forced)', async t => {
  const client = await sandboxFor(t)
  await client.post(PODS, pod('one', ['sh', '-c', 'echo $$$$; while :; do sleep 0.05; done']))
  const pid = await until('the pid', async () => Number((await client.get(`${PODS}/one/log`)).text.trim()))
  assert.ok(lives(pid))
  const reply = await client.delete(`${PODS}/one`, { gracePeriodSeconds: 0 })
  assert.equal(reply.body.status.phase, 'Running')
  assert.equal((await client.get(`${PODS}/one`)).code, 404)
  await until('the process ends', () => !lives(pid))
})

test('activeDeadlineSeconds of a pod: phase Failed, reason DeadlineExceeded, the object stays (recording p-deadline)', async t => {
  const client = await sandboxFor(t)
  await client.post(PODS, pod('late', POLITE, {}, { activeDeadlineSeconds: 1 }))
  const failed = await phase(client, 'Failed')
  assert.equal(failed.status.reason, 'DeadlineExceeded')
  assert.equal(failed.status.message, 'Pod was active on the node longer than the specified deadline')
  assert.equal(failed.status.containerStatuses[0].state.terminated.exitCode, 0)
})

test('eviction: DisruptionTarget, then a graceful delete; 429 against a PodDisruptionBudget (recording p-evicted)', async t => {
  const client = await sandboxFor(t)
  await client.post(PODS, pod('one', STUBBORN))
  await client.pod(object => condition(object, 'Ready')?.status === 'True')
  await client.post('/apis/policy/v1/namespaces/default/poddisruptionbudgets', {
    metadata: { name: 'web' },
    spec: { minAvailable: 1, selector: { matchLabels: { app: 'one' } } },
  })
  const refused = await client.post(`${PODS}/one/eviction`, { metadata: { name: 'one' } })
  assert.equal(refused.code, 429)
  assert.deepEqual(refused.body.details.causes, [
    { reason: 'DisruptionBudget', message: 'The disruption budget web needs 1 healthy pods and has 1 currently' },
  ])
  await client.delete('/apis/policy/v1/namespaces/default/poddisruptionbudgets/web')
  assert.equal((await client.post(`${PODS}/one/eviction`, { metadata: { name: 'one' } })).code, 201)
  const going = await client.pod(({ metadata }) => metadata.deletionTimestamp)
  assert.equal(condition(going, 'DisruptionTarget').reason, 'EvictionByEvictionAPI')
})

test('a pod held by a foreign finalizer stays, ended, until it is taken off (recording d-pod-finalizer)', async t => {
  const client = await sandboxFor(t)
  const body = pod('held', POLITE)
  body.metadata.finalizers = ['example.com/hold']
  await client.post(PODS, body)
  await client.pod(({ status }) => status.containerStatuses?.[0].ready)
  await client.delete(`${PODS}/held`)
  await client.pod(
    ({ metadata, status }) => metadata.deletionGracePeriodSeconds === 0 && status.containerStatuses[0].state.terminated,
  )
  assert.equal((await client.get(`${PODS}/held`)).code, 200)
  await client.patch(`${PODS}/held`, { metadata: { finalizers: null } })
  assert.equal((await client.get(`${PODS}/held`)).code, 404)
})

test('close() leaves no process behind, not even grandchildren that ignore SIGTERM', async t => {
  const sandbox = await startSandbox({ timing: TEST_TIMING })
  t.after(() => sandbox.close())
  const client = new Client(sandbox)
  const shell = "trap '' TERM; echo $$$$; sh -c 'trap \"\" TERM; echo $$$$; while :; do sleep 0.05; done' & wait"
  await client.post(DEPLOYMENTS, deployment('web', ['sh', '-c', shell], {}, { replicas: 2 }))
  const pids = await until('four pids', async () => {
    const logs = await Promise.all(
      sandbox.store.list('pods').map(({ metadata }) => client.get(`${PODS}/${metadata.name}/log`)),
    )
    const found = logs.flatMap(log => (log.code === 200 ? log.text.trim().split('\n').map(Number) : [])).filter(Boolean)
    return found.length === 4 ? found : undefined
  })
  assert.ok(pids.every(lives))
  await sandbox.close()
  await until('all processes are gone', () => !pids.some(lives), 2000)
  await assert.rejects(fetch(`${sandbox.url}/version`), 'the port is closed')
})

test('the instant kubelet: ready at once, gone at once, no process', async t => {
  const client = await sandboxFor(t, { kubelet: 'instant' })
  await client.post(DEPLOYMENTS, deployment('web', ['/nope'], {}, { replicas: 3 }))
  await until(
    'three ready',
    () => client.sandbox.store.get('deployments', 'default', 'web')?.status.readyReplicas === 3,
  )
  await client.delete(`${DEPLOYMENTS}/web`, { propagationPolicy: 'Foreground' })
  await until('all is gone', () => client.sandbox.store.count('pods') + client.sandbox.store.count('deployments') === 0)
})
