import type { Decision, Outcome, Plan } from '../../../src/domain/decision.ts'
import type { NewEvent } from '../../../src/domain/event.ts'
import type { Life } from '../../../src/domain/life.ts'
import { decide, intend, newLife, plan, replaced, settle } from '../../../src/domain/lifecycle.ts'
import type { Observation } from '../../../src/domain/observation.ts'
import type { Kind } from '../../../src/domain/runtime-id.ts'
import { type KeptPod, type LookedAt, observeGone } from '../../../src/kube/observe.ts'
import { specOf } from '../specs.ts'
import { DeploymentWorld } from './deployment-world.ts'
import { Ghosts, podsLeftIn } from './ghosts.ts'
import { JobWorld } from './job-world.ts'
import { PodWorld } from './pod-world.ts'
import {
  type Budget,
  type Counters,
  keptPod,
  type Move,
  move,
  type World,
  type WorldObject,
  type WorldPod,
} from './world.ts'

export interface WalkOptions {
  readonly kind: Kind
  readonly jobStop?: 'delete' | 'suspend'
  /** 0 = none; else the start timer passes only by the move of that name. */
  readonly startTimeoutSeconds?: number
  readonly backoffLimit?: number
  readonly background?: boolean
  readonly verbs?: number
  readonly faults?: number
  readonly others?: number
  readonly pods?: number
  readonly conditions?: number
}

type Fault = 'none' | 'refused' | 'lost' | 'drop' | 'late'
type Stage =
  | { readonly at: 'effect' }
  | { readonly at: 'result'; readonly outcome: Outcome; readonly overlap: boolean }
  | null
type Snapshot = WorldObject | null

const STEP_MS = 1000
const TIMER_SECONDS = 1_000_000

/**
 * One workload, its row and its cluster, moved step by step: verbs, effects that are refused, lost or late, crashes that
 * leave the row alone, watches that lag and lose, controllers, and others' hands. The functions under test are the real
 * ones, through the real observers.
 */
export class Walk {
  life: Life | null = null
  readonly events: (NewEvent & { readonly life: number })[] = []
  readonly bad: string[] = []
  readonly trace: string[] = []
  writes = 0
  readonly world: World
  readonly #options: WalkOptions
  readonly #ghosts = new Ghosts()
  readonly #budget: Budget
  readonly #left: { verbs: number; faults: number }
  readonly #counters: Counters = { uid: 0, version: 0 }
  readonly #dead = new Set<string>()
  readonly #late: { readonly label: string; readonly land: () => void }[] = []
  #lives = 0
  #now = 1_700_000_000_000
  #writing = false
  #stage: Stage = null
  #queue: Snapshot[] = []
  #cached: Snapshot = null
  #last = new Map<string, WorldObject>()
  #pods = new Map<string, { pod: WorldPod; gone: boolean }>()

  constructor(options: WalkOptions) {
    this.#options = options
    this.#left = { verbs: options.verbs ?? 3, faults: options.faults ?? 2 }
    this.#budget = { others: options.others ?? 2, pods: options.pods ?? 1, conditions: options.conditions ?? 1 }
    this.world = this.#makeWorld()
  }

  #makeWorld(): World {
    const { kind, background = false, backoffLimit = 0 } = this.#options
    const witness = {
      changed: () => this.#tell(),
      ran: (owner: string) => void this.#ghosts.ran.add(owner),
      ended: (owner: string, how: 'success' | 'failure') =>
        void (how === 'success' ? this.#ghosts.succeeded : this.#ghosts.failed).add(owner),
      broughtUp: () => this.#broughtUp(),
      now: () => this.#now,
    }
    if (kind === 'deployment') return new DeploymentWorld(witness, this.#counters, this.#budget, { background })
    if (kind === 'job') return new JobWorld(witness, this.#counters, this.#budget, { backoffLimit, background })
    return new PodWorld(witness, this.#counters, this.#budget)
  }

  /** A run begins by our own write, or by others while nothing is in hand; what others do within a run begins none. */
  #broughtUp(): void {
    const { open = false, run = 0, verb = null } = this.life ?? {}
    if (this.#writing ? run > 0 && !verb?.joins : !open && verb === null) this.#ghosts.broughtUp(this.world)
  }

  /** The watch holds two changes at most: what it cannot hold is lost. */
  #tell(): void {
    this.#queue.push(structuredClone(this.world.object))
    if (this.#queue.length > 2) this.#queue.shift()
  }

  step(chosen: Move): void {
    this.#now += STEP_MS
    this.trace.push(chosen.label)
    chosen.run()
    if (this.life !== null)
      this.trace[this.trace.length - 1] += ` {${this.life.state} r${this.life.run}${this.life.open ? '' : ' closed'}}`
  }

  moves(): Move[] {
    return [...this.fairMoves(), ...this.#timer(), ...this.#faults(), ...this.world.othersMoves(), ...this.userMoves()]
  }

  /** What goes on by itself once nobody interferes. */
  fairMoves(): Move[] {
    return [...this.world.moves(), ...this.#watches(), ...this.#daemon(), ...this.#landings()]
  }

  // --- watches and reads ---

  #watches(): Move[] {
    const moves: Move[] = []
    if (this.#queue.length > 0) moves.push(move('watch: object', () => this.#hear(this.#queue.shift() ?? null)))
    const told = [...this.#pods.values()].filter(({ gone }) => !gone).map(({ pod }) => pod)
    if (JSON.stringify(told) !== JSON.stringify(this.world.pods))
      moves.push(move('watch: pods', () => this.#hearPods()))
    return moves
  }

  #hear(snapshot: Snapshot): void {
    this.#cached = snapshot
    if (snapshot !== null) this.#last.set(snapshot.uid, snapshot)
  }

  #hearPods(): void {
    const there = new Set(this.world.pods.map(({ uid }) => uid))
    for (const [uid, kept] of this.#pods) if (!there.has(uid)) this.#pods.set(uid, { ...kept, gone: true })
    for (const pod of this.world.pods) this.#pods.set(pod.uid, { pod: structuredClone(pod), gone: false })
  }

  #podsOf(uid: string | null, live: boolean): KeptPod[] {
    const told = [...this.#pods.values()].filter(({ pod }) => pod.owner === uid)
    if (!live) return told.map(({ pod, gone }) => keptPod(pod, gone))
    const there = this.world.pods.filter(({ owner }) => owner === uid)
    const lost = told.filter(({ pod }) => !there.some(other => other.uid === pod.uid))
    return [...lost.map(({ pod }) => keptPod(pod, true)), ...there.map(pod => keptPod(pod))]
  }

  #observe(life: Life): Observation {
    return this.#seen(life, this.#cached, { at: this.#now, live: false, livePods: false, warnings: null })
  }

  #look(life: Life, depth: 'object' | 'pods' | 'warnings'): Observation {
    const look: LookedAt = {
      at: this.#now,
      live: true,
      livePods: depth !== 'object',
      warnings: depth === 'warnings' ? [] : null,
    }
    return this.#seen(life, structuredClone(this.world.object), look)
  }

  #seen(life: Life, object: Snapshot, look: LookedAt): Observation {
    const ours = object !== null && (life.uid === null ? object.nonce === life.nonce : object.uid === life.uid)
    if (ours) return this.world.observe(object, this.#podsOf(object.uid, look.livePods), look)
    const known = this.#last.get(life.uid ?? '')
    const cached = { ...look, live: false, livePods: false, warnings: null }
    const last = known === undefined ? null : this.world.observe(known, this.#podsOf(known.uid, false), cached)
    return observeGone({ otherUid: object?.uid ?? null, pods: this.#podsOf(life.uid, look.livePods), last }, look)
  }

  // --- the daemon ---

  #daemon(): Move[] {
    const { life } = this
    const stage = this.#stage
    if (stage?.at === 'effect') return [move(`effect ${life?.verb?.verb}`, () => this.#effect('none'))]
    if (stage?.at === 'result') return [move('result', () => this.#result(stage.outcome, stage.overlap))]
    const moves = this.#strays()
    if (life === null || life.state === 'deleted') return moves
    const decision = this.#decide(life)
    if (decision === null) return moves
    if (decision.life === life && decision.events.length === 0 && !decision.effect) return moves
    const run = () => {
      this.#commit(decision, false)
      if (decision.effect) this.#stage = { at: 'effect' }
    }
    return [...moves, move(decision.effect ? `again ${decision.life.verb?.verb}` : 'look', run)]
  }

  /** With every deeper look it asks for; then the same observation once more, which must change nothing. */
  #decide(life: Life): Decision | null {
    let observation = this.#observe(life)
    for (let depth = 0; depth < 6; depth++) {
      const decision = decide(life, observation, { now: this.#now })
      if (decision.look === null) {
        this.#checkRepeat(decision, observation)
        return decision
      }
      observation = this.#look(life, decision.look)
    }
    this.bad.push('looks without end')
    return null
  }

  #checkRepeat({ life, withdraw }: Decision, observation: Observation | null): void {
    if (withdraw || life.state === 'deleted') return
    let repeated = decide(life, observation, { now: this.#now })
    for (let more = 0; more < 6 && (repeated.look !== null || repeated.life !== life); more++) {
      if (repeated.look !== null) observation = this.#look(life, repeated.look)
      else if (repeated.events.length > 0) {
        this.bad.push(`the same observation gives ${repeated.events.map(({ type }) => type)} again`)
        return
      }
      const next = decide(repeated.life, observation, { now: this.#now })
      if (next.look === null && next.life === repeated.life) return
      repeated = next
    }
  }

  /** An object that carries the nonce of a life that is over is deleted at sight (lifecycle.md §2.10). */
  #strays(): Move[] {
    const { object } = this.world
    if (object === null || object.deletingSince !== null || !this.#dead.has(object.nonce)) return []
    if (this.life !== null && this.life.uid === object.uid) return []
    return [move('stray deleted', () => this.world.remove())]
  }

  #effect(fault: Fault): void {
    const life = this.life
    const verb = life?.verb ?? null
    if (life === null || verb === null) throw new Error('an effect without a verb')
    const overlap = verb.verb === 'start' && verb.previous?.verb?.verb === 'stop'
    this.#stage = { at: 'result', outcome: this.#attempt(life, fault), overlap }
  }

  #attempt(life: Life, fault: Fault): Outcome {
    if (fault === 'refused') return { type: 'refused', final: false }
    const first = life.verb?.verb === 'create' && !life.verb.tried && life.uid === null
    let seen: Observation | null = first ? null : this.#look(life, 'object')
    let planned: Plan = seen === null ? { write: 'make', active: life.open } : plan(life, seen)
    while (planned.write === 'look') {
      seen = this.#look(life, planned.depth)
      planned = plan(life, seen)
    }
    if (planned.write === 'refuse') return { type: 'refused', final: true }
    const write = this.#writeOf(life, planned, seen)
    if (fault === 'late') this.#late.push({ label: planned.write, land: () => void write() })
    if (fault === 'late' || fault === 'drop') return { type: 'noAnswer' }
    const written = write()
    if (fault === 'lost') return { type: 'noAnswer' }
    if (written === 'conflict') return { type: 'refused', final: true }
    return { type: 'done', plan: planned, seen, written }
  }

  #writeOf(life: Life, planned: Plan, seen: Observation | null) {
    const { world } = this
    const written = () => {
      const { object } = world
      if (object === null) return null
      return { uid: object.uid, version: String(object.version), generation: null }
    }
    const did = (run: () => void) => {
      const before = this.#counters.version
      this.#writing = true
      run()
      this.#writing = false
      if (this.#counters.version !== before) this.writes++
      return written()
    }
    return () => {
      const { object } = world
      if (planned.write === 'make') {
        if (object?.nonce === life.nonce) return written()
        return object === null ? did(() => world.make(life.nonce, planned.active)) : 'conflict'
      }
      if (planned.write === 'remove') return object?.uid === life.uid ? did(() => world.remove()) : null
      if (planned.write !== 'up' && planned.write !== 'down') return null
      if (object === null || seen?.type !== 'seen' || object.uid !== seen.uid) return null
      if (String(object.version) !== seen.version || object.deletingSince !== null) return 'conflict'
      return did(() => world.scale(planned.write === 'up'))
    }
  }

  #result(outcome: Outcome, overlap: boolean): void {
    if (this.life === null) throw new Error('a result without a row')
    this.#stage = null
    this.#commit(settle(this.life, outcome, { now: this.#now }), overlap)
  }

  #commit(decision: Decision, overlap: boolean): void {
    const before = this.life
    const { world } = this
    const context = { world, podsLeft: podsLeftIn(world), overlap, background: this.#options.background ?? false }
    this.bad.push(...this.#ghosts.check(before, decision.life, decision.events, context))
    for (const event of decision.events) {
      this.events.push({ ...event, life: decision.life.life })
      this.trace[this.trace.length - 1] += ` [${event.type.slice(9)}(${event.reason ?? ''}) r${event.run}]`
    }
    this.life = decision.withdraw === true ? null : decision.life
    if (this.life === null || this.life.state === 'deleted') this.#dead.add(decision.life.nonce)
  }

  #landings(): Move[] {
    return this.#late.map((late, index) =>
      move(`late write lands: ${late.label}`, () => {
        this.#late.splice(index, 1)
        late.land()
      }),
    )
  }

  #timer(): Move[] {
    const due = this.life?.startBy ?? null
    if (due === null || due <= this.#now) return []
    return [move('time passes', () => this.passTime(), 0.5)]
  }

  passTime(): void {
    this.#now = Math.max(this.#now, (this.life?.startBy ?? 0) + 1)
  }

  // --- faults and users ---

  #faults(): Move[] {
    if (this.#left.faults === 0) return []
    const moves: Move[] = []
    if (this.#stage?.at === 'effect') {
      const kinds: Fault[] = this.life?.verb?.tried ? ['lost', 'drop', 'late'] : ['refused', 'lost', 'drop', 'late']
      for (const kind of kinds) moves.push(this.faultMove(kind))
    }
    if (this.#stage !== null) moves.push(this.crashMove())
    return moves
  }

  faultMove(kind: Fault): Move {
    const run = () => {
      this.#left.faults--
      this.#effect(kind)
    }
    return move(`effect ${kind}`, run, 1)
  }

  /** kill -9: what was in memory is gone, the rows are there; the caches are filled anew. */
  crashMove(): Move {
    const run = () => {
      this.#left.faults--
      this.#stage = null
      this.#queue = []
      this.#last.clear()
      this.#pods.clear()
      this.#hear(structuredClone(this.world.object))
      this.#hearPods()
    }
    return move('CRASH', run, 1)
  }

  get busy(): 'effect' | 'result' | null {
    return this.#stage?.at ?? null
  }

  userMoves(): Move[] {
    if (this.#left.verbs === 0 || this.#stage !== null) return []
    const { life } = this
    if (life === null || life.state === 'deleted') return this.#creates(life)
    const over = replaced(life, this.#now)
    const creates = over === null ? [] : this.#creates(life, over)
    return [...creates, ...(['start', 'stop', 'delete'] as const).flatMap(verb => this.#verb(life, verb))]
  }

  #creates(old: Life | null, over: Decision | null = null): Move[] {
    const { kind, jobStop = 'delete', startTimeoutSeconds = 0 } = this.#options
    const starts = kind === 'pod' ? [true] : [true, false]
    return starts.map(start => {
      const run = () => {
        this.#left.verbs--
        if (over !== null) this.#commit(over, false)
        const request = { name: 'x', start, ...(kind === 'job' ? { kind, jobStop } : {}) }
        const seconds = startTimeoutSeconds > 0 ? TIMER_SECONDS : 0
        const spec = {
          ...specOf(request, { defaults: { kind } }),
          startTimeoutSeconds: kind === 'pod' ? TIMER_SECONDS : seconds,
        }
        const made = newLife({ spec, nonce: `n${++this.#lives}`, now: this.#now, lastEventAt: old?.lastEventAt ?? 0 })
        this.life = { ...made, life: this.#lives }
        this.#stage = { at: 'effect' }
      }
      return move(`USER create${start ? '' : ' at zero'}`, run, 1)
    })
  }

  #verb(life: Life, verb: 'start' | 'stop' | 'delete'): Move[] {
    const intended = intend(life, verb, { now: this.#now, cause: null, observation: this.#observe(life) })
    if (intended.type !== 'effect') return []
    const run = () => {
      this.#left.verbs--
      this.life = intended.life
      this.#stage = { at: 'effect' }
    }
    return [move(`USER ${verb}`, run, 1)]
  }
}
