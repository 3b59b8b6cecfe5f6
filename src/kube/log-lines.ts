const NEWLINE = 0x0a
const SPACE = 0x20
const END_OF_LINE = Buffer.from('\n')
/** `2026-11-29T18:00:00.123456789+01:00` and some. A line that has no blank so early carries no timestamp. */
const MAX_STAMP = 40
const STAMP = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/
/** Lines of one second that are told apart; of more the older half counts as read. */
const REMEMBERED = 50_000

/**
 * A followed log that is read in pieces: each line comes with its timestamp, and after a cut the log is asked for again
 * from the last one, whose granularity is a whole second. What was passed on before is left out, so that nothing comes
 * twice and nothing is lost; a line that was cut goes on where it was cut (scenarios B-91, B-93).
 *
 * Bytes pass as they are, however long a line is: only a timestamp is ever held back.
 */
export class LogLines {
  readonly #keepStamps: boolean
  /** Lines passed on in the newest second, by timestamp. */
  #read = new Map<string, number>()
  /** Everything up to this one counts as read. */
  #readUpTo = ''
  #newest: string | null = null
  /** The line that is being passed on, and how many bytes of its text were. */
  #open: { readonly stamp: string; bytes: number } | null = null

  /** Of the piece being read: lines of the newest second still to be left out, and the open line still to be met. */
  #toSkip = new Map<string, number>()
  #toResume: { readonly stamp: string; bytes: number } | null = null
  #head: Buffer = Buffer.alloc(0)
  #inLine: 'start' | 'pass' | 'skip' = 'start'
  /** No line of a resumed piece has begun yet: what comes is the rest of one that began before `since`. */
  #beforeFirst = false
  #skipBytes = 0

  constructor(keepStamps: boolean) {
    this.#keepStamps = keepStamps
  }

  /** The newest timestamp met, whole seconds, from where to ask again; null = nothing was read yet. */
  get since(): string | null {
    return this.#newest === null ? null : new Date(Math.floor(Date.parse(this.#newest) / 1000) * 1000).toISOString()
  }

  /** A new piece begins, asked for from `since`. */
  resume(): void {
    this.#toSkip = new Map(this.#read)
    this.#toResume = this.#open
    if (this.#open) decrement(this.#toSkip, this.#open.stamp)
    this.#head = Buffer.alloc(0)
    this.#inLine = 'start'
    this.#beforeFirst = true
    this.#skipBytes = 0
  }

  /** What of a chunk is to be passed on. */
  push(chunk: Buffer): Buffer {
    const out: Buffer[] = []
    for (let at = 0; at < chunk.length; )
      at = this.#inLine === 'start' ? this.#start(chunk, at, out) : this.#rest(chunk, at, out)
    return out.length === 1 ? (out[0] as Buffer) : Buffer.concat(out)
  }

  #start(chunk: Buffer, at: number, out: Buffer[]): number {
    const space = chunk.indexOf(SPACE, at)
    const newline = chunk.indexOf(NEWLINE, at)
    const end = space >= 0 && (newline < 0 || space < newline) ? space : newline
    const to = end < 0 ? chunk.length : end + 1
    this.#head = this.#head.length === 0 ? chunk.subarray(at, to) : Buffer.concat([this.#head, chunk.subarray(at, to)])
    if (end < 0 && this.#head.length <= MAX_STAMP) {
      this.#head = Buffer.from(this.#head)
      return to
    }
    const head = this.#head
    this.#head = Buffer.alloc(0)
    const stamp = end >= 0 ? head.toString('latin1', 0, head.length - 1) : ''
    if (STAMP.test(stamp)) this.#begin(stamp, head, out)
    else this.#passUnstamped(head, out)
    if (chunk[to - 1] === NEWLINE && end >= 0) this.#endLine()
    return to
  }

  #begin(stamp: string, head: Buffer, out: Buffer[]): void {
    this.#beforeFirst = false
    if (this.#toResume?.stamp === stamp && !this.#toSkip.get(stamp)) {
      this.#inLine = 'pass'
      this.#skipBytes = this.#toResume.bytes
      this.#toResume = null
      return
    }
    if (stamp <= this.#readUpTo || decrement(this.#toSkip, stamp)) {
      this.#inLine = 'skip'
      return
    }
    // The cut line is not met again (rotated away): it ended somewhere, so nothing is glued to it.
    if (this.#open !== null) out.push(END_OF_LINE)
    this.#inLine = 'pass'
    this.#skipBytes = 0
    this.#note(stamp)
    this.#open = { stamp, bytes: 0 }
    if (this.#keepStamps || head.at(-1) === NEWLINE) out.push(this.#keepStamps ? head : head.subarray(head.length - 1))
  }

  /** No log of a kubelet has such lines; they pass as they are. */
  #passUnstamped(head: Buffer, out: Buffer[]): void {
    this.#inLine = this.#beforeFirst ? 'skip' : 'pass'
    this.#skipBytes = 0
    if (!this.#beforeFirst) out.push(head)
  }

  #rest(chunk: Buffer, at: number, out: Buffer[]): number {
    const newline = chunk.indexOf(NEWLINE, at)
    const to = newline < 0 ? chunk.length : newline + 1
    if (this.#inLine === 'pass') {
      const skipped = Math.min(this.#skipBytes, to - at)
      this.#skipBytes -= skipped
      if (this.#open) this.#open.bytes += to - at - skipped
      if (skipped < to - at) out.push(chunk.subarray(at + skipped, to))
    }
    if (newline >= 0) this.#endLine()
    return to
  }

  #endLine(): void {
    if (this.#inLine === 'pass') this.#open = null
    this.#inLine = 'start'
  }

  #note(stamp: string): void {
    if (this.#newest === null || stamp.slice(0, 19) > this.#newest.slice(0, 19)) this.#read.clear()
    if (this.#newest === null || stamp > this.#newest) this.#newest = stamp
    if (this.#read.size >= REMEMBERED) this.#forgetHalf()
    this.#read.set(stamp, (this.#read.get(stamp) ?? 0) + 1)
  }

  #forgetHalf(): void {
    let left = REMEMBERED / 2
    for (const stamp of this.#read.keys()) {
      if (left-- <= 0) return
      this.#read.delete(stamp)
      if (stamp > this.#readUpTo) this.#readUpTo = stamp
    }
  }
}

/** Takes one off; false if there was none. */
function decrement(counts: Map<string, number>, stamp: string): boolean {
  const count = counts.get(stamp) ?? 0
  if (count > 0) counts.set(stamp, count - 1)
  return count > 0
}
