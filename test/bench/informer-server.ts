import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/**
 * A fast API server for the informer bench, run as a child: lists `count` Deployments and Pods of about 4.6 KB, and on
 * `GET /emit?kind=&events=` writes that many MODIFIED events into the open watch of the kind.
 */
const count = Number(process.argv[2])

const managedFields = (bytes: number): unknown[] => [
  {
    manager: 'kube-controller-manager',
    operation: 'Update',
    apiVersion: 'apps/v1',
    time: '2026-11-29T17:22:45Z',
    fieldsType: 'FieldsV1',
    fieldsV1: Object.fromEntries(
      Array.from({ length: Math.ceil(bytes / 40) }, (_, n) => [`f:someFieldOfTheObject${n}`, { '.': {} }]),
    ),
  },
]
const metadata = (kind: string) => ({
  name: '@NAME@',
  namespace: 'default',
  uid: '0b6f7c1e-5a54-4f07-9d2e-@ID@',
  resourceVersion: '@RV@',
  generation: 2,
  creationTimestamp: '2026-11-29T17:22:@S@Z',
  labels: {
    app: '@APP@',
    'gobrave-workload': '@APP@',
    'runtimed.dev/instance': 'default',
    'runtimed.dev/kind': kind,
    'runtimed.dev/runtime': 'k8s',
  },
  annotations: { 'deployment.kubernetes.io/revision': '1', 'runtimed.dev/create-nonce': '866c6837@ID@' },
})
const condition = (type: string, message: string) => ({
  type,
  status: 'True',
  reason: `${type}Reason`,
  message,
  lastUpdateTime: '2026-11-29T17:23:@S@Z',
  lastTransitionTime: '2026-11-29T17:23:@S@Z',
})
const containers = (env: number) => [
  {
    name: 'main',
    image: 'registry.local/web:1.2',
    env: Array.from({ length: env }, (_, n) => ({ name: `VARIABLE_${n}`, value: `value-of-variable-${n}` })),
    resources: { limits: { cpu: '500m', memory: '512Mi' } },
    terminationMessagePath: '/dev/termination-log',
    imagePullPolicy: 'IfNotPresent',
  },
]

const deployment = {
  metadata: { ...metadata('deployment'), managedFields: managedFields(2000) },
  spec: {
    replicas: 1,
    selector: { matchLabels: { app: '@APP@' } },
    template: { metadata: { labels: { app: '@APP@' } }, spec: { containers: containers(16), restartPolicy: 'Always' } },
    strategy: { type: 'RollingUpdate' },
    progressDeadlineSeconds: 600,
  },
  status: {
    observedGeneration: 2,
    replicas: 1,
    updatedReplicas: 1,
    readyReplicas: 1,
    availableReplicas: 1,
    conditions: [
      condition('Available', 'Deployment has minimum availability.'),
      condition('Progressing', 'ReplicaSet "@NAME@-6cbc7bf67c" has successfully progressed.'),
    ],
  },
}
const pod = {
  metadata: {
    ...metadata('deployment'),
    name: '@NAME@-6cbc7bf67c-x2k4p',
    ownerReferences: [
      {
        apiVersion: 'apps/v1',
        kind: 'ReplicaSet',
        name: '@NAME@-6cbc7bf67c',
        uid: 'c0f3a25a-c40b-451b-afb2-@ID@',
        controller: true,
      },
    ],
    annotations: {},
    managedFields: managedFields(1700),
  },
  spec: {
    nodeName: 'node-@S@',
    restartPolicy: 'Always',
    terminationGracePeriodSeconds: 30,
    serviceAccountName: 'default',
    containers: containers(8),
    tolerations: [
      { key: 'node.kubernetes.io/not-ready', operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 300 },
    ],
  },
  status: {
    phase: 'Running',
    podIP: '10.1.@S@.7',
    startTime: '2026-11-29T17:22:@S@Z',
    conditions: ['PodReadyToStartContainers', 'Initialized', 'Ready', 'ContainersReady', 'PodScheduled'].map(type =>
      condition(type, ''),
    ),
    containerStatuses: [
      {
        name: 'main',
        image: 'registry.local/web:1.2',
        imageID: 'registry.local/web@sha256:0f1e2d3c4b5a69788796a5b4c3d2e1f00f1e2d3c4b5a69788796a5b4c3d2e1f0',
        containerID: 'containerd://0f1e2d3c4b5a69788796a5b4c3d2e1f00f1e2d3c4b5a69788796a5b4c3d2@ID@',
        ready: true,
        restartCount: 0,
        started: true,
        state: { running: { startedAt: '2026-11-29T17:23:@S@Z' } },
        lastState: {},
      },
    ],
  },
}

type Render = (id: number, version: number) => string

/** Fills the template's holes; parts are cut once. */
function renderer(object: object): Render {
  const parts = JSON.stringify(object).split('@')
  return (id, version) => {
    const holes: Record<string, string> = {
      NAME: `web-${id}`,
      APP: `web-${id}`,
      ID: String(id).padStart(12, '0'),
      RV: String(version),
      S: String(id % 60).padStart(2, '0'),
    }
    let text = ''
    for (const part of parts) text += holes[part] ?? part
    return text
  }
}

const kinds = {
  deployments: { kind: 'Deployment', api: 'apps/v1', render: renderer(deployment) },
  pods: { kind: 'Pod', api: 'v1', render: renderer(pod) },
}
type Plural = keyof typeof kinds
const watches = new Map<Plural, ServerResponse>()
let version = 1_000_000

function list(plural: Plural, query: URLSearchParams): string {
  const { kind, api, render } = kinds[plural]
  const from = Number(query.get('continue') ?? 0)
  const to = Math.min(count, from + Number(query.get('limit') ?? count))
  const items: string[] = []
  for (let id = from; id < to; id += 1) items.push(render(id, id + 1))
  const metadata = JSON.stringify({ resourceVersion: String(version), ...(to < count ? { continue: String(to) } : {}) })
  return `{"kind":"${kind}List","apiVersion":"${api}","metadata":${metadata},"items":[${items.join(',')}]}`
}

/** As the API server has it: kind and apiVersion come first in a watch. */
function eventText(plural: Plural, id: number): string {
  const { kind, api, render } = kinds[plural]
  version += 1
  return `{"type":"MODIFIED","object":{"kind":"${kind}","apiVersion":"${api}",${render(id, version).slice(1)}}\n`
}

async function emit(plural: Plural, events: number): Promise<void> {
  const watch = watches.get(plural)
  if (!watch) throw new Error(`nobody watches ${plural}`)
  for (let n = 0; n < events; ) {
    let text = ''
    for (let line = 0; line < 64 && n < events; line += 1, n += 1) text += eventText(plural, (n * 7919) % count)
    if (!watch.write(text)) await once(watch, 'drain')
  }
}

const server = createServer((request, response) => {
  const { pathname, searchParams } = new URL(request.url ?? '/', 'http://x')
  if (pathname === '/emit') {
    void emit(searchParams.get('kind') as Plural, Number(searchParams.get('events'))).then(() => response.end())
    return
  }
  const plural: Plural = pathname.endsWith('/pods') ? 'pods' : 'deployments'
  response.setHeader('content-type', 'application/json')
  if (searchParams.has('watch')) {
    response.flushHeaders()
    watches.set(plural, response)
  } else response.end(list(plural, searchParams))
})
server.listen(0, '127.0.0.1', () => {
  process.send?.({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` })
})
process.once('disconnect', () => process.exit())
