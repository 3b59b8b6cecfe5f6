import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { RuntimeError } from '../../src/errors.ts'
import { KubeClient } from '../../src/kube/client.ts'
import { isKubeStatus } from '../../src/kube/errors.ts'
import { json, serve, statusBody, transportTo, within } from './serve.ts'

const failure = async (work: Promise<unknown>): Promise<RuntimeError> => {
  const error = await work.then(
    () => assert.fail('it succeeded'),
    reason => reason,
  )
  assert.ok(error instanceof RuntimeError, String(error))
  return error
}

test('B-133: a patch is a merge patch and says so; a scale carries the version it read', async t => {
  const api = await serve(t, (_seen, response) => json(response, 200, { kind: 'Scale', spec: { replicas: 1 } }))
  const client = new KubeClient(transportTo(t, api.url))
  await client.patchScale('ai', 'web', { replicas: 1, resourceVersion: '42' })
  await client.patch('Job', 'ai', 'batch', { spec: { suspend: true } })
  const [scale, job] = api.seen
  assert.equal(scale?.path, '/apis/apps/v1/namespaces/ai/deployments/web/scale')
  assert.equal(scale?.headers['content-type'], 'application/merge-patch+json')
  assert.deepEqual(JSON.parse(scale?.body ?? ''), { metadata: { resourceVersion: '42' }, spec: { replicas: 1 } })
  assert.equal(job?.headers['content-type'], 'application/merge-patch+json')
})

test('B-132: an http:// server needs no further setting', async t => {
  const api = await serve(t, (_seen, response) => json(response, 200, { gitVersion: 'v1.36.2' }))
  assert.equal(await new KubeClient(transportTo(t, api.url)).version(), 'v1.36.2')
})

test('a delete names propagation, uid and grace, and answers what is left of the object', async t => {
  const api = await serve(t, ({ path }, response) =>
    json(response, 200, path.endsWith('/web') ? { kind: 'Deployment', metadata: { name: 'web' } } : { kind: 'Status' }),
  )
  const client = new KubeClient(transportTo(t, api.url))
  const options = { propagation: 'Foreground', uid: 'u1', gracePeriodSeconds: 0 } as const
  assert.equal((await client.delete('Deployment', 'ai', 'web', options))?.metadata?.name, 'web')
  assert.equal(await client.delete('Service', 'ai', 'web-svc', { propagation: 'Background' }), null)
  const sent = JSON.parse(api.seen[0]?.body ?? '')
  assert.deepEqual(sent.preconditions, { uid: 'u1' })
  assert.equal(sent.propagationPolicy, 'Foreground')
  assert.equal(sent.gracePeriodSeconds, 0)
  assert.equal('preconditions' in JSON.parse(api.seen[1]?.body ?? ''), false)
})

test('a list reads every page, unzips it, and starts over when its continue token expired', async t => {
  let expired = false
  const api = await serve(t, ({ query }, response) => {
    const token = query.get('continue')
    if (token === 'b' && !expired) {
      expired = true
      return json(response, 410, statusBody(410, 'Expired'))
    }
    const page = { a: { items: ['1'], next: 'b' }, b: { items: ['2', '3'], next: '' } }[token ?? 'a']
    assert.ok(page)
    const items = page.items.map(name => ({ metadata: { name } }))
    const body = gzipSync(JSON.stringify({ metadata: { continue: page.next }, items }))
    response.writeHead(200, { 'content-encoding': 'gzip' }).end(body)
  })
  const pods = await new KubeClient(transportTo(t, api.url)).list('Pod', null, { labelSelector: 'a=b' })
  assert.deepEqual(
    pods.map(pod => pod.metadata?.name),
    ['1', '2', '3'],
  )
  assert.equal(api.seen.length, 4)
  for (const { path, query, headers } of api.seen) {
    assert.equal(path, '/api/v1/pods')
    assert.equal(query.get('limit'), '500')
    assert.equal(query.get('labelSelector'), 'a=b')
    assert.equal(query.has('resourceVersion'), false)
    assert.equal(headers['accept-encoding'], 'gzip')
  }
})

test('events are asked for by the uid of what they speak of', async t => {
  const api = await serve(t, (_seen, response) => json(response, 200, { items: [{ reason: 'FailedCreate' }] }))
  const events = await new KubeClient(transportTo(t, api.url)).eventsOf('ai', 'u-1')
  assert.equal(events[0]?.reason, 'FailedCreate')
  assert.equal(api.seen[0]?.query.get('fieldSelector'), 'involvedObject.uid=u-1')
})

test('B8, F-49: no name that is not RFC 1123 reaches the cluster', async t => {
  const api = await serve(t, (_seen, response) => json(response, 200, {}))
  const client = new KubeClient(transportTo(t, api.url))
  const bad = [
    '.',
    '..',
    '',
    'x/../../namespaces/kube-system/secrets?a=',
    'A',
    'a\n',
    '%2e%2e',
    'a..b',
    '-a',
    'a'.repeat(254),
  ]
  for (const name of bad) {
    const calls = [
      client.get('Pod', 'default', name),
      client.get('Pod', name, 'a'),
      client.delete('Deployment', 'default', name, { propagation: 'Foreground' }),
      client.list('Job', name),
      client.podLog('default', name),
      client.patchScale('default', name, { replicas: 0, resourceVersion: '1' }),
    ]
    for (const call of calls) assert.equal((await failure(call)).code, 'RUNTIME_ID_INVALID', JSON.stringify(name))
  }
  assert.equal(api.seen.length, 0)
})

interface Recorded {
  action: string
  method: string
  path: string
  answer: { code: number; body: { kind?: string } }
}
const recorded = new Map(
  readFileSync(new URL('../recordings/answers.jsonl', import.meta.url), 'utf8')
    .trim()
    .split('\n')
    .map(line => JSON.parse(line) as Recorded)
    .map(line => [line.action, line]),
)

/** The recorded answer to a call as this client makes it. */
const ANSWERS: [action: string, code: string, told: RegExp][] = [
  ['create the same name again (running)', 'RUNTIME_EXISTS', /^cannot create .* exists$/],
  ['create into a namespace that does not exist', 'SPEC_REFUSED', /namespaces "nowhere" not found/],
  ['create with an illegal name', 'SPEC_REFUSED', /lowercase RFC 1123/],
  ['create with negative memory', 'SPEC_REFUSED', /must be greater than or equal to 0/],
  ['create with a wrong type', 'KUBERNETES_ERROR', /answered 400$/],
  ['get of a name never there', 'RUNTIME_NOT_FOUND', /does not exist$/],
  ['scale of a name never there', 'RUNTIME_NOT_FOUND', /does not exist$/],
  ['delete of a name never there', 'RUNTIME_NOT_FOUND', /does not exist$/],
  ['scale with an old resourceVersion', 'KUBERNETES_ERROR', /answered 409$/],
  ['delete with a foreign uid precondition', 'KUBERNETES_ERROR', /answered 409$/],
  ['wrong token', 'BACKEND_UNAVAILABLE', /credentials$/],
  ['no right to read', 'CLUSTER_FORBIDDEN', /role of this service$/],
  ['no right to scale', 'CLUSTER_FORBIDDEN', /role of this service$/],
  ['create job, quota count/jobs.batch=0', 'QUOTA_EXCEEDED', /exceeded quota: counts/],
  ['patch of an immutable field', 'SPEC_REFUSED', /field is immutable|Invalid value/],
  ['create the same name while it is being deleted', 'RUNTIME_BUSY', /being deleted/],
  ['list with a bad selector', 'KUBERNETES_ERROR', /answered 400$/],
]

/** The call of this client that a recorded line stands for. */
function repeat(client: KubeClient, { method, path }: Recorded): Promise<unknown> {
  const parts = path.split('?')[0]?.split('/') ?? []
  const [namespace = '', plural, name = 'web', scale] = parts.slice(parts.indexOf('namespaces') + 1)
  const kind = plural === 'jobs' ? 'Job' : plural === 'pods' ? 'Pod' : 'Deployment'
  if (scale === 'scale') return client.patchScale(namespace, name, { replicas: 1, resourceVersion: '1' })
  if (method === 'POST') return client.create(kind, namespace, { metadata: { name: 'web' } })
  if (method === 'PATCH') return client.patch(kind, namespace, name, {})
  if (method === 'DELETE') return client.delete(kind, namespace, name, { propagation: 'Foreground' })
  return path.includes('?') ? client.list(kind, namespace) : client.get(kind, namespace, name)
}

test('S2: the recorded error replies of a real cluster get the codes of wire.md §7', async t => {
  let line: Recorded | undefined
  const api = await serve(t, (_seen, response) => json(response, line?.answer.code ?? 599, line?.answer.body))
  const client = new KubeClient(transportTo(t, api.url))
  for (const [action, code, told] of ANSWERS) {
    line = recorded.get(action)
    assert.ok(line, action)
    const error = await failure(repeat(client, line))
    assert.equal(error.code, code, action)
    assert.match(error.message, told, action)
    assert.equal(error.notDone, true, action)
    assert.ok(isKubeStatus(error, line.answer.code), action)
  }
})

test('a refused spec names the fields in the cluster\u2019s words, and its reason', async t => {
  const line = recorded.get('create with negative memory')
  const api = await serve(t, (_seen, response) => json(response, 422, line?.answer.body))
  const client = new KubeClient(transportTo(t, api.url))
  const error = await failure(client.create('Deployment', 'ai', { metadata: { name: 'w2' } }))
  assert.equal(error.reason, 'Invalid')
  assert.deepEqual(error.errors, [
    {
      path: 'spec.template.spec.containers[0].resources.limits[memory]',
      message: 'Invalid value: "-1": must be greater than or equal to 0',
    },
  ])
})

const forbidden = (message: string, details?: object) => statusBody(403, 'Forbidden', message, details)
const REFUSALS: [name: string, status: number, body: unknown, code: string][] = [
  ['webhook', 400, statusBody(400, 'BadRequest', 'admission webhook "x.y" denied the request: no'), 'SPEC_REFUSED'],
  ['PodSecurity', 403, forbidden('pods "a" is forbidden: violates PodSecurity "restricted"'), 'SPEC_REFUSED'],
  ['LimitRange', 403, forbidden('pods "a" is forbidden: maximum cpu usage per Pod is 1'), 'SPEC_REFUSED'],
  [
    'terminating',
    403,
    forbidden(
      'deployments.apps "a" is forbidden: unable to create new content in namespace ai because it is being terminated',
      { causes: [{ reason: 'NamespaceTerminating', message: '…' }] },
    ),
    'RUNTIME_BUSY',
  ],
  ['proxy', 502, '<html>bad gateway</html>', 'KUBERNETES_ERROR'],
  [
    'not found, not the namespace',
    404,
    statusBody(404, 'NotFound', 'the server could not find the requested resource'),
    'KUBERNETES_ERROR',
  ],
]
for (const [name, status, body, code] of REFUSALS) {
  test(`S2: a create refused by ${name} (${status}) is ${code}`, async t => {
    const api = await serve(t, (_seen, response) => json(response, status, body))
    const client = new KubeClient(transportTo(t, api.url, { deadlineMs: 300 }))
    const error = await failure(client.create('Deployment', 'ai', { metadata: { name: 'a' } }))
    assert.equal(error.code, code)
    assert.equal(error.notDone, true)
  })
}

test('what the cluster says reaches no caller, save where he must mend his spec', async t => {
  const canary = 'token=s3cr3t 10.0.0.7 /etc/kubernetes/pki'
  const api = await serve(t, (_seen, response) => json(response, 500, statusBody(500, 'InternalError', canary)))
  const error = await failure(new KubeClient(transportTo(t, api.url, { deadlineMs: 300 })).get('Pod', 'ai', 'a'))
  assert.equal(error.code, 'KUBERNETES_ERROR')
  assert.doesNotMatch(error.message, /s3cr3t|10\.0|pki|127\.0/)
  const gone = await failure(
    new KubeClient(transportTo(t, 'http://127.0.0.1:1', { deadlineMs: 300 })).get('Pod', 'ai', 'a'),
  )
  assert.doesNotMatch(gone.message, /127|:1|ECONN/)
})

test('an error text of 10 MB is cut before it is kept', async t => {
  const huge = `a\n\u001b[31m${'x'.repeat(10_000_000)}`
  const api = await serve(t, (_seen, response) => json(response, 422, statusBody(422, 'Invalid', huge)))
  const client = new KubeClient(transportTo(t, api.url, { deadlineMs: 5000 }))
  const error = await failure(client.create('Job', 'ai', { metadata: { name: 'a' } }))
  assert.ok(error.message.length < 1000)
  assert.ok(![...error.message].some(character => character < ' '))
  assert.ok((error.cause as Error).message.length < 5000)
})

test('B-134, F-14: an API server that never answers: every call ends within its deadline, a write stays undecided', async t => {
  const api = await serve(t, () => {})
  const client = new KubeClient(transportTo(t, api.url, { deadlineMs: 150 }))
  const calls: [boolean, Promise<unknown>][] = [
    [true, client.get('Pod', 'ai', 'a')],
    [true, client.list('Pod', 'ai')],
    [true, client.version()],
    [true, client.podLog('ai', 'a')],
    [false, client.create('Deployment', 'ai', { metadata: { name: 'a' } })],
    [false, client.patchScale('ai', 'a', { replicas: 0, resourceVersion: '1' })],
    [false, client.delete('Job', 'ai', 'a', { propagation: 'Foreground' })],
  ]
  await within(250, Promise.allSettled(calls.map(([, call]) => call)))
  for (const [notDone, call] of calls) {
    const error = await failure(call)
    assert.equal(error.code, 'BACKEND_TIMEOUT')
    assert.equal(error.notDone, notDone)
  }
})

test('an answer cut off after the write was sent leaves it undecided; it is not sent twice', async t => {
  for (const cut of ['before', 'within'] as const) {
    const api = await serve(t, (_seen, response) => {
      if (cut === 'within') response.writeHead(201, { 'content-length': '100' }).write('{"kind":')
      setTimeout(() => response.destroy(), 5)
    })
    const client = new KubeClient(transportTo(t, api.url))
    const error = await failure(client.create('Deployment', 'ai', { metadata: { name: 'a' } }))
    assert.equal(error.code, 'BACKEND_TIMEOUT', cut)
    assert.equal(error.notDone, false, cut)
    assert.equal(api.seen.length, 1, cut)
  }
})

test('a server that cannot be reached, or takes connections without ever talking TLS, surely did nothing', async t => {
  const silent = createServer(socket => socket.on('error', () => {}))
  await new Promise<void>(resolve => silent.listen(0, '127.0.0.1', resolve))
  t.after(() => silent.close())
  const port = (silent.address() as { port: number }).port
  for (const url of ['http://127.0.0.1:1', `https://127.0.0.1:${port}`]) {
    const client = new KubeClient(transportTo(t, url, { deadlineMs: 300 }))
    const error = await within(400, failure(client.create('Deployment', 'ai', { metadata: { name: 'a' } })))
    assert.equal(error.code, 'BACKEND_UNAVAILABLE')
    assert.equal(error.notDone, true)
  }
})

test('a read that fails for a moment (500, 503, reset) is repeated within its deadline', async t => {
  let n = 0
  const api = await serve(t, (_seen, response) => {
    n += 1
    if (n === 1) return json(response, 500, statusBody(500, 'InternalError'))
    if (n === 2) return json(response, 503, statusBody(503, 'ServiceUnavailable'))
    if (n === 3) return void response.destroy()
    json(response, 200, { metadata: { name: 'a' } })
  })
  const client = new KubeClient(transportTo(t, api.url, { deadlineMs: 3000 }))
  assert.equal((await client.get('Pod', 'ai', 'a')).metadata?.name, 'a')
  assert.equal(n, 4)
})

test('F-15, B-14: 429 is waited out, by everybody; beyond the deadline it is 503 with Retry-After at once', async t => {
  let open = Number.POSITIVE_INFINITY
  const api = await serve(t, (_seen, response) => {
    if (Date.now() < open) {
      if (open === Number.POSITIVE_INFINITY) open = Date.now() + 1000
      return json(response, 429, statusBody(429, 'TooManyRequests'), { 'retry-after': '1' })
    }
    json(response, 200, { metadata: { name: 'a' } })
  })
  const transport = transportTo(t, api.url, { deadlineMs: 5000 })
  const client = new KubeClient(transport)
  const first = client.get('Pod', 'ai', 'a')
  while (api.seen.length === 0) await new Promise(resolve => setTimeout(resolve, 5))
  await new Promise(resolve => setTimeout(resolve, 50))
  const impatient = await within(100, failure(client.get('Pod', 'ai', 'b', { deadlineMs: 200 })))
  assert.equal(impatient.code, 'BACKEND_UNAVAILABLE')
  assert.equal(impatient.retryAfterSeconds, 1)
  await Promise.all([first, ...Array.from({ length: 20 }, () => client.get('Pod', 'ai', 'c'))])
  const early = api.seen.slice(1).filter(({ at }) => at < open)
  assert.deepEqual(early, [])
})

test('at most 32 calls at a time, over as many connections, kept for the next', async t => {
  let now = 0
  let most = 0
  const api = await serve(t, (_seen, response) => {
    now += 1
    most = Math.max(most, now)
    setTimeout(() => {
      now -= 1
      json(response, 200, {})
    }, 100)
  })
  const client = new KubeClient(transportTo(t, api.url, { deadlineMs: 5000 }))
  await Promise.all(Array.from({ length: 300 }, () => client.get('Pod', 'ai', 'a')))
  assert.equal(api.seen.length, 300)
  assert.equal(most, 32)
  assert.ok(api.connections() <= 32, `${api.connections()} connections`)
})

test('a log comes byte by byte, tailLines=0 is sent, and leaving it closes the connection', async t => {
  const bytes = Buffer.from([0, 255, 10, 27, 91, 240, 159])
  const api = await serve(t, (_seen, response) => void response.writeHead(200).write(bytes))
  const client = new KubeClient(transportTo(t, api.url))
  const stream = await client.podLog('ai', 'a', { container: 'main', tailLines: 0, follow: true, limitBytes: 7 })
  const [chunk] = await once(stream, 'data')
  assert.deepEqual(chunk, bytes)
  assert.equal(api.seen[0]?.query.get('tailLines'), '0')
  assert.equal(api.sockets.size, 1)
  stream.destroy()
  const end = Date.now() + 1000
  while (api.sockets.size > 0 && Date.now() < end) await new Promise(resolve => setTimeout(resolve, 5))
  assert.equal(api.sockets.size, 0)
})

test('the error of a log that cannot be read is the cluster\u2019s own', async t => {
  const line = recorded.get('log of a pod that has not started')
  const api = await serve(t, (_seen, response) => json(response, 400, line?.answer.body))
  const error = await failure(new KubeClient(transportTo(t, api.url)).podLog('ai', 'a'))
  assert.ok(isKubeStatus(error, 400, 'BadRequest'))
  assert.match(error.kube.message, /is waiting to start/)
})
