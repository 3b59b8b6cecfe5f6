import type { Life } from '../domain/life.ts'
import type { Gone, Observation, Seen } from '../domain/observation.ts'
import { formatRuntimeId, type RuntimeId } from '../domain/runtime-id.ts'
import type { Clock, Look, Workloads, Written } from '../service/ports.ts'
import type { BuildOptions } from './build-workload.ts'
import type { KubeClient } from './client.ts'
import type { Informers } from './informers.ts'
import type { WorkloadObject } from './kinds.ts'
import { isOfLife, type LivePods } from './live-pods.ts'
import { Maker } from './make.ts'
import type { Pod } from './objects.ts'
import { warningSubject } from './observe.ts'
import { OwnServices } from './own-services.ts'
import { remove } from './remove.ts'
import { setActive } from './scale.ts'
import type { Views } from './views.ts'
import type { Warnings } from './warnings.ts'

export interface KubeWorkloadsOptions {
  readonly client: KubeClient
  readonly build: BuildOptions
  readonly informers: Informers
  readonly live: LivePods
  readonly views: Views
  readonly warnings: Warnings
  readonly clock: Clock
  /** Has the ID decided again. */
  readonly wake: (id: RuntimeId) => void
}

/** How long the watch may take to show what a write has made, before it is looked for by a call (kube-client.md §6.3). */
const WATCH_LAG_MS = 5000

/** The reads and writes of one cluster as the reconciler wants them. */
export class KubeWorkloads implements Workloads {
  readonly #options: KubeWorkloadsOptions
  readonly #maker: Maker
  readonly #services: OwnServices
  /** uids of what was just made and not seen yet. */
  readonly #awaited = new Map<string, () => void>()

  constructor(options: KubeWorkloadsOptions) {
    this.#options = options
    this.#maker = new Maker(options.client, options.build)
    this.#services = new OwnServices(options.client, options.build)
    options.informers.onChange((_kind, { metadata }) => this.#arrived(metadata.uid))
  }

  observe(life: Life): Observation | null {
    const { informers, views, clock } = this.#options
    if (!informers.syncedFor(life.id)) return null
    const look = { at: clock.now(), live: false, livePods: false, warnings: null }
    const object = informers.get(life.id)
    if (object !== null && isOfLife(object, life)) {
      return views.seen(life, object, views.cachedPods(life, object.metadata.uid), look)
    }
    if (life.uid !== null && this.#awaited.has(life.uid)) return null
    return views.gone(life, object?.metadata.uid ?? null, this.#podsLeft(life), look)
  }

  async look(life: Life, depth: Look): Promise<Observation> {
    const object = await this.#options.live.workload(life)
    if (object === null || !isOfLife(object, life)) return await this.#lookAfterGone(life, depth, object)
    const uid = object.metadata?.uid ?? ''
    const pods = depth === 'object' ? this.#cachedPods(life, uid) : await this.#livePods(life, uid, object)
    const look = {
      at: this.#options.clock.now(),
      live: true,
      livePods: depth !== 'object' || life.id.kind === 'pod',
      warnings: null,
    }
    const seen = this.#options.views.seen(life, object, pods, look)
    if (depth !== 'warnings') return seen
    const warnings = await this.#warningsOf(life, seen)
    return this.#options.views.seen(life, object, pods, { ...look, warnings })
  }

  async make(life: Life, active: boolean): Promise<Written> {
    const written = await this.#maker.make(life, active)
    this.#await(written.uid, life.id)
    return written
  }

  async up(life: Life, seen: Seen): Promise<Written | null> {
    return await setActive(this.#options.client, life, seen, true)
  }

  async down(life: Life, seen: Seen): Promise<Written | null> {
    return await setActive(this.#options.client, life, seen, false)
  }

  async remove(life: Life): Promise<Written | null> {
    return await remove(this.#options.client, this.#services, life)
  }

  async #lookAfterGone(life: Life, depth: Look, other: WorkloadObject | null): Promise<Gone> {
    const { live, views, clock } = this.#options
    const livePods = depth !== 'object' && life.uid !== null
    const found = livePods ? await live.of(life, life.uid ?? '') : null
    const pods = found === null ? this.#podsLeft(life) : views.remembered(life, [...found.pods, ...found.unclear])
    const look = {
      at: clock.now(),
      live: true,
      livePods: depth !== 'object',
      warnings: depth === 'warnings' ? [] : null,
    }
    return views.gone(life, other?.metadata?.uid ?? null, pods, look)
  }

  #podsLeft(life: Life) {
    return life.uid === null ? [] : this.#cachedPods(life, life.uid)
  }

  /** A Pod is its own pod. */
  #cachedPods(life: Life, uid: string) {
    return life.id.kind === 'pod' ? [] : this.#options.views.cachedPods(life, uid)
  }

  async #livePods(life: Life, uid: string, object: WorkloadObject) {
    const { live, views } = this.#options
    if (life.id.kind === 'pod') return views.remembered(life, [object as Pod])
    return views.remembered(life, (await live.of(life, uid)).pods)
  }

  async #warningsOf({ id }: Life, seen: Seen) {
    return await this.#options.warnings.of(formatRuntimeId(id), id.namespace, warningSubject(seen))
  }

  #await(uid: string, id: RuntimeId): void {
    const { informers, clock, wake } = this.#options
    if (informers.get(id)?.metadata.uid === uid || this.#awaited.has(uid)) return
    const late = (): void => {
      if (this.#awaited.delete(uid)) wake(id)
    }
    this.#awaited.set(uid, clock.after(WATCH_LAG_MS, late))
  }

  #arrived(uid: string): void {
    this.#awaited.get(uid)?.()
    this.#awaited.delete(uid)
  }
}
