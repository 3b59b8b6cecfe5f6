import type { V1Affinity, V1Container, V1PodSpec, V1ResourceRequirements, V1VolumeMount } from '@kubernetes/client-node'
import { compareText } from '../domain/canonical-json.ts'
import type { PodSecurity, WorkloadSpec } from '../domain/workload-spec.ts'
import { assertPodSecurity, containerSecurityContext, podSecurityContext } from './pod-policy.ts'

/** The settings of the daemon that reach every pod. */
export interface BuildOptions {
  readonly instance: string
  readonly podSecurity: PodSecurity
  /** Put before those of the spec. */
  readonly imagePullSecrets: readonly string[]
  /** Null: no service-account token is mounted. */
  readonly serviceAccountName: string | null
}

/** The container whose exit code and logs are the runtime's; others may be injected beside it. */
export const MAIN_CONTAINER = 'main'

/** Throws SPEC_REFUSED when the spec breaks POD_SECURITY. What a spec leaves out is left out of the object. */
export function buildPodSpec(
  spec: WorkloadSpec,
  options: BuildOptions & { readonly restartPolicy: 'Always' | 'Never' },
): V1PodSpec {
  assertPodSecurity(spec, options.podSecurity)
  const secrets = [...new Set([...options.imagePullSecrets, ...spec.imagePullSecrets])]
  const affinity = nodeAffinity(spec)
  return {
    restartPolicy: options.restartPolicy,
    ...(options.serviceAccountName === null
      ? { automountServiceAccountToken: false }
      : { serviceAccountName: options.serviceAccountName }),
    ...(spec.terminationGracePeriodSeconds !== null && {
      terminationGracePeriodSeconds: spec.terminationGracePeriodSeconds,
    }),
    ...(secrets.length > 0 && { imagePullSecrets: secrets.map(name => ({ name })) }),
    ...(affinity && { affinity }),
    securityContext: podSecurityContext(spec, options.podSecurity),
    containers: [buildContainer(spec, options.podSecurity)],
    ...(spec.volumes.length > 0 && {
      volumes: spec.volumes.map(({ source }, index) => ({ name: volumeName(index), hostPath: { path: source } })),
    }),
  }
}

/** Kubernetes' `command` is the image's ENTRYPOINT and `args` its CMD; ours are called as Docker calls them. */
function buildContainer(spec: WorkloadSpec, podSecurity: PodSecurity): V1Container {
  const resources = buildResources(spec)
  const env = Object.entries(spec.env).sort(([a], [b]) => compareText(a, b))
  return {
    name: MAIN_CONTAINER,
    image: spec.image,
    imagePullPolicy: spec.imagePullPolicy,
    ...(spec.entrypoint.length > 0 && { command: [...spec.entrypoint] }),
    ...(spec.command.length > 0 && { args: [...spec.command] }),
    ...(spec.workdir !== null && { workingDir: spec.workdir }),
    ...(env.length > 0 && { env: env.map(([name, value]) => ({ name, value })) }),
    ...(spec.port !== null && { ports: [{ containerPort: spec.port, protocol: 'TCP' }] }),
    ...(resources && { resources }),
    ...(spec.volumes.length > 0 && { volumeMounts: volumeMounts(spec) }),
    securityContext: containerSecurityContext(podSecurity),
  }
}

const volumeName = (index: number): string => `volume-${index}`

const volumeMounts = (spec: WorkloadSpec): V1VolumeMount[] =>
  spec.volumes.map(({ target, mode }, index) => ({
    name: volumeName(index),
    mountPath: target,
    ...(mode === 'ro' && { readOnly: true }),
  }))

/** Requests equal limits: what a runtime may use is also what it is sure to get. */
function buildResources({ cpu, memory }: WorkloadSpec): V1ResourceRequirements | undefined {
  if (cpu === null && memory === null) return undefined
  const amounts = { ...(cpu !== null && { cpu }), ...(memory !== null && { memory: String(memory) }) }
  return { limits: { ...amounts }, requests: { ...amounts } }
}

/** One term: terms are joined by OR, and every constraint must hold. */
function nodeAffinity({ schedulingConstraints }: WorkloadSpec): V1Affinity | undefined {
  if (schedulingConstraints.length === 0) return undefined
  const matchExpressions = schedulingConstraints.map(({ key, operator, values }) => ({
    key,
    operator,
    ...(values.length > 0 && { values: [...values] }),
  }))
  return {
    nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [{ matchExpressions }] } },
  }
}
