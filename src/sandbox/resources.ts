/** What the API server knows about one kind of object. */
export interface Resource {
  plural: string
  singular: string
  kind: string
  group: string
  version: string
  namespaced: boolean
  shortNames: string[]
  /** counts versions of the spec in metadata.generation */
  generation: boolean
  subresources: string[]
  /** a DELETE answers with the object even when it is gone at once */
  returnsDeleted: boolean
  /** what a DELETE without propagationPolicy does to dependents */
  defaultPropagation: 'Background' | 'Orphan'
  /** paths a fieldSelector may name, besides metadata.name and metadata.namespace */
  fields: string[]
}

const base = {
  group: '',
  version: 'v1',
  namespaced: true,
  shortNames: [],
  generation: false,
  subresources: [],
  returnsDeleted: false,
  defaultPropagation: 'Background',
  fields: [],
} satisfies Partial<Resource>

const TABLE: Resource[] = [
  {
    ...base,
    plural: 'deployments',
    singular: 'deployment',
    kind: 'Deployment',
    group: 'apps',
    shortNames: ['deploy'],
    generation: true,
    subresources: ['status', 'scale'],
  },
  {
    ...base,
    plural: 'replicasets',
    singular: 'replicaset',
    kind: 'ReplicaSet',
    group: 'apps',
    shortNames: ['rs'],
    generation: true,
    subresources: ['status', 'scale'],
    fields: ['status.replicas'],
  },
  {
    ...base,
    plural: 'jobs',
    singular: 'job',
    kind: 'Job',
    group: 'batch',
    generation: true,
    subresources: ['status'],
    defaultPropagation: 'Orphan',
    fields: ['status.successful'],
  },
  {
    ...base,
    plural: 'pods',
    singular: 'pod',
    kind: 'Pod',
    shortNames: ['po'],
    generation: true,
    subresources: ['status', 'log', 'eviction'],
    returnsDeleted: true,
    fields: [
      'spec.nodeName',
      'spec.restartPolicy',
      'spec.schedulerName',
      'spec.serviceAccountName',
      'spec.hostNetwork',
      'status.phase',
      'status.podIP',
      'status.nominatedNodeName',
    ],
  },
  {
    ...base,
    plural: 'services',
    singular: 'service',
    kind: 'Service',
    shortNames: ['svc'],
    subresources: ['status'],
    returnsDeleted: true,
    fields: ['spec.clusterIP', 'spec.type'],
  },
  {
    ...base,
    plural: 'events',
    singular: 'event',
    kind: 'Event',
    shortNames: ['ev'],
    fields: [
      'involvedObject.kind',
      'involvedObject.namespace',
      'involvedObject.name',
      'involvedObject.uid',
      'reason',
      'source',
      'type',
      'reportingComponent',
    ],
  },
  {
    ...base,
    plural: 'namespaces',
    singular: 'namespace',
    kind: 'Namespace',
    namespaced: false,
    shortNames: ['ns'],
    subresources: ['status', 'finalize'],
    returnsDeleted: true,
    fields: ['status.phase'],
  },
  {
    ...base,
    plural: 'resourcequotas',
    singular: 'resourcequota',
    kind: 'ResourceQuota',
    shortNames: ['quota'],
    subresources: ['status'],
    returnsDeleted: true,
  },
  {
    ...base,
    plural: 'nodes',
    singular: 'node',
    kind: 'Node',
    namespaced: false,
    shortNames: ['no'],
    subresources: ['status'],
  },
  {
    ...base,
    plural: 'poddisruptionbudgets',
    singular: 'poddisruptionbudget',
    kind: 'PodDisruptionBudget',
    group: 'policy',
    shortNames: ['pdb'],
    generation: true,
    subresources: ['status'],
  },
]

export const RESOURCES: ReadonlyMap<string, Resource> = new Map(TABLE.map(resource => [resource.plural, resource]))

/** The resource of that plural name; the name must be one of the table. */
export function resourceOf(plural: string): Resource {
  const resource = RESOURCES.get(plural)
  if (!resource) throw new Error(`cannot find resource ${plural}`)
  return resource
}

export const resourceOfKind = (kind: string): Resource | undefined => TABLE.find(resource => resource.kind === kind)

export const apiVersionOf = (resource: Resource): string =>
  resource.group === '' ? resource.version : `${resource.group}/${resource.version}`

/** `deployments.apps`, `pods`: how messages name a resource. */
export const qualified = (resource: Resource): string =>
  resource.group === '' ? resource.plural : `${resource.plural}.${resource.group}`

/** `Deployment.apps`, `Pod`: how messages of validation name a kind. */
export const qualifiedKind = (resource: Resource): string =>
  resource.group === '' ? resource.kind : `${resource.kind}.${resource.group}`
