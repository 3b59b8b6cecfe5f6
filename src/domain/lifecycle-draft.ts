import type { Decision } from './decision.ts'
import type { NewEvent } from './event.ts'
import { failureHint } from './failure-hint.ts'
import type { Life, Standing, VerbInHand } from './life.ts'
import type { PodSeen, Seen, Trouble } from './observation.ts'

/** A row on its way to the next one, and the events that come of it. Lives only within one call. */
export interface Draft {
  life: Life
  readonly events: NewEvent[]
  /** Time of what has none of its own. */
  readonly at: number
}

/** What the rows of a kind say: look deeper first, or when to ask again. */
export type Step = { readonly look: 'object' | 'pods' | 'warnings' } | { readonly wakeAt: number | null }

export const WAIT: Step = { wakeAt: null }
export const LOOK_PODS: Step = { look: 'pods' }
export const LOOK_WARNINGS: Step = { look: 'warnings' }

export const draftOf = (life: Life, at: number): Draft => ({ life, events: [], at })

export function change(draft: Draft, patch: Partial<Life>): void {
  draft.life = { ...draft.life, ...patch }
}

/** The same object if nothing differs, so that whoever stores it can tell. */
export function unlessSame(before: Life, after: Life): Life {
  const same = (Object.keys(after) as (keyof Life)[]).every(key => sameValue(before[key], after[key]))
  return same ? before : after
}

const sameValue = (a: unknown, b: unknown): boolean =>
  Object.is(a, b) || (typeof a === 'object' && typeof b === 'object' && JSON.stringify(a) === JSON.stringify(b))

export const nothing = (life: Life, wakeAt: number | null = null): Decision => ({
  life,
  events: [],
  look: null,
  wakeAt,
  effect: false,
})

interface EventText {
  readonly type: NewEvent['type']
  readonly at: number | null
  readonly reason?: string | null
  readonly message?: string | null
  readonly exitCode?: number | null
  readonly cause?: string | null
}

/** Event time = max(time in the object, previous event of this runtime): never backwards (J12, B-105). */
function emit(draft: Draft, text: EventText): number {
  const time = Math.max(text.at ?? draft.at, draft.life.lastEventAt)
  const { type, reason = null, message = null, exitCode = null, cause = null } = text
  draft.events.push({ type, run: draft.life.run, cause, reason, message, exitCode, time })
  change(draft, { lastEventAt: time })
  return time
}

export function started(draft: Draft, at: number | null): void {
  const time = emit(draft, { type: 'ContainerStarted', at })
  change(draft, { started: true, startedAt: time, startBy: null })
}

const CALM = { ready: false, reason: null, message: null, hint: null, failingSince: null, startBy: null } as const

/**
 * `message` of an Exited is "0", as the seed says; never an exit code. A stopped row has no reason of its own (the
 * recordings' `expected.json`); why it stopped is kept beside it.
 */
export function exited(draft: Draft, reason: string | null, at: number | null, message = '0'): void {
  const time = emit(draft, { type: 'ContainerExited', reason, message, exitCode: draft.life.exitCode, at })
  change(draft, { ...CALM, verb: verbAfterEnd(draft.life, 'stopped'), state: 'stopped', open: false, endedAt: time })
  change(draft, { exitReason: reason })
}

export function failed(draft: Draft, reason: string, message: string | null, at: number | null): void {
  const time = emit(draft, { type: 'ContainerFailed', reason, message, exitCode: draft.life.exitCode, at })
  const hint = failureHint(draft.life, reason)
  change(draft, { ...CALM, verb: verbAfterEnd(draft.life, 'failed'), state: 'failed', open: false, endedAt: time })
  change(draft, { reason, message, hint })
}

/**
 * The last event of a life. Without `reason` (a create that was undone) there is none: the row is taken away.
 */
export function deleted(draft: Draft, reason: string): void {
  const time = emit(draft, { type: 'ContainerDeleted', reason, at: null })
  const { endedAt, goneAt } = draft.life
  change(draft, { ...CALM, verb: null, state: 'deleted', open: false, gone: true, deletedAt: time, reason })
  change(draft, { endedAt: endedAt ?? time, goneAt: goneAt ?? time })
}

/** A stop is over with its run; a start that joined the run becomes one that opens the next, where there can be one. */
function verbAfterEnd(life: Life, state: 'stopped' | 'failed'): VerbInHand | null {
  const { verb } = life
  if (verb === null || verb.verb === 'stop') return null
  if (!verb.joins) return verb
  if (life.id.kind !== 'deployment') return null
  const previous = { state, ready: false, reason: null, message: null, hint: null, verb: verb.previous?.verb ?? null }
  return { ...verb, joins: false, previous }
}

/** How a stop ends its run: row 12 of §4, row 11 of §5, row 6 of §6. Without open run: the state alone. */
export function endByStop(draft: Draft, stop: VerbInHand, at: number | null): void {
  const { life } = draft
  const byRequest = stop.cause === null || stop.cause === 'StoppedByRequest'
  if (!life.open) {
    change(draft, {
      ...CALM,
      state: byRequest ? 'stopped' : 'failed',
      reason: byRequest ? null : stop.cause,
      verb: null,
    })
  } else if (byRequest) exited(draft, 'StoppedByRequest', at)
  else failed(draft, stop.cause ?? 'StartTimeout', life.message, at)
}

/** One Warning per cause and run. The others' hands are told apart by their reason. */
export function warn(draft: Draft, trouble: Trouble): void {
  const cause = trouble.cause === 'others' ? trouble.reason : trouble.cause
  if (trouble.quiet || !draft.life.open || draft.life.warned.includes(cause)) return
  const { reason, message, at } = trouble
  emit(draft, { type: 'ContainerWarning', cause, reason, message, at })
  change(draft, { warned: [...draft.life.warned, cause] })
}

/** Opens the next run. */
export function allot(draft: Draft, now: number, standing: Standing): void {
  const { run, startTimeoutSeconds } = draft.life
  change(draft, {
    ...CALM,
    state: 'creating',
    run: run + 1,
    open: true,
    started: false,
    evidence: false,
    runAt: now,
    startBy: startByFrom(startTimeoutSeconds, now),
    suspendedByUs: false,
    standing,
    exitReason: null,
    exitCode: null,
    warned: [],
    warningsAt: null,
    startedAt: null,
    endedAt: null,
  })
}

/** 0 = never. */
export const startByFrom = (seconds: number, now: number): number | null => (seconds > 0 ? now + seconds * 1000 : null)

/** A stop that nobody asked for: by the start timer, or by an agent's trouble. Never withdrawn, hence no `previous`. */
export function stopInHand(draft: Draft, cause: string): void {
  const verb: VerbInHand = { verb: 'stop', cause, accepted: false, tried: false, joins: false, previous: null }
  change(draft, { verb, state: 'stopping', ready: false, startBy: null })
  if (cause === 'StartTimeout') change(draft, { reason: cause })
}

/** The pods of the open run: those of earlier ones prove nothing of it. */
export const podsOfRun = (life: Life, pods: readonly PodSeen[]): PodSeen[] =>
  pods.filter(pod => !life.standing.pods.includes(pod.uid))

/** ReplicaSets that still may have pods: a rollout has two, a quick series of them a few. */
const CONTROLLERS_KEPT = 8

/** Takes note of what is believed of the object, whatever the rows then say. */
export function believe(draft: Draft, seen: Seen): void {
  if (draft.life.foreign) change(draft, { foreign: false })
  noteExitCode(draft, seen.facts.pods)
  const known = draft.life.podControllers
  const added = (seen.podControllers ?? []).filter(uid => !known.includes(uid))
  if (added.length > 0) change(draft, { podControllers: [...known, ...added].slice(-CONTROLLERS_KEPT) })
}

/** The last terminated code of `main` in this run, kept as soon as seen: pods go before the verdict comes. */
export function noteExitCode(draft: Draft, pods: readonly PodSeen[]): void {
  if (!draft.life.open) return
  const known = podsOfRun(draft.life, pods).filter(pod => pod.exitCode !== null)
  const last = known.sort((a, b) => (b.finishedAt ?? 0) - (a.finishedAt ?? 0))[0]
  if (last !== undefined) change(draft, { exitCode: last.exitCode })
}

/** When the last `main` of this run finished, for the time of an ending. */
export function lastFinish(life: Life, pods: readonly PodSeen[]): number | null {
  const times = podsOfRun(life, pods).flatMap(pod => (pod.finishedAt === null ? [] : [pod.finishedAt]))
  return times.length === 0 ? null : Math.max(...times)
}

export const podsLeft = (pods: readonly PodSeen[]): number => pods.filter(pod => !pod.gone && !pod.ended).length

/** Deleting, by us or by others: what still holds it is named (rows 11, 15, 7). */
export function showDeleting(draft: Draft, seen: Seen): void {
  const holding = seen.finalizers.map(name => (name === 'foregroundDeletion' ? `${name} (its pods are ending)` : name))
  const message = holding.length === 0 ? null : `held by ${holding.join(', ')}`
  const hint = seen.finalizers.some(name => name !== 'foregroundDeletion')
    ? 'It goes when whoever set these finalizers takes them off; ask the owner of that controller.'
    : null
  change(draft, { state: 'deleting', ready: false, reason: seen.deleting ? 'Terminating' : null, message, hint })
}
