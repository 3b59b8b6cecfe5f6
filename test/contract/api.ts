import assert from 'node:assert/strict'
import { startDaemon } from '../helpers/daemon.ts'
import { poll, type Register, waiting } from './world.ts'

const PROBLEM = ['type', 'title', 'status', 'code', 'detail', 'errors', 'requestId', 'runtimeId', 'reason']

export function apiCases(test: Register): void {
  test('B4, B5, B7, B8, S3: what is no runtime ID is 400 and calls no cluster', async w => {
    const bad = [
      ...['web', 'k8s-default|deployment', 'k8s-default|deployment|web|x', 'k8s-default||web', '|deployment|web'],
      ...['k8s-|deployment|web', 'k3s-default|deployment|web', 'none-default|deployment|web', 'default|deployment|web'],
      ...['k8s-default|Deployment|web', 'k8s-default|cronjob|web', 'k8s-default|deployment|Web', 'k8s-Default|job|web'],
      ...[
        'k8s-default|deployment|a/b',
        'k8s-default|deployment|a.b',
        'k8s-default|deployment|..',
        'k8s-..|deployment|web',
      ],
      ...[
        'k8s-default|deployment|a\nb',
        `k8s-default|deployment|${'a'.repeat(64)}`,
        'a'.repeat(250),
        'k8s-default|job|a%2Fb',
      ],
    ]
    for (const id of bad) {
      const routes = [
        ['GET', ''],
        ['POST', '/start'],
        ['POST', '/stop'],
        ['DELETE', ''],
        ['GET', '/logs'],
        ['GET', '/events'],
      ]
      for (const [method = '', rest] of routes) {
        const reply = await w.client.api(method, w.client.path(id, rest))
        assert.equal(reply.status, 400, `${method} ${id}${rest}`)
        assert.match(reply.body.code, /^(RUNTIME_ID_INVALID|REQUEST_INVALID)$/)
        assert.deepEqual(Object.keys(reply.body), PROBLEM)
        assert.equal(reply.headers.get('content-type')?.split(';')[0], 'application/problem+json')
        assert.equal(reply.headers.get('x-request-id'), reply.body.requestId)
      }
    }
    const kinds = await w.client.api('GET', w.client.path('k8s-default|cronjob|web'))
    assert.match(kinds.body.detail, /deployment.*job.*pod/)
  })

  test('B1, B3, B6, B9, B11: an ID encoded, raw, with blanks; encoded twice it is none', async w => {
    const made = await w.job('exit 0', { start: false })
    const parts = made.id.split('|')
    for (const path of [made.id, encodeURIComponent(made.id), encodeURIComponent(` ${parts.join(' | ')} `)]) {
      const reply = await w.client.api('GET', `/v1/runtimes/${path}`)
      assert.deepEqual([reply.status, reply.body.id], [200, made.id], path)
    }
    const twice = await w.client.api('GET', `/v1/runtimes/${encodeURIComponent(encodeURIComponent(made.id))}`)
    assert.equal(twice.status, 400)
  })

  test('C2, C3, C5, C8, C15, D4, D10, N2, S3: a spec that cannot be is refused by field, and nothing is made', async w => {
    const { image } = w.stage.environment
    const name = w.name('refused')
    const bad: Array<[object, number, string | null]> = [
      [{ kind: 'daemonset' }, 400, '/kind'],
      [{ image: ' ' }, 400, '/image'],
      [{ image: undefined }, 400, null],
      [{ labels: { 'gobrave-workload': 'x' } }, 400, null],
      [{ labels: { 'runtimed.dev/x': 'x' } }, 400, null],
      [{ labels: { 'a b': 'x' } }, 400, null],
      [{ name: 'My App_v2!' }, 400, '/name'],
      [{ name: '-a' }, 400, '/name'],
      [{ name: 'a.b' }, 400, '/name'],
      [{ name: 'a'.repeat(64) }, 400, '/name'],
      [{ privileged: true }, 400, null],
      [{ env: { A: 5 } }, 400, null],
      [{ port: 70_000 }, 400, '/port'],
      [{ cpu: -1 }, 400, '/cpu'],
      [{ memory: '512m' }, 400, '/memory'],
      [{ imagePullPolicy: 'Sometimes' }, 400, '/imagePullPolicy'],
      [{ imagePullPolicy: 'Never' }, 422, null],
      [{ user: 'nobody' }, 422, null],
      [{ volumes: [{ source: '/etc', target: '/x' }] }, 422, null],
    ]
    for (const [fields, status, path] of bad) {
      const reply = await w.post({ image, name, ...fields })
      assert.equal(reply.status, status, `${JSON.stringify(fields)}: ${JSON.stringify(reply.body)}`)
      if (path !== null) assert.equal(reply.body.errors[0]?.path, path, JSON.stringify(reply.body))
    }
    const offer = await w.post({ image, name: 'My App_v2!' })
    assert.match(JSON.stringify(offer.body), /my-app-v2/)
    assert.equal((await w.get(w.id('deployment', name))).status, 404)
    assert.equal((await w.send('GET', w.at('deployments', name))).status, 404)
  })

  test('C1, C8, A7: kind, name and namespace left out', async w => {
    const made = await w.create({ ...w.script(waiting), kind: ' ', namespace: '', start: false, name: ' ' })
    assert.deepEqual([made.kind, made.namespace], ['deployment', w.namespace])
    const other = await w.create({ ...w.script(waiting), start: false })
    assert.notEqual(made.name, other.name)
    const elsewhere = await w.newNamespace('my-team-a')
    const there = await w.create({ ...w.script(waiting), start: false, namespace: elsewhere, name: 'web' })
    assert.equal(there.id, `k8s-${elsewhere}|deployment|web`)
    assert.equal((await w.object(there)).metadata.namespace, elsewhere)
    assert.deepEqual((await w.delete(there.id)).status, 202)
    await w.gone(there.id)
  })

  test('C14, D1, D2, D3, D8, D10, D11, D12, D14, D16, D17: every field reaches the workload as it was rendered', async w => {
    const spec = {
      ...{ kind: 'deployment', name: w.name('fields'), image: w.stage.environment.image, start: false },
      ...{ entrypoint: ['/bin/sh'], command: ['-c', 'env'], workdir: ' /tmp ', env: { B: '2', A: '1' } },
      ...{ cpu: 0.5, memory: 536_870_912, user: '1000:2000', supplementalGroups: [0, -1, 44], port: 8080 },
      ...{ schedulingConstraints: [{ type: 'node', key: 'hostname', operator: 'in', values: ['n1', 'n1'] }] },
      ...{ labels: { team: 'a' }, imagePullPolicy: 'ifnotpresent', imagePullSecrets: ['regcred'] },
      ...{ terminationGracePeriodSeconds: 5 },
    }
    const rendered = await w.client.api('POST', '/v1/runtimes?dryRun=render', spec)
    assert.equal(rendered.status, 200)
    const [object] = rendered.body.objects
    assert.equal((await w.send('GET', w.at('deployments', spec.name))).status, 404)
    const made = await w.create(spec)
    const actual = (await w.object(made)).spec.template.spec
    const [container] = actual.containers
    const [asked] = object.spec.template.spec.containers
    for (const field of Object.keys(asked)) assert.deepEqual(container[field], asked[field], field)
    assert.deepEqual(
      [container.name, container.command, container.args, container.workingDir, container.env],
      [
        'main',
        ['/bin/sh'],
        ['-c', 'env'],
        '/tmp',
        [
          { name: 'A', value: '1' },
          { name: 'B', value: '2' },
        ],
      ],
    )
    assert.deepEqual(container.resources.limits, { cpu: '500m', memory: '536870912' })
    assert.deepEqual(container.ports, [{ containerPort: 8080, protocol: 'TCP' }])
    const { runAsUser, runAsGroup, supplementalGroups } = { ...actual.securityContext, ...container.securityContext }
    assert.deepEqual([runAsUser, runAsGroup, supplementalGroups], [1000, 2000, [44]])
    assert.deepEqual(actual.imagePullSecrets, [{ name: 'regcred' }])
    assert.equal(actual.terminationGracePeriodSeconds, 5)
    const terms = actual.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms
    assert.deepEqual(terms, [{ matchExpressions: [{ key: 'kubernetes.io/hostname', operator: 'In', values: ['n1'] }] }])
    const shown = (await w.get(made.id)).body.spec
    assert.deepEqual([shown.memory, shown.workdir, shown.command], [536_870_912, '/tmp', ['-c', 'env']])
  })

  test('C9: create of a name that exists leaves it untouched', async w => {
    const made = await w.deployment(waiting, { start: false })
    const { uid, generation } = (await w.object(made)).metadata
    const again = await w.post({ name: made.name, ...w.script('exit 1') })
    assert.deepEqual([again.status, again.body.code, again.body.runtimeId], [409, 'RUNTIME_EXISTS', made.id])
    const { metadata, spec } = await w.object(made)
    assert.deepEqual([metadata.uid, metadata.generation, spec.replicas], [uid, generation, 0])
  })

  test('C9: a workload of the name that is not ours is foreign and stays', async w => {
    const name = w.name('theirs')
    const selector = { matchLabels: { theirs: name } }
    const containers = [{ name: 'x', image: w.stage.environment.image }]
    const template = { metadata: { labels: { theirs: name } }, spec: { containers } }
    const theirs = { metadata: { name }, spec: { replicas: 0, selector, template } }
    assert.equal((await w.send('POST', w.at('deployments'), theirs)).status, 201)
    const reply = await w.post({ name, ...w.script(waiting) })
    assert.deepEqual([reply.status, reply.body.code], [409, 'FOREIGN_WORKLOAD'])
    const id = w.id('deployment', name)
    for (const verb of ['start', 'stop'] as const) assert.equal((await w.verb(id, verb)).status, 404)
    assert.equal((await w.delete(id)).status, 404)
    assert.equal((await w.send('GET', w.at('deployments', name))).status, 200)
    assert.equal((await w.client.api('GET', w.client.path(id, '/events'))).status, 404)
    await w.send('DELETE', w.at('deployments', name))
  })

  test('C10, B-64, P5: the same key and body is the same runtime, 20 at once; another body is refused', async w => {
    const name = w.name('once')
    const spec = { kind: 'job', name, ...w.script('exit 0'), start: false }
    const key = { 'idempotency-key': `key-${name}` }
    const replies = await Promise.all(Array.from({ length: 20 }, () => w.post(spec, key)))
    assert.deepEqual([...new Set(replies.map(reply => reply.status))], [201])
    assert.equal(new Set(replies.map(reply => reply.body.uid)).size, 1)
    const other = await w.post({ ...spec, backoffLimit: 1 }, key)
    assert.deepEqual([other.status, other.body.code], [409, 'IDEMPOTENCY_KEY_REUSED'])
    await w.accepted(replies[0]?.body.id, 'delete')
    await w.gone(replies[0]?.body.id)
    const late = await w.post(spec, key)
    assert.deepEqual([late.status, late.body.state, late.body.uid], [201, 'deleted', replies[0]?.body.uid])
    const refused = { 'idempotency-key': `free-${name}` }
    assert.equal((await w.post({ ...spec, namespace: 'no-such-namespace' }, refused)).status, 422)
    await w.create({ ...spec, name: w.name('once') })
  })

  test('C13, S3, B-114: a namespace that does not exist, and one that is going', async w => {
    const missing = await w.post({ namespace: 'no-such-namespace', name: w.name('web'), ...w.script(waiting) })
    assert.deepEqual([missing.status, missing.body.code], [422, 'SPEC_REFUSED'])
    const namespace = await w.newNamespace('going')
    const held = { metadata: { name: 'hold', finalizers: ['example.com/hold'] }, spec: { replicas: 0, ...pods() } }
    assert.equal((await w.send('POST', w.at('deployments', '', namespace), held)).status, 201)
    await w.send('DELETE', `/api/v1/namespaces/${namespace}`)
    const name = w.name('web')
    const busy = await w.post({ namespace, name, ...w.script(waiting) })
    assert.deepEqual([busy.status, busy.body.code], [409, 'RUNTIME_BUSY'])
    await w.send('PATCH', w.at('deployments', 'hold', namespace), { metadata: { finalizers: null } })
    assert.equal((await w.get(w.id('deployment', name, namespace))).status, 404)
    assert.equal((await w.client.api('GET', w.client.path(w.id('deployment', name, namespace), '/events'))).status, 404)
  })

  test('C13, B-55: what a quota refuses is 409 with its text, and nothing is left', async w => {
    const namespace = await w.newNamespace('count')
    const quota = { metadata: { name: 'none' }, spec: { hard: { 'count/jobs.batch': '0' } } }
    assert.equal((await w.send('POST', w.at('resourcequotas', '', namespace), quota)).status, 201)
    const name = w.name('job')
    const reply = await poll(
      () => w.post({ kind: 'job', namespace, name, ...w.script('exit 0') }),
      ({ status }) => status !== 201,
    )
    assert.deepEqual([reply.status, reply.body.code], [409, 'QUOTA_EXCEEDED'])
    assert.match(reply.body.detail, /quota/)
    assert.equal((await w.get(w.id('job', name, namespace))).status, 404)
  })

  test('F5, H5: verbs of what never was are 404', async w => {
    const id = w.id('job', w.name('never'))
    for (const verb of ['start', 'stop', 'pause', 'resume'] as const) {
      const reply = await w.verb(id, verb)
      assert.deepEqual([reply.status, reply.body.code, reply.body.runtimeId], [404, 'RUNTIME_NOT_FOUND', id])
    }
    for (const reply of [await w.delete(id), await w.get(id), await w.logs(id)]) assert.equal(reply.status, 404)
  })

  test('N1, N2, N3, N4: the image preflight says what create says; exec is not there yet', async w => {
    const { image } = w.stage.environment
    const ask = (body: object) => w.client.api('POST', '/v1/images/preflight', body)
    for (const [policy, used] of [
      ['Always', 'Always'],
      ['ifnotpresent', 'IfNotPresent'],
      ['', 'IfNotPresent'],
    ]) {
      const reply = await ask({ image, imagePullPolicy: policy })
      assert.deepEqual([reply.status, reply.body], [200, { accepted: true, imagePullPolicy: used }])
    }
    for (const fields of [
      { image, imagePullPolicy: 'Never' },
      { image, imagePullPolicy: 'Sometimes' },
      { image: '' },
    ]) {
      const [preflight, create] = [await ask(fields), await w.post({ name: w.name('never'), ...fields })]
      assert.deepEqual([preflight.status, preflight.body.code], [create.status, create.body.code])
      assert.ok([400, 422].includes(preflight.status))
    }
    const exec = await w.client.api('POST', w.client.path(w.id('job', 'any'), '/exec'), {})
    assert.deepEqual([exec.status, exec.body.code], [501, 'NOT_IMPLEMENTED'])
  })

  test('M1, M4, B-68: wait answers what was reached, what was not, and what cannot be any more', async w => {
    const made = await w.job('sleep 1; exit 0')
    const wait = async (query: string) => (await w.client.api('GET', w.client.path(made.id, `/wait?${query}`))).body
    assert.equal((await wait('for=ended&timeout=0')).reached, false)
    const running = await wait('for=running&timeout=20')
    assert.deepEqual([running.reached, running.runtime.state], [true, 'running'])
    const ended = await wait('for=ended&timeout=20')
    assert.deepEqual([ended.reached, ended.runtime.state, ended.runtime.exitCode], [true, 'stopped', 0])
    assert.equal((await wait('for=running&timeout=20')).reached, false)
    const deleted = wait('for=deleted&timeout=20')
    await w.accepted(made.id, 'delete')
    assert.deepEqual([(await deleted).reached, (await deleted).runtime.state], [true, 'deleted'])
    assert.equal((await w.client.api('GET', w.client.path(made.id, '/wait?for=ended&timeout=601'))).status, 400)
  })

  test('I13, M4: lists and monitoring show it while it is there', async w => {
    const made = await w.job(waiting, { labels: { only: w.name('label') } })
    const selector = encodeURIComponent(`only=${made.labels.only}`)
    const list = async () => (await w.client.api('GET', `/v1/runtimes?labelSelector=${selector}`)).body
    await w.state(made.id, 'running')
    assert.deepEqual(
      (await list()).items.map((item: { id: string; state: string }) => [item.id, item.state]),
      [[made.id, 'running']],
    )
    const monitored = async () => (await w.client.api('GET', '/v1/monitoring')).body.items.includes(made.id)
    assert.equal(await monitored(), true)
    await w.end(made.id)
    assert.deepEqual((await list()).items, [])
    assert.equal(await monitored(), false)
  })

  test('A11, T4: with rights in two namespaces alone everything works there, and nothing else is asked for', async w => {
    const { kubeconfig, namespaces } = await w.stage.environment.restricted(w.t)
    const env = { NAMESPACES: namespaces.join(','), INSTANCE: w.name('least') }
    const daemon = await startDaemon(w.t, { kubeconfig, env })
    await daemon.ready()
    const least = w.through(daemon)
    const [namespace, second = ''] = namespaces
    const web = await least.deployment(waiting, { namespace, port: 8080, exposeService: true })
    const job = await least.job('echo hello; exit 3', { namespace: second })
    await Promise.all([least.state(web.id, 'running'), least.state(job.id, 'failed')])
    assert.equal((await least.logs(job.id)).body, 'hello\n')
    const outside = await least.post({ namespace: 'kube-system', name: 'web', ...w.script(waiting) })
    assert.deepEqual([outside.status, outside.body.code], [403, 'NAMESPACE_NOT_ALLOWED'])
    await least.accepted(web.id, 'stop')
    await least.state(web.id, 'stopped')
    assert.equal((await least.end(web.id)).at(-1), 'Deleted 1 DeletedByRequest')
    assert.equal((await least.end(job.id)).at(-1), 'Deleted 1 DeletedByRequest')
    const refused = daemon.lines.filter(line => /forbidden/i.test(JSON.stringify(line.err ?? {})))
    assert.deepEqual(refused, [])
  })

  test('B2, A1, A4: k3s beside k8s, on one cluster: each its own IDs and its own workloads', async w => {
    const { kubeconfig } = w.stage.environment
    const both = await w.daemon({ RUNTIMES: 'K8s, k3s', K3S_KUBECONFIG: kubeconfig })
    const there = w.through(both)
    const [first, second] = [await there.job('exit 0'), await there.job(waiting, { runtime: 'k3s' })]
    assert.equal(first.id, w.id('job', first.name))
    assert.equal(second.id, `k3s-${w.namespace}|job|${second.name}`)
    await there.state(second.id, 'running')
    assert.equal((await there.get(w.id('job', second.name))).status, 404)
    const taken = await there.post({ kind: 'job', name: second.name, ...w.script('exit 0') })
    assert.deepEqual([taken.status, taken.body.code], [409, 'FOREIGN_WORKLOAD'])
    assert.deepEqual(await there.end(second.id), ['Started 1 -', 'Deleted 1 DeletedByRequest'])
  })

  test(
    'S2, S3: what the cluster answers and what it does not: each its code',
    async w => {
      const made = await w.deployment(waiting, { start: false })
      const start = { verb: 'patch', resource: 'deployments', subresource: 'scale', name: made.name } as const
      const cases: Array<[object, number, string]> = [
        [{ status: 403, message: 'deployments.apps is forbidden: User "x" cannot patch' }, 502, 'CLUSTER_FORBIDDEN'],
        [{ status: 401 }, 503, 'BACKEND_UNAVAILABLE'],
        [{ status: 418, reason: 'Teapot', message: 'I am a teapot' }, 502, 'KUBERNETES_ERROR'],
        [{ status: 422, reason: 'Invalid', message: 'Scale "x" is invalid: no' }, 422, 'SPEC_REFUSED'],
      ]
      for (const [failure, status, code] of cases) {
        const fault = w.faults.fail(start, failure)
        const reply = await w.verb(made.id, 'start').finally(() => fault.remove())
        assert.deepEqual([reply.status, reply.body.code, reply.body.runtimeId], [status, code, made.id])
        const seen = (await w.get(made.id)).body
        assert.deepEqual([seen.state, seen.run], ['created', 0], `withdrawn after ${status}`)
      }
      assert.deepEqual(await w.end(made.id), ['Deleted 0 DeletedByRequest'])
    },
    { needsFaults: true },
  )

  test('A5, T2: backends and health say that the cluster is there', async w => {
    const { body } = await w.client.api('GET', '/v1/backends')
    const [backend] = body.items
    assert.deepEqual([backend.name, backend.type, backend.default, backend.healthy], ['k8s', 'kubernetes', true, true])
    assert.match(backend.version, /^v1\.\d+/)
    for (const informer of backend.informers) assert.deepEqual([informer.synced, informer.namespace], [true, null])
    const ready = await w.client.api('GET', '/readyz')
    assert.deepEqual([ready.status, ready.body.status], [200, 'ok'])
  })
}

const pods = () => ({
  selector: { matchLabels: { held: 'yes' } },
  template: { metadata: { labels: { held: 'yes' } }, spec: { containers: [{ name: 'x', image: 'none.invalid/x' }] } },
})
