import type { Readable } from 'node:stream'
import { isRuntimeError } from '../errors.ts'
import type { LogOptions as KubeLogOptions } from './client.ts'
import { LogLines } from './log-lines.ts'
import { type LogTarget, remainsOf } from './log-target.ts'
import { pause } from './timing.ts'

export interface FollowOptions {
  /** null: no pod yet. `body` null: the container has not started. */
  readonly first: { readonly target: LogTarget; readonly body: Promise<Readable> | null } | null
  /** With timestamps, whatever the caller wants to see. */
  readonly query: KubeLogOptions
  readonly timestamps: boolean
  readonly signal: AbortSignal
  readonly open: (target: LogTarget, query: KubeLogOptions) => Promise<Readable>
  /** The same pod now; null = gone. */
  readonly again: (target: LogTarget) => Promise<LogTarget | null>
  readonly find: () => Promise<LogTarget | 'none' | 'gone'>
  /** Resolves with the next change, after ms, or by the signal. */
  readonly changed: (ms: number) => Promise<void>
}

const WAIT_MS = 2000
const PACE_MS = 200
const MAX_PACE_MS = 5000
/** Failures in a row after which a follow gives up and fails. */
const MAX_FAILURES = 20

/**
 * The log of one run of one container, to its end: waits for it to start, goes on after rotation or a cut, ends when the
 * container has ended or its pod is gone. Adds no text of its own.
 */
export async function* followLog(options: FollowOptions): AsyncGenerator<Buffer> {
  const started = await waitForStart(options)
  if (started === null) return
  const { target } = started
  const lines = new LogLines(options.timestamps)
  const openedAt = new Date().toISOString()
  for (let piece: Piece | null = started, n = 0; piece !== null; n += 1) {
    let passed = 0
    for await (const chunk of untilBroken(piece.body)) {
      const bytes = lines.push(chunk)
      passed += bytes.length
      if (bytes.length > 0) yield bytes
    }
    if (piece.last || options.signal.aborted) return
    if (passed > 0) n = 0
    lines.resume()
    const query = resumed(options.query, lines.since, openedAt)
    piece = await nextPiece(options, target, query, n)
  }
}

interface Piece {
  readonly body: Readable
  /** Its container has ended: there is nothing after it. */
  readonly last: boolean
}

async function waitForStart(options: FollowOptions): Promise<(Piece & { target: LogTarget }) | null> {
  const { first, signal } = options
  const body = await first?.body?.catch(unlessOfNoUse)
  if (first && body) return { target: first.target, body, last: false }
  return await insist(options, async () => {
    await paced(options, WAIT_MS)
    if (signal.aborted) return null
    const target = await options.find()
    if (target === 'gone') return null
    if (target === 'none' || target.state === 'waiting') return 'again'
    if (target.state === 'never') return null
    return { target, body: await options.open(target, options.query), last: false }
  })
}

/** A container that is not ready is waited for, one that is silent is asked again; the rest is for the reader. */
function unlessOfNoUse(error: unknown): null {
  if (isRuntimeError(error, 'LOGS_NOT_READY') || isRuntimeError(error, 'BACKEND_TIMEOUT')) return null
  throw error
}

/** null = its end was seen: pod gone, or its run over and read to the end. */
async function nextPiece(
  options: FollowOptions,
  target: LogTarget,
  query: KubeLogOptions,
  n: number,
): Promise<Piece | null> {
  return await insist(options, async failures => {
    await paced(options, Math.min(MAX_PACE_MS, PACE_MS * 2 ** Math.min(n + failures, 6)))
    if (options.signal.aborted) return null
    const now = await options.again(target)
    if (now === null) return null
    const remains = remainsOf(now, target.instance)
    if (remains === 'none') return null
    const last = remains !== 'current'
    const piece = { ...query, follow: !last, ...(remains === 'previous' ? { previous: true } : {}) }
    try {
      return { body: await options.open(now, piece), last }
    } catch (error) {
      if (last) return null
      throw error
    }
  })
}

/** Until it answers; what keeps failing is thrown, silence is no failure. */
async function insist<T>(options: FollowOptions, work: (failures: number) => Promise<T | 'again'>): Promise<T | null> {
  for (let failures = 0; !options.signal.aborted; ) {
    try {
      const answer = await work(failures)
      if (answer !== 'again') return answer
      failures = 0
    } catch (error) {
      if (options.signal.aborted) return null
      if (!isRuntimeError(error, 'BACKEND_TIMEOUT')) failures += 1
      if (failures >= MAX_FAILURES) throw error
    }
  }
  return null
}

/** Waits for the next change, at most `ms`, at least a little: changes come in bursts. */
async function paced({ changed, signal }: FollowOptions, ms: number): Promise<void> {
  const since = Date.now()
  await changed(ms)
  const left = PACE_MS - (Date.now() - since)
  if (left > 0 && !signal.aborted) await pause(left, signal)
}

/** A stream that broke ends here; whether that was its end is asked of the pod. */
async function* untilBroken(body: Readable): AsyncGenerator<Buffer> {
  try {
    for await (const chunk of body as AsyncIterable<Buffer>) yield chunk
  } catch {
    // cut by the server or on the way
  }
}

/** From the last timestamp; with none yet as at first, save that `tail=0` must not lose what came meanwhile. */
function resumed(query: KubeLogOptions, since: string | null, openedAt: string): KubeLogOptions {
  const { tailLines, sinceSeconds: _, ...rest } = query
  if (since !== null) return { ...rest, sinceTime: since }
  return tailLines === 0 ? { ...rest, sinceTime: openedAt } : query
}
