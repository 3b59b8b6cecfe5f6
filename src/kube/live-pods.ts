import type { Life } from '../domain/life.ts'
import type { KubeClient } from './client.ts'
import { isKubeStatus } from './errors.ts'
import { kubeKindOf, nonceOf, podSelector, type WorkloadObject } from './kinds.ts'
import type { LogPods } from './logs.ts'
import type { Pod } from './objects.ts'
import { newestPod } from './observe.ts'
import type { Ownership } from './ownership.ts'

/** Workloads and their pods by calls, never from a cache. Every method throws what the calls throw. */
export class LivePods implements LogPods {
  readonly #client: KubeClient
  readonly #ownership: Ownership

  constructor(client: KubeClient, ownership: Ownership) {
    this.#client = client
    this.#ownership = ownership
  }

  /** Whatever is under the name; null = nothing. */
  async workload({ id }: Life): Promise<WorkloadObject | null> {
    return await missingAsNull(this.#client.get(kubeKindOf(id), id.namespace, id.name))
  }

  /** By owner. `unclear`: those whose ReplicaSet is gone already, so that they may be its own and are ending. */
  async of({ id }: Life, uid: string): Promise<{ pods: Pod[]; unclear: Pod[] }> {
    if (id.kind === 'pod') {
      const pod = await missingAsNull(this.#client.get('Pod', id.namespace, id.name))
      return { pods: pod?.metadata?.uid === uid ? [pod] : [], unclear: [] }
    }
    const named = await this.#client.list('Pod', id.namespace, { labelSelector: podSelector(id) })
    const pods = await this.#ownership.narrow(named, { kind: id.kind, uid })
    const unclear = id.kind === 'deployment' ? named.filter(pod => this.#ownership.isOrphan(pod)) : []
    return { pods, unclear }
  }

  async newest(life: Life): Promise<Pod | null> {
    const uid = life.uid ?? (await this.#uidByNonce(life))
    return uid === null ? null : newestPod((await this.of(life, uid)).pods.map(pod => ({ pod })))
  }

  async again(pod: Pod): Promise<Pod | null> {
    const { namespace = '', name = '', uid } = pod.metadata ?? {}
    const now = await missingAsNull(this.#client.get('Pod', namespace, name))
    return now?.metadata?.uid === uid ? now : null
  }

  async isThere(life: Life): Promise<boolean> {
    const object = await this.workload(life)
    return object !== null && isOfLife(object, life)
  }

  async #uidByNonce(life: Life): Promise<string | null> {
    const object = await this.workload(life)
    return object !== null && isOfLife(object, life) ? (object.metadata?.uid ?? null) : null
  }
}

/** By uid; as long as that is not known, by the nonce of its create. */
export const isOfLife = (object: WorkloadObject, { uid, nonce }: Life): boolean =>
  uid === null ? nonceOf(object) === nonce : object.metadata?.uid === uid

async function missingAsNull<T>(reading: Promise<T>): Promise<T | null> {
  try {
    return await reading
  } catch (error) {
    if (isKubeStatus(error, 404)) return null
    throw error
  }
}
