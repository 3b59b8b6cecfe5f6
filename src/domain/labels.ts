import type { RuntimeId } from './runtime-id.ts'

/** Label and annotation names that are API (design.md §4): renaming one loses every workload that carries it. */
export const LABEL_APP = 'app'
export const LABEL_WORKLOAD = 'gobrave-workload'
export const LABEL_KIND = 'runtimed.dev/kind'
export const LABEL_INSTANCE = 'runtimed.dev/instance'
export const LABEL_RUNTIME = 'runtimed.dev/runtime'
export const ANNOTATION_NONCE = 'runtimed.dev/create-nonce'
export const ANNOTATION_IDENTIFIER = 'runtimed.dev/identifier'

const OWN_PREFIX = 'runtimed.dev/'

const NAME_PART = /^[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/
const SUBDOMAIN = /^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*$/

/** RFC 1123 subdomain: the rule of Kubernetes for label prefixes and the names of Secrets. */
export const isDnsSubdomain = (text: string): boolean => text.length <= 253 && SUBDOMAIN.test(text)

/** Kubernetes' "qualified name": an optional DNS prefix and `/`, then at most 63 of letters, digits, `-`, `_`, `.`. */
export function isLabelKey(key: string): boolean {
  const slash = key.indexOf('/')
  if (slash === -1) return NAME_PART.test(key)
  return isDnsSubdomain(key.slice(0, slash)) && NAME_PART.test(key.slice(slash + 1))
}

export const isLabelValue = (value: string): boolean => value === '' || NAME_PART.test(value)

/** Labels users may neither set nor override: selectors and ownership depend on them. */
export const isReservedLabel = (key: string): boolean =>
  key === LABEL_APP || key === LABEL_WORKLOAD || key.startsWith(OWN_PREFIX)

/** What tells one workload from all others, of other kinds too. Immutable once a Deployment has it as its selector. */
export const selectorLabels = ({ name, kind }: RuntimeId): Record<string, string> => ({
  [LABEL_APP]: name,
  [LABEL_WORKLOAD]: name,
  [LABEL_KIND]: kind,
})

/** Every label of ours: the selector and the fences against other daemons and other runtimes on the same cluster. */
export const ownLabels = (id: RuntimeId, instance: string): Record<string, string> => ({
  ...selectorLabels(id),
  [LABEL_INSTANCE]: instance,
  [LABEL_RUNTIME]: id.runtime,
})

/** The user's part of a workload's labels. */
export const userLabels = (labels: Readonly<Record<string, string>>): Record<string, string> =>
  Object.fromEntries(Object.entries(labels).filter(([key]) => !isReservedLabel(key)))
