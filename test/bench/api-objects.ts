/**
 * Templates of what the fake API server shows, of about 4.6 KB, as a cluster has them. Holes: @NAME@ and @APP@ the
 * workload's name, @ID@ twelve digits of its number, @RV@ the version, @S@ two digits.
 */
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

export const DEPLOYMENT = {
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
export const POD = {
  metadata: {
    ...metadata('deployment'),
    name: '@NAME@-6cbc7bf67c-x2k4p',
    uid: '5d1be0f2-7c1a-4a53-8f0b-@ID@',
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

export const REPLICA_SET = {
  kind: 'ReplicaSet',
  apiVersion: 'apps/v1',
  metadata: {
    ...metadata('deployment'),
    name: '@NAME@-6cbc7bf67c',
    uid: 'c0f3a25a-c40b-451b-afb2-@ID@',
    ownerReferences: [
      {
        apiVersion: 'apps/v1',
        kind: 'Deployment',
        name: '@NAME@',
        uid: '0b6f7c1e-5a54-4f07-9d2e-@ID@',
        controller: true,
      },
    ],
  },
}

const { readyReplicas: _ready, availableReplicas: _available, ...unready } = DEPLOYMENT.status

/** Its one container runs and is not ready yet. */
export const STARTING_DEPLOYMENT = { ...DEPLOYMENT, status: { ...unready, unavailableReplicas: 1 } }
export const STARTING_POD = {
  ...POD,
  status: {
    ...POD.status,
    conditions: POD.status.conditions.map(one => (/Ready$/.test(one.type) ? { ...one, status: 'False' } : one)),
    containerStatuses: POD.status.containerStatuses.map(one => ({ ...one, ready: false })),
  },
}

export type Render = (id: number, version: number) => string

/** Fills the template's holes; parts are cut once. */
export function renderer(object: object): Render {
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

/** As the templates have them. */
export const replicaSetUidOf = (id: number): string => `c0f3a25a-c40b-451b-afb2-${String(id).padStart(12, '0')}`
export const uidOf = (id: number): string => `0b6f7c1e-5a54-4f07-9d2e-${String(id).padStart(12, '0')}`
