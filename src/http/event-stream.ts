import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises'
import type { RuntimeEvent } from '../domain/event.ts'
import type { EventBatch } from '../service/api.ts'
import type { Limits } from './limits.ts'
import { toEvent } from './wire.ts'

/** How events are written on a stream. */
export interface EventFormat {
  readonly contentType: string
  readonly heartbeat: string
  write(epoch: string, event: RuntimeEvent): string
}

export const SSE: EventFormat = {
  contentType: 'text/event-stream; charset=utf-8',
  heartbeat: ':\n\n',
  write: writtenOnce((epoch, event) => {
    const shown = toEvent(epoch, event)
    return `id: ${shown.id}\nevent: ${shown.type}\ndata: ${JSON.stringify(shown)}\n\n`
  }),
}

export const NDJSON: EventFormat = {
  contentType: 'application/x-ndjson; charset=utf-8',
  heartbeat: '\n',
  write: writtenOnce((epoch, event) => `${JSON.stringify(toEvent(epoch, event))}\n`),
}

/** All live readers are given the same event: it is written out for the first of them. There is one epoch a process. */
function writtenOnce(write: EventFormat['write']): EventFormat['write'] {
  const texts = new WeakMap<RuntimeEvent, string>()
  return (epoch, event) => {
    const known = texts.get(event)
    if (known !== undefined) return known
    const text = write(epoch, event)
    texts.set(event, text)
    return text
  }
}

/** ndjson only for who names it and not event-stream; everyone else gets SSE, whatever they accept (openapi.md R10). */
export function formatFor(accept: string | undefined): EventFormat {
  const wanted = (accept ?? '').toLowerCase()
  return wanted.includes('application/x-ndjson') && !wanted.includes('text/event-stream') ? NDJSON : SSE
}

export interface EventOutlet {
  readonly reply: ServerResponse
  readonly format: EventFormat
  readonly epoch: string
  readonly limits: Pick<Limits, 'heartbeatMs' | 'unsentEvents' | 'unsentBytes' | 'graceMs'>
}

/** Small enough that a fast reader's socket is given the chance to take a burst before it is counted as unsent. */
const SLICE = 100

/**
 * Writes batches until they end, the reader leaves or is cut off. History waits for the reader, the batch that reaches
 * the newest event included; from then on a reader that leaves too much unsent is cut off, never skipped.
 * Answers whether it was cut.
 */
export async function sendEvents(batches: AsyncIterable<EventBatch>, outlet: EventOutlet): Promise<{ cut: boolean }> {
  const { reply, format, epoch, limits } = outlet
  let unsent = 0
  let isLive = false
  const heartbeat = setInterval(() => {
    if (!reply.writableNeedDrain) reply.write(format.heartbeat)
  }, limits.heartbeatMs)
  const isBehind = (): boolean => unsent >= limits.unsentEvents || reply.writableLength >= limits.unsentBytes
  try {
    for await (const { events, live } of batches) {
      for (let at = 0; at < events.length; at += SLICE) {
        const slice = events.slice(at, at + SLICE)
        unsent += slice.length
        reply.write(slice.map(event => format.write(epoch, event)).join(''), () => {
          unsent -= slice.length
        })
        if (isLive) await nextTurn()
        else await drained(reply)
        if (isLive && isBehind()) await drained(reply, limits.graceMs)
        if (reply.closed) return { cut: false }
        if (isLive && isBehind()) return { cut: true }
      }
      isLive ||= live
    }
    return { cut: false }
  } finally {
    clearInterval(heartbeat)
  }
}

/** Resolves when everything is sent, the reader is gone, or after `timeoutMs`. */
async function drained(reply: ServerResponse, timeoutMs?: number): Promise<void> {
  if (!reply.writableNeedDrain || reply.closed) return
  const settled = new AbortController()
  const { signal } = settled
  const ends: Promise<unknown>[] = [once(reply, 'drain', { signal }), once(reply, 'close', { signal })]
  if (timeoutMs !== undefined) ends.push(sleep(timeoutMs, undefined, { signal }))
  // The losers of the race are called off, and reject; only the winner counts.
  for (const end of ends) end.catch(() => {})
  await Promise.race(ends).finally(() => settled.abort())
}
