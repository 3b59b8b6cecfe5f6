import type { Kind } from '../domain/runtime-id.ts'
import type { Clock } from '../service/ports.ts'
import type { KubeClient } from './client.ts'
import { isKubeStatus } from './errors.ts'
import { controllerOf } from './kinds.ts'
import type { Pod } from './objects.ts'
import { productionProfile, type ReflectorProfile } from './reflector-profile.ts'
import { backoffDelay } from './timing.ts'

/** Whose a pod is, as far as it is known: its own, another's, or behind a ReplicaSet nobody has read yet. */
export type Belonging = 'ours' | 'others' | 'unknown'

/** A workload by what cannot be given twice. */
export interface Owner {
  readonly kind: Kind
  readonly uid: string
}

export interface OwnershipOptions {
  readonly client: Pick<KubeClient, 'get'>
  readonly clock: Pick<Clock, 'after'>
  /** A background read answered: what was decided without it is to be decided again. */
  readonly onResolved: (pod: Pod) => void
  /** Of background reads that fail; default: production's. */
  readonly backoff?: Pick<ReflectorProfile, 'backoffBaseMs' | 'backoffMaxMs'>
}

const BACKGROUND_READS = 8
/** Far above two ReplicaSets for each of 100,000 Deployments; beyond it the oldest are read again when needed. */
const KEPT = 400_000

/** uid of the Deployment that controls a ReplicaSet; `none`: another controller or none; `gone`: nobody can say any more. */
type ReplicaSetOwner = { readonly deployment: string } | 'none' | 'gone'

/**
 * Pods by owner, never by label alone (lifecycle.md §3 "Its pods"): a Job's by its controller reference, a Deployment's
 * through its ReplicaSet, read once for each uid and kept, since an owner never changes its own.
 */
export class Ownership {
  readonly #options: OwnershipOptions
  readonly #owners = new Map<string, ReplicaSetOwner>()
  readonly #reading = new Map<string, Promise<ReplicaSetOwner>>()
  /** uids waiting for a background read, or for its repeat. */
  readonly #asked = new Set<string>()
  /** Background reads of a uid that failed in a row. */
  readonly #failures = new Map<string, number>()
  readonly #waiting: Pod[] = []
  readonly #stopped = new AbortController()
  #background = 0

  constructor(options: OwnershipOptions) {
    this.#options = options
  }

  /** What a row has kept from before the restart of the daemon. */
  learn(deployment: string, replicaSets: readonly string[]): void {
    for (const uid of replicaSets) if (!this.#owners.has(uid)) this.#keep(uid, { deployment })
  }

  /** From what is known, without a call. */
  of(pod: Pod, owner: Owner): Belonging {
    if (owner.kind === 'pod') return pod.metadata?.uid === owner.uid ? 'ours' : 'others'
    const controller = controllerOf(pod.metadata)
    if (controller === null) return 'others'
    if (owner.kind === 'job') return controller.uid === owner.uid ? 'ours' : 'others'
    if (controller.kind !== 'ReplicaSet') return 'others'
    const known = this.#owners.get(controller.uid)
    if (known === undefined) return 'unknown'
    return typeof known === 'object' && known.deployment === owner.uid ? 'ours' : 'others'
  }

  /** The pods that are surely this owner's. What is not known yet is read in the background, then `onResolved`. */
  known(pods: Iterable<Pod>, owner: Owner): Pod[] {
    const ours: Pod[] = []
    for (const pod of pods) {
      const belonging = this.of(pod, owner)
      if (belonging === 'ours') ours.push(pod)
      else if (belonging === 'unknown') this.#readLater(pod)
    }
    return ours
  }

  /** Reads what it must; throws what such a read throws. */
  async narrow(pods: readonly Pod[], owner: Owner): Promise<Pod[]> {
    const unknown = pods.filter(pod => this.of(pod, owner) === 'unknown')
    await Promise.all(unknown.map(pod => this.#read(pod)))
    return pods.filter(pod => this.of(pod, owner) === 'ours')
  }

  /** Its ReplicaSet is known to be gone, unread: it may have been anybody's, and it is ending. */
  isOrphan(pod: Pod): boolean {
    const controller = controllerOf(pod.metadata)
    return controller?.kind === 'ReplicaSet' && this.#owners.get(controller.uid) === 'gone'
  }

  stop(): void {
    this.#waiting.length = 0
    this.#stopped.abort()
  }

  #readLater(pod: Pod): void {
    const uid = controllerOf(pod.metadata)?.uid ?? ''
    if (this.#stopped.signal.aborted || this.#asked.has(uid)) return
    this.#asked.add(uid)
    this.#waiting.push(pod)
    if (this.#background < BACKGROUND_READS) void this.#readWaiting()
  }

  async #readWaiting(): Promise<void> {
    this.#background += 1
    for (let pod = this.#waiting.shift(); pod !== undefined; pod = this.#waiting.shift()) {
      const uid = controllerOf(pod.metadata)?.uid ?? ''
      try {
        await this.#read(pod)
        this.#asked.delete(uid)
        this.#failures.delete(uid)
        if (!this.#stopped.signal.aborted) this.#options.onResolved(pod)
      } catch {
        this.#retryLater(uid, pod)
      }
    }
    this.#background -= 1
  }

  /** Not known is no fact. It counts as asked until then, so that it is not asked again at each event. */
  #retryLater(uid: string, pod: Pod): void {
    const failures = this.#failures.get(uid) ?? 0
    const { backoffBaseMs, backoffMaxMs } = this.#options.backoff ?? productionProfile()
    this.#failures.set(uid, failures + 1)
    this.#options.clock.after(backoffDelay(failures, backoffBaseMs, backoffMaxMs, Math.random), () => {
      this.#asked.delete(uid)
      this.#readLater(pod)
    })
  }

  #read(pod: Pod): Promise<ReplicaSetOwner> {
    const { uid, name } = controllerOf(pod.metadata) ?? { uid: '', name: '' }
    const under = this.#reading.get(uid)
    if (under) return under
    const reading = this.#ask(pod.metadata?.namespace ?? '', name, uid).finally(() => this.#reading.delete(uid))
    this.#reading.set(uid, reading)
    return reading
  }

  async #ask(namespace: string, name: string, uid: string): Promise<ReplicaSetOwner> {
    const owner = await this.#ownerNow(namespace, name, uid)
    this.#keep(uid, owner)
    return owner
  }

  #keep(uid: string, owner: ReplicaSetOwner): void {
    if (this.#owners.size >= KEPT) this.#forgetOldest()
    this.#owners.set(uid, owner)
  }

  async #ownerNow(namespace: string, name: string, uid: string): Promise<ReplicaSetOwner> {
    try {
      const replicaSet = await this.#options.client.get('ReplicaSet', namespace, name, { signal: this.#stopped.signal })
      if (replicaSet.metadata?.uid !== uid) return 'gone'
      const owner = controllerOf(replicaSet.metadata)
      return owner?.kind === 'Deployment' ? { deployment: owner.uid } : 'none'
    } catch (error) {
      if (isKubeStatus(error, 404)) return 'gone'
      throw error
    }
  }

  #forgetOldest(): void {
    for (const uid of this.#owners.keys()) return void this.#owners.delete(uid)
  }
}
