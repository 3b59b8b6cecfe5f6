import { evictPod } from './eviction.ts'
import { textOf } from './json.ts'
import type { ListWatch } from './list-watch.ts'
import { applyPatch } from './patch.ts'
import type { DeleteOptions, Registry } from './registry.ts'
import type { RequestFacts } from './request.ts'
import { apiVersionOf, type Resource, resourceOf } from './resources.ts'
import { parseFieldSelector, parseLabelSelector, selectorText } from './selectors.ts'
import { badRequest, invalid, methodNotAllowed, noSuchPath, notFound } from './status-error.ts'
import type { KubeObject, Loose } from './types.ts'

export interface Call {
  facts: RequestFacts
  body: Loose
  contentType: string
  /** version of the past that reads show, if any */
  staleAt: number | undefined
}

export interface Answer {
  status: number
  text: string
}

/** Carries out one request on a resource that is answered at once (all but watches and logs). Throws StatusError. */
export function handle(registry: Registry, listWatch: ListWatch, call: Call): Answer {
  const { facts } = call
  const resource = resourceOf(facts.resource!)
  if (facts.subresource === 'scale') return { status: 200, text: scale(registry, call) }
  if (facts.subresource === 'eviction')
    return { status: 201, text: JSON.stringify(evictPod(registry, facts, call.body)) }
  switch (facts.verb) {
    case 'list':
      return { status: 200, text: listWatch.list(facts) }
    case 'get':
      return { status: 200, text: objectText(resource, read(registry, call)) }
    case 'create':
      return create(registry, call)
    case 'update':
    case 'patch':
      return { status: 200, text: objectText(resource, change(registry, call)) }
    case 'delete':
      return { status: 200, text: remove(registry, call) }
    case 'deletecollection':
      return { status: 200, text: removeAll(registry, call) }
    default:
      throw methodNotAllowed()
  }
}

function objectText(resource: Resource, object: KubeObject): string {
  return `{"kind":"${resource.kind}","apiVersion":"${apiVersionOf(resource)}",${textOf(object).slice(1)}`
}

function read(registry: Registry, { facts, staleAt }: Call): KubeObject {
  const { resource, namespace, name } = facts
  if (staleAt === undefined) return registry.get(resource!, namespace, name!)
  const found = registry.store.listAt(staleAt, resource!, namespace).find(object => object.metadata.name === name)
  if (!found) throw notFound(resourceOf(resource!), name!)
  return found
}

function create(registry: Registry, { facts, body }: Call): Answer {
  const resource = resourceOf(facts.resource!)
  if (facts.name !== undefined) throw methodNotAllowed()
  if (resource.namespaced && facts.namespace === undefined) throw methodNotAllowed()
  checkKind(resource, body)
  const dryRun = new URLSearchParams(facts.query).get('dryRun') === 'All'
  return { status: 201, text: objectText(resource, registry.create(resource.plural, facts.namespace, body, dryRun)) }
}

function checkKind(resource: Resource, body: Loose): void {
  if (body === undefined)
    throw badRequest(
      `${resource.kind} in version "${resource.version}" cannot be handled as a ${resource.kind}: unexpected end of JSON input`,
    )
  if (body?.kind === undefined || body.kind === resource.kind) return
  throw badRequest(
    `${body.kind} in version "${body.apiVersion}" cannot be handled as a ${resource.kind}: no kind "${body.kind}" is registered for version "${apiVersionOf(resource)}" in scheme "pkg/api/legacyscheme/scheme.go:30"`,
  )
}

function change(registry: Registry, call: Call): KubeObject {
  const { facts, body } = call
  if (facts.name === undefined) throw methodNotAllowed()
  if (facts.verb === 'update') checkKind(resourceOf(facts.resource!), body)
  const edit = (draft: KubeObject): Loose => (facts.verb === 'patch' ? applyPatch(call.contentType, draft, body) : body)
  if (facts.subresource === 'status') return registry.updateStatus(facts.resource!, facts.namespace, facts.name, edit)
  if (facts.subresource !== undefined) throw methodNotAllowed()
  return registry.update(facts.resource!, facts.namespace, facts.name, edit)
}

function scale(registry: Registry, call: Call): string {
  const { resource, namespace, name, verb } = call.facts
  const current = registry.get(resource!, namespace, name!)
  const shown = scaleOf(current)
  if (verb === 'get') return JSON.stringify(shown)
  if (verb !== 'patch' && verb !== 'update') throw methodNotAllowed()
  const wanted = verb === 'patch' ? applyPatch(call.contentType, shown, call.body) : call.body
  const replicas = wanted?.spec?.replicas ?? 0
  if (typeof replicas !== 'number') {
    throw badRequest(
      `Scale in version "v1" cannot be handled as a Scale: json: cannot unmarshal ${typeof replicas} into Go struct field ScaleSpec.spec.replicas of type int32`,
    )
  }
  if (replicas < 0) {
    const kind = { ...resourceOf(resource!), kind: 'Scale', group: 'autoscaling' }
    throw invalid(kind, name!, [
      {
        reason: 'FieldValueInvalid',
        message: `Invalid value: ${replicas}: must be greater than or equal to 0`,
        field: 'spec.replicas',
      },
    ])
  }
  const scaled = registry.update(resource!, namespace, name!, draft => {
    if (wanted.metadata?.resourceVersion) draft.metadata.resourceVersion = wanted.metadata.resourceVersion
    draft.spec.replicas = replicas
  })
  return JSON.stringify(scaleOf(scaled))
}

function scaleOf({ metadata, spec, status }: KubeObject): Loose {
  const { name, namespace, uid, resourceVersion, creationTimestamp } = metadata
  return {
    kind: 'Scale',
    apiVersion: 'autoscaling/v1',
    metadata: { name, namespace, uid, resourceVersion, creationTimestamp },
    spec: spec.replicas ? { replicas: spec.replicas } : {},
    status: { replicas: status?.replicas ?? 0, selector: selectorText(spec.selector) },
  }
}

function deleteOptions({ facts, body }: Call): DeleteOptions {
  const query = new URLSearchParams(facts.query)
  const options: DeleteOptions = { ...(body ?? {}) }
  const policy = query.get('propagationPolicy')
  if (policy !== null) options.propagationPolicy = policy as 'Foreground'
  const grace = query.get('gracePeriodSeconds')
  if (grace !== null) options.gracePeriodSeconds = Number(grace)
  if (query.get('dryRun') === 'All') options.dryRun = ['All']
  const asked = options.propagationPolicy
  if (asked !== undefined && !['Foreground', 'Background', 'Orphan'].includes(asked)) {
    const kind = { ...resourceOf(facts.resource!), kind: 'DeleteOptions', group: 'meta.k8s.io' }
    throw invalid(kind, '', [
      {
        reason: 'FieldValueNotSupported',
        message: `Unsupported value: "${asked}": supported values: "Foreground", "Background", "Orphan"`,
        field: 'propagationPolicy',
      },
    ])
  }
  return options
}

function remove(registry: Registry, call: Call): string {
  const { resource: plural, namespace, name, subresource } = call.facts
  if (subresource !== undefined) throw methodNotAllowed()
  const resource = resourceOf(plural!)
  const { object, gone } = registry.delete(plural!, namespace, name!, deleteOptions(call))
  if (!gone || resource.returnsDeleted) return objectText(resource, object)
  const details = {
    name,
    ...(resource.group ? { group: resource.group } : {}),
    kind: resource.plural,
    uid: object.metadata.uid,
  }
  return JSON.stringify({ kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', details })
}

function removeAll(registry: Registry, call: Call): string {
  const { resource: plural, namespace, query } = call.facts
  const resource = resourceOf(plural!)
  if (resource.namespaced && namespace === undefined) throw noSuchPath()
  const parameters = new URLSearchParams(query)
  const byLabel = parseLabelSelector(parameters.get('labelSelector') ?? '')
  const byField = parseFieldSelector(parameters.get('fieldSelector') ?? '', resource)
  const options = deleteOptions(call)
  const items = registry.store
    .list(plural!, namespace)
    .filter(object => (byLabel?.(object) ?? true) && (byField?.(object) ?? true))
  const deleted = items.map(object => registry.delete(plural!, namespace, object.metadata.name, options).object)
  const metadata = { resourceVersion: String(registry.store.version) }
  return `{"kind":"${resource.kind}List","apiVersion":"${apiVersionOf(resource)}","metadata":${JSON.stringify(metadata)},"items":[${deleted.map(textOf).join(',')}]}`
}
