import type { Life } from '../domain/life.ts'
import type { Gone, Seen } from '../domain/observation.ts'
import type { Informers } from './informers.ts'
import type { WorkloadObject } from './kinds.ts'
import type { LastSeenMemory } from './last-seen.ts'
import type { Deployment, Job, Pod } from './objects.ts'
import { type KeptPod, type LookedAt, observeAgentPod, observeDeployment, observeGone, observeJob } from './observe.ts'
import type { Ownership } from './ownership.ts'
import { type PodRecord, trimPod } from './trim.ts'

export interface ViewsOptions {
  readonly informers: Informers
  readonly ownership: Ownership
  readonly memory: LastSeenMemory
}

/** Puts together what an observer needs: the object, its pods by owner, and those of its pods that are gone. */
export class Views {
  readonly #options: ViewsOptions

  constructor(options: ViewsOptions) {
    this.#options = options
  }

  /** Its pods in the cache, as far as their owners are known. */
  cachedPods({ id, uid: known, podControllers }: Life, uid: string): readonly PodRecord[] {
    const { informers, ownership } = this.#options
    if (known === uid) ownership.learn(uid, podControllers)
    return ownership.known(informers.podsNaming(id), { kind: id.kind, uid }) as PodRecord[]
  }

  /** As the cache would keep them: with the time their deletion was first asked for, which only the cache has seen. */
  remembered({ id }: Life, pods: readonly Pod[]): readonly PodRecord[] {
    const known = new Map(this.#options.informers.podsNaming(id).map(record => [record.metadata.uid, record]))
    return pods.map(pod => trimPod(pod, known.get(pod.metadata?.uid ?? '')))
  }

  seen(life: Life, object: WorkloadObject, pods: readonly PodRecord[], look: LookedAt): Seen {
    switch (life.id.kind) {
      case 'deployment':
        return observeDeployment(object as Deployment, this.#withGone(life, object, pods), look)
      case 'job':
        return observeJob(object as Job, this.#withGone(life, object, pods), look)
      case 'pod':
        return observeAgentPod(kept(this.remembered(life, [object as Pod])[0] as PodRecord), look)
    }
  }

  gone(life: Life, otherUid: string | null, pods: readonly PodRecord[], look: LookedAt): Gone {
    return observeGone({ otherUid, pods: pods.map(kept), last: this.#last(life, look.at) }, look)
  }

  /** The last that was seen of it before it went. */
  #last(life: Life, at: number): Seen | null {
    const last = life.uid === null ? null : this.#options.memory.of(life.uid)
    if (last === null) return null
    const look = { at, live: false, livePods: false, warnings: null }
    const { object, pods } = last
    if (life.id.kind === 'pod') return observeAgentPod({ ...kept(object as PodRecord), gone: true }, look)
    const all = this.#withGone(life, object, pods)
    return life.id.kind === 'deployment'
      ? observeDeployment(object as Deployment, all, look)
      : observeJob(object as Job, all, look)
  }

  #withGone({ id }: Life, { metadata }: WorkloadObject, pods: readonly PodRecord[]): KeptPod[] {
    const { ownership, memory, informers } = this.#options
    const owner = { kind: id.kind, uid: metadata?.uid ?? '' }
    // A live list may know that a pod has gone before the watch says so.
    const ending = informers.podsNaming(id).filter(record => record.metadata.deletionTimestamp)
    const there = new Set(pods.map(record => record.metadata.uid))
    const told = new Set(memory.podsGone(id).map(record => record.metadata.uid))
    const last = [
      ...memory.podsGone(id),
      ...ending.filter(({ metadata: { uid } }) => !there.has(uid) && !told.has(uid)),
    ]
    const gone = ownership.known(last, owner) as PodRecord[]
    return [
      ...pods.filter(record => !told.has(record.metadata.uid)).map(kept),
      ...gone.map(record => ({ ...kept(record), gone: true })),
    ]
  }
}

const kept = (record: PodRecord): KeptPod => ({
  pod: record,
  deletionAskedAt: record.runtimedDeletionAskedAt ?? null,
})
