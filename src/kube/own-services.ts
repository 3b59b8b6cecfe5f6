import { LABEL_INSTANCE, LABEL_KIND, LABEL_RUNTIME, LABEL_WORKLOAD } from '../domain/labels.ts'
import { formatRuntimeId, type RuntimeId } from '../domain/runtime-id.ts'
import { serviceName } from '../domain/workload-name.ts'
import type { WorkloadSpec } from '../domain/workload-spec.ts'
import { RuntimeError } from '../errors.ts'
import { type BuildOptions, buildService } from './build-workload.ts'
import type { KubeClient } from './client.ts'
import { isKubeStatus } from './errors.ts'
import type { Service } from './objects.ts'

const TRIES = 3

/** The Service in front of a workload: made after it, owned by it, removed before it (lifecycle.md §4 rows 1 and 8, §6). */
export class OwnServices {
  readonly #client: KubeClient
  readonly #build: BuildOptions

  constructor(client: KubeClient, build: BuildOptions) {
    this.#client = client
    this.#build = build
  }

  /**
   * Makes the Service that the spec asks for, if any. One that this workload owns already is taken as it is; one left by
   * an earlier workload of ours of this name is replaced. Throws FOREIGN_WORKLOAD for any other of the name.
   */
  async ensure(spec: WorkloadSpec, ownerUid: string): Promise<void> {
    const wanted = buildService(spec, this.#build, ownerUid) as Service | null
    if (wanted === null) return
    for (let n = 1; ; n++) {
      try {
        await this.#client.create('Service', spec.namespace, wanted)
        return
      } catch (error) {
        if (!isKubeStatus(error, 409, 'AlreadyExists') || n === TRIES) throw error
      }
      if (await this.#isThere(spec, wanted.metadata?.name ?? '', ownerUid)) return
    }
  }

  /** Only a Service that this very workload owns; a missing one is no error. Throws otherwise, and the workload is to stay. */
  async remove(id: RuntimeId, ownerUid: string): Promise<void> {
    if (id.kind === 'job') return
    const found = await this.#find(id.namespace, id.kind === 'pod' ? id.name : serviceName(id.name))
    if (found !== null && isOwnedBy(found, ownerUid)) await this.#delete(found)
  }

  async #isThere(spec: WorkloadSpec, name: string, ownerUid: string): Promise<boolean> {
    const found = await this.#find(spec.namespace, name)
    if (found === null) return false
    if (isOwnedBy(found, ownerUid)) return true
    if (!this.#isLeftover(found, spec)) throw foreignService(spec, name)
    await this.#delete(found)
    return false
  }

  /** Labelled and owned as ours is, by a uid that ours has replaced: only the garbage collector has not come round yet. */
  #isLeftover(found: Service, spec: WorkloadSpec): boolean {
    const labels = found.metadata?.labels ?? {}
    const kind = spec.kind === 'pod' ? 'Pod' : 'Deployment'
    return (
      labels[LABEL_WORKLOAD] === spec.name &&
      labels[LABEL_KIND] === spec.kind &&
      labels[LABEL_INSTANCE] === this.#build.instance &&
      labels[LABEL_RUNTIME] === spec.runtime &&
      (found.metadata?.ownerReferences ?? []).some(owner => owner.kind === kind && owner.name === spec.name)
    )
  }

  async #find(namespace: string, name: string): Promise<Service | null> {
    try {
      return await this.#client.get('Service', namespace, name)
    } catch (error) {
      if (isKubeStatus(error, 404)) return null
      throw error
    }
  }

  async #delete(found: Service): Promise<void> {
    const { namespace = '', name = '', uid = '' } = found.metadata ?? {}
    try {
      await this.#client.delete('Service', namespace, name, { propagation: 'Background', uid })
    } catch (error) {
      if (!isKubeStatus(error, 404) && !isKubeStatus(error, 409)) throw error
    }
  }
}

const isOwnedBy = (found: Service, uid: string): boolean =>
  (found.metadata?.ownerReferences ?? []).some(owner => owner.uid === uid)

const foreignService = (spec: WorkloadSpec, name: string): RuntimeError =>
  new RuntimeError(
    'FOREIGN_WORKLOAD',
    `cannot create ${formatRuntimeId(spec)}: a Service ${name} that is not its own exists in ${spec.namespace}; remove it, or choose another name`,
    { runtimeId: formatRuntimeId(spec) },
  )
