import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Client, DEPLOYMENTS, deployment, JOBS, type Json, job, MERGE, PODS, pod, sandboxFor } from './client.ts'

/** The replies of a real 1.36 API server to the same requests. */
const still = { kubelet: 'none', controllers: false } as const

const failure = (code: number, reason: string, message: string, details?: Json): Json => ({
  kind: 'Status',
  apiVersion: 'v1',
  metadata: {},
  status: 'Failure',
  message,
  reason,
  ...(details ? { details } : {}),
  code,
})

async function withWeb(client: Client): Promise<Json> {
  return (await client.post(DEPLOYMENTS, deployment('web'))).body
}

test('create answers 201 with generation 1, an empty status and the defaults', async t => {
  const client = await sandboxFor(t, still)
  const made = await client.post(DEPLOYMENTS, deployment('web'))
  assert.equal(made.code, 201)
  assert.equal(made.body.kind, 'Deployment')
  assert.equal(made.body.metadata.generation, 1)
  assert.deepEqual(made.body.status, {})
  assert.equal(made.body.spec.replicas, 1)
  assert.equal(made.body.spec.progressDeadlineSeconds, 600)
  assert.deepEqual(Object.keys(made.body), ['kind', 'apiVersion', 'metadata', 'spec', 'status'])
})

test('error replies are word for word those of a real API server', async t => {
  const client = await sandboxFor(t, still)
  await withWeb(client)
  const apps = { group: 'apps', kind: 'deployments' }
  const cases: [Promise<{ body: Json }>, Json][] = [
    [
      client.post(DEPLOYMENTS, deployment('web')),
      failure(409, 'AlreadyExists', 'deployments.apps "web" already exists', { name: 'web', ...apps }),
    ],
    [
      client.post('/apis/apps/v1/namespaces/nowhere/deployments', deployment('web')),
      failure(404, 'NotFound', 'namespaces "nowhere" not found', { name: 'nowhere', kind: 'namespaces' }),
    ],
    [
      client.get(`${DEPLOYMENTS}/nope`),
      failure(404, 'NotFound', 'deployments.apps "nope" not found', { name: 'nope', ...apps }),
    ],
    [client.scale('nope', 1), failure(404, 'NotFound', 'deployments.apps "nope" not found', { name: 'nope', ...apps })],
    [
      client.delete(`${DEPLOYMENTS}/nope`),
      failure(404, 'NotFound', 'deployments.apps "nope" not found', { name: 'nope', ...apps }),
    ],
    [client.get(`${PODS}/nope`), failure(404, 'NotFound', 'pods "nope" not found', { name: 'nope', kind: 'pods' })],
    [
      client.post(DEPLOYMENTS, { ...deployment('w3'), spec: { ...deployment('w3').spec, replicas: '1' } }),
      failure(
        400,
        'BadRequest',
        'Deployment in version "v1" cannot be handled as a Deployment: json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32',
      ),
    ],
    [
      client.patch(`${DEPLOYMENTS}/web/scale`, { metadata: { resourceVersion: '1' }, spec: { replicas: 3 } }),
      failure(
        409,
        'Conflict',
        'Operation cannot be fulfilled on deployments.apps "web": the object has been modified; please apply your changes to the latest version and try again',
        { name: 'web', ...apps },
      ),
    ],
  ]
  for (const [reply, expected] of cases) assert.deepEqual((await reply).body, expected)
})

test('an illegal name and a negative quantity are 422 with one cause each', async t => {
  const client = await sandboxFor(t, still)
  const text =
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
  const bad = deployment('web')
  bad.metadata.name = 'Bad_Name'
  assert.deepEqual(
    (await client.post(DEPLOYMENTS, bad)).body,
    failure(
      422,
      'Invalid',
      `Deployment.apps "Bad_Name" is invalid: metadata.name: Invalid value: "Bad_Name": ${text}`,
      {
        name: 'Bad_Name',
        group: 'apps',
        kind: 'Deployment',
        causes: [
          { reason: 'FieldValueInvalid', message: `Invalid value: "Bad_Name": ${text}`, field: 'metadata.name' },
        ],
      },
    ),
  )
  const field = 'spec.template.spec.containers[0].resources.limits[memory]'
  const message = 'Invalid value: "-1": must be greater than or equal to 0'
  assert.deepEqual(
    (await client.post(DEPLOYMENTS, deployment('w2', ['x'], { resources: { limits: { memory: '-1' } } }))).body,
    failure(422, 'Invalid', `Deployment.apps "w2" is invalid: ${field}: ${message}`, {
      name: 'w2',
      group: 'apps',
      kind: 'Deployment',
      causes: [{ reason: 'FieldValueInvalid', message, field }],
    }),
  )
})

test('labels, missing image, foreign selector, unknown quantity are refused', async t => {
  const client = await sandboxFor(t, still)
  const labelled = deployment('a')
  labelled.metadata.labels = { team: '-x' }
  assert.equal((await client.post(DEPLOYMENTS, labelled)).body.details.causes[0].field, 'metadata.labels')
  assert.equal(
    (await client.post(PODS, pod('p', ['x'], { image: '' }))).body.details.causes[0].field,
    'spec.containers[0].image',
  )
  const foreign = deployment('a', ['x'], {}, { selector: { matchLabels: { app: 'other' } } })
  assert.match((await client.post(DEPLOYMENTS, foreign)).body.message, /`selector` does not match template `labels`/)
  const odd = await client.post(PODS, pod('p', ['x'], { resources: { limits: { cpu: 'many' } } }))
  assert.equal(odd.code, 400)
  assert.match(odd.body.message, /quantities must match the regular expression/)
  const restart = job('j', ['x'])
  restart.spec.template.spec.restartPolicy = 'Always'
  assert.match(
    (await client.post(JOBS, restart)).body.message,
    /spec.template.spec.restartPolicy: Unsupported value: "Always"/,
  )
  assert.equal(
    client.sandbox.store.count('pods') + client.sandbox.store.count('deployments') + client.sandbox.store.count('jobs'),
    0,
  )
})

test('scale: reads and writes replicas; the same number changes nothing, another counts the generation', async t => {
  const client = await sandboxFor(t, still)
  const web = await withWeb(client)
  const { name, namespace, uid, creationTimestamp } = web.metadata
  const scale = (await client.get(`${DEPLOYMENTS}/web/scale`)).body
  assert.deepEqual(scale, {
    kind: 'Scale',
    apiVersion: 'autoscaling/v1',
    metadata: { name, namespace, uid, resourceVersion: web.metadata.resourceVersion, creationTimestamp },
    spec: { replicas: 1 },
    status: { replicas: 0, selector: 'app=web' },
  })
  assert.equal((await client.scale('web', 1)).body.metadata.resourceVersion, web.metadata.resourceVersion)
  const zero = await client.scale('web', 0)
  assert.deepEqual(zero.body.spec, {})
  assert.equal((await client.get(`${DEPLOYMENTS}/web`)).body.metadata.generation, 2)
  assert.equal((await client.scale('web', -1)).code, 422)
})

test('patch: merge, strategic and JSON patch; other content types are 415', async t => {
  const client = await sandboxFor(t, still)
  await withWeb(client)
  const path = `${DEPLOYMENTS}/web`
  await client.patch(path, { metadata: { annotations: { a: '1', b: '2' } } })
  const merged = await client.patch(path, { metadata: { annotations: { a: null } } }, MERGE)
  assert.deepEqual(merged.body.metadata.annotations, { b: '2' })
  const image = { spec: { template: { spec: { containers: [{ name: 'main', image: 'new:1' }] } } } }
  const strategic = await client.patch(path, image, 'application/strategic-merge-patch+json')
  assert.equal(strategic.body.spec.template.spec.containers[0].image, 'new:1')
  assert.ok(strategic.body.spec.template.spec.containers[0].command, 'other fields of the container stay')
  const operations = [
    { op: 'test', path: '/spec/replicas', value: 1 },
    { op: 'replace', path: '/spec/replicas', value: 4 },
    { op: 'add', path: '/metadata/labels/x~1y', value: 'z' },
  ]
  const json = await client.patch(path, operations, 'application/json-patch+json')
  assert.equal(json.body.spec.replicas, 4)
  assert.equal(json.body.metadata.labels['x/y'], 'z')
  const plain = await client.patch(path, {}, 'application/json')
  assert.equal(plain.code, 415)
  assert.equal(plain.body.reason, 'UnsupportedMediaType')
  assert.equal((await client.patch(path, {}, 'application/json-patch+json')).code, 400)
})

test('generation: spec and annotations of a Deployment count, labels and status do not', async t => {
  const client = await sandboxFor(t, still)
  await withWeb(client)
  const generation = async (): Promise<number> => (await client.get(`${DEPLOYMENTS}/web`)).body.metadata.generation
  await client.patch(`${DEPLOYMENTS}/web`, { metadata: { labels: { x: 'y' } } })
  await client.patch(`${DEPLOYMENTS}/web/status`, { status: { replicas: 3 } })
  assert.equal(await generation(), 1)
  await client.patch(`${DEPLOYMENTS}/web/status`, { spec: { replicas: 9 } })
  assert.equal((await client.get(`${DEPLOYMENTS}/web`)).body.spec.replicas, 1, 'the status route leaves the spec alone')
  await client.patch(`${DEPLOYMENTS}/web`, { status: { replicas: 7 } })
  assert.equal(
    (await client.get(`${DEPLOYMENTS}/web`)).body.status.replicas,
    3,
    'the main route leaves the status alone',
  )
  await client.patch(`${DEPLOYMENTS}/web`, { spec: { replicas: 2 } })
  assert.equal(await generation(), 2)
})

test('immutable fields are 422: selector of a Deployment, template of a Job, spec of a Pod', async t => {
  const client = await sandboxFor(t, still)
  await withWeb(client)
  await client.post(JOBS, job('batch', ['true']))
  await client.post(PODS, pod('one', ['true']))
  const selector = await client.patch(`${DEPLOYMENTS}/web`, { spec: { selector: { matchLabels: { app: 'x' } } } })
  assert.match(selector.body.message, /spec.selector: Invalid value: .*: field is immutable/)
  const template = await client.patch(`${JOBS}/batch`, {
    spec: { template: { spec: { terminationGracePeriodSeconds: 9 } } },
  })
  assert.equal(template.code, 422)
  assert.equal(template.body.details.causes[0].field, 'spec.template')
  const spec = await client.patch(`${PODS}/one`, { spec: { hostname: 'x' } })
  assert.match(spec.body.message, /Forbidden: pod updates may not change fields other than/)
})

test('delete: preconditions, Status or object, twice, and a create meanwhile', async t => {
  const client = await sandboxFor(t, still)
  const { uid } = (await withWeb(client)).metadata
  const zeros = '00000000-0000-0000-0000-000000000000'
  const foreign = await client.delete(`${DEPLOYMENTS}/web`, { preconditions: { uid: zeros } })
  assert.deepEqual(
    foreign.body,
    failure(
      409,
      'Conflict',
      `Operation cannot be fulfilled on Deployment.apps "web": the UID in the precondition (${zeros}) does not match the UID in record (${uid}). The object might have been deleted and then recreated`,
      { name: 'web', group: 'apps', kind: 'Deployment' },
    ),
  )
  await client.patch(`${DEPLOYMENTS}/web`, { metadata: { finalizers: ['example.com/hold'] } })
  const first = await client.delete(`${DEPLOYMENTS}/web`, { propagationPolicy: 'Background' })
  assert.equal(first.code, 200)
  assert.equal(first.body.metadata.generation, 2)
  assert.equal(first.body.metadata.deletionGracePeriodSeconds, 0)
  const second = await client.delete(`${DEPLOYMENTS}/web`, { propagationPolicy: 'Background' })
  assert.equal(second.body.metadata.resourceVersion, first.body.metadata.resourceVersion)
  assert.deepEqual(
    (await client.post(DEPLOYMENTS, deployment('web'))).body,
    failure(409, 'AlreadyExists', 'object is being deleted: deployments.apps "web" already exists', {
      name: 'web',
      group: 'apps',
      kind: 'deployments',
    }),
  )
  await client.patch(`${DEPLOYMENTS}/web`, { metadata: { finalizers: null } })
  assert.equal((await client.get(`${DEPLOYMENTS}/web`)).code, 404)
  const again = await withWeb(client)
  const gone = await client.delete(`${DEPLOYMENTS}/web`, { propagationPolicy: 'Background' })
  const details = { name: 'web', group: 'apps', kind: 'deployments', uid: again.metadata.uid }
  assert.deepEqual(gone.body, { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', details })
})

test('a create with dryRun=All is checked and not stored', async t => {
  const client = await sandboxFor(t, still)
  assert.equal((await client.post(`${DEPLOYMENTS}?dryRun=All`, deployment('web'))).code, 201)
  assert.equal((await client.get(`${DEPLOYMENTS}/web`)).code, 404)
})

test('broken JSON, wrong kind, unknown paths and methods', async t => {
  const client = await sandboxFor(t, still)
  assert.equal((await client.call('POST', DEPLOYMENTS, '{"a":')).code, 400)
  assert.equal((await client.post(DEPLOYMENTS, pod('x', ['y']))).code, 400)
  assert.equal((await client.get('/apis/apps/v1/namespaces/default/secrets')).code, 404)
  assert.equal((await client.get('/apis/nothing/v1/things')).code, 404)
  assert.equal((await client.call('PUT', DEPLOYMENTS, deployment('x'))).code, 405)
})

test('version, health and discovery', async t => {
  const client = await sandboxFor(t, still)
  assert.match((await client.get('/version')).body.gitVersion, /^v1\.36\.\d+/)
  for (const path of ['/readyz', '/livez']) assert.equal((await client.get(path)).text, 'ok')
  const list = (await client.get('/apis/apps/v1')).body
  assert.ok(list.resources.some((resource: Json) => resource.name === 'deployments/scale'))
  assert.deepEqual((await client.get('/api')).body.versions, ['v1'])
  assert.equal(JSON.parse(client.sandbox.kubeconfig()).clusters[0].cluster.server, client.sandbox.url)
})
