import assert from 'node:assert/strict'
import type { Decision } from '../../src/domain/decision.ts'
import type { NewEvent } from '../../src/domain/event.ts'
import type { Life } from '../../src/domain/life.ts'
import { decide, intend, newLife, plan, replaced, settle } from '../../src/domain/lifecycle.ts'
import type { Observation } from '../../src/domain/observation.ts'
import type { Kind } from '../../src/domain/runtime-id.ts'
import {
  type ActionLine,
  type DeletesBy,
  isAction,
  isWatch,
  type Line,
  type RecordedKind,
  type WatchLine,
} from './recording.ts'
import { ReplayCluster } from './replay-cluster.ts'
import { specOf } from './specs.ts'

export interface Variant {
  /**
   * Agent pods count as Ready from the start: for a recording whose hands did not carry out the stop that row 13 of §6
   * asks for after ten seconds.
   */
  readonly readyOnce?: boolean
  /** This kind's watch is 50 ms late. */
  readonly late?: RecordedKind
  /** Every second MODIFIED of this kind is left out (a queue coalesces), beginning with the first or the second. */
  readonly lossy?: RecordedKind
  readonly from?: 0 | 1
}

export interface GivenEvent extends NewEvent {
  /** Recorded time at which it was given. */
  readonly at: number
}

export interface ReplayedRow {
  life: Life
  readonly events: GivenEvent[]
}

const KIND_NAMES = { deployment: 'Deployment', job: 'Job', pod: 'Pod' } as const

const LATE_MS = 50
/** From the tombstone to the answer of the GET that it caused. */
const PROBE_MS = 100
const STEPS = 12

interface Item {
  readonly t: number
  readonly order: number
  readonly run: (t: number) => void
}

/** Plays one recording to the transition functions: watches, our verbs with their recorded answers, timers. */
export class Replay {
  readonly rows: ReplayedRow[] = []
  /** Creates that came while a late watch still showed the old life: ours is refused, the workload is an orphan. */
  refused = 0
  readonly #cluster: ReplayCluster
  readonly #lines: readonly Line[]
  readonly #deletesBy: DeletesBy
  readonly #variant: Variant
  readonly #items: Item[] = []
  readonly #base: number
  /** Keys whose verb waits for its answer: nothing is observed of them. */
  readonly #taken = new Set<string>()

  constructor(lines: readonly Line[], deletesBy: DeletesBy, variant: Variant) {
    this.#lines = lines
    this.#deletesBy = deletesBy
    this.#variant = variant
    const watch = lines.filter(isWatch)
    this.#cluster = new ReplayCluster(line =>
      watch.some(
        ({ t, object: { metadata } }) =>
          t > line.t && metadata.uid !== undefined && metadata.uid === line.object.metadata.uid,
      ),
    )
    const first = watch[0]
    this.#base = Date.parse(first?.object.metadata.creationTimestamp ?? '') - (first?.t ?? 0)
    for (const line of watch) this.#at(this.#happened(line), 0, () => this.#cluster.happen(line))
    for (const line of told(watch, variant)) {
      const t = line.t + (line.kind === variant.late ? LATE_MS : 0)
      this.#at(t, 1, now => this.#tell(line, now))
    }
    for (const line of lines) if (isAction(line)) this.#at(line.t, 2, now => this.#act(line, now))
  }

  run(): Replay {
    const end = Math.max(...this.#lines.map(({ t }) => t)) + LATE_MS
    for (;;) {
      this.#items.sort((a, b) => a.t - b.t || a.order - b.order)
      const item = this.#items.shift()
      if (item === undefined || item.t > end) return this
      item.run(item.t)
    }
  }

  /** What was made is there when the create is answered, whenever its watch tells of it. */
  #happened({ t, type, object }: WatchLine): number {
    if (type !== 'ADDED') return t
    const uid = object.metadata.uid
    const answers = this.#lines
      .filter(isAction)
      .filter(({ answer }) => answer?.code === 201 && answer.metadata?.uid === uid)
    return Math.min(t, ...answers.map(line => line.t))
  }

  /** A GET that says 404 was recorded with the time of its answer: none of ours is answered before it. */
  #probeAfter({ id }: Life, t: number): number | null {
    const late = this.#variant.late === KIND_NAMES[id.kind] ? LATE_MS : 0
    const probes = this.#lines.filter(isAction).filter(({ action }) => action === `probe: get ${id.kind} ${id.name}`)
    return probes.map(line => line.t + late).find(time => time > t && time <= t + PROBE_MS) ?? null
  }

  #at(t: number, order: number, run: (t: number) => void): void {
    this.#items.push({ t, order, run })
  }

  #tell(line: WatchLine, t: number): void {
    this.#cluster.tell(line)
    for (const row of this.rows) this.#work(row, t)
  }

  #act(line: ActionLine, t: number): void {
    const { action, answer } = line
    if (answer === undefined || action.includes('(by hand)') || action.startsWith('probe')) return
    const made = /^create (deployment|job|pod) (\S+)$/.exec(action)
    if (made?.[1] !== undefined && made[2] !== undefined) {
      if (answer.code === 201) this.#create(made[1] as Kind, made[2], line, t)
      return
    }
    const verb = this.#verbOf(action)
    const row = verb === null ? undefined : this.#rowOf(verb.kind)
    if (verb !== null && row !== undefined) this.#verb(row, verb.verb, line, t)
  }

  #verbOf(action: string): { verb: 'start' | 'stop' | 'delete'; kind: Kind } | null {
    const scaled = /^scale (\d)$/.exec(action)
    if (scaled) return { verb: scaled[1] === '0' ? 'stop' : 'start', kind: 'deployment' }
    const suspended = /^patch suspend (true|false)$/.exec(action)
    if (suspended) return { verb: suspended[1] === 'true' ? 'stop' : 'start', kind: 'job' }
    const gone = /^delete (deployment|job|pod) \S+$/.exec(action)
    if (gone === null || this.#deletesBy === 'others' || this.#deletesBy === 'request') return null
    return { verb: this.#deletesBy, kind: gone[1] as Kind }
  }

  #rowOf(kind: Kind): ReplayedRow | undefined {
    return this.rows.findLast(({ life }) => life.id.kind === kind)
  }

  #create(kind: Kind, name: string, line: ActionLine, t: number): void {
    const now = this.#base + t
    const old = this.#rowOf(kind)
    if (old !== undefined && old.life.state !== 'deleted') {
      const over = replaced(old.life, now)
      if (over === null) {
        this.refused++
        return
      }
      this.#note(old, over, t)
    }
    const suspends = this.#lines.some(other => isAction(other) && other.action.startsWith('patch suspend'))
    const start = line.request?.suspend !== true && line.request?.replicas !== 0
    const spec = specFor(kind, name, start, suspends)
    const life = {
      ...newLife({ spec, nonce: 'n', now, lastEventAt: old?.life.lastEventAt ?? 0 }),
      life: this.rows.length + 1,
    }
    const row: ReplayedRow = { life: { ...life, evidence: this.#variant.readyOnce === true }, events: [] }
    this.rows.push(row)
    this.#whenAnswered(row, line, t, written => {
      this.#note(
        row,
        settle(row.life, { type: 'done', plan: { write: 'make', active: start }, seen: null, written }, { now }),
        t,
      )
    })
  }

  #verb(row: ReplayedRow, verb: 'start' | 'stop' | 'delete', line: ActionLine, t: number): void {
    const now = this.#base + t
    const intended = intend(row.life, verb, { now, cause: null, observation: this.#cluster.observe(row.life, now) })
    if (intended.type === 'nothing') return
    assert.equal(intended.type, 'effect', `${verb} at ${t}: ${JSON.stringify(intended)}`)
    row.life = intended.life
    let seen: Observation = this.#cluster.look(row.life, 'object', now)
    let planned = plan(row.life, seen)
    while (planned.write === 'look') {
      seen = this.#cluster.look(row.life, planned.depth, now)
      planned = plan(row.life, seen)
    }
    assert.ok(planned.write !== 'refuse', `${verb} at ${t} is refused: ${JSON.stringify(planned)}`)
    this.#whenAnswered(row, line, t, (written, answered) => {
      const at = this.#base + answered
      const outcome = { type: 'done', plan: planned, seen, written: planned.write === 'none' ? null : written } as const
      this.#note(row, settle(row.life, outcome, { now: at }), answered)
    })
  }

  #whenAnswered(
    row: ReplayedRow,
    { answer }: ActionLine,
    t: number,
    done: (written: Written, t: number) => void,
  ): void {
    const key = String(row.life.life)
    this.#taken.add(key)
    const { uid = row.life.uid ?? '', resourceVersion = '0', generation = null } = answer?.metadata ?? {}
    this.#at(answer?.t ?? t, 1.5, now => {
      this.#taken.delete(key)
      done({ uid, version: resourceVersion, generation }, now)
      this.#work(row, now)
    })
  }

  #work(row: ReplayedRow, t: number): void {
    if (this.#taken.has(String(row.life.life)) || row.life.state === 'deleted') return
    const now = this.#base + t
    let observation = this.#cluster.observe(row.life, now)
    for (let step = 0; step < STEPS; step++) {
      const decision = decide(row.life, observation, { now })
      if (decision.look !== null) {
        observation = this.#cluster.look(row.life, decision.look, now)
        const answered = observation.type === 'gone' ? this.#probeAfter(row.life, t) : null
        if (answered === null) continue
        this.#at(answered, 3, later => this.#work(row, later))
        return
      }
      assert.ok(!decision.effect, `at ${t}: no write of ours was recorded here (${decision.life.verb?.verb})`)
      const before = row.life
      this.#note(row, decision, t)
      if (decision.wakeAt !== null)
        this.#at(Math.max(t + 1, decision.wakeAt - this.#base), 3, later => this.#work(row, later))
      if (row.life === before) return
    }
    assert.fail(`at ${t}: no end of decisions for ${row.life.state}`)
  }

  #note(row: ReplayedRow, decision: Decision, t: number): void {
    row.life = decision.life
    for (const event of decision.events) row.events.push({ ...event, at: t })
  }
}

interface Written {
  readonly uid: string
  readonly version: string
  readonly generation: number | null
}

/** A queue that coalesces never leaves out the newest: only what another line of that object follows. */
function* told(lines: readonly WatchLine[], { lossy, from = 0 }: Variant): Generator<WatchLine> {
  let modified = 0
  for (const line of lines) {
    const coalesces = line.kind === lossy && line.type === 'MODIFIED' && modified++ % 2 === from
    if (coalesces && lines.some(other => other.t > line.t && sameObject(other, line))) continue
    yield line
  }
}

const sameObject = (a: WatchLine, b: WatchLine): boolean =>
  a.kind === b.kind && a.object.metadata.uid === b.object.metadata.uid

function specFor(kind: Kind, name: string, start: boolean, suspends: boolean) {
  if (kind === 'pod') return specOf({ name, start }, { defaults: { kind } })
  return specOf({ name, start, kind, ...(kind === 'job' ? { jobStop: suspends ? 'suspend' : 'delete' } : {}) })
}
