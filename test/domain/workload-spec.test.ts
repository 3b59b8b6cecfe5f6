import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { preflightImage } from '../../src/domain/image.ts'
import { type CreateRequest, canonicalJson, normaliseSpec, type WorkloadSpec } from '../../src/domain/workload-spec.ts'
import { pathsOf, refusalOf } from '../helpers/refusals.ts'
import { DEFAULTS, POLICY, specOf } from '../helpers/specs.ts'

const MINIMAL: WorkloadSpec = {
  runtime: 'k8s',
  namespace: 'default',
  kind: 'deployment',
  name: 'rt-generated',
  image: 'web',
  entrypoint: [],
  command: [],
  workdir: null,
  env: {},
  cpu: null,
  memory: null,
  user: null,
  supplementalGroups: [],
  volumes: [],
  port: null,
  exposeService: false,
  schedulingConstraints: [],
  labels: {},
  annotations: {},
  imagePullPolicy: 'IfNotPresent',
  imagePullSecrets: [],
  backoffLimit: null,
  startTimeoutSeconds: 0,
  terminationGracePeriodSeconds: null,
  jobStop: null,
  start: true,
}

test('C1, C8, D15: an image is all a request needs; blank is absent', () => {
  assert.deepEqual(normaliseSpec({ image: ' web ' }, DEFAULTS, POLICY), MINIMAL)
  const blank = { runtime: ' ', namespace: '', kind: ' ', name: '', workdir: '  ', user: '', imagePullPolicy: ' ' }
  assert.deepEqual(normaliseSpec({ image: 'web', ...blank }, DEFAULTS, POLICY), MINIMAL)
})

test('C1, D1: a full request arrives whole, made canonical', () => {
  const request: CreateRequest = {
    runtime: ' Kubernetes',
    namespace: 'ai',
    kind: 'job',
    name: 'batch',
    image: 'registry:5000/web:1.2',
    entrypoint: ['/bin/web'],
    command: ['--port', '80 80'],
    workdir: ' /srv ',
    env: { b: '2', a: '1' },
    cpu: 0.5,
    memory: '512Mi',
    user: '01000:1000',
    supplementalGroups: [0, -1, 44, 44],
    volumes: [{ source: '/data/web/', target: '/data', mode: 'ro' }],
    port: 8080,
    exposeService: true,
    schedulingConstraints: [{ type: 'Node', key: 'hostname', operator: 'in', values: ['n1', 'n2', 'n1'] }],
    labels: { team: 'a', 'x.io/b': '' },
    imagePullPolicy: 'always',
    imagePullSecrets: ['regcred', 'regcred'],
    backoffLimit: 3,
    startTimeoutSeconds: 300,
    terminationGracePeriodSeconds: 5,
    jobStop: 'suspend',
    start: false,
  }
  assert.deepEqual(specOf(request), {
    runtime: 'k8s',
    namespace: 'ai',
    kind: 'job',
    name: 'batch',
    image: 'registry:5000/web:1.2',
    entrypoint: ['/bin/web'],
    command: ['--port', '80 80'],
    workdir: '/srv',
    env: { a: '1', b: '2' },
    cpu: '500m',
    memory: 536_870_912,
    user: '1000:1000',
    supplementalGroups: [44],
    volumes: [{ source: '/data/web', target: '/data', mode: 'ro' }],
    port: 8080,
    exposeService: false,
    schedulingConstraints: [{ type: 'node', key: 'kubernetes.io/hostname', operator: 'In', values: ['n1', 'n2'] }],
    labels: { team: 'a', 'x.io/b': '' },
    annotations: {},
    imagePullPolicy: 'Always',
    imagePullSecrets: ['regcred'],
    backoffLimit: 3,
    startTimeoutSeconds: 300,
    terminationGracePeriodSeconds: 5,
    jobStop: 'suspend',
    start: false,
  })
})

test('A7: the namespace of the spec, else the configured one', () => {
  assert.equal(specOf({ namespace: 'ai' }, { defaults: { namespace: 'team' } }).namespace, 'ai')
  assert.equal(specOf({ namespace: ' ' }, { defaults: { namespace: 'team' } }).namespace, 'team')
})

/** Each is the only fault of an otherwise good request: code, where, and a word of the message. */
const refusals: [
  row: string,
  request: Partial<CreateRequest>,
  code: 'REQUEST_INVALID' | 'SPEC_REFUSED' | 'IMAGE_REFUSED',
  path: string,
  word: RegExp,
][] = [
  ['C2', { kind: 'daemonset' }, 'REQUEST_INVALID', '/kind', /deployment or job/],
  ['C2', { kind: 'pod' }, 'REQUEST_INVALID', '/kind', /deployment or job/],
  ['C3', { image: '' }, 'REQUEST_INVALID', '/image', /required/],
  ['C3', { image: '  ' }, 'REQUEST_INVALID', '/image', /required/],
  ['N2', { image: 'Web UPPER' }, 'REQUEST_INVALID', '/image', /reference/],
  ['C5', { labels: { app: 'x' } }, 'REQUEST_INVALID', '/labels/app', /reserved/],
  ['C5', { labels: { 'gobrave-workload': 'x' } }, 'REQUEST_INVALID', '/labels/gobrave-workload', /reserved/],
  ['C5', { labels: { 'runtimed.dev/any': 'x' } }, 'REQUEST_INVALID', '/labels/runtimed.dev~1any', /reserved/],
  ['C5', { labels: { 'a b': 'x' } }, 'REQUEST_INVALID', '/labels/a b', /label name/],
  ['C5', { labels: { '': 'x' } }, 'REQUEST_INVALID', '/labels/', /label name/],
  ['C5', { labels: { a: 'x y' } }, 'REQUEST_INVALID', '/labels/a', /label value/],
  ['C5, B-79', { labels: { a: 'v'.repeat(64) } }, 'REQUEST_INVALID', '/labels/a', /63/],
  ['C8', { name: 'My App_v2!' }, 'REQUEST_INVALID', '/name', /"my-app-v2"/],
  ['C8', { name: '-a' }, 'REQUEST_INVALID', '/name', /"a"/],
  ['C8', { name: ' web' }, 'REQUEST_INVALID', '/name', /"web"/],
  ['C8', { name: 'n'.repeat(64), exposeService: true, port: 1 }, 'REQUEST_INVALID', '/name', /63/],
  ['B8', { namespace: 'Team' }, 'REQUEST_INVALID', '/namespace', /DNS label/],
  ['B8', { namespace: '../kube-system' }, 'REQUEST_INVALID', '/namespace', /DNS label/],
  ['B4', { runtime: 'nomad' }, 'REQUEST_INVALID', '/runtime', /k8s, k3s, docker/],
  ['D1', { workdir: '/a\0' }, 'REQUEST_INVALID', '/workdir', /control/],
  ['D1, B-88', { command: ['a', 'b\0'] }, 'REQUEST_INVALID', '/command/1', /NUL/],
  ['B-86, F-57', { env: { A: 'x\0' } }, 'REQUEST_INVALID', '/env/A', /NUL/],
  ['B-86', { env: { 'A=B': 'x' } }, 'REQUEST_INVALID', '/env/A=B', /without "="/],
  ['B-86', { env: { '': 'x' } }, 'REQUEST_INVALID', '/env/', /ASCII/],
  ['B-86', { env: { é: 'x' } }, 'REQUEST_INVALID', '/env/é', /ASCII/],
  ['D4', { cpu: Number.NaN }, 'REQUEST_INVALID', '/cpu', /cores/],
  ['D4, B-83', { memory: '512m' }, 'REQUEST_INVALID', '/memory', /512Mi/],
  [
    'D7',
    { volumes: [{ source: '/data', target: '/srv', mode: 'rox' }] },
    'REQUEST_INVALID',
    '/volumes/0/mode',
    /ro or rw/,
  ],
  ['D9, B-87', { user: 'nobody' }, 'SPEC_REFUSED', '/user', /uid or uid:gid/],
  ['D9, B-87', { user: '-1' }, 'SPEC_REFUSED', '/user', /uid or uid:gid/],
  ['D9, B-87', { user: '4294967296' }, 'SPEC_REFUSED', '/user', /2147483647/],
  ['D9', { user: '2147483648' }, 'SPEC_REFUSED', '/user', /2147483647/],
  ['D9, B-87', { user: '1000:' }, 'SPEC_REFUSED', '/user', /uid or uid:gid/],
  ['D9, B-87', { user: ':1000' }, 'SPEC_REFUSED', '/user', /uid or uid:gid/],
  ['D9, F-57', { user: '0x0' }, 'SPEC_REFUSED', '/user', /uid or uid:gid/],
  ['D9', { user: '1:2:3' }, 'SPEC_REFUSED', '/user', /uid or uid:gid/],
  ['D10', { port: 70_000 }, 'REQUEST_INVALID', '/port', /65535/],
  ['D10', { port: -1 }, 'REQUEST_INVALID', '/port', /65535/],
  ['D10', { port: 80.5 }, 'REQUEST_INVALID', '/port', /whole/],
  [
    'D13',
    { schedulingConstraints: [{ type: 'pod', key: 'a', operator: 'Exists' }] },
    'REQUEST_INVALID',
    '/schedulingConstraints/0',
    /node/,
  ],
  [
    'D13',
    { schedulingConstraints: [{ type: 'node', key: 'a', operator: 'Is' }] },
    'REQUEST_INVALID',
    '/schedulingConstraints/0',
    /DoesNotExist/,
  ],
  [
    'D13',
    { schedulingConstraints: [{ type: 'node', key: 'a', operator: 'In' }] },
    'REQUEST_INVALID',
    '/schedulingConstraints/0',
    /at least one/,
  ],
  [
    'D13',
    { schedulingConstraints: [{ type: 'node', key: ' ', operator: 'Exists' }] },
    'REQUEST_INVALID',
    '/schedulingConstraints/0',
    /key/,
  ],
  [
    'D13',
    { schedulingConstraints: [{ type: 'node', key: 'a', operator: 'Gt', values: ['1', '2'] }] },
    'REQUEST_INVALID',
    '/schedulingConstraints/0',
    /exactly one/,
  ],
  [
    'D13',
    { schedulingConstraints: [{ type: 'node', key: 'a', operator: 'Lt', values: ['x'] }] },
    'REQUEST_INVALID',
    '/schedulingConstraints/0',
    /whole number/,
  ],
  [
    'D13',
    { schedulingConstraints: [{ type: 'node', key: 'a', operator: 'In', values: ['a b'] }] },
    'REQUEST_INVALID',
    '/schedulingConstraints/0',
    /label value/,
  ],
  ['D14', { supplementalGroups: [1.5] }, 'REQUEST_INVALID', '/supplementalGroups/0', /whole/],
  ['D14', { supplementalGroups: [1, 2 ** 31] }, 'REQUEST_INVALID', '/supplementalGroups/1', /2147483647/],
  ['D15, N2, N3', { imagePullPolicy: 'Never' }, 'IMAGE_REFUSED', '/imagePullPolicy', /never start/],
  ['D15, N3', { imagePullPolicy: 'Sometimes' }, 'REQUEST_INVALID', '/imagePullPolicy', /IfNotPresent, Always/],
  ['A10', { imagePullSecrets: ['Reg Cred'] }, 'REQUEST_INVALID', '/imagePullSecrets/0', /Secret/],
  ['C7', { backoffLimit: -1 }, 'REQUEST_INVALID', '/backoffLimit', /whole/],
  ['C15', { startTimeoutSeconds: 1.5 }, 'REQUEST_INVALID', '/startTimeoutSeconds', /whole/],
  ['C15', { terminationGracePeriodSeconds: -1 }, 'REQUEST_INVALID', '/terminationGracePeriodSeconds', /whole/],
  ['G8', { jobStop: 'pause' }, 'REQUEST_INVALID', '/jobStop', /suspend/],
  ['E3, B-80', { name: 'w'.repeat(60), port: 80, exposeService: true }, 'REQUEST_INVALID', '/name', /59/],
  ['E3, B-80', { name: '1web', port: 80, exposeService: true }, 'REQUEST_INVALID', '/name', /"s-1web"/],
  ['D17, E2', { runtime: 'docker', exposeService: true, port: 80 }, 'SPEC_REFUSED', '/exposeService', /docker/],
  ['D17', { runtime: 'docker', imagePullSecrets: ['a'] }, 'SPEC_REFUSED', '/imagePullSecrets', /docker/],
  [
    'D17',
    { runtime: 'docker', schedulingConstraints: [{ type: 'node', key: 'a', operator: 'Exists' }] },
    'SPEC_REFUSED',
    '/schedulingConstraints',
    /docker/,
  ],
  ['B8', { runtime: 'docker', namespace: 'n'.repeat(63), name: 'w'.repeat(63) }, 'REQUEST_INVALID', '/name', /142/],
]
for (const [row, request, code, path, word] of refusals) {
  test(`${row}: ${JSON.stringify(request).slice(0, 70)} is ${code} at ${path}`, () => {
    const error = refusalOf(code, () => specOf(request))
    assert.deepEqual(pathsOf(error), [path])
    assert.match(error.errors[0]?.message ?? '', word)
    assert.match(error.message, word)
    assert.equal(error.status, code === 'REQUEST_INVALID' ? 400 : 422)
  })
}

/** What is legal though it looks odd, and what becomes of it. */
const accepted: [row: string, request: Partial<CreateRequest>, part: Partial<WorkloadSpec>][] = [
  ['B-79', { name: 'n'.repeat(63) }, { name: 'n'.repeat(63) }],
  ['B-79', { name: 'n'.repeat(59), port: 80, exposeService: true }, { exposeService: true }],
  ['B-80', { name: '1web' }, { name: '1web' }],
  ['B-80', { name: '1web', kind: 'job', port: 80, exposeService: true }, { exposeService: false }],
  ['B-80', { name: '1web', exposeService: true }, { exposeService: false }],
  ['D10', { port: 0 }, { port: null }],
  ['D8', { user: '1000' }, { user: '1000' }],
  ['D8', { user: '1000:2000' }, { user: '1000:2000' }],
  ['D8, B-87', { user: '0' }, { user: '0' }],
  ['D8', { user: '2147483647' }, { user: '2147483647' }],
  [
    'B-86',
    { env: { LD_PRELOAD: '', '1A': '1e3', 'a.b': '$(OTHER)', B: 'a\nb' } },
    { env: { '1A': '1e3', B: 'a\nb', LD_PRELOAD: '', 'a.b': '$(OTHER)' } },
  ],
  ['B-88', { entrypoint: [], command: ['one two', ''] }, { entrypoint: [], command: ['one two', ''] }],
  [
    'D12',
    { schedulingConstraints: [{ type: 'node', key: 'a', operator: ' EXISTS', values: ['x'] }] },
    { schedulingConstraints: [{ type: 'node', key: 'a', operator: 'Exists', values: [] }] },
  ],
  [
    'D12',
    { schedulingConstraints: [{ type: 'node', key: 'hostname', operator: 'notin', values: ['b', 'a', 'b'] }] },
    { schedulingConstraints: [{ type: 'node', key: 'kubernetes.io/hostname', operator: 'NotIn', values: ['b', 'a'] }] },
  ],
  ['D11', { schedulingConstraints: [] }, { schedulingConstraints: [] }],
  ['D15', { imagePullPolicy: 'ALWAYS' }, { imagePullPolicy: 'Always' }],
  ['D4', { cpu: 0, memory: 0 }, { cpu: null, memory: null }],
  ['D4', { memory: '1.1Gi' }, { memory: 1_181_116_006 }],
  ['C7', { kind: 'job' }, { backoffLimit: 0, jobStop: 'delete' }],
  ['C7', { backoffLimit: 3, jobStop: 'suspend' }, { backoffLimit: null, jobStop: null }],
  ['D17', { runtime: 'docker', user: 'www-data:www' }, { user: 'www-data:www' }],
]
for (const [row, request, part] of accepted) {
  test(`${row}: ${JSON.stringify(request).slice(0, 70)} is accepted`, () => {
    assert.partialDeepStrictEqual(specOf(request), part)
    assert.deepEqual(JSON.parse(JSON.stringify(specOf(request))), specOf(request))
  })
}

test('D9, F-57: under POD_SECURITY=restricted uid 0 and host paths are 422, however they are written', () => {
  const restricted = { policy: { podSecurity: 'restricted' as const } }
  for (const user of ['0', '00', '0:0', '0:1000', ' 0 ']) {
    assert.match(refusalOf('SPEC_REFUSED', () => specOf({ user }, restricted)).message, /POD_SECURITY/, user)
  }
  assert.match(
    refusalOf('SPEC_REFUSED', () => specOf({ runtime: 'docker', user: 'root' }, restricted)).message,
    /POD_SECURITY/,
  )
  const volumes = [{ source: '/data/web', target: '/srv' }]
  assert.match(refusalOf('SPEC_REFUSED', () => specOf({ volumes }, restricted)).message, /POD_SECURITY/)
  assert.equal(specOf({ user: '1:0' }, restricted).user, '1:0')
})

test('C15: all faults of a request come at once; malformed outweighs refused', () => {
  const error = refusalOf('REQUEST_INVALID', () =>
    specOf({ image: '', memory: '512m', user: 'nobody', imagePullPolicy: 'Never', labels: { app: 'x' }, port: 70_000 }),
  )
  assert.deepEqual(pathsOf(error).sort(), ['/image', '/imagePullPolicy', '/labels/app', '/memory', '/port', '/user'])
  assert.equal(refusalOf('SPEC_REFUSED', () => specOf({ user: 'nobody', imagePullPolicy: 'Never' })).errors.length, 2)
})

test('B-86: a refusal never repeats the value of a variable, and is bounded', () => {
  const env = Object.fromEntries(Array.from({ length: 3000 }, (_, index) => [`K=${index}`, 'hunter2']))
  const error = refusalOf('REQUEST_INVALID', () => specOf({ env }))
  assert.ok(!JSON.stringify([error.message, error.errors]).includes('hunter2'))
  assert.equal(error.errors.length, 100)
})

test('O9: an agent container without start time-out gets 120 s', () => {
  const agent = { defaults: { kind: 'pod' as const } }
  assert.equal(specOf({}, agent).startTimeoutSeconds, 120)
  assert.equal(specOf({}, { defaults: { kind: 'pod', startTimeoutSeconds: 30 } }).startTimeoutSeconds, 30)
  assert.equal(specOf({ port: 50_051, exposeService: true }, agent).exposeService, true)
  assert.equal(specOf({}, { defaults: { startTimeoutSeconds: 30 } }).startTimeoutSeconds, 30)
})

test('N1, N2: the preflight of an image is the check of create', () => {
  assert.deepEqual(preflightImage({ image: 'web' }), { imagePullPolicy: 'IfNotPresent' })
  assert.deepEqual(preflightImage({ image: ' web ', imagePullPolicy: '' }), { imagePullPolicy: 'IfNotPresent' })
  assert.deepEqual(preflightImage({ image: 'web', imagePullPolicy: 'always' }), { imagePullPolicy: 'Always' })
  assert.equal(refusalOf('IMAGE_REFUSED', () => preflightImage({ image: 'web', imagePullPolicy: 'never' })).status, 422)
  refusalOf('REQUEST_INVALID', () => preflightImage({ image: 'web', imagePullPolicy: 'Sometimes' }))
  refusalOf('REQUEST_INVALID', () => preflightImage({ image: ' ' }))
  refusalOf('REQUEST_INVALID', () => preflightImage({ image: '', imagePullPolicy: 'Never' }))
})

test('N2: image references', () => {
  const digest = `sha256:${'a'.repeat(64)}`
  const good = [
    'web',
    'a/b',
    'sandbox/oom',
    'registry.invalid/x',
    'r.io:5000/a/b_c:V1.2-x',
    `web@${digest}`,
    `web:1@${digest}`,
    'localhost/a',
    '[::1]:5000/a',
    'a__b',
    'a--b',
  ]
  for (const image of good) assert.deepEqual(preflightImage({ image }), { imagePullPolicy: 'IfNotPresent' }, image)
  const bad = [
    'Web',
    'a//b',
    '/a',
    'a/',
    'a:',
    'a:b:c',
    'a b',
    'http://a/b',
    'web@sha256:12',
    'a\nb',
    'é',
    '-a',
    `${'a'.repeat(513)}`,
  ]
  for (const image of bad) refusalOf('REQUEST_INVALID', () => preflightImage({ image }))
})

test('C10: one text for one body, key order aside', () => {
  assert.equal(canonicalJson({ b: [1, { d: null, c: 'x' }], a: undefined }), '{"b":[1,{"c":"x","d":null}]}')
  const shuffled = (value: unknown): unknown =>
    Array.isArray(value)
      ? value.map(shuffled)
      : typeof value === 'object' && value !== null
        ? Object.fromEntries(
            Object.entries(value)
              .reverse()
              .map(([key, item]) => [key, shuffled(item)]),
          )
        : value
  fc.assert(
    fc.property(fc.jsonValue(), fc.jsonValue(), (a, b) => {
      assert.equal(canonicalJson(shuffled(a)), canonicalJson(a))
      assert.equal(JSON.stringify(JSON.parse(canonicalJson(a))).length, JSON.stringify(a).length)
      assert.equal(
        canonicalJson(a) === canonicalJson(b),
        canonicalJson(JSON.parse(JSON.stringify(a))) === canonicalJson(JSON.parse(JSON.stringify(b))),
      )
    }),
  )
})

test('D13: a constraint that cannot be read refuses the spec, beside one that can; no rule is lost to a typo', () => {
  const legal = { type: 'node', key: 'disk', operator: 'In', values: ['ssd'] }
  const typos = [
    { ...legal, operator: 'Inn' },
    { ...legal, type: 'nodes' },
    { ...legal, values: [] },
    { ...legal, key: ' ' },
  ]
  for (const typo of typos) {
    const error = refusalOf('REQUEST_INVALID', () => specOf({ schedulingConstraints: [legal, typo] }))
    assert.match(error.errors[0]?.path ?? '', /^\/schedulingConstraints\/1/)
  }
})
