import { equal } from './json.ts'
import { parseQuantity } from './quantity.ts'
import type { Resource } from './resources.ts'
import { matchesSelector } from './selectors.ts'
import { badRequest, type Cause, invalid } from './status-error.ts'
import type { KubeObject, Loose } from './types.ts'

const LABEL = '[a-z0-9]([-a-z0-9]*[a-z0-9])?'
const SUBDOMAIN = `${LABEL}(\\.${LABEL})*`
const QUALIFIED = '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]'
const LABEL_VALUE = `(${QUALIFIED})?`

const SUBDOMAIN_TEXT = `a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '${SUBDOMAIN}')`
const LABEL_TEXT = `a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '${LABEL}')`
const SERVICE_TEXT =
  "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"

const whole = (pattern: string): RegExp => new RegExp(`^(?:${pattern})$`)
const IS_LABEL = whole(LABEL)
const IS_SUBDOMAIN = whole(SUBDOMAIN)
const IS_SERVICE = /^[a-z]([-a-z0-9]*[a-z0-9])?$/
const IS_QUALIFIED = whole(QUALIFIED)
const IS_LABEL_VALUE = whole(LABEL_VALUE)

const wrong = (field: string, value: unknown, text: string): Cause => ({
  reason: 'FieldValueInvalid',
  message: `Invalid value: ${JSON.stringify(value)}: ${text}`,
  field,
})
const missing = (field: string, text?: string): Cause => ({
  reason: 'FieldValueRequired',
  message: `Required value${text ? `: ${text}` : ''}`,
  field,
})
const unsupported = (field: string, value: unknown, supported: string[]): Cause => ({
  reason: 'FieldValueNotSupported',
  message: `Unsupported value: ${JSON.stringify(value)}: supported values: ${supported.map(name => `"${name}"`).join(', ')}`,
  field,
})

/** Throws 422 with a cause for each fault of a new object (defaults already applied). Checks what people get wrong, not all. */
export function validateNew(resource: Resource, object: KubeObject): void {
  const causes = [...nameFaults(resource, object), ...labelFaults(object.metadata.labels, 'metadata.labels')]
  causes.push(...(FAULTS[resource.plural]?.(object) ?? []))
  if (causes.length > 0) throw invalid(resource, object.metadata.name, causes)
}

/** Throws 422 when a change touches what may not change. */
export function validateChange(resource: Resource, before: KubeObject, after: KubeObject): void {
  const causes = labelFaults(after.metadata.labels, 'metadata.labels')
  for (const field of IMMUTABLE[resource.plural] ?? []) {
    if (!equal(before.spec?.[field], after.spec?.[field]))
      causes.push(wrong(`spec.${field}`, after.spec?.[field], 'field is immutable'))
  }
  if (resource.plural === 'pods' && !equal(frozenPart(before.spec), frozenPart(after.spec))) causes.push(POD_FROZEN)
  causes.push(...(FAULTS[resource.plural]?.(after) ?? []))
  if (causes.length > 0) throw invalid(resource, after.metadata.name, causes)
}

const IMMUTABLE: Record<string, string[]> = {
  deployments: ['selector'],
  replicasets: ['selector'],
  jobs: ['selector', 'template', 'completions', 'completionMode'],
}

const POD_FROZEN: Cause = {
  reason: 'FieldValueForbidden',
  message:
    'Forbidden: pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)',
  field: 'spec',
}

function frozenPart(spec: Loose): Loose {
  const { activeDeadlineSeconds: _a, tolerations: _t, nodeName: _n, ...rest } = spec ?? {}
  return { ...rest, containers: (rest.containers ?? []).map(({ image: _image, ...container }: Loose) => container) }
}

const FAULTS: Record<string, (object: KubeObject) => Cause[]> = {
  deployments: ({ spec }) => [
    ...countFaults(spec, ['replicas', 'progressDeadlineSeconds']),
    ...templateFaults(spec, ['Always']),
  ],
  replicasets: ({ spec }) => [...countFaults(spec, ['replicas']), ...templateFaults(spec, ['Always'])],
  jobs: ({ spec }) => [
    ...countFaults(spec, [
      'backoffLimit',
      'parallelism',
      'completions',
      'activeDeadlineSeconds',
      'ttlSecondsAfterFinished',
    ]),
    ...labelFaults(spec?.template?.metadata?.labels, 'spec.template.metadata.labels'),
    ...podFaults(spec?.template?.spec, 'spec.template.spec', ['OnFailure', 'Never']),
  ],
  pods: ({ spec }) => podFaults(spec, 'spec', ['Always', 'OnFailure', 'Never']),
  services: ({ spec }) => serviceFaults(spec),
}

function nameFaults(resource: Resource, { metadata }: KubeObject): Cause[] {
  const { name } = metadata
  if (!name) return [missing('metadata.name', 'name or generateName is required')]
  if (resource.plural === 'services') {
    return IS_SERVICE.test(name) && name.length <= 63 ? [] : [wrong('metadata.name', name, SERVICE_TEXT)]
  }
  if (resource.plural === 'namespaces') {
    return IS_LABEL.test(name) && name.length <= 63 ? [] : [wrong('metadata.name', name, LABEL_TEXT)]
  }
  if (name.length > 253) return [wrong('metadata.name', name, 'must be no more than 253 bytes')]
  return IS_SUBDOMAIN.test(name) ? [] : [wrong('metadata.name', name, SUBDOMAIN_TEXT)]
}

function labelFaults(labels: Record<string, string> | undefined, field: string): Cause[] {
  const causes: Cause[] = []
  for (const [key, value] of Object.entries(labels ?? {})) {
    const slash = key.indexOf('/')
    const name = key.slice(slash + 1)
    if (!IS_QUALIFIED.test(name) || name.length > 63) {
      causes.push(
        wrong(
          field,
          key,
          `name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '${QUALIFIED}')`,
        ),
      )
    }
    if (slash >= 0 && !IS_SUBDOMAIN.test(key.slice(0, slash)))
      causes.push(wrong(field, key, `prefix part ${SUBDOMAIN_TEXT}`))
    if (value.length > 63) causes.push(wrong(field, value, 'must be no more than 63 bytes'))
    else if (!IS_LABEL_VALUE.test(value)) {
      causes.push(
        wrong(
          field,
          value,
          `a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '${LABEL_VALUE}')`,
        ),
      )
    }
  }
  return causes
}

function countFaults(spec: Loose, fields: string[]): Cause[] {
  return fields
    .filter(field => typeof spec?.[field] === 'number' && spec[field] < 0)
    .map(field => wrong(`spec.${field}`, spec[field], 'must be greater than or equal to 0'))
}

function templateFaults(spec: Loose, restartPolicies: string[]): Cause[] {
  const labels = spec?.template?.metadata?.labels
  const causes = labelFaults(labels, 'spec.template.metadata.labels')
  if (!spec?.selector) causes.push(missing('spec.selector'))
  else if (!matchesSelector(spec.selector, labels)) {
    causes.push(wrong('spec.template.metadata.labels', labels ?? {}, '`selector` does not match template `labels`'))
  }
  return [...causes, ...podFaults(spec?.template?.spec, 'spec.template.spec', restartPolicies)]
}

function podFaults(spec: Loose, field: string, restartPolicies: string[]): Cause[] {
  const containers: Loose[] = spec?.containers ?? []
  if (containers.length === 0) return [missing(`${field}.containers`)]
  const causes = containers.flatMap((container, index) => containerFaults(container, `${field}.containers[${index}]`))
  const names = containers.map(container => container.name)
  names.forEach((name, index) => {
    if (names.indexOf(name) !== index) {
      causes.push({
        reason: 'FieldValueDuplicate',
        message: `Duplicate value: "${name}"`,
        field: `${field}.containers[${index}].name`,
      })
    }
  })
  if (!restartPolicies.includes(spec.restartPolicy))
    causes.push(unsupported(`${field}.restartPolicy`, spec.restartPolicy, restartPolicies))
  if (spec.activeDeadlineSeconds !== undefined && spec.activeDeadlineSeconds < 1) {
    causes.push(
      wrong(
        `${field}.activeDeadlineSeconds`,
        spec.activeDeadlineSeconds,
        'must be between 1 and 2147483647, inclusive',
      ),
    )
  }
  return causes
}

function containerFaults(container: Loose, field: string): Cause[] {
  const causes: Cause[] = []
  if (!container.name) causes.push(missing(`${field}.name`))
  else if (!IS_LABEL.test(container.name) || container.name.length > 63)
    causes.push(wrong(`${field}.name`, container.name, LABEL_TEXT))
  if (!container.image) causes.push(missing(`${field}.image`))
  for (const part of ['limits', 'requests']) {
    for (const [name, amount] of Object.entries(container.resources?.[part] ?? {})) {
      if ((parseQuantity(amount) ?? 0) < 0) {
        causes.push(wrong(`${field}.resources.${part}[${name}]`, String(amount), 'must be greater than or equal to 0'))
      }
    }
  }
  const { limits, requests } = container.resources ?? {}
  for (const name of Object.keys(requests ?? {})) {
    if (limits?.[name] !== undefined && parseQuantity(requests[name])! > parseQuantity(limits[name])!) {
      causes.push(
        wrong(
          `${field}.resources.requests`,
          String(requests[name]),
          `must be less than or equal to ${name} limit of ${limits[name]}`,
        ),
      )
    }
  }
  for (const [index, port] of (container.ports ?? []).entries()) {
    if (!(port.containerPort >= 1 && port.containerPort <= 65535)) {
      causes.push(
        wrong(
          `${field}.ports[${index}].containerPort`,
          port.containerPort ?? 0,
          'must be between 1 and 65535, inclusive',
        ),
      )
    }
  }
  for (const [index, variable] of (container.env ?? []).entries()) {
    if (!variable.name) causes.push(missing(`${field}.env[${index}].name`))
  }
  return causes
}

function serviceFaults(spec: Loose): Cause[] {
  if (spec?.type === 'ExternalName' || spec?.clusterIP === 'None') return []
  if (!spec?.ports?.length) return [missing('spec.ports')]
  return spec.ports
    .map((port: Loose, index: number) => ({ port, index }))
    .filter(({ port }: Loose) => !(port.port >= 1 && port.port <= 65535))
    .map(({ port, index }: Loose) =>
      wrong(`spec.ports[${index}].port`, port.port ?? 0, 'must be between 1 and 65535, inclusive'),
    )
}

/** Fields whose JSON type the API server refuses at decoding, before any validation. */
const TYPES: Record<string, { path: string[]; go: string; type: 'number' | 'boolean' | 'object' | 'array' }[]> = {
  deployments: [
    { path: ['spec', 'replicas'], go: 'DeploymentSpec.spec.replicas of type int32', type: 'number' },
    { path: ['spec', 'template'], go: 'DeploymentSpec.spec.template of type v1.PodTemplateSpec', type: 'object' },
  ],
  jobs: [
    { path: ['spec', 'suspend'], go: 'JobSpec.spec.suspend of type bool', type: 'boolean' },
    { path: ['spec', 'backoffLimit'], go: 'JobSpec.spec.backoffLimit of type int32', type: 'number' },
    { path: ['spec', 'parallelism'], go: 'JobSpec.spec.parallelism of type int32', type: 'number' },
  ],
  pods: [{ path: ['spec', 'containers'], go: 'PodSpec.spec.containers of type []v1.Container', type: 'array' }],
}

/** Throws 400 for a body whose JSON types cannot be decoded: wrong kind, text for a number, labels that are no text, bad quantities. */
export function checkTypes(resource: Resource, object: Loose): void {
  const refuse = (text: string): never => {
    throw badRequest(
      `${resource.kind} in version "${resource.version}" cannot be handled as a ${resource.kind}: ${text}`,
    )
  }
  const typeOf = (value: Loose): string => (Array.isArray(value) ? 'array' : typeof value)
  const nameOf = (value: Loose): string => ({ boolean: 'bool' })[typeOf(value)] ?? typeOf(value)
  for (const { path, go, type } of TYPES[resource.plural] ?? []) {
    const value = path.reduce((part: Loose, key) => part?.[key], object)
    if (value !== undefined && value !== null && typeOf(value) !== type)
      refuse(`json: cannot unmarshal ${nameOf(value)} into Go struct field ${go}`)
  }
  for (const map of ['labels', 'annotations']) {
    for (const value of Object.values(object.metadata?.[map] ?? {})) {
      if (typeof value !== 'string')
        refuse(`json: cannot unmarshal ${nameOf(value)} into Go struct field ObjectMeta.metadata.${map} of type string`)
    }
  }
  const podSpec = object.spec?.template?.spec ?? object.spec
  for (const container of Array.isArray(podSpec?.containers) ? podSpec.containers : []) {
    for (const amounts of [container.resources?.limits, container.resources?.requests]) {
      for (const amount of Object.values(amounts ?? {})) {
        if (parseQuantity(amount) === undefined) {
          refuse(`quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'`)
        }
      }
    }
  }
}
