import assert from 'node:assert/strict'
import { test } from 'node:test'
import { settleWalk } from '../helpers/walk/settle-walk.ts'
import { Walk, type WalkOptions } from '../helpers/walk/walk.ts'
import type { Move } from '../helpers/walk/world.ts'

const WALKS = Number(process.env.WALKS ?? 700)
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

/** Every second walk has one watch that is far behind. */
const LAGGING = ['watch: pods', '', 'watch: object', '']

function pick(moves: readonly Move[], next: () => number, lagging: string | undefined): Move | undefined {
  const weigh = ({ label, weight }: Move) => (label === lagging ? weight / 12 : weight)
  let left = next() * moves.reduce((sum, move) => sum + weigh(move), 0)
  for (const move of moves) {
    left -= weigh(move)
    if (left < 0) return move
  }
  return moves.at(-1)
}

function walkOnce(options: WalkOptions, seed: number): void {
  const next = random(seed)
  const walk = new Walk(options)
  for (let step = 0; step < STEPS && walk.bad.length === 0; step++) {
    const chosen = pick(walk.moves(), next, LAGGING[seed % LAGGING.length])
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
