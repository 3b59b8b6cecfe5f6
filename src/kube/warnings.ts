import type { Clock } from '../service/ports.ts'
import type { KubeClient } from './client.ts'
import type { ClusterEvent } from './objects.ts'

const EVERY_MS = 60_000
const KEPT = 10_000

/**
 * The Events of one object, asked for at most once a minute a workload (lifecycle.md §8). Between two looks what was
 * found last; a look that fails finds nothing.
 */
export class Warnings {
  readonly #client: Pick<KubeClient, 'eventsOf'>
  readonly #clock: Pick<Clock, 'now'>
  readonly #asked = new Map<string, { readonly at: number; readonly uid: string; found: readonly ClusterEvent[] }>()

  constructor(client: Pick<KubeClient, 'eventsOf'>, clock: Pick<Clock, 'now'>) {
    this.#client = client
    this.#clock = clock
  }

  /** `key` is the workload, `uid` of it or of its pod. Never throws. */
  async of(key: string, namespace: string, uid: string): Promise<readonly ClusterEvent[]> {
    const now = this.#clock.now()
    const before = this.#asked.get(key)
    if (before !== undefined && now - before.at < EVERY_MS) return before.uid === uid ? before.found : []
    this.#asked.delete(key)
    this.#forgetOld(now)
    const asked = { at: now, uid, found: [] as readonly ClusterEvent[] }
    this.#asked.set(key, asked)
    asked.found = await this.#client.eventsOf(namespace, uid).catch(() => [])
    return asked.found
  }

  #forgetOld(now: number): void {
    for (const [key, { at }] of this.#asked) {
      if (this.#asked.size < KEPT && now - at < EVERY_MS) return
      this.#asked.delete(key)
    }
  }
}
