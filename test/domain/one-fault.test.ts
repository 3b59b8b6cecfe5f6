import assert from 'node:assert/strict'
import { test } from 'node:test'
import { settleWalk } from '../helpers/walk/settle-walk.ts'
import { Walk, type WalkOptions } from '../helpers/walk/walk.ts'

type Verb = 'create' | 'create at zero' | 'start' | 'stop' | 'delete'
const FAULTS = ['crash', 'lost', 'drop'] as const

interface Script {
  readonly options: WalkOptions
  readonly verbs: readonly Verb[]
  /** Whether the world comes to rest between two verbs. */
  readonly resting: boolean
}

interface Ran {
  /** What is left and what was said of it: the differential digest (Sieve). */
  readonly digest: string
  readonly steps: number
  readonly trace: readonly string[]
}

/** Plays a script with at most one fault, at the n-th step of an effect; 0 = none. */
function play({ options, verbs, resting }: Script, faultAt: number, fault: (typeof FAULTS)[number]): Ran {
  const walk = new Walk({ ...options, verbs: 9, faults: 9, others: 0, pods: 0, conditions: 0 })
  let steps = 0
  for (const verb of verbs) {
    const user = walk.userMoves().find(({ label }) => label === `USER ${verb}`)
    if (user === undefined) continue
    walk.step(user)
    while (walk.busy !== null) {
      steps++
      if (steps === faultAt) {
        walk.step(fault === 'crash' || walk.busy === 'result' ? walk.crashMove() : walk.faultMove(fault))
        break
      }
      const next = walk.fairMoves().find(({ label }) => label.startsWith('effect ') || label === 'result')
      assert.ok(next)
      walk.step(next)
    }
    if (resting) assert.deepEqual(settleWalk(walk), [], walk.trace.join('\n'))
    else finishEffects(walk)
  }
  assert.deepEqual(settleWalk(walk), [], walk.trace.join('\n'))
  return { digest: digestOf(walk), steps, trace: walk.trace }
}

/** What the reconciler does in the same turn, before the next verb comes: the verb in hand is carried out. */
function finishEffects(walk: Walk): void {
  for (let step = 0; step < 12; step++) {
    const next = walk.fairMoves().find(({ label }) => /^(again|effect) |^result$/.test(label))
    if (next === undefined) return
    walk.step(next)
  }
}

function digestOf({ life, events, world }: Walk): string {
  const said = events.map(({ type, run, reason }) => `${run} ${type}(${reason})`)
  const row = life === null ? null : { state: life.state, run: life.run, open: life.open, verb: life.verb }
  const there =
    world.object === null ? null : { active: world.isActive(), deleting: world.object.deletingSince !== null }
  return JSON.stringify({ row, there, pods: world.pods.length, said })
}

function scripts(options: WalkOptions): Script[] {
  const later: Verb[] = ['start', 'stop', 'delete']
  const firsts: Verb[] = options.kind === 'pod' ? ['create'] : ['create', 'create at zero']
  const sequences = firsts.flatMap(first => [
    [first],
    ...later.flatMap(second => [[first, second], ...later.map(third => [first, second, third])]),
    ...later.flatMap(second => later.flatMap(third => later.map(fourth => [first, second, third, fourth]))),
  ])
  const both = sequences.filter(verbs => verbs.length < 4).map(verbs => ({ options, verbs, resting: true }))
  return [...both, ...sequences.map(verbs => ({ options, verbs, resting: false }))]
}

const CASES: readonly (readonly [string, WalkOptions])[] = [
  ['F-18, F-19, C12, K5: Deployment', { kind: 'deployment' }],
  ['F-18, F-19, C12, K5: Job stopped by suspend', { kind: 'job', jobStop: 'suspend' }],
  ['F-18, F-19, C12, K5: Job stopped by deletion', { kind: 'job', jobStop: 'delete' }],
  ['F-18, F-19, C12, K5: agent Pod', { kind: 'pod' }],
]

for (const [name, options] of CASES) {
  test(`${name}: one crash or one lost answer at any step of any verb ends as without it`, () => {
    for (const script of scripts(options)) {
      const plain = play(script, 0, 'crash')
      for (const fault of FAULTS) {
        for (let at = 1; at <= plain.steps; at++) {
          const faulty = play(script, at, fault)
          const where = `${script.verbs.join(', ')}${script.resting ? ' (resting)' : ''}: ${fault} at step ${at}`
          assert.equal(
            faulty.digest,
            plain.digest,
            `${where}\n${faulty.trace.join('\n')}\n== without\n${plain.trace.join('\n')}`,
          )
        }
      }
    }
  })
}
