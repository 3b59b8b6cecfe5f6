import { RuntimeError } from '../errors.ts'

export interface Bounds {
  readonly oldest: number | null
  readonly newest: number | null
  /** Something was removed from the feed, so `after=0` no longer means everything. */
  readonly pruned: boolean
}

/** `<epoch>-<seq>`: the epoch is made with the database, so a cursor of a lost database is noticed. */
export const eventId = (epoch: string, seq: number): string => `${epoch}-${seq}`

const EVENT_ID = /^([a-z0-9]+)-([0-9]{1,15})$/
const SEQ = /^[0-9]{1,15}$/

/**
 * The seq after which to read (wire.md §5): an event id, a bare seq (not checked against the epoch), `now`, or absent =
 * the oldest kept. Throws REQUEST_INVALID for anything else and CURSOR_EXPIRED for a cursor of another epoch, older than
 * what is kept, or newer than the newest.
 */
export function readCursor(text: string | undefined, epoch: string, bounds: Bounds): number {
  const newest = bounds.newest ?? 0
  if (text === undefined) return bounds.oldest === null ? newest : bounds.oldest - 1
  if (text === 'now') return newest
  const [, itsEpoch, itsSeq] = EVENT_ID.exec(text) ?? []
  if (itsEpoch === undefined && !SEQ.test(text)) {
    throw new RuntimeError('REQUEST_INVALID', 'cannot read "after": use an event id, a seq, or now', {
      errors: [{ path: 'after', message: 'an event id such as x7k2-41, a seq (0 = before the first ever), or now' }],
    })
  }
  if (itsEpoch !== undefined && itsEpoch !== epoch) expired('the cursor is of another database', epoch, bounds)
  const seq = Number(itsSeq ?? text)
  if (seq > newest) expired('the cursor is newer than the newest event', epoch, bounds)
  const first = bounds.oldest ?? newest + 1
  if (bounds.pruned && seq < first - 1) expired('the cursor is older than what is kept', epoch, bounds)
  return seq
}

function expired(why: string, epoch: string, { oldest, newest }: Bounds): never {
  throw new RuntimeError('CURSOR_EXPIRED', `cannot resume: ${why}; go on from "oldest", or from now`, {
    extra: {
      oldest: oldest === null ? null : eventId(epoch, oldest),
      newest: newest === null ? null : eventId(epoch, newest),
    },
  })
}
