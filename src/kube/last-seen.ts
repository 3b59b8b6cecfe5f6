import { workloadOfPod } from './kinds.ts'
import type { PodRecord, Records } from './trim.ts'

export type WorkloadRecord = Records['Deployment'] | Records['Job'] | Records['Pod']

export interface LastSeen {
  readonly object: WorkloadRecord
  /** Its pods that were there when it went. */
  readonly pods: readonly PodRecord[]
}

interface Limits {
  readonly owners: number
  readonly podsOfOne: number
  readonly ms: number
}
const LIMITS: Limits = { owners: 10_000, podsOfOne: 32, ms: 3_600_000 }

interface Named {
  readonly namespace: string
  readonly kind: string
  readonly name: string
}

/**
 * What was last seen of workloads that are gone, and of pods that are gone: a verdict may be read from nothing else
 * (lifecycle.md §5 row 12), nor an exit code, since a pod goes a moment after its end. Bounded in number and time; what
 * is forgotten here ends as "not found", without code.
 */
export class LastSeenMemory {
  readonly #limits: Limits
  readonly #now: () => number
  readonly #objects = new Map<string, LastSeen & { at: number }>()
  readonly #pods = new Map<string, { pods: readonly PodRecord[]; at: number }>()

  constructor(now: () => number, limits: Limits = LIMITS) {
    this.#now = now
    this.#limits = limits
  }

  podGone(pod: PodRecord): void {
    const workload = workloadOfPod(pod.metadata)
    if (workload === null) return
    const named = { ...workload, namespace: pod.metadata.namespace }
    const pods = [...this.podsGone(named), pod].slice(-this.#limits.podsOfOne)
    this.#keep(this.#pods, keyOf(named), { pods, at: this.#now() })
  }

  /** Gone pods that name this workload in their last state, oldest first; whose they are is Ownership's business. */
  podsGone(named: Named): readonly PodRecord[] {
    return this.#pods.get(keyOf(named))?.pods ?? []
  }

  objectGone(object: WorkloadRecord, pods: readonly PodRecord[]): void {
    this.#keep(this.#objects, object.metadata.uid, { object, pods, at: this.#now() })
  }

  of(uid: string): LastSeen | null {
    return this.#objects.get(uid) ?? null
  }

  /** After the cluster went back in time: what is gone may be there again. */
  forget(): void {
    this.#objects.clear()
    this.#pods.clear()
  }

  #keep<T extends { at: number }>(all: Map<string, T>, uid: string, value: T): void {
    all.delete(uid)
    all.set(uid, value)
    const since = value.at - this.#limits.ms
    for (const [oldest, { at }] of all) {
      if (all.size <= this.#limits.owners && at >= since) return
      all.delete(oldest)
    }
  }
}

const keyOf = ({ namespace, kind, name }: Named): string => `${namespace}|${kind}|${name}`
