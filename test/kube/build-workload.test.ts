import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { V1Deployment, V1Job, V1PodSpec } from '@kubernetes/client-node'
import fc from 'fast-check'
import type { CreateRequest } from '../../src/domain/workload-spec.ts'
import { isRuntimeError } from '../../src/errors.ts'
import {
  type BuildOptions,
  buildDeployment,
  buildJob,
  buildPod,
  buildService,
  buildWorkload,
  renderObjects,
  serviceNameOf,
  withNonce,
} from '../../src/kube/build-workload.ts'
import { baselineViolations, restrictedViolations } from '../helpers/pod-security.ts'
import { refusalOf } from '../helpers/refusals.ts'
import { createRequests } from '../helpers/spec-arbitraries.ts'
import { specOf } from '../helpers/specs.ts'

const OPTIONS: BuildOptions = {
  instance: 'default',
  podSecurity: 'baseline',
  imagePullSecrets: [],
  serviceAccountName: null,
}

const podOf = (request: Partial<CreateRequest>, options: Partial<BuildOptions> = {}): V1PodSpec => {
  const built = buildWorkload(specOf(request), { ...OPTIONS, ...options }) as V1Deployment | V1Job
  return built.spec?.template?.spec ?? assert.fail('no pod template')
}
const mainOf = (request: Partial<CreateRequest>, options: Partial<BuildOptions> = {}) =>
  podOf(request, options).containers[0]

const LABELS = (kind: string) => ({
  app: 'web',
  'gobrave-workload': 'web',
  'runtimed.dev/instance': 'default',
  'runtimed.dev/kind': kind,
  'runtimed.dev/runtime': 'k8s',
})

const MINIMAL_POD = {
  automountServiceAccountToken: false,
  securityContext: { seccompProfile: { type: 'RuntimeDefault' } },
  containers: [
    {
      name: 'main',
      image: 'registry/web:1.2',
      imagePullPolicy: 'IfNotPresent',
      securityContext: { allowPrivilegeEscalation: false },
    },
  ],
}

test('C4, C6, C7, D16: the smallest Deployment, whole', () => {
  assert.deepEqual(buildWorkload(specOf(), OPTIONS), {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'web', namespace: 'default', labels: LABELS('deployment') },
    spec: {
      replicas: 1,
      selector: { matchLabels: { app: 'web', 'gobrave-workload': 'web', 'runtimed.dev/kind': 'deployment' } },
      template: { metadata: { labels: LABELS('deployment') }, spec: { restartPolicy: 'Always', ...MINIMAL_POD } },
    },
  })
})

test('C4, C7, D16: the smallest Job, whole', () => {
  assert.deepEqual(buildWorkload(specOf({ kind: 'job' }), OPTIONS), {
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata: { name: 'web', namespace: 'default', labels: LABELS('job') },
    spec: {
      backoffLimit: 0,
      suspend: false,
      template: { metadata: { labels: LABELS('job') }, spec: { restartPolicy: 'Never', ...MINIMAL_POD } },
    },
  })
})

test('D1, D2, D3, D5, D7, D8, D10, D11, D12, D14, D15, B-88, B-89: a Job with every field set, whole', () => {
  const spec = specOf({
    runtime: 'k3s',
    namespace: 'ai',
    kind: 'job',
    name: 'batch',
    image: 'r/web:2',
    entrypoint: ['/bin/web'],
    command: ['--port', '80 80'],
    workdir: ' /srv ',
    env: { b: '2', a: '$(b)' },
    cpu: 0.5,
    memory: '512Mi',
    user: '1000:2000',
    supplementalGroups: [0, -1, 44],
    volumes: [
      { source: '/data/web', target: '/data', mode: 'ro' },
      { source: '/data/out', target: '/out' },
    ],
    port: 8080,
    schedulingConstraints: [
      { type: 'node', key: 'disk', operator: 'in', values: ['ssd'] },
      { type: 'node', key: 'hostname', operator: 'EXISTS' },
    ],
    labels: { team: 'a' },
    imagePullPolicy: 'always',
    imagePullSecrets: ['mine', 'common'],
    backoffLimit: 3,
    terminationGracePeriodSeconds: 0,
    jobStop: 'suspend',
    start: false,
  })
  const labels = {
    app: 'batch',
    'gobrave-workload': 'batch',
    'runtimed.dev/instance': 'blue',
    'runtimed.dev/kind': 'job',
    'runtimed.dev/runtime': 'k3s',
    team: 'a',
  }
  const options = {
    instance: 'blue',
    podSecurity: 'baseline',
    imagePullSecrets: ['common'],
    serviceAccountName: 'worker',
  } as const
  assert.deepEqual(buildWorkload(spec, options), {
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata: { name: 'batch', namespace: 'ai', labels },
    spec: {
      backoffLimit: 3,
      suspend: true,
      template: {
        metadata: { labels },
        spec: {
          restartPolicy: 'Never',
          serviceAccountName: 'worker',
          terminationGracePeriodSeconds: 0,
          imagePullSecrets: [{ name: 'common' }, { name: 'mine' }],
          affinity: {
            nodeAffinity: {
              requiredDuringSchedulingIgnoredDuringExecution: {
                nodeSelectorTerms: [
                  {
                    matchExpressions: [
                      { key: 'disk', operator: 'In', values: ['ssd'] },
                      { key: 'kubernetes.io/hostname', operator: 'Exists' },
                    ],
                  },
                ],
              },
            },
          },
          securityContext: {
            runAsUser: 1000,
            runAsGroup: 2000,
            supplementalGroups: [44],
            seccompProfile: { type: 'RuntimeDefault' },
          },
          containers: [
            {
              name: 'main',
              image: 'r/web:2',
              imagePullPolicy: 'Always',
              command: ['/bin/web'],
              args: ['--port', '80 80'],
              workingDir: '/srv',
              env: [
                { name: 'a', value: '$(b)' },
                { name: 'b', value: '2' },
              ],
              ports: [{ containerPort: 8080, protocol: 'TCP' }],
              resources: {
                limits: { cpu: '500m', memory: '536870912' },
                requests: { cpu: '500m', memory: '536870912' },
              },
              volumeMounts: [
                { name: 'volume-0', mountPath: '/data', readOnly: true },
                { name: 'volume-1', mountPath: '/out' },
              ],
              securityContext: { allowPrivilegeEscalation: false },
            },
          ],
          volumes: [
            { name: 'volume-0', hostPath: { path: '/data/web' } },
            { name: 'volume-1', hostPath: { path: '/data/out' } },
          ],
        },
      },
    },
  })
})

test('O5, O7, P4: an agent Pod and its Service, whole', () => {
  const annotations = { 'runtimed.dev/identifier': 'p1' }
  const request = {
    name: 'rcoder-agent-p1',
    port: 50_051,
    exposeService: true,
    cpu: 1.5,
    memory: '1Gi',
    labels: { project_id: 'p1' },
  }
  const spec = specOf(request, { defaults: { kind: 'pod', annotations } })
  const labels = {
    app: 'rcoder-agent-p1',
    'gobrave-workload': 'rcoder-agent-p1',
    project_id: 'p1',
    'runtimed.dev/instance': 'default',
    'runtimed.dev/kind': 'pod',
    'runtimed.dev/runtime': 'k8s',
  }
  const amounts = { cpu: '1500m', memory: '1073741824' }
  const [main] = MINIMAL_POD.containers
  assert.deepEqual(buildWorkload(spec, OPTIONS), {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'rcoder-agent-p1', namespace: 'default', labels, annotations },
    spec: {
      restartPolicy: 'Never',
      ...MINIMAL_POD,
      containers: [
        {
          ...main,
          ports: [{ containerPort: 50_051, protocol: 'TCP' }],
          resources: { limits: amounts, requests: amounts },
        },
      ],
    },
  })
  assert.deepEqual(buildService(spec, OPTIONS, 'uid-1'), {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: {
      name: 'rcoder-agent-p1',
      namespace: 'default',
      labels,
      ownerReferences: [{ apiVersion: 'v1', kind: 'Pod', name: 'rcoder-agent-p1', uid: 'uid-1' }],
    },
    spec: {
      type: 'ClusterIP',
      selector: { app: 'rcoder-agent-p1', 'gobrave-workload': 'rcoder-agent-p1', 'runtimed.dev/kind': 'pod' },
      ports: [{ port: 50_051, targetPort: 50_051, protocol: 'TCP' }],
    },
  })
})

test('E1: the Service of a Deployment, whole, owned by it', () => {
  const spec = specOf({ port: 8080, exposeService: true })
  assert.equal(serviceNameOf(spec), 'web-svc')
  assert.deepEqual(buildService(spec, OPTIONS, 'uid-1'), {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: {
      name: 'web-svc',
      namespace: 'default',
      labels: LABELS('deployment'),
      ownerReferences: [{ apiVersion: 'apps/v1', kind: 'Deployment', name: 'web', uid: 'uid-1' }],
    },
    spec: {
      type: 'ClusterIP',
      selector: { app: 'web', 'gobrave-workload': 'web', 'runtimed.dev/kind': 'deployment' },
      ports: [{ port: 8080, targetPort: 8080, protocol: 'TCP' }],
    },
  })
  assert.deepEqual(Object.keys(buildService(spec, OPTIONS, null)?.metadata ?? {}), ['name', 'namespace', 'labels'])
})

test('E2: no Service without port, without exposeService, for a Job', () => {
  for (const request of [
    { exposeService: true },
    { port: 0, exposeService: true },
    { port: 80 },
    { kind: 'job', port: 80, exposeService: true },
  ]) {
    assert.equal(buildService(specOf(request), OPTIONS, 'uid-1'), null)
    assert.equal(renderObjects(specOf(request), OPTIONS).length, 1)
  }
})

test('C14: what is rendered is what is made, without owner and nonce', () => {
  const spec = specOf({ port: 80, exposeService: true })
  assert.deepEqual(renderObjects(spec, OPTIONS), [buildDeployment(spec, OPTIONS), buildService(spec, OPTIONS, null)])
})

test('C11: start false is no replica, and a suspended Job', () => {
  assert.equal(buildDeployment(specOf({ start: false }), OPTIONS).spec?.replicas, 0)
  assert.equal(buildJob(specOf({ kind: 'job', start: false }), OPTIONS).spec?.suspend, true)
})

test('C5: labels of the user on workload and template, ours beside them', () => {
  const built = buildDeployment(specOf({ labels: { team: 'a', 'x.io/b': '' } }), OPTIONS)
  const labels = { ...LABELS('deployment'), team: 'a', 'x.io/b': '' }
  assert.deepEqual(built.metadata?.labels, labels)
  assert.deepEqual(built.spec?.template.metadata?.labels, labels)
})

test('C6, F-35, B-56: selectors of a Deployment, a Job and a Pod of one name never match each other’s pods', () => {
  const deployment = buildDeployment(specOf({ port: 80, exposeService: true }), OPTIONS)
  const job = buildJob(specOf({ kind: 'job' }), OPTIONS)
  const pod = buildPod(specOf({}, { defaults: { kind: 'pod' } }), OPTIONS)
  const matches = (selector: Record<string, string>, labels: Record<string, string> = {}) =>
    Object.entries(selector).every(([key, value]) => labels[key] === value)
  const selector = deployment.spec?.selector.matchLabels ?? {}
  assert.equal(matches(selector, deployment.spec?.template.metadata?.labels), true)
  assert.equal(matches(selector, job.spec?.template.metadata?.labels), false)
  assert.equal(matches(selector, pod.metadata?.labels), false)
})

test('A10: pull secrets of the settings come first; a token is mounted only with SERVICE_ACCOUNT_NAME', () => {
  const pod = podOf({ imagePullSecrets: ['b', 'a'] }, { imagePullSecrets: ['a', 'c'], serviceAccountName: 'worker' })
  assert.deepEqual(pod.imagePullSecrets, [{ name: 'a' }, { name: 'c' }, { name: 'b' }])
  assert.equal(pod.serviceAccountName, 'worker')
  assert.ok(!('automountServiceAccountToken' in pod))
  assert.ok(!('imagePullSecrets' in podOf({})) && podOf({}).automountServiceAccountToken === false)
})

test('D2, B-86: env is sorted by key, and values stay texts', () => {
  assert.deepEqual(mainOf({ env: { b: '5', B: 'true', a: '', '1A': '1e3' } })?.env, [
    { name: '1A', value: '1e3' },
    { name: 'B', value: 'true' },
    { name: 'a', value: '' },
    { name: 'b', value: '5' },
  ])
})

test('D3, D4: limits, each alone, and none at all', () => {
  assert.deepEqual(mainOf({ cpu: 2 })?.resources, { limits: { cpu: '2' }, requests: { cpu: '2' } })
  assert.deepEqual(mainOf({ memory: '1.1Gi' })?.resources, {
    limits: { memory: '1181116006' },
    requests: { memory: '1181116006' },
  })
  assert.ok(!('resources' in (mainOf({ cpu: 0, memory: 0 }) ?? {})))
})

test('D8, B-87: uid and gid', () => {
  const seccompProfile = { type: 'RuntimeDefault' }
  assert.deepEqual(podOf({ user: '1000' }).securityContext, { runAsUser: 1000, seccompProfile })
  assert.deepEqual(podOf({ user: '0:0' }).securityContext, { runAsUser: 0, runAsGroup: 0, seccompProfile })
})

test('F-58: a spec that restricted forbids is refused by the builder as well', () => {
  const restricted = { ...OPTIONS, podSecurity: 'restricted' as const }
  for (const request of [{ user: '0' }, { user: '0:5' }, { volumes: [{ source: '/data', target: '/srv' }] }]) {
    assert.match(refusalOf('SPEC_REFUSED', () => buildWorkload(specOf(request), restricted)).message, /POD_SECURITY/)
  }
})

test('C10: the nonce is an annotation of a copy', () => {
  const built = buildDeployment(specOf(), OPTIONS)
  const before = JSON.stringify(built)
  assert.deepEqual(withNonce(built, 'n-1').metadata?.annotations, { 'runtimed.dev/create-nonce': 'n-1' })
  assert.equal(JSON.stringify(built), before)
  const pod = buildPod(specOf({}, { defaults: { kind: 'pod', annotations: { a: 'b' } } }), OPTIONS)
  assert.deepEqual(withNonce(pod, 'n-2').metadata?.annotations, { a: 'b', 'runtimed.dev/create-nonce': 'n-2' })
  assert.deepEqual({ ...withNonce(built, 'n-1'), metadata: built.metadata }, built)
})

/** Builds for one policy; undefined when the policy refuses the request. */
function build(request: CreateRequest, podSecurity: 'baseline' | 'restricted') {
  try {
    const spec = specOf(request, { policy: { podSecurity } })
    return { spec, objects: renderObjects(spec, { ...OPTIONS, podSecurity }) }
  } catch (error) {
    if (isRuntimeError(error, 'SPEC_REFUSED')) return undefined
    throw error
  }
}

test('F-58, D2: of 10,000 specs each object passes the standard asked for, and the same spec gives the same bytes', () => {
  const counts = { baseline: 0, restricted: 0, refused: 0 }
  fc.assert(
    fc.property(createRequests(), fc.constantFrom('baseline', 'restricted'), (request, podSecurity) => {
      const built = build(request, podSecurity)
      const forbidden = /^0+(:|$)/.test(request.user ?? '') || (request.volumes ?? []).length > 0
      assert.equal(built === undefined, podSecurity === 'restricted' && forbidden)
      if (built === undefined) {
        counts.refused += 1
        return
      }
      counts[podSecurity] += 1
      const [workload] = built.objects as [V1Deployment | V1Job]
      const pod = workload.spec?.template?.spec ?? assert.fail('no pod')
      const violations = podSecurity === 'restricted' ? restrictedViolations(pod) : baselineViolations(pod)
      assert.deepEqual(
        violations,
        (podSecurity === 'baseline' ? built.spec.volumes : []).map(volume => `hostPath ${volume.source}`),
      )
      const [main] = pod.containers
      assert.equal(main?.securityContext?.allowPrivilegeEscalation, false)
      assert.deepEqual(pod.securityContext?.seccompProfile, { type: 'RuntimeDefault' })
      assert.equal(pod.automountServiceAccountToken, false)
      assert.deepEqual(Object.keys(main?.resources?.limits ?? {}).sort(), [
        ...(request.cpu ? ['cpu'] : []),
        ...(request.memory ? ['memory'] : []),
      ])
      const names = (main?.env ?? []).map(({ name }) => name)
      assert.deepEqual(names, Object.keys(request.env ?? {}).sort())
      const reversed = Object.fromEntries(Object.entries(request.env ?? {}).reverse())
      const again = build({ ...structuredClone(request), ...(request.env && { env: reversed }) }, podSecurity)
      assert.equal(JSON.stringify(again?.objects), JSON.stringify(built.objects))
    }),
    { numRuns: 10_000 },
  )
  for (const [what, count] of Object.entries(counts)) assert.ok(count > 500, `${what}: only ${count}`)
})

/** A value for every field that a pod can carry, unlike its default. */
const CARRIED: Record<string, Partial<CreateRequest>> = {
  image: { image: 'other' },
  entrypoint: { entrypoint: ['x'] },
  command: { command: ['x'] },
  workdir: { workdir: '/x' },
  env: { env: { A: 'x' } },
  cpu: { cpu: 1 },
  memory: { memory: 1024 },
  user: { user: '5' },
  supplementalGroups: { supplementalGroups: [5] },
  volumes: { volumes: [{ source: '/data', target: '/x' }] },
  port: { port: 1 },
  exposeService: { port: 80, exposeService: true },
  schedulingConstraints: { schedulingConstraints: [{ type: 'node', key: 'a', operator: 'Exists' }] },
  labels: { labels: { a: 'x' } },
  imagePullPolicy: { imagePullPolicy: 'Always' },
  imagePullSecrets: { imagePullSecrets: ['x'] },
  backoffLimit: { kind: 'job', backoffLimit: 5 },
  terminationGracePeriodSeconds: { terminationGracePeriodSeconds: 5 },
  start: { start: false },
  namespace: { namespace: 'x' },
  name: { name: 'x' },
  kind: { kind: 'job' },
  runtime: { runtime: 'k3s' },
}
/** Read from the row by the daemon itself, so no object carries them. */
const OURS = ['startTimeoutSeconds', 'jobStop', 'annotations']

test('D17, B-89: every field of a spec reaches the objects, or is the daemon’s own', () => {
  assert.deepEqual([...Object.keys(CARRIED), ...OURS].sort(), Object.keys(specOf()).sort())
  for (const [field, request] of Object.entries(CARRIED)) {
    const plain = {
      ...(request.kind === 'job' && field !== 'kind' && { kind: 'job' }),
      ...(field === 'exposeService' && { port: 80 }),
    }
    assert.notDeepEqual(renderObjects(specOf(request), OPTIONS), renderObjects(specOf(plain), OPTIONS), field)
  }
})
