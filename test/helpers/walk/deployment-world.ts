import type { Seen } from '../../../src/domain/observation.ts'
import type { Deployment } from '../../../src/kube/objects.ts'
import { type KeptPod, type LookedAt, observeDeployment } from '../../../src/kube/observe.ts'
import {
  type Budget,
  type Counters,
  isLive,
  type Move,
  metaOf,
  move,
  newPod,
  seconds,
  type Witness,
  type World,
  type WorldObject,
  type WorldPod,
} from './world.ts'

export interface DeploymentObject extends WorldObject {
  spec: number
  replicas: number
  ready: number
  observed: number
  /** Time of a failure condition that stands. */
  failingAt: number | null
}

/** A Deployment, its ReplicaSet, their controllers and the kubelet: each lags as it likes. */
export class DeploymentWorld implements World {
  object: DeploymentObject | null = null
  pods: WorldPod[] = []
  #replicaSet = { spec: 0, replicas: 0, ready: 0 }
  readonly #witness: Witness
  readonly #counters: Counters
  readonly #budget: Budget
  readonly #background: boolean

  constructor(witness: Witness, counters: Counters, budget: Budget, { background = false } = {}) {
    this.#witness = witness
    this.#counters = counters
    this.#budget = budget
    this.#background = background
  }

  make(nonce: string, active: boolean): void {
    const uid = `d${++this.#counters.uid}`
    const base = { uid, nonce, version: 0, generation: 1, deletingSince: null }
    this.object = { ...base, spec: active ? 1 : 0, replicas: 0, ready: 0, observed: 0, failingAt: null }
    this.#replicaSet = { spec: 0, replicas: 0, ready: 0 }
    if (active) this.#witness.broughtUp()
    this.#touch()
  }

  scale(active: boolean): void {
    const object = this.#existing()
    const spec = active ? 1 : 0
    if (object.spec === spec) return
    if (active) this.#witness.broughtUp()
    object.spec = spec
    object.generation++
    this.#touch()
  }

  remove(): void {
    const object = this.#existing()
    if (object.deletingSince !== null) return
    object.deletingSince = this.#witness.now()
    object.generation++
    this.#touch()
  }

  isActive(): boolean {
    return (this.object?.spec ?? 0) > 0
  }

  render(object: DeploymentObject): Deployment {
    const { spec, replicas, ready, observed, failingAt } = object
    const reason = 'ProgressDeadlineExceeded'
    const conditions =
      failingAt === null
        ? []
        : [{ type: 'Progressing', status: 'False', reason, lastTransitionTime: seconds(failingAt) }]
    const status = { observedGeneration: observed, replicas, readyReplicas: ready, conditions }
    return { metadata: metaOf(object), spec: { replicas: spec }, status } as unknown as Deployment
  }

  observe(object: DeploymentObject, pods: readonly KeptPod[], look: LookedAt): Seen {
    return observeDeployment(this.render(object), pods, look)
  }

  #existing(): DeploymentObject {
    if (this.object === null) throw new Error('no object')
    return this.object
  }

  #touch(): void {
    if (this.object !== null) this.object.version = ++this.#counters.version
    this.#witness.changed()
  }

  moves(): Move[] {
    const { object } = this
    const moves = this.pods.flatMap(pod => this.#podMoves(pod))
    if (object === null || object.deletingSince !== null) return [...moves, ...this.#collector()]
    return [...moves, ...this.#controllers(object), ...this.#conditions(object), ...this.#collector()]
  }

  #mine(uid: string): WorldPod[] {
    return this.pods.filter(pod => pod.owner === uid && pod.askedAt === null && isLive(pod))
  }

  #controllers(object: DeploymentObject): Move[] {
    const set = this.#replicaSet
    const alive = this.#mine(object.uid)
    const ready = alive.filter(pod => pod.ready).length
    const moves: Move[] = []
    const lags = set.spec !== object.spec || object.observed !== object.generation
    if (lags || object.replicas !== set.replicas || object.ready !== set.ready) {
      const run = () => {
        set.spec = object.spec
        Object.assign(object, { observed: object.generation, replicas: set.replicas, ready: set.ready })
        this.#touch()
      }
      moves.push(move('deployment controller', run))
    }
    if (set.spec > 0 && alive.length === 0 && this.pods.length < 2) {
      const uid = `p${this.#counters.uid + 1}`
      const run = () => {
        this.#counters.uid++
        this.pods.push(newPod(uid, object.uid, this.#witness.now()))
      }
      moves.push(move('pod made', run))
    }
    if (set.spec === 0 && alive.length > 0) {
      moves.push(move('pods told to end', () => this.#askAll(alive)))
    }
    if (set.replicas !== alive.length || set.ready !== ready) {
      moves.push(move('replica set status', () => Object.assign(set, { replicas: alive.length, ready })))
    }
    return moves
  }

  #conditions(object: DeploymentObject): Move[] {
    const set = (failingAt: number | null) => () => {
      object.failingAt = failingAt
      this.#touch()
    }
    if (object.failingAt !== null) {
      return object.ready > 0 || this.#replicaSet.spec === 0 ? [move('condition cleared', set(null))] : []
    }
    const may = this.#budget.conditions > 0 && object.ready === 0 && object.spec > 0 && this.#replicaSet.spec > 0
    const run = () => {
      this.#budget.conditions--
      set(this.#witness.now())()
    }
    return may ? [move('failure condition', run, 1)] : []
  }

  #podMoves(pod: WorldPod): Move[] {
    const moves: Move[] = []
    const now = this.#witness.now()
    if (pod.phase === 'Pending' && pod.askedAt === null) {
      const run = () => {
        Object.assign(pod, { phase: 'Running', ready: true, ranAt: now })
        this.#witness.ran(pod.owner)
      }
      moves.push(move('pod ready', run))
    }
    if (pod.askedAt !== null) {
      moves.push(move('pod gone', () => this.#drop(pod)))
      if (pod.phase === 'Running') moves.push(move('pod ends', () => this.#end(pod, 'Failed'), 2))
    }
    if (pod.phase === 'Running' && pod.askedAt === null && this.#budget.pods > 0) {
      const spend = (run: () => void) => () => {
        this.#budget.pods--
        run()
      }
      if (pod.ready)
        moves.push(
          move(
            'pod unready',
            spend(() => Object.assign(pod, { ready: false })),
            1,
          ),
        )
      moves.push(
        move(
          'pod evicted',
          spend(() => this.#end(pod, 'Failed')),
          1,
        ),
      )
    }
    return moves
  }

  #collector(): Move[] {
    const { object } = this
    const orphans = this.pods.filter(pod => pod.owner !== object?.uid && pod.askedAt === null && isLive(pod))
    const moves = orphans.length > 0 ? [move('gc: orphans', () => this.#askAll(orphans))] : []
    const ended = this.pods.filter(pod => pod.owner !== object?.uid && !isLive(pod))
    if (ended.length > 0) moves.push(move('gc: ended pods', () => this.#drop(...ended)))
    if (object === null || object.deletingSince === null) return moves
    const mine = this.pods.filter(pod => pod.owner === object.uid)
    if (mine.some(pod => pod.askedAt === null)) moves.push(move('gc: pods told to end', () => this.#askAll(mine)))
    if (mine.length === 0) moves.push(move('object removed', () => this.#vanish()))
    return moves
  }

  #askAll(pods: readonly WorldPod[]): void {
    for (const pod of pods) pod.askedAt ??= this.#witness.now()
  }

  #end(pod: WorldPod, phase: 'Succeeded' | 'Failed'): void {
    Object.assign(pod, { phase, ready: false, endedAt: this.#witness.now(), code: phase === 'Failed' ? 137 : 0 })
  }

  #drop(...gone: readonly WorldPod[]): void {
    this.pods = this.pods.filter(pod => !gone.includes(pod))
  }

  #vanish(): void {
    this.object = null
    this.#touch()
  }

  othersMoves(): Move[] {
    const { object } = this
    if (this.#budget.others === 0) return []
    const by = (label: string, run: () => void) =>
      move(
        `others: ${label}`,
        () => {
          this.#budget.others--
          run()
        },
        1,
      )
    if (object === null) return [by('make anew', () => this.make('others', true))]
    const moves: Move[] = []
    if (object.deletingSince === null) {
      moves.push(by(`scale ${object.spec ? 0 : 1}`, () => this.scale(object.spec === 0)))
      moves.push(by('delete, foreground', () => this.remove()))
    }
    if (this.#background) moves.push(by('delete, background', () => this.#vanish()))
    return moves
  }
}
