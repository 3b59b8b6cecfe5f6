import type { V1PodSecurityContext, V1SecurityContext } from '@kubernetes/client-node'
import { podSecurityFaults } from '../domain/pod-security.ts'
import type { PodSecurity, WorkloadSpec } from '../domain/workload-spec.ts'
import { RuntimeError } from '../errors.ts'

/**
 * The last line before an object is built: a spec accepted under an older, laxer setting is refused here.
 * Throws SPEC_REFUSED.
 */
export function assertPodSecurity(spec: WorkloadSpec, podSecurity: PodSecurity): void {
  const errors = podSecurityFaults(spec, podSecurity)
  const [first] = errors
  if (first) throw new RuntimeError('SPEC_REFUSED', `cannot build the pod: ${first.path} ${first.message}`, { errors })
}

/** Identity of the processes and the seccomp profile, for all containers of the pod. */
export function podSecurityContext(spec: WorkloadSpec, podSecurity: PodSecurity): V1PodSecurityContext {
  const [uid, gid] = spec.user === null ? [] : spec.user.split(':').map(Number)
  return {
    ...(podSecurity === 'restricted' && { runAsNonRoot: true }),
    ...(uid !== undefined && { runAsUser: uid }),
    ...(gid !== undefined && { runAsGroup: gid }),
    ...(spec.supplementalGroups.length > 0 && { supplementalGroups: [...spec.supplementalGroups] }),
    seccompProfile: { type: 'RuntimeDefault' },
  }
}

export const containerSecurityContext = (podSecurity: PodSecurity): V1SecurityContext => ({
  allowPrivilegeEscalation: false,
  ...(podSecurity === 'restricted' && { capabilities: { drop: ['ALL'] } }),
})
