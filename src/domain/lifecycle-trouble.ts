import { change, type Draft, LOOK_WARNINGS, type Step, warn } from './lifecycle-draft.ts'
import type { PodSeen, Seen, Trouble } from './observation.ts'

/** A condition, or a Job's lack of pods, must last this long. */
export const LASTING_MS = 10_000
/** How long a container may be in the making before its Warning Events are asked for. */
const CREATING_MS = 30_000
/** Event look-ups: at most once a minute a runtime. */
const LOOKUP_EVERY_MS = 60_000

/**
 * Shows the first trouble and warns of each (lifecycle.md §8); sets reason, message, hint, never state or ready.
 * `stalled`: what Warning Events told before still holds, though this look did not ask for them.
 */
export function showTroubles(draft: Draft, troubles: readonly Trouble[], stalled = false): void {
  const { standing } = draft.life
  const ours = troubles.filter(trouble => trouble.pod === null || !standing.pods.includes(trouble.pod))
  for (const trouble of ours) warn(draft, trouble)
  const first = ours.find(trouble => !isBetweenTries(trouble) || draft.life.reason === CRASH_LOOP)
  if (first === undefined) {
    if (!stalled) change(draft, { reason: null, message: null, hint: null })
  } else if (!isBetweenTries(first)) {
    change(draft, { reason: first.reason, message: first.message, hint: first.hint })
  }
}

const CRASH_LOOP = 'CrashLoopBackOff'

/** Between two tries of a crash loop the pod only says `terminated`: the last seen reason stays until it is ready again. */
const isBetweenTries = ({ cause, quiet }: Trouble): boolean => cause === 'crash' && quiet

/** Since when what only Warning Events can explain has lasted: no pod of a Job, or a container that is not made. */
export interface Stall {
  readonly since: number
  readonly after: number
}

export function creatingStall(pods: readonly PodSeen[]): Stall | null {
  const since = pods.filter(pod => !pod.gone && !pod.terminating).map(pod => pod.creatingSince)
  const first = Math.min(...since.flatMap(time => (time === null ? [] : [time])))
  return Number.isFinite(first) ? { since: first, after: CREATING_MS } : null
}

export const lackOfPods = (since: number): Stall => ({ since, after: LASTING_MS })

/** Asks for Warning Events when they are due; `stalled` tells whether what they said still holds. */
export function explain(draft: Draft, seen: Seen, now: number, stall: Stall | null): { step: Step; stalled: boolean } {
  if (stall === null) return { step: { wakeAt: null }, stalled: false }
  const due = stall.since + stall.after
  if (now < due) return { step: { wakeAt: due }, stalled: false }
  if (seen.liveWarnings === true) change(draft, { warningsAt: seen.at })
  const next = (draft.life.warningsAt ?? Number.NEGATIVE_INFINITY) + LOOKUP_EVERY_MS
  if (now >= next) return { step: LOOK_WARNINGS, stalled: true }
  return { step: { wakeAt: next }, stalled: true }
}

export function earliest(...times: readonly (number | null)[]): number | null {
  const known = times.flatMap(time => (time === null ? [] : [time]))
  return known.length === 0 ? null : Math.min(...known)
}
