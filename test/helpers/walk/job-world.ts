import type { Seen } from '../../../src/domain/observation.ts'
import type { Job } from '../../../src/kube/objects.ts'
import { type KeptPod, type LookedAt, observeJob } from '../../../src/kube/observe.ts'
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

export interface JobObject extends WorldObject {
  suspended: boolean
  suspendedSeen: boolean
  hasStartTime: boolean
  active: number
  ready: number
  terminating: number
  succeeded: number
  failed: number
  /** Time of the condition. */
  completeAt: number | null
  failedAt: number | null
}

export interface JobWorldOptions {
  readonly backoffLimit?: number
  readonly background?: boolean
}

/** A Job, its controller and the kubelet; the controller counts late and decides later still. */
export class JobWorld implements World {
  object: JobObject | null = null
  pods: WorldPod[] = []
  readonly #witness: Witness
  readonly #counters: Counters
  readonly #budget: Budget
  readonly #backoffLimit: number
  readonly #background: boolean

  constructor(witness: Witness, counters: Counters, budget: Budget, options: JobWorldOptions = {}) {
    this.#witness = witness
    this.#counters = counters
    this.#budget = budget
    this.#backoffLimit = options.backoffLimit ?? 0
    this.#background = options.background ?? false
  }

  make(nonce: string, active: boolean): void {
    const uid = `j${++this.#counters.uid}`
    const base = { uid, nonce, version: 0, generation: 1, deletingSince: null }
    const counts = { active: 0, ready: 0, terminating: 0, succeeded: 0, failed: 0 }
    const flags = { suspended: !active, suspendedSeen: false, hasStartTime: false, completeAt: null, failedAt: null }
    this.object = { ...base, ...counts, ...flags }
    if (active) this.#witness.broughtUp()
    this.#touch()
  }

  scale(active: boolean): void {
    const object = this.#existing()
    if (object.suspended === !active) return
    if (active) this.#witness.broughtUp()
    object.suspended = !active
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
    return this.object !== null && !this.object.suspended
  }

  render(object: JobObject): Job {
    const { suspended, active, ready, terminating, succeeded, failed, hasStartTime } = object
    const condition = (type: string, at: number | null) =>
      at === null
        ? []
        : [
            {
              type,
              status: 'True',
              reason: type === 'Failed' ? 'BackoffLimitExceeded' : type,
              lastTransitionTime: seconds(at),
            },
          ]
    const conditions = [
      ...condition('Complete', object.completeAt),
      ...condition('Failed', object.failedAt),
      ...condition('Suspended', object.suspendedSeen ? 0 : null),
    ]
    const status = {
      active,
      ready,
      terminating,
      succeeded,
      failed,
      conditions,
      startTime: hasStartTime ? seconds(1000) : undefined,
    }
    const spec = { suspend: suspended, backoffLimit: this.#backoffLimit, completions: 1 }
    return { metadata: metaOf(object), spec, status } as unknown as Job
  }

  observe(object: JobObject, pods: readonly KeptPod[], look: LookedAt): Seen {
    return observeJob(this.render(object), pods, look)
  }

  #existing(): JobObject {
    if (this.object === null) throw new Error('no object')
    return this.object
  }

  #touch(): void {
    if (this.object !== null) this.object.version = ++this.#counters.version
    this.#witness.changed()
  }

  moves(): Move[] {
    const moves = this.pods.flatMap(pod => this.#podMoves(pod))
    const { object } = this
    if (object !== null)
      moves.push(...this.#controller(object), ...this.#podControl(object), ...this.#collector(object))
    const orphans = this.pods.filter(pod => pod.owner !== object?.uid && pod.askedAt === null)
    if (orphans.length > 0) moves.push(move('gc: orphans', () => this.#askAll(orphans)))
    return moves
  }

  #controller(object: JobObject): Move[] {
    const mine = this.pods.filter(pod => pod.owner === object.uid)
    const active = mine.filter(pod => isLive(pod) && pod.askedAt === null)
    const seen = {
      active: active.length,
      ready: active.filter(pod => pod.phase === 'Running').length,
      terminating: mine.filter(pod => isLive(pod) && pod.askedAt !== null).length,
    }
    const newly = (phase: string) => mine.filter(pod => pod.phase === phase && !pod.counted && !pod.uncounted).length
    const succeeded = newly('Succeeded')
    const failed = newly('Failed')
    const finished = object.completeAt !== null || object.failedAt !== null
    const moves: Move[] = []
    const differs =
      object.active !== seen.active || object.ready !== seen.ready || object.terminating !== seen.terminating
    const flags =
      !finished && ((!object.suspended && !object.hasStartTime) || object.suspendedSeen !== object.suspended)
    if (differs || succeeded > 0 || failed > 0 || flags) {
      const run = () => {
        Object.assign(object, seen, { suspendedSeen: object.suspended })
        object.succeeded += succeeded
        object.failed += failed
        if (!object.suspended) object.hasStartTime = true
        for (const pod of mine) if (!isLive(pod)) pod.counted = true
        this.#touch()
      }
      moves.push(move('job status', run))
    }
    const conclude = (key: 'completeAt' | 'failedAt') => () => {
      object[key] = this.#witness.now()
      this.#touch()
    }
    if (!finished && object.succeeded >= 1 && object.active === 0)
      moves.push(move('condition Complete', conclude('completeAt')))
    const spent = object.failed > this.#backoffLimit && object.active === 0 && object.terminating === 0
    if (!finished && spent) moves.push(move('condition Failed', conclude('failedAt')))
    return moves
  }

  #podControl(object: JobObject): Move[] {
    if (object.deletingSince !== null) return []
    const mine = this.pods.filter(pod => pod.owner === object.uid)
    const active = mine.filter(pod => isLive(pod) && pod.askedAt === null)
    const count = (phase: string) => mine.filter(pod => pod.phase === phase && !pod.counted && !pod.uncounted).length
    const finished = object.completeAt !== null || object.failedAt !== null
    const open = object.succeeded + count('Succeeded') < 1 && object.failed + count('Failed') <= this.#backoffLimit
    const moves: Move[] = []
    if (
      !finished &&
      !object.suspended &&
      active.length === 0 &&
      open &&
      mine.length < 4 &&
      mine.filter(isLive).length < 2
    ) {
      const run = () => {
        this.pods.push(newPod(`p${++this.#counters.uid}`, object.uid, this.#witness.now()))
      }
      moves.push(move('pod made', run))
    }
    if (object.suspended && active.length > 0) {
      const run = () => {
        for (const pod of active) pod.uncounted = true
        this.#askAll(active)
      }
      moves.push(move('pods told to end', run))
    }
    return moves
  }

  #collector(object: JobObject): Move[] {
    if (object.deletingSince === null) return []
    const mine = this.pods.filter(pod => pod.owner === object.uid)
    const moves: Move[] = []
    if (mine.some(pod => pod.askedAt === null)) moves.push(move('gc: pods told to end', () => this.#askAll(mine)))
    if (mine.length === 0) moves.push(move('object removed', () => this.#vanish()))
    return moves
  }

  #podMoves(pod: WorldPod): Move[] {
    const moves: Move[] = []
    const asked = pod.askedAt !== null
    if (pod.phase === 'Pending' && !asked) {
      const run = () => {
        Object.assign(pod, { phase: 'Running', ready: true, ranAt: this.#witness.now() })
        this.#witness.ran(pod.owner)
      }
      moves.push(move('pod runs', run))
      if (this.#budget.pods > 0) {
        const reject = () => {
          this.#budget.pods--
          pod.phase = 'Failed'
          this.#witness.ended(pod.owner, 'failure')
        }
        moves.push(move('pod rejected by the node', reject, 1))
      }
    }
    if (pod.phase === 'Running' && !asked) {
      moves.push(move('pod succeeds', () => this.#end(pod, 0), 0.7))
      if (this.#budget.pods > 0) {
        const fail = () => {
          this.#budget.pods--
          this.#end(pod, 3)
        }
        moves.push(move('pod fails', fail, 1))
      }
    }
    if (asked) {
      if (pod.phase === 'Running') moves.push(move('pod killed', () => this.#end(pod, 143), 2))
      const deleting = this.object?.uid !== pod.owner || this.object.deletingSince !== null
      if (isLive(pod) || deleting || pod.uncounted) moves.push(move('pod gone', () => this.#drop(pod)))
    }
    return moves
  }

  #end(pod: WorldPod, code: number): void {
    Object.assign(pod, { phase: code === 0 ? 'Succeeded' : 'Failed', ready: false, endedAt: this.#witness.now(), code })
    if (pod.askedAt === null) this.#witness.ended(pod.owner, code === 0 ? 'success' : 'failure')
  }

  #askAll(pods: readonly WorldPod[]): void {
    for (const pod of pods) pod.askedAt ??= this.#witness.now()
  }

  #drop(pod: WorldPod): void {
    this.pods = this.pods.filter(other => other !== pod)
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
    const finished = object.completeAt !== null || object.failedAt !== null
    const moves: Move[] = []
    if (object.deletingSince === null) {
      if (!finished) moves.push(by(object.suspended ? 'unsuspend' : 'suspend', () => this.scale(object.suspended)))
      moves.push(by('delete, foreground', () => this.remove()))
    }
    if (finished || this.#background)
      moves.push(by(finished ? 'ttl removes it' : 'delete, background', () => this.#vanish()))
    return moves
  }
}
