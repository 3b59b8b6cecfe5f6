import { controllerOf } from './kinds.ts'
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

/**
 * What was last seen of workloads that are gone, and of the pods of Jobs that are gone: a verdict may be read from
 * nothing else (lifecycle.md §5 row 12). Bounded in number and time; what is forgotten here ends as "not found".
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

  /** Only pods of Jobs are kept: nothing that is decided depends on gone pods of a Deployment. */
  podGone(pod: PodRecord): void {
    const controller = controllerOf(pod.metadata)
    if (controller?.kind !== 'Job') return
    const pods = [...this.podsGone(controller.uid), pod].slice(-this.#limits.podsOfOne)
    this.#keep(this.#pods, controller.uid, { pods, at: this.#now() })
  }

  /** Gone pods of the Job of this uid in their last state, oldest first. */
  podsGone(uid: string): readonly PodRecord[] {
    return this.#pods.get(uid)?.pods ?? []
  }

  objectGone(object: WorkloadRecord, pods: readonly PodRecord[]): void {
    this.#keep(this.#objects, object.metadata.uid, { object, pods, at: this.#now() })
  }

  of(uid: string): LastSeen | null {
    return this.#objects.get(uid) ?? null
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
