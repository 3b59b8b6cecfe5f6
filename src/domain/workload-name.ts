import { DNS_LABEL } from './runtime-id.ts'

const MAX_LABEL = 63
const SERVICE_SUFFIX = '-svc'
/** A Service called `<name>-svc` is a label of at most 63 as well. */
const MAX_NAME_WITH_SERVICE = MAX_LABEL - SERVICE_SUFFIX.length

export const isDnsLabel = (text: string): boolean => DNS_LABEL.test(text)

/** A legal name close to what was asked, to be offered, never to be used in silence. Different texts may give the same. */
export function suggestLabel(text: string, maxLength = MAX_LABEL): string {
  const plain = text.normalize('NFKD').replace(/\p{Mark}/gu, '')
  const slug = plain
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-+/, '')
    .slice(0, maxLength)
    .replace(/-+$/, '')
  return slug === '' ? 'runtime' : slug
}

const ALPHABET = 'abcdefghijkmnpqrstuvwxyz23456789'
const RANDOM_BYTES = 10

/** A name for a create without one, legal for a Service too. As unique as the caller's bytes: five bits of each of ten are used. */
export function generateName(random: Uint8Array): string {
  if (random.length < RANDOM_BYTES) throw new RangeError(`cannot generate a name from fewer than ${RANDOM_BYTES} bytes`)
  return `rt-${Array.from(random.subarray(0, RANDOM_BYTES), byte => ALPHABET[byte & 31]).join('')}`
}

/** Always with the suffix, so that the Service of one name is never the Service of another. */
export const serviceName = (name: string): string => `${name}${SERVICE_SUFFIX}`

/** Null, or why a workload of this name cannot have a Service: Service names are RFC 1035 labels and begin with a letter. */
export function serviceNameFault(name: string): string | null {
  if (name.length <= MAX_NAME_WITH_SERVICE && /^[a-z]/.test(name)) return null
  const offer = suggestLabel(/^[a-z]/.test(name) ? name : `s-${name}`, MAX_NAME_WITH_SERVICE)
  return `with exposeService a name has at most ${MAX_NAME_WITH_SERVICE} characters and begins with a letter, such as "${offer}"`
}

/** Null, or why this is no name, with one that would be. */
export const nameFault = (name: string): string | null =>
  isDnsLabel(name)
    ? null
    : `a name has 1 to 63 of a-z, 0-9 and "-", begins and ends with a letter or digit, such as "${suggestLabel(name)}"`

/** The name that resolves to a Service from every pod of the cluster. */
export const serviceDns = (service: string, namespace: string, clusterDomain: string): string =>
  `${service}.${namespace}.svc.${clusterDomain}`
