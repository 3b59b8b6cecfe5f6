import type { FieldError } from '../errors.ts'
import type { PodSecurity, WorkloadSpec } from './workload-spec.ts'

/**
 * What a spec asks for that POD_SECURITY=restricted forbids, on every backend alike: uid 0 and host paths.
 * Under `baseline` nothing: host paths below HOST_PATH_ROOTS are the operator's own exception.
 */
export function podSecurityFaults(
  { user, volumes }: Pick<WorkloadSpec, 'user' | 'volumes'>,
  podSecurity: PodSecurity,
): FieldError[] {
  if (podSecurity === 'baseline') return []
  const who = user === null ? null : user.split(':')[0]
  const root = who === '0' || who === 'root'
  return [
    ...(root ? [{ path: '/user', message: 'uid 0 is forbidden by POD_SECURITY=restricted; use another uid' }] : []),
    ...volumes.map((_, index) => ({
      path: `/volumes/${index}/source`,
      message: 'host paths are forbidden by POD_SECURITY=restricted',
    })),
  ]
}
