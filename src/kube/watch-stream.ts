import { LineSplitter } from './decode.ts'
import { type KubeStatus, readStatus } from './errors.ts'
import type { StreamReply } from './transport.ts'

/** Why a watch cannot go on: the server said so (`status`), what it sent makes no sense, or the connection broke. */
export class WatchFault extends Error {
  readonly kind: 'status' | 'unreadable' | 'broken'
  readonly status: KubeStatus | null

  constructor(kind: 'status' | 'unreadable' | 'broken', status: KubeStatus | null = null, cause?: unknown) {
    super(`the watch is ${kind}`, { cause })
    this.name = 'WatchFault'
    this.kind = kind
    this.status = status
  }
}

export interface WatchReading {
  readonly signal: AbortSignal
  readonly maxLineBytes: number
  /** Longest time without a byte; asked again after each, for a server may show only later that it sends bookmarks. */
  readonly idleMs: () => number
  /** Longest time in all. */
  readonly hardMs: number
  readonly onBytes: () => void
  /** May throw a WatchFault to end the reading. */
  readonly onLine: (line: Buffer) => void
}

/** `clean`: by the server. `silent`: not one byte came. */
export interface WatchEnd {
  readonly how: 'clean' | 'idle' | 'hard'
  readonly silent: boolean
}

/** How much, and for how long, an error reply is read for its Status. */
const STATUS_BYTES = 64 * 1024
const STATUS_MS = 2000

/** Reads a watch to its end. A partial line at the end is dropped: it comes again. Throws WatchFault. */
export async function readWatch(reply: StreamReply, reading: WatchReading): Promise<WatchEnd> {
  const { body } = reply
  let cut: 'idle' | 'hard' | null = null
  const end = (how: 'idle' | 'hard') => (): void => {
    cut ??= how
    body.destroy()
  }
  let idleMs = reading.idleMs()
  let idle = setTimeout(end('idle'), idleMs)
  const rearm = (): void => {
    if (idleMs === reading.idleMs()) return void idle.refresh()
    clearTimeout(idle)
    idleMs = reading.idleMs()
    idle = setTimeout(end('idle'), idleMs)
  }
  const hard = setTimeout(end('hard'), reply.status === 200 ? reading.hardMs : STATUS_MS)
  const splitter = new LineSplitter(reading.maxLineBytes)
  const errorText: Buffer[] = []
  let size = 0
  try {
    for await (const chunk of body as AsyncIterable<Buffer>) {
      if (cut || reading.signal.aborted) break
      size += chunk.length
      if (reply.status !== 200) {
        errorText.push(chunk)
        if (size > STATUS_BYTES) break
        continue
      }
      reading.onBytes()
      splitter.push(chunk, line => {
        if (line.length > 0 && !reading.signal.aborted) reading.onLine(line)
      })
      rearm()
    }
  } catch (cause) {
    if (cause instanceof WatchFault) throw cause
    if (cause instanceof RangeError) throw new WatchFault('unreadable', null, cause)
    if (!cut && reply.status === 200) throw new WatchFault('broken', null, cause)
  } finally {
    clearTimeout(idle)
    clearTimeout(hard)
    body.destroy()
  }
  if (reply.status !== 200) throw new WatchFault('status', readStatus({ ...reply, body: Buffer.concat(errorText) }))
  return { how: cut ?? 'clean', silent: size === 0 }
}
