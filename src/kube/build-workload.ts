import type {
  V1Deployment,
  V1Job,
  V1ObjectMeta,
  V1OwnerReference,
  V1Pod,
  V1PodTemplateSpec,
  V1Service,
} from '@kubernetes/client-node'
import { compareText } from '../domain/canonical-json.ts'
import { ANNOTATION_NONCE, ownLabels, selectorLabels } from '../domain/labels.ts'
import { serviceName } from '../domain/workload-name.ts'
import type { WorkloadSpec } from '../domain/workload-spec.ts'
import { type BuildOptions, buildPodSpec } from './build-pod-spec.ts'

export type { BuildOptions } from './build-pod-spec.ts'
export { MAIN_CONTAINER } from './build-pod-spec.ts'

export type Workload = V1Deployment | V1Job | V1Pod

/** The object of a spec's kind. Pure: the same spec and options give the same bytes. Throws SPEC_REFUSED (pod-policy.ts). */
export function buildWorkload(spec: WorkloadSpec, options: BuildOptions): Workload {
  switch (spec.kind) {
    case 'deployment':
      return buildDeployment(spec, options)
    case 'job':
      return buildJob(spec, options)
    case 'pod':
      return buildPod(spec, options)
  }
}

/** One replica, or none with `start: false`; strategy, deadlines and history are the cluster's defaults. */
export const buildDeployment = (spec: WorkloadSpec, options: BuildOptions): V1Deployment => ({
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: metadata(spec, options),
  spec: {
    replicas: spec.start ? 1 : 0,
    selector: { matchLabels: selectorLabels(spec) },
    template: template(spec, options, 'Always'),
  },
})

/** Suspended with `start: false`. No TTL: it stays until it is deleted. */
export const buildJob = (spec: WorkloadSpec, options: BuildOptions): V1Job => ({
  apiVersion: 'batch/v1',
  kind: 'Job',
  metadata: metadata(spec, options),
  spec: {
    backoffLimit: spec.backoffLimit ?? 0,
    suspend: !spec.start,
    template: template(spec, options, 'Never'),
  },
})

export const buildPod = (spec: WorkloadSpec, options: BuildOptions): V1Pod => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: metadata(spec, options),
  spec: buildPodSpec(spec, { ...options, restartPolicy: 'Never' }),
})

/** The name of the Service a spec gets: an agent Pod's is its own, so that the DNS name outlives the Pod. */
export const serviceNameOf = (spec: WorkloadSpec): string => (spec.kind === 'pod' ? spec.name : serviceName(spec.name))

/**
 * The Service in front of a workload, selecting exactly its pods, or null when the spec asks for none.
 * `ownerUid` is the uid of the workload, which takes the Service with it; null only to show what would be made.
 */
export function buildService(spec: WorkloadSpec, options: BuildOptions, ownerUid: string | null): V1Service | null {
  if (!spec.exposeService || spec.port === null || spec.kind === 'job') return null
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: {
      name: serviceNameOf(spec),
      namespace: spec.namespace,
      labels: labelsOf(spec, options),
      ...(ownerUid !== null && { ownerReferences: [ownerReference(spec, ownerUid)] }),
    },
    spec: {
      type: 'ClusterIP',
      selector: selectorLabels(spec),
      ports: [{ port: spec.port, targetPort: spec.port, protocol: 'TCP' }],
    },
  }
}

/** What `?dryRun=render` shows: everything a create would write, in order, without nonce and owner. */
export function renderObjects(spec: WorkloadSpec, options: BuildOptions): (Workload | V1Service)[] {
  const service = buildService(spec, options, null)
  return service ? [buildWorkload(spec, options), service] : [buildWorkload(spec, options)]
}

/** A copy that carries the nonce of one create, by which a repeat after a lost answer knows its own object. */
export const withNonce = <T extends { metadata?: V1ObjectMeta | undefined }>(object: T, nonce: string): T => ({
  ...object,
  metadata: {
    ...object.metadata,
    annotations: { ...object.metadata?.annotations, [ANNOTATION_NONCE]: nonce },
  },
})

const ownerReference = (spec: WorkloadSpec, uid: string): V1OwnerReference =>
  spec.kind === 'pod'
    ? { apiVersion: 'v1', kind: 'Pod', name: spec.name, uid }
    : { apiVersion: 'apps/v1', kind: 'Deployment', name: spec.name, uid }

const labelsOf = (spec: WorkloadSpec, { instance }: BuildOptions): Record<string, string> =>
  Object.fromEntries(
    Object.entries({ ...spec.labels, ...ownLabels(spec, instance) }).sort(([a], [b]) => compareText(a, b)),
  )

const metadata = (spec: WorkloadSpec, options: BuildOptions): V1ObjectMeta => ({
  name: spec.name,
  namespace: spec.namespace,
  labels: labelsOf(spec, options),
  ...(Object.keys(spec.annotations).length > 0 && { annotations: { ...spec.annotations } }),
})

const template = (spec: WorkloadSpec, options: BuildOptions, restartPolicy: 'Always' | 'Never'): V1PodTemplateSpec => ({
  metadata: { labels: labelsOf(spec, options) },
  spec: buildPodSpec(spec, { ...options, restartPolicy }),
})
