import type { Walk } from './walk.ts'
import { isLive } from './world.ts'

/** More than any quiet world needs. */
const STEPS = 250

/** What keeps changing in a quiet world without being news. */
const SMALL = ['observedAt', 'seenVersion', 'warningsAt', 'failingSince', 'lastEventAt'] as const

/** Nobody interferes any more: fair steps alone, until nothing changes; then row and cluster must agree (P4). */
export function settleWalk(walk: Walk): string[] {
  walk.trace.push('-- quiet --')
  const writes = walk.writes
  let quiet = 0
  for (let step = 0; step < STEPS; step++) {
    if (walk.bad.length > 0) return walk.bad
    const moves = walk.fairMoves().filter(({ label }) => label !== 'pod succeeds')
    const chosen = moves[step % Math.max(1, moves.length)]
    if (chosen === undefined || quiet > 8) return [...walk.bad, ...disagreements(walk)]
    const before = digest(walk)
    walk.step(chosen)
    quiet = chosen.label === 'look' && moves.length === 1 && digest(walk) === before ? quiet + 1 : 0
  }
  return [`does not come to rest (${walk.writes - writes} writes)`]
}

function digest({ life, events }: Walk): string {
  if (life === null) return 'none'
  const big = Object.entries(life).filter(([key]) => !SMALL.some(small => small === key))
  return JSON.stringify([big, events.length])
}

function disagreements(walk: Walk): string[] {
  const { life, world } = walk
  if (life === null) return []
  const bad: string[] = []
  const say = (text: string) => bad.push(`at rest: ${text} (${life.state}${life.open ? ', run open' : ''})`)
  const object = world.object?.uid === life.uid ? world.object : null
  if (life.verb !== null) say(`${life.verb.verb} in hand for ever`)
  if (world.object?.nonce.startsWith('n') && object === null) say('a workload of ours that nobody watches')
  if (object === null) {
    const over = life.id.kind === 'deployment' ? ['deleted'] : ['deleted', 'stopped', 'failed']
    if (!over.includes(life.state)) say('the object is gone')
    return bad
  }
  if (life.state === 'deleted') say('deleted, but it is there')
  if (['stopping', 'deleting'].includes(life.state)) say('neither here nor there')
  const ready = world.pods.some(
    pod =>
      pod.owner === life.uid &&
      pod.phase === 'Running' &&
      (pod.ready || life.id.kind !== 'deployment') &&
      pod.askedAt === null,
  )
  const active = world.isActive()
  if (ready && active && life.state !== 'running') say('a pod runs')
  if (life.state === 'running' && !(life.open && life.started)) say('running without a started run')
  if (life.id.kind === 'deployment' && !active && (life.open || !['stopped', 'created', 'failed'].includes(life.state)))
    say('at zero')
  if (life.id.kind === 'job' && !active && life.state === 'running') say('suspended')
  if (['stopped', 'created'].includes(life.state) && world.pods.some(pod => pod.owner === life.uid && isLive(pod)))
    say('a pod of it lives')
  return bad
}
