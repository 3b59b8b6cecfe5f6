import { RuntimeError } from '../errors.ts'

export const RUNTIME_NAMES = ['k8s', 'k3s', 'docker'] as const
export type RuntimeName = (typeof RUNTIME_NAMES)[number]

export const KINDS = ['deployment', 'job', 'pod'] as const
export type Kind = (typeof KINDS)[number]

/** Names one runtime across all configured runtimes. An address, not an identity: the uid of its life is that. */
export interface RuntimeId {
  readonly runtime: RuntimeName
  readonly namespace: string
  readonly kind: Kind
  readonly name: string
}

/** `k8s-` + 63 + `|deployment|` + 63. */
export const MAX_RUNTIME_ID_LENGTH = 142

/** RFC 1123 label, the rule of Kubernetes for namespaces and for the names we give. */
export const DNS_LABEL = /^[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?$/

const SCOPE = new RegExp(`^(${RUNTIME_NAMES.join('|')})-(.*)$`)
const ACCEPTED =
  'accepted is <runtime>-<namespace>|<kind>|<name>, such as k8s-default|deployment|web-api, of at most 142 characters'

function refuse(what: string): never {
  throw new RuntimeError('RUNTIME_ID_INVALID', `cannot read the runtime ID: ${what}; ${ACCEPTED}`)
}

// Blanks and tabs only: a line break inside an ID is a fault, never a blank to be trimmed away.
const trimBlanks = (text: string): string => text.replace(/^[ \t]+|[ \t]+$/g, '')

/**
 * Reads a runtime ID, tolerating blanks around it and around its parts and nothing else.
 * What it returns is safe to put into a path. Whether that runtime is configured is the caller's question.
 * Throws RUNTIME_ID_INVALID.
 */
export function parseRuntimeId(text: string): RuntimeId {
  if (text.length > MAX_RUNTIME_ID_LENGTH * 2) refuse('it is too long')
  const parts = text.split('|').map(trimBlanks)
  if (parts.length !== 3) refuse(`it has ${parts.length} parts between "|"`)
  if (parts.join('|').length > MAX_RUNTIME_ID_LENGTH) refuse('it is too long')
  const [scope = '', kind = '', name = ''] = parts
  const [, runtime = '', namespace = ''] = SCOPE.exec(scope) ?? []
  if (!isRuntimeName(runtime)) refuse(`it must begin with one of ${RUNTIME_NAMES.map(known => `${known}-`).join(', ')}`)
  if (!isKind(kind)) refuse(`the kind must be one of ${KINDS.join(', ')}`)
  if (!DNS_LABEL.test(namespace)) refuse('the namespace is no DNS label (a-z, 0-9, "-", at most 63)')
  if (!DNS_LABEL.test(name)) refuse('the name is no DNS label (a-z, 0-9, "-", at most 63)')
  return { runtime, namespace, kind, name }
}

/** The one text of an ID; `parseRuntimeId` undoes it. */
export const formatRuntimeId = ({ runtime, namespace, kind, name }: RuntimeId): string =>
  `${runtime}-${namespace}|${kind}|${name}`

export const isRuntimeName = (text: string): text is RuntimeName => RUNTIME_NAMES.some(name => name === text)

export const isKind = (text: string): text is Kind => KINDS.some(kind => kind === text)

/** What people write for a runtime: any case, outer blanks, `kubernetes` for `k8s`. Undefined when it names none. */
export function toRuntimeName(text: string): RuntimeName | undefined {
  const name = text.trim().toLowerCase()
  if (name === 'kubernetes') return 'k8s'
  return isRuntimeName(name) ? name : undefined
}
