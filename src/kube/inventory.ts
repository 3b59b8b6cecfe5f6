import { LABEL_INSTANCE, LABEL_RUNTIME, LABEL_WORKLOAD, userLabels } from '../domain/labels.ts'
import { type Kind, parseRuntimeId, type RuntimeId, type RuntimeName } from '../domain/runtime-id.ts'
import type { Inventory, Labelled, Written } from '../service/ports.ts'
import { MAIN_CONTAINER } from './build-pod-spec.ts'
import type { KubeClient } from './client.ts'
import { isKubeStatus } from './errors.ts'
import { isOwnWorkload, kubeKindOf, nonceOf, type WorkloadObject } from './kinds.ts'
import type { Deployment, Job, Pod } from './objects.ts'
import { writtenBy } from './written.ts'

export interface KubeInventoryOptions {
  readonly name: RuntimeName
  readonly instance: string
  readonly client: Pick<KubeClient, 'get' | 'patch'>
  readonly cache: {
    all(kind: Kind): Iterable<WorkloadObject>
    get(id: RuntimeId): WorkloadObject | null
  }
}

/** Workloads with our label, known or not. Pods made by a Deployment or Job are no workloads. */
export class KubeInventory implements Inventory {
  readonly #options: KubeInventoryOptions

  constructor(options: KubeInventoryOptions) {
    this.#options = options
  }

  *labelled(): Generator<Labelled> {
    const { cache } = this.#options
    for (const kind of ['deployment', 'job', 'pod'] as const) {
      for (const object of cache.all(kind)) {
        const found = this.#labelled(kind, object)
        if (found !== null) yield found
      }
    }
  }

  cached(id: RuntimeId): Labelled | null {
    const object = this.#options.cache.get(id)
    return object === null ? null : this.#labelled(id.kind, object)
  }

  async find(id: RuntimeId): Promise<Labelled | null> {
    try {
      return this.#labelled(id.kind, await this.#options.client.get(kubeKindOf(id), id.namespace, id.name))
    } catch (error) {
      if (isKubeStatus(error, 404)) return null
      throw error
    }
  }

  /** Only on the very object that was found: the uid in a patch is a precondition, another one gives 409. */
  async mark({ id, uid }: Labelled): Promise<Written> {
    const labels = { [LABEL_INSTANCE]: this.#options.instance, [LABEL_RUNTIME]: this.#options.name }
    const patch = { metadata: { uid, labels } }
    return writtenBy(await this.#options.client.patch(kubeKindOf(id), id.namespace, id.name, patch))
  }

  #labelled(kind: Kind, object: WorkloadObject): Labelled | null {
    const { labels = {}, namespace = '', name = '', uid = '', deletionTimestamp } = object.metadata ?? {}
    if (labels[LABEL_WORKLOAD] === undefined) return null
    if (kind === 'pod' && !isOwnWorkload(object.metadata)) return null
    const id = idOf({ runtime: this.#options.name, namespace, kind, name })
    return (
      id && {
        id,
        uid,
        nonce: nonceOf(object),
        instance: labels[LABEL_INSTANCE] ?? null,
        runtime: labels[LABEL_RUNTIME] ?? null,
        image: imageOf(kind, object),
        labels: userLabels(labels),
        deleting: deletionTimestamp !== undefined,
      }
    )
  }
}

/** null where the cluster's name is none of ours: Kubernetes allows dots and 253 characters, an ID does not. */
function idOf({ runtime, namespace, kind, name }: RuntimeId): RuntimeId | null {
  try {
    return parseRuntimeId(`${runtime}-${namespace}|${kind}|${name}`)
  } catch {
    return null
  }
}

function imageOf(kind: Kind, object: WorkloadObject): string | null {
  const { spec } = kind === 'pod' ? (object as Pod) : { spec: (object as Deployment | Job).spec?.template?.spec }
  const containers = spec?.containers ?? []
  return (containers.find(({ name }) => name === MAIN_CONTAINER) ?? containers[0])?.image ?? null
}
