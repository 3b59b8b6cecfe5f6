import type { V1Container, V1PodSpec } from '@kubernetes/client-node'

/** Volume types the restricted profile allows. */
const SAFE_VOLUMES = [
  'configMap',
  'csi',
  'downwardAPI',
  'emptyDir',
  'ephemeral',
  'persistentVolumeClaim',
  'projected',
  'secret',
]

/** Capabilities the baseline profile lets a container add. */
const BASELINE_CAPABILITIES = [
  'AUDIT_WRITE',
  'CHOWN',
  'DAC_OVERRIDE',
  'FOWNER',
  'FSETID',
  'KILL',
  'MKNOD',
  'NET_BIND_SERVICE',
  'SETFCAP',
  'SETGID',
  'SETPCAP',
  'SETUID',
  'SYS_CHROOT',
]

const SAFE_SYSCTLS = [
  'kernel.shm_rmid_forced',
  'net.ipv4.ip_local_port_range',
  'net.ipv4.ip_unprivileged_port_start',
  'net.ipv4.tcp_syncookies',
  'net.ipv4.ping_group_range',
  'net.ipv4.ip_local_reserved_ports',
  'net.ipv4.tcp_keepalive_time',
  'net.ipv4.tcp_fin_timeout',
  'net.ipv4.tcp_keepalive_intvl',
  'net.ipv4.tcp_keepalive_probes',
]

const containersOf = (pod: V1PodSpec): V1Container[] => [
  ...(pod.initContainers ?? []),
  ...pod.containers,
  ...((pod.ephemeralContainers ?? []) as V1Container[]),
]

/**
 * What the Pod Security Standard *baseline* (https://kubernetes.io/docs/concepts/security/pod-security-standards/) forbids in
 * a pod; empty = it passes. Written from the standard, not from our builders.
 */
export function baselineViolations(pod: V1PodSpec): string[] {
  const found: string[] = []
  if (pod.hostNetwork || pod.hostPID || pod.hostIPC) found.push('host namespaces')
  for (const volume of pod.volumes ?? []) if (volume.hostPath) found.push(`hostPath ${volume.hostPath.path}`)
  for (const { name } of pod.securityContext?.sysctls ?? [])
    if (!SAFE_SYSCTLS.includes(name)) found.push(`sysctl ${name}`)
  for (const context of [pod.securityContext, ...containersOf(pod).map(container => container.securityContext)]) {
    if (context?.seccompProfile?.type === 'Unconfined') found.push('seccomp Unconfined')
    if (context?.appArmorProfile?.type === 'Unconfined') found.push('AppArmor Unconfined')
    const { type = '', user = '', role = '' } = context?.seLinuxOptions ?? {}
    if (
      !['', 'container_t', 'container_init_t', 'container_kvm_t', 'container_engine_t'].includes(type) ||
      user ||
      role
    ) {
      found.push('SELinux options')
    }
    if (context?.windowsOptions?.hostProcess) found.push('host process')
  }
  for (const container of containersOf(pod)) {
    const context = container.securityContext ?? {}
    if (context.privileged) found.push('privileged')
    if (context.procMount && context.procMount !== 'Default') found.push('procMount')
    for (const capability of context.capabilities?.add ?? []) {
      if (!BASELINE_CAPABILITIES.includes(capability)) found.push(`capability ${capability}`)
    }
    for (const port of container.ports ?? []) if (port.hostPort) found.push(`hostPort ${port.hostPort}`)
  }
  return found
}

/** What the standard *restricted* forbids; it has all of baseline in it. */
export function restrictedViolations(pod: V1PodSpec): string[] {
  const found = baselineViolations(pod)
  const ours = pod.securityContext ?? {}
  for (const volume of pod.volumes ?? []) {
    const types = Object.keys(volume).filter(key => key !== 'name')
    if (!types.every(type => SAFE_VOLUMES.includes(type))) found.push(`volume ${types}`)
  }
  if (ours.runAsUser === 0) found.push('runAsUser 0')
  for (const container of containersOf(pod)) {
    const context = container.securityContext ?? {}
    if (context.allowPrivilegeEscalation !== false) found.push('allowPrivilegeEscalation')
    if ((context.runAsNonRoot ?? ours.runAsNonRoot) !== true) found.push('runAsNonRoot')
    if (context.runAsUser === 0) found.push('runAsUser 0')
    const seccomp = (context.seccompProfile ?? ours.seccompProfile)?.type ?? ''
    if (!['RuntimeDefault', 'Localhost'].includes(seccomp)) found.push('seccompProfile')
    if (!context.capabilities?.drop?.includes('ALL')) found.push('capabilities not dropped')
    if ((context.capabilities?.add ?? []).some(capability => capability !== 'NET_BIND_SERVICE'))
      found.push('capabilities added')
  }
  return found
}
