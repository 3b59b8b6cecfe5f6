import assert from 'node:assert/strict'
import { test } from 'node:test'
import { settleWalk } from '../helpers/walk/settle-walk.ts'
import { Walk, type WalkOptions } from '../helpers/walk/walk.ts'
import type { Move } from '../helpers/walk/world.ts'

const WALKS = Number(process.env.WALKS ?? 500)
const STEPS = 60
const FIRST_SEED = Number(process.env.SEED ?? 1)

/** mulberry32: a small generator whose whole state is the seed that a failure prints. */
function random(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

/** Each walk has its own slow steps: what hardly ever comes in one is plentiful in another (swarm testing). */
function slowness(seed: number): (label: string) => number {
  const known = new Map<string, number>()
  return label => {
    const kind = label.replace(/ \{.*/, '')
    const slow =
      known.get(kind) ??
      (random(seed * 31 + [...kind].reduce((sum, c) => sum * 33 + c.charCodeAt(0), 7))() < 0.3 ? 15 : 1)
    known.set(kind, slow)
    return slow
  }
}

function pick(moves: readonly Move[], next: () => number, slow: (label: string) => number): Move | undefined {
  const weigh = ({ label, weight }: Move) => weight / slow(label)
  let left = next() * moves.reduce((sum, move) => sum + weigh(move), 0)
  for (const move of moves) {
    left -= weigh(move)
    if (left < 0) return move
  }
  return moves.at(-1)
}

function walkOnce(options: WalkOptions, seed: number): void {
  const next = random(seed)
  const slow = slowness(seed)
  const walk = new Walk(options)
  for (let step = 0; step < STEPS && walk.bad.length === 0; step++) {
    const chosen = pick(walk.moves(), next, slow)
    if (chosen === undefined) break
    walk.step(chosen)
  }
  const bad = walk.bad.length > 0 ? walk.bad : settleWalk(walk)
  assert.deepEqual(bad, [], `seed ${seed} (SEED=${seed} WALKS=1 repeats it)\n${walk.trace.join('\n')}`)
}

const CASES: readonly (readonly [name: string, options: WalkOptions])[] = [
  ['F-36, P3–P6, F10, I12, F-29, F-30: Deployment', { kind: 'deployment', startTimeoutSeconds: 60 }],
  ['F-36, P3–P6, F-31: Deployment, many faults', { kind: 'deployment', verbs: 5, faults: 5, others: 1, conditions: 2 }],
  [
    'F-36, F-8, F-9, B-11: Deployment, also deleted in the background',
    { kind: 'deployment', others: 3, background: true },
  ],
  ['F-36, P3–P6, G8: Job stopped by suspend', { kind: 'job', jobStop: 'suspend', startTimeoutSeconds: 60 }],
  [
    'F-36, P3–P6, G8, J4: Job stopped by suspend, one retry',
    { kind: 'job', jobStop: 'suspend', verbs: 5, faults: 4, pods: 2, backoffLimit: 1 },
  ],
  ['F-36, P3–P6, G2: Job stopped by deletion', { kind: 'job', jobStop: 'delete', startTimeoutSeconds: 60 }],
  [
    'F-36, F-32, B-42: Job, also removed in the background',
    { kind: 'job', jobStop: 'delete', others: 3, background: true, pods: 2 },
  ],
  ['F-36, P3–P6, O12: agent Pod', { kind: 'pod', verbs: 4, pods: 2 }],
]

for (const [name, options] of CASES) {
  test(`${name}: any order of verbs, faults, crashes and others' hands ends in agreement`, () => {
    for (let seed = FIRST_SEED; seed < FIRST_SEED + WALKS; seed++) walkOnce(options, seed)
  })
}
