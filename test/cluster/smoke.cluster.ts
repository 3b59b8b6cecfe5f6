import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { type Connection, connect, poll } from './connect.ts'

const image = process.env.RUNTIMED_CLUSTER_IMAGE ?? 'registry.local/busybox:1'
const namespace = `smoke-${process.pid}`
let api: Connection

before(async () => {
  api = await connect()
  const made = await api.send('POST', '/api/v1/namespaces', { metadata: { name: namespace } })
  assert.equal(made.status, 201)
})

after(async () => {
  await api.send('DELETE', `/api/v1/namespaces/${namespace}`)
  await api.close()
})

function podTemplate(name: string, script: string, restartPolicy: 'Always' | 'Never') {
  return {
    metadata: { labels: { smoke: name } },
    spec: {
      restartPolicy,
      terminationGracePeriodSeconds: 1,
      containers: [{ name: 'main', image, command: ['sh', '-c', script] }],
    },
  }
}

async function onlyPod(name: string) {
  const pods = await api.send('GET', `/api/v1/namespaces/${namespace}/pods?labelSelector=smoke%3D${name}`)
  assert.equal(pods.body.items.length, 1)
  return pods.body.items[0]
}

test('smoke: a Deployment becomes ready and its logs are readable', async () => {
  const deployments = `/apis/apps/v1/namespaces/${namespace}/deployments`
  const template = podTemplate('web', 'echo hello; sleep 1000', 'Always')
  const spec = { selector: { matchLabels: { smoke: 'web' } }, template }
  const made = await api.send('POST', deployments, { metadata: { name: 'web' }, spec })
  assert.equal(made.status, 201)
  await poll(
    () => api.send('GET', `${deployments}/web`),
    ({ body }) => body.status?.readyReplicas === 1,
  )
  const pod = await onlyPod('web')
  const log = await api.send('GET', `/api/v1/namespaces/${namespace}/pods/${pod.metadata.name}/log`)
  assert.deepEqual(log, { status: 200, body: 'hello\n' })
})

test('smoke: a Job whose container exits 3 has failed, and the pod says 3', async () => {
  const jobs = `/apis/batch/v1/namespaces/${namespace}/jobs`
  const spec = { backoffLimit: 0, template: podTemplate('job', 'exit 3', 'Never') }
  const made = await api.send('POST', jobs, { metadata: { name: 'job' }, spec })
  assert.equal(made.status, 201)
  const job = await poll(
    () => api.send('GET', `${jobs}/job`),
    ({ body }) => body.status?.conditions?.some((c: { type: string }) => c.type === 'Failed'),
  )
  assert.equal(job.body.status.failed, 1)
  const pod = await onlyPod('job')
  assert.equal(pod.status.containerStatuses[0].state.terminated.exitCode, 3)
})

const withTools = { skip: process.env.RUNTIMED_CLUSTER_TOOLS === undefined && 'the cluster is not one of test/cluster' }

test('smoke: each test user has its rights and no others', withTools, async t => {
  const statuses = async (user: string, namespaceOf: string) => {
    const connection = await connect(`${process.env.KUBECONFIG}.${user}`)
    t.after(() => connection.close())
    const pods = await connection.send('GET', `/api/v1/namespaces/${namespaceOf}/pods`)
    const secrets = await connection.send('GET', `/api/v1/namespaces/${namespaceOf}/secrets`)
    return [pods.status, secrets.status]
  }
  assert.deepEqual(await statuses('runtimed', 'default'), [200, 403])
  assert.deepEqual(await statuses('runtimed', 'runtimed-test'), [200, 403])
  assert.deepEqual(await statuses('runtimed', 'kube-system'), [403, 403])
  assert.deepEqual(await statuses('nobody-rights', 'default'), [403, 403])
})
