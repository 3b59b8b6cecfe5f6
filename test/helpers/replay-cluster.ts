import type { Life } from '../../src/domain/life.ts'
import type { Observation, Seen } from '../../src/domain/observation.ts'
import {
  deletionAskedAt,
  type KeptPod,
  type LookedAt,
  observeAgentPod,
  observeDeployment,
  observeGone,
  observeJob,
  warningSubject,
} from '../../src/kube/observe.ts'
import type { RecordedKind, RecordedObject, WatchLine } from './recording.ts'

const KINDS = { deployment: 'Deployment', job: 'Job', pod: 'Pod' } as const
const LABEL = 'gobrave-workload'

/** Objects of one view of the cluster: the truth, or what the watches have told so far. */
class View {
  readonly #objects = new Map<RecordedKind, Map<string, RecordedObject>>()

  of(kind: RecordedKind): Map<string, RecordedObject> {
    const found = this.#objects.get(kind) ?? new Map<string, RecordedObject>()
    this.#objects.set(kind, found)
    return found
  }

  named(kind: RecordedKind, name: string): RecordedObject | undefined {
    return [...this.of(kind).values()].findLast(object => object.metadata.name === name)
  }
}

/**
 * A recorded cluster as a backend sees it: a cache that follows the watches, and live reads answered from the newest
 * true state. Plays no controller: what happens was recorded.
 */
export class ReplayCluster {
  readonly #truth = new View()
  readonly #cache = new View()
  readonly #pods = new Map<string, KeptPod>()
  readonly #owners = new Map<string, string>()
  readonly #last = new Map<string, RecordedObject>()
  readonly #returns: (line: WatchLine) => boolean

  /** `returns`: a DELETED after which the same uid comes again; only a label went. */
  constructor(returns: (line: WatchLine) => boolean) {
    this.#returns = returns
  }

  /** It happened. */
  happen(line: WatchLine): void {
    const { kind, type, object } = line
    const { uid, name } = object.metadata
    if (kind === 'ReplicaSet') this.#own(object)
    const key = uid ?? name ?? ''
    if (type !== 'DELETED') this.#truth.of(kind).set(key, object)
    else if (this.#returns(line)) this.#truth.of(kind).set(key, unlabelled(object))
    else this.#truth.of(kind).delete(key)
  }

  /** A watch tells of it. */
  tell({ kind, type, object }: WatchLine): void {
    const key = object.metadata.uid ?? object.metadata.name ?? ''
    if (type === 'DELETED') this.#cache.of(kind).delete(key)
    else this.#cache.of(kind).set(key, object)
    this.#last.set(key, object)
    if (kind !== 'Pod') return
    const asked = this.#pods.get(key)?.deletionAskedAt ?? deletionAskedAt(object.metadata)
    this.#pods.set(key, { pod: object, deletionAskedAt: asked, gone: type === 'DELETED' })
  }

  #own(replicaSet: RecordedObject): void {
    const owner = replicaSet.metadata.ownerReferences?.find(({ controller }) => controller)
    if (owner !== undefined) this.#owners.set(replicaSet.metadata.uid ?? '', owner.uid)
  }

  observe(life: Life, at: number): Observation {
    const object = this.#cache.named(KINDS[life.id.kind], life.id.name)
    const look: LookedAt = { at, live: false, livePods: false, warnings: null }
    if (object !== undefined && object.metadata.uid === life.uid) return this.#seen(life, object, look)
    return this.#gone(life, object?.metadata.uid ?? null, look)
  }

  look(life: Life, depth: 'object' | 'pods' | 'warnings', at: number): Observation {
    const kind = KINDS[life.id.kind]
    const object = this.#truth.of(kind).get(life.uid ?? '')
    const look: LookedAt = { at, live: true, livePods: depth !== 'object', warnings: null }
    if (object === undefined) return this.#gone(life, this.#truth.named(kind, life.id.name)?.metadata.uid ?? null, look)
    const seen = this.#seen(life, object, look)
    if (depth !== 'warnings') return seen
    const subject = warningSubject(seen)
    const warnings = [...this.#truth.of('Event').values()].filter(
      ({ involvedObject }) => involvedObject.uid === subject,
    )
    return this.#seen(life, object, { ...look, warnings })
  }

  #seen({ id, uid }: Life, object: RecordedObject, look: LookedAt): Seen {
    if (id.kind === 'pod') {
      const kept = this.#pods.get(uid ?? '')
      return observeAgentPod({ pod: object, deletionAskedAt: kept?.deletionAskedAt ?? null }, look)
    }
    const pods = this.#podsOf(uid, look.livePods)
    return id.kind === 'job' ? observeJob(object, pods, look) : observeDeployment(object, pods, look)
  }

  #gone(life: Life, otherUid: string | null, look: LookedAt): Observation {
    const object = this.#last.get(life.uid ?? '')
    const cached: LookedAt = { at: look.at, live: false, livePods: false, warnings: null }
    const last = object === undefined ? null : this.#seen(life, object, cached)
    return observeGone({ otherUid, pods: this.#podsOf(life.uid, look.livePods), last }, look)
  }

  #podsOf(uid: string | null, live: boolean): KeptPod[] {
    const told = [...this.#pods.values()].filter(({ pod }) => this.#ownerOf(pod as RecordedObject) === uid)
    if (!live) return told
    const there = [...this.#truth.of('Pod').values()].filter(pod => this.#ownerOf(pod) === uid)
    const uids = new Set(there.map(pod => pod.metadata.uid))
    const lost = told.filter(({ pod }) => !uids.has(pod.metadata?.uid)).map(kept => ({ ...kept, gone: true }))
    const alive = there.map(pod => ({
      pod,
      deletionAskedAt: this.#pods.get(pod.metadata.uid ?? '')?.deletionAskedAt ?? null,
    }))
    return [...lost, ...alive]
  }

  #ownerOf(pod: RecordedObject): string | undefined {
    const owner = pod.metadata.ownerReferences?.find(({ controller }) => controller)?.uid
    return owner === undefined ? undefined : (this.#owners.get(owner) ?? owner)
  }
}

function unlabelled(object: RecordedObject): RecordedObject {
  const { [LABEL]: _, ...labels } = object.metadata.labels ?? {}
  return { ...object, metadata: { ...object.metadata, labels } }
}
