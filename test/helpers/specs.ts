import { normaliseSpec } from '../../src/domain/normalise-spec.ts'
import type { CreateRequest, SpecDefaults, SpecPolicy, WorkloadSpec } from '../../src/domain/workload-spec.ts'

export const DEFAULTS: SpecDefaults = {
  runtime: 'k8s',
  namespace: 'default',
  kind: 'deployment',
  name: 'rt-generated',
  startTimeoutSeconds: 0,
  jobStop: 'delete',
}

export const POLICY: SpecPolicy = {
  runtimes: ['k8s', 'k3s', 'docker'],
  hostPathRoots: ['/data'],
  podSecurity: 'baseline',
}

/** The spec of a request, image and name given unless the request has its own. */
export const specOf = (
  request: Partial<CreateRequest> = {},
  { defaults = {}, policy = {} }: { defaults?: Partial<SpecDefaults>; policy?: Partial<SpecPolicy> } = {},
): WorkloadSpec =>
  normaliseSpec(
    { image: 'registry/web:1.2', name: 'web', ...request },
    { ...DEFAULTS, ...defaults },
    { ...POLICY, ...policy },
  )
