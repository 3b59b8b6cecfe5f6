import type { NewEvent } from '../../../src/domain/event.ts'
import type { Life } from '../../../src/domain/life.ts'
import { isLive, type World, type WorldPod } from './world.ts'

/** What is true of the cluster, kept beside the functions under test, and what they said: P3 and truthfulness. */
export class Ghosts {
  readonly ran = new Set<string>()
  readonly succeeded = new Set<string>()
  readonly failed = new Set<string>()
  readonly #once = new Set<string>()
  readonly #runs = new Map<number, number>()
  readonly #over = new Set<number>()

  /** What ran before proves nothing of what is brought up now, unless it still runs or its end is yet to be counted. */
  broughtUp(world: World): void {
    if (world.object !== null) this.ran.delete(world.object.uid)
    const proves = world.pods.filter(pod => pod.askedAt === null && (pod.phase === 'Running' || uncountedEnd(pod)))
    for (const pod of proves) this.ran.add(pod.owner)
  }

  /** Broken promises of one transaction. `overlap`: a start over a stop, whose old pod may still be ending. */
  check(before: Life | null, after: Life, events: readonly NewEvent[], context: CheckContext): string[] {
    const bad = events.flatMap(event => this.#event(after, event, context))
    if (before !== null && after.run < before.run) bad.push(`run went back from ${before.run} to ${after.run}`)
    const highest = this.#runs.get(after.life) ?? 0
    if (after.run > highest + 1) bad.push(`run ${after.run} after ${highest}`)
    this.#runs.set(after.life, Math.max(highest, after.run))
    if (JSON.stringify(JSON.parse(JSON.stringify(after))) !== JSON.stringify(after)) bad.push('the row is not JSON')
    if (after.open && ['stopped', 'failed', 'deleted', 'created'].includes(after.state))
      bad.push(`${after.state} with an open run`)
    return bad
  }

  #event(life: Life, event: NewEvent, context: CheckContext): string[] {
    const bad: string[] = []
    const once = (what: string) => {
      const key = `${life.life} ${what}`
      if (this.#once.has(key)) bad.push(`${what} twice`)
      this.#once.add(key)
    }
    if (this.#over.has(life.life)) bad.push(`${event.type} after Deleted`)
    if (event.type === 'ContainerWarning') once(`Warning ${event.cause} of run ${event.run}`)
    if (event.type === 'ContainerStarted') {
      once(`Started of run ${event.run}`)
      const uid = life.uid ?? ''
      if (!this.ran.has(uid) && !this.succeeded.has(uid)) bad.push('Started although no pod ran in this run')
    }
    if (event.type === 'ContainerExited' || event.type === 'ContainerFailed') {
      once(`ending of run ${event.run}`)
      bad.push(...this.#ending(life, event, context))
    }
    if (event.type === 'ContainerDeleted') {
      this.#over.add(life.life)
      if (context.podsLeft(life.uid) && !context.background) bad.push(`Deleted(${event.reason}) while a pod of it runs`)
    }
    return bad
  }

  #ending(life: Life, { type, reason }: NewEvent, { world, podsLeft, overlap, background }: CheckContext): string[] {
    const uid = life.uid ?? ''
    if (reason === null && !this.succeeded.has(uid)) return ['Exited as a success although no pod succeeded']
    const ofStop = ['StoppedByRequest', 'ScaledToZero', 'StartTimeout'].includes(reason ?? '')
    if (type === 'ContainerFailed' && !ofStop && life.id.kind !== 'deployment' && !this.failed.has(uid)) {
      return ['Failed although no pod failed by itself']
    }
    const broughtUpAgain = world.object?.uid === uid && world.isActive() && world.object.deletingSince === null
    if (ofStop && !overlap && !background && podsLeft(uid) && !broughtUpAgain)
      return [`${type}(${reason}) while a pod of it runs`]
    return []
  }
}

const uncountedEnd = (pod: WorldPod): boolean => !isLive(pod) && pod.ranAt !== null && !pod.counted

export interface CheckContext {
  readonly world: World
  readonly podsLeft: (uid: string | null) => boolean
  readonly overlap: boolean
  readonly background: boolean
}

export const podsLeftIn =
  (world: World) =>
  (uid: string | null): boolean =>
    world.pods.some(pod => pod.owner === uid && isLive(pod))
