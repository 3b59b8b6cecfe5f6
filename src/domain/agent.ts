import { type FieldError, RuntimeError } from '../errors.ts'
import { hasControlCharacter } from './host-path.ts'
import { isLabelValue } from './labels.ts'
import { millicores, type QuantityInput, readCpu, readMemory } from './quantity.ts'
import { isDnsLabel, serviceDns, suggestLabel } from './workload-name.ts'

export const SERVICE_TYPES = ['rcoder', 'computer-agent-runner'] as const
export type ServiceType = (typeof SERVICE_TYPES)[number]

/** Hexadecimal SHA-256 of the UTF-8 bytes of a text; given by the caller, as the domain computes no digests. */
export type Sha256Hex = (text: string) => string

export interface AgentKey {
  readonly serviceType: ServiceType
  /** As given: the project's for `rcoder`, the user's for `computer-agent-runner`. */
  readonly identifier: string
}

/** As a request gives them; blank counts as absent. */
export interface AgentIds {
  readonly projectId?: string | undefined
  readonly userId?: string | undefined
}

const MAX_IDENTIFIER = 256
const MAX_LABEL = 63
const PREFIX: Readonly<Record<ServiceType, string>> = {
  rcoder: 'rcoder-agent',
  'computer-agent-runner': 'computer-agent-runner',
}

/** What the hash form looks like at its end; an identifier that looks so itself is hashed too, so the forms never meet. */
const HASH_END = /-[0-9a-f]{8}$/

/** userId wins over projectId; undefined when there is neither. */
export function agentKey(request: {
  projectId?: string | undefined
  userId?: string | undefined
}): AgentKey | undefined {
  const { projectId = '', userId = '' } = request
  if (userId.trim() !== '') return { serviceType: 'computer-agent-runner', identifier: userId }
  if (projectId.trim() !== '') return { serviceType: 'rcoder', identifier: projectId }
  return undefined
}

/** Null, or why no name can be built from it. */
export function identifierFault(identifier: string): string | null {
  const readable = identifier.trim() !== '' && identifier.isWellFormed() && !hasControlCharacter(identifier)
  if (readable && identifier.length <= MAX_IDENTIFIER) return null
  return `an identifier has 1 to ${MAX_IDENTIFIER} characters, not only blanks, and no control characters`
}

/**
 * The name of an agent's Pod and of its Service: `<prefix>-<identifier>` where that is a legal name, else
 * `<prefix>-<slug>-<8 hex of the SHA-256>`. Legal for any identifier without fault and the same for ever; two identifiers
 * share a name only if both are hashed to the same slug and the same 32 bits.
 */
export function agentName({ serviceType, identifier }: AgentKey, sha256Hex: Sha256Hex): string {
  const prefix = PREFIX[serviceType]
  const plain = `${prefix}-${identifier}`
  if (isDnsLabel(plain) && !HASH_END.test(identifier)) return plain
  const end = `-${sha256Hex(identifier).slice(0, 8)}`
  return `${prefix}-${suggestLabel(identifier, MAX_LABEL - prefix.length - 1 - end.length)}${end}`
}

/** The user's labels of an agent Pod, unless the request gives them itself. The raw identifier goes into an annotation. */
export const agentLabels = ({ serviceType, identifier }: AgentKey): Record<string, string> => ({
  service_type: serviceType,
  [serviceType === 'rcoder' ? 'project_id' : 'user_id']: isLabelValue(identifier)
    ? identifier
    : suggestLabel(identifier),
})

/** What an agent's process is told about itself; an ID that was not given is left out. */
export const agentEnv = (
  serviceType: ServiceType,
  { projectId = '', userId = '' }: AgentIds,
): Record<string, string> => ({
  ...(projectId !== '' && { PROJECT_ID: projectId }),
  ...(userId !== '' && { USER_ID: userId }),
  SERVICE_TYPE: serviceType,
})

/** The DNS name of an agent, whether or not its Pod exists. Throws DNS_RESOLUTION_ERROR. */
export function agentDns(
  key: AgentKey,
  { namespace, clusterDomain, sha256Hex }: { namespace: string; clusterDomain: string; sha256Hex: Sha256Hex },
): string {
  const fault = identifierFault(key.identifier)
  if (fault) throw new RuntimeError('DNS_RESOLUTION_ERROR', `cannot build a DNS name: ${fault}`)
  return serviceDns(agentName(key, sha256Hex), namespace, clusterDomain)
}

const MIN_MILLICORES = 100
const MAX_MILLICORES = 64_000
const MIN_BYTES = 64 * 2 ** 20
const MAX_BYTES = 256 * 2 ** 30

/** What is wrong with the resources of an agent; absent ones (0 too) are no limit and no fault. */
export function agentResourceFaults(resources: { cpu?: QuantityInput; memory?: QuantityInput }): FieldError[] {
  const errors: FieldError[] = []
  const cpu = readCpu(resources.cpu)
  if ('fault' in cpu) errors.push({ path: '/resources/cpu', message: cpu.fault })
  else if (cpu.value !== null && !within(millicores(cpu.value), MIN_MILLICORES, MAX_MILLICORES)) {
    errors.push({ path: '/resources/cpu', message: 'must be from 0.1 to 64 cores' })
  }
  const memory = readMemory(resources.memory)
  if ('fault' in memory) errors.push({ path: '/resources/memory', message: memory.fault })
  else if (memory.value !== null && !within(memory.value, MIN_BYTES, MAX_BYTES)) {
    errors.push({ path: '/resources/memory', message: 'must be from 64Mi to 256Gi' })
  }
  return errors
}

const within = (value: number, min: number, max: number): boolean => value >= min && value <= max
