import { randomInt } from 'node:crypto'
import type { KubeObject, Loose } from './types.ts'

/** The alphabet of generated names: no vowels, nothing that looks like another letter. */
const ALPHABET = 'bcdfghjklmnpqrstvwxz2456789'

/** Random end of a generated name, as Kubernetes makes it. */
export function randomSuffix(length = 5): string {
  return Array.from({ length }, () => ALPHABET[randomInt(ALPHABET.length)]).join('')
}

/** Any 32-bit number written in the alphabet of generated names. */
export function encodeSuffix(value: number): string {
  return [...String(value)].map(digit => ALPHABET[Number(digit)]).join('')
}

/** Fills in what the API server fills in when an object is made; changes the draft. */
export function applyDefaults(resource: string, draft: KubeObject): void {
  defaultSpec(resource, draft)
  NEW[resource]?.(draft)
}

/**
 * Fills in what is left open in the spec, when it is made and at each change: a template without its defaults would
 * never equal that of the ReplicaSet made from it.
 */
export function defaultSpec(resource: string, draft: KubeObject): void {
  SPECS[resource]?.(draft)
}

const SPECS: Record<string, (draft: KubeObject) => void> = {
  deployments: defaultDeployment,
  replicasets: draft => {
    draft.spec.replicas ??= 1
    defaultPodSpec(draft.spec.template?.spec, 'Always')
  },
  jobs: defaultJob,
  pods: draft => {
    defaultPodSpec(draft.spec, 'Always')
    for (const container of draft.spec.containers ?? []) requestLimits(container)
  },
}

const NEW: Record<string, (draft: KubeObject) => void> = {
  deployments: draft => {
    draft.status = {}
  },
  replicasets: draft => {
    draft.status = { replicas: 0 }
  },
  jobs: draft => {
    draft.status = {}
  },
  pods: draft => {
    draft.status = { phase: 'Pending', qosClass: qosClass(draft.spec) }
  },
  services: defaultService,
  namespaces: draft => {
    draft.metadata.labels = { 'kubernetes.io/metadata.name': draft.metadata.name, ...draft.metadata.labels }
    draft.spec = { finalizers: ['kubernetes'] }
    draft.status = { phase: 'Active' }
  },
  resourcequotas: draft => {
    draft.status ??= {}
  },
}

function defaultDeployment(draft: KubeObject): void {
  const spec = draft.spec
  spec.replicas ??= 1
  spec.strategy ??= {}
  spec.strategy.type ??= 'RollingUpdate'
  if (spec.strategy.type === 'RollingUpdate') {
    spec.strategy.rollingUpdate = { maxUnavailable: '25%', maxSurge: '25%', ...spec.strategy.rollingUpdate }
  }
  spec.revisionHistoryLimit ??= 10
  spec.progressDeadlineSeconds ??= 600
  defaultPodSpec(spec.template?.spec, 'Always')
}

/** Selector and pod labels need the Job's uid: the registry calls `labelJob` once it is known. */
function defaultJob(draft: KubeObject): void {
  const spec = draft.spec
  if (spec.completions === undefined && spec.parallelism === undefined) spec.completions = 1
  spec.parallelism ??= 1
  spec.backoffLimit ??= 6
  spec.completionMode ??= 'NonIndexed'
  spec.suspend ??= false
  spec.podReplacementPolicy ??= spec.podFailurePolicy ? 'Failed' : 'TerminatingOrFailed'
  defaultPodSpec(spec.template?.spec, 'Always')
}

/** Gives a Job its generated selector and its pods the labels that go with it. */
export function labelJob(draft: KubeObject, uid: string): void {
  if (draft.spec.manualSelector === true) return
  const labels = {
    'batch.kubernetes.io/controller-uid': uid,
    'batch.kubernetes.io/job-name': draft.metadata.name,
    'controller-uid': uid,
    'job-name': draft.metadata.name,
  }
  draft.spec.selector = { matchLabels: { 'batch.kubernetes.io/controller-uid': uid } }
  draft.spec.template.metadata = {
    ...draft.spec.template.metadata,
    labels: { ...draft.spec.template.metadata?.labels, ...labels },
  }
}

function defaultService(draft: KubeObject): void {
  const spec = draft.spec
  spec.type ??= 'ClusterIP'
  spec.sessionAffinity ??= 'None'
  spec.internalTrafficPolicy ??= 'Cluster'
  spec.ipFamilies ??= ['IPv4']
  spec.ipFamilyPolicy ??= 'SingleStack'
  if (spec.type !== 'ExternalName') {
    spec.clusterIP ??= `10.96.${randomInt(1, 255)}.${randomInt(1, 255)}`
    spec.clusterIPs ??= [spec.clusterIP]
  }
  for (const port of spec.ports ?? []) {
    port.protocol ??= 'TCP'
    port.targetPort ??= port.port
  }
  draft.status = { loadBalancer: {} }
}

function defaultPodSpec(spec: Loose, restartPolicy: string): void {
  if (!spec) return
  spec.restartPolicy ??= restartPolicy
  spec.terminationGracePeriodSeconds ??= 30
  spec.dnsPolicy ??= 'ClusterFirst'
  spec.securityContext ??= {}
  spec.schedulerName ??= 'default-scheduler'
  for (const container of spec.containers ?? []) {
    container.resources ??= {}
    container.terminationMessagePath ??= '/dev/termination-log'
    container.terminationMessagePolicy ??= 'File'
    container.imagePullPolicy ??= pullPolicyOf(String(container.image))
    for (const port of container.ports ?? []) port.protocol ??= 'TCP'
  }
}

/** What is limited and not requested is requested: for pods, not for the templates of others. */
function requestLimits({ resources }: Loose): void {
  if (resources.limits) resources.requests = { ...resources.limits, ...resources.requests }
}

function pullPolicyOf(image: string): string {
  const tag = /:([^/:@]+)$/.exec(image)?.[1]
  return image.includes('@') || (tag !== undefined && tag !== 'latest') ? 'IfNotPresent' : 'Always'
}

function qosClass(spec: Loose): string {
  const resources = (spec.containers ?? []).map((container: Loose) => container.resources ?? {})
  const named = (of: Loose) => Object.keys(of ?? {}).filter(key => key === 'cpu' || key === 'memory')
  if (resources.every((r: Loose) => named(r.limits).length === 0 && named(r.requests).length === 0)) return 'BestEffort'
  const guaranteed = resources.every(
    (r: Loose) => named(r.limits).length === 2 && named(r.limits).every(key => r.requests?.[key] === r.limits[key]),
  )
  return guaranteed ? 'Guaranteed' : 'Burstable'
}
