import type { Seen } from '../../../src/domain/observation.ts'
import type { Pod } from '../../../src/kube/objects.ts'
import { type KeptPod, type LookedAt, observeAgentPod } from '../../../src/kube/observe.ts'
import {
  type Budget,
  type Counters,
  isLive,
  type Move,
  metaOf,
  move,
  newPod,
  renderPod,
  type Witness,
  type World,
  type WorldObject,
  type WorldPod,
} from './world.ts'

export interface PodObject extends WorldObject {
  pod: WorldPod
}

/** An agent Pod: the object is its own pod. */
export class PodWorld implements World {
  object: PodObject | null = null
  readonly #witness: Witness
  readonly #counters: Counters
  readonly #budget: Budget

  constructor(witness: Witness, counters: Counters, budget: Budget) {
    this.#witness = witness
    this.#counters = counters
    this.#budget = budget
  }

  get pods(): readonly WorldPod[] {
    return this.object === null ? [] : [this.object.pod]
  }

  make(nonce: string): void {
    const uid = `a${++this.#counters.uid}`
    const pod = newPod(uid, uid, this.#witness.now())
    this.object = { uid, nonce, version: 0, generation: 1, deletingSince: null, pod }
    this.#witness.broughtUp()
    this.#touch()
  }

  scale(): void {
    throw new Error('an agent Pod is not scaled')
  }

  remove(): void {
    const { object } = this
    if (object === null || object.deletingSince !== null) return
    object.deletingSince = this.#witness.now()
    object.pod.askedAt = object.deletingSince
    this.#touch()
  }

  isActive(): boolean {
    return this.object !== null
  }

  render(object: PodObject): Pod {
    const { metadata, ...rest } = renderPod(object.pod)
    const { finalizers: _, deletionTimestamp, deletionGracePeriodSeconds, ...meta } = metaOf(object)
    return {
      ...rest,
      metadata: { ...meta, ...metadata, resourceVersion: meta.resourceVersion, name: 'x' },
    } as unknown as Pod
  }

  observe(object: PodObject, _pods: readonly KeptPod[], look: LookedAt): Seen {
    return observeAgentPod({ pod: this.render(object), deletionAskedAt: object.pod.askedAt }, look)
  }

  #touch(): void {
    if (this.object !== null) this.object.version = ++this.#counters.version
    this.#witness.changed()
  }

  #set(patch: Partial<WorldPod>): () => void {
    return () => {
      if (this.object !== null) Object.assign(this.object.pod, patch)
      this.#touch()
    }
  }

  moves(): Move[] {
    const { object } = this
    if (object === null) return []
    const { pod, deletingSince } = object
    const now = this.#witness.now()
    const moves: Move[] = []
    const spend = (run: () => void) => () => {
      this.#budget.pods--
      run()
    }
    const end = (code: number) => () => {
      this.#set({ phase: code === 0 ? 'Succeeded' : 'Failed', ready: false, endedAt: now, code })()
      if (deletingSince === null) this.#witness.ended(object.uid, code === 0 ? 'success' : 'failure')
    }
    if (pod.phase === 'Pending' && deletingSince === null) {
      const run = () => {
        this.#set({ phase: 'Running', ranAt: now })()
        this.#witness.ran(object.uid)
      }
      moves.push(move('pod runs', run))
      if (this.#budget.pods > 0) {
        const reject = () => {
          this.#set({ phase: 'Failed' })()
          this.#witness.ended(object.uid, 'failure')
        }
        moves.push(move('pod rejected', spend(reject), 1))
      }
    }
    if (pod.phase === 'Running') {
      if (!pod.ready && deletingSince === null) moves.push(move('pod ready', this.#set({ ready: true })))
      if (deletingSince === null) moves.push(move('pod succeeds', end(0), 0.7))
      if (this.#budget.pods > 0) moves.push(move('pod fails', spend(end(3)), 1))
      if (this.#budget.pods > 0 && deletingSince === null) {
        moves.push(move('node lost', spend(this.#set({ phase: 'Unknown', ready: false })), 1))
      }
    }
    if (pod.phase === 'Unknown') moves.push(move('node back', this.#set({ phase: 'Running' })))
    if (deletingSince !== null) {
      const vanish = () => {
        this.object = null
        this.#touch()
      }
      moves.push(move('pod gone', vanish))
    }
    return moves
  }

  othersMoves(): Move[] {
    const { object } = this
    if (this.#budget.others === 0 || object === null || object.deletingSince !== null || !isLive(object.pod)) return []
    const run = () => {
      this.#budget.others--
      this.remove()
    }
    return [move('others: delete', run, 1)]
  }
}
