import type { Life } from '../domain/life.ts'
import type { WaitQuery } from './api.ts'
import type { Clock } from './ports.ts'
import type { ChangeSignals } from './recorder.ts'

export interface WaitTarget {
  readonly id: string
  /** The newest row, re-read after each change; null once pruned. */
  readonly read: () => Life | null
}

export type Reached = 'reached' | 'unreachable' | 'open'

/**
 * Whether a wait has its end (wire.md §4). `running`: running now in that run or a later one. `ended`: that run has
 * ended or the life is over. `unreachable`: it cannot come any more.
 */
export function reached(life: Life, aim: WaitQuery['for'], run: number): Reached {
  const over = life.state === 'deleted'
  const ending = over || life.state === 'deleting' || life.verb?.verb === 'delete'
  if (aim === 'deleted') return over ? 'reached' : 'open'
  if (aim === 'ended') return over || hasEnded(life, run) ? 'reached' : 'open'
  if (life.state === 'running' && life.run >= run) return 'reached'
  return ending || endedForGood(life) ? 'unreachable' : 'open'
}

const hasEnded = (life: Life, run: number): boolean => run > 0 && (life.run > run || (life.run === run && !life.open))

const endedForGood = (life: Life): boolean =>
  life.id.kind !== 'deployment' && life.run > 0 && !life.open && !life.suspendedByUs && life.verb === null

/** Waits until the aim is reached, cannot be reached, the time is up or the signal aborts. Resolves with the newest row. */
export async function waitFor(
  target: WaitTarget,
  query: WaitQuery,
  context: { changes: ChangeSignals; clock: Clock; first: Life },
): Promise<{ reached: boolean; life: Life }> {
  const run = query.run ?? context.first.run
  const deadline = context.clock.now() + query.timeoutSeconds * 1000
  let life = context.first
  for (;;) {
    const changed = nextChange(target.id, deadline, query.signal, context)
    life = target.read() ?? life
    const now = reached(life, query.for, run)
    if (now !== 'open' || context.clock.now() >= deadline || query.signal.aborted) {
      changed.cancel()
      return { reached: now === 'reached', life }
    }
    await changed.happened
  }
}

/** Subscribed before the row is read, so that no change falls between. */
function nextChange(
  id: string,
  deadline: number,
  signal: AbortSignal,
  { changes, clock }: { changes: ChangeSignals; clock: Clock },
): { happened: Promise<void>; cancel: () => void } {
  let cancel = (): void => {}
  const happened = new Promise<void>(resolve => {
    const wake = (): void => {
      cancel()
      resolve()
    }
    const unsubscribe = changes.subscribe(id, wake)
    const stopTimer = clock.after(deadline - clock.now(), wake)
    signal.addEventListener('abort', wake, { once: true })
    cancel = () => {
      unsubscribe()
      stopTimer()
      signal.removeEventListener('abort', wake)
    }
  })
  return { happened, cancel: () => cancel() }
}
