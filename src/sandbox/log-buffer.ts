/** Bytes of output kept per container; the oldest go first. */
const LOG_LIMIT = 16 * 1024 * 1024
/** A line without end is cut at this length, as containerd does. */
const LINE_LIMIT = 16 * 1024

interface Entry {
  /** milliseconds since 1970, with fraction */
  at: number
  data: Buffer
  /** begins a line (not the rest of a cut one) */
  starts: boolean
}

export interface LogOptions {
  tailLines?: number
  /** only what was written at or after this time, milliseconds since 1970 */
  since?: number
  timestamps?: boolean
  limitBytes?: number
  follow?: boolean
}

/** Where the bytes of a log go. */
export interface LogSink {
  write(chunk: Buffer): void
  end(): void
}

/** The output of one container instance, line by line with times; bytes are kept as they were written. */
export class LogBuffer {
  #entries: Entry[] = []
  #size = 0
  #partial: Buffer = Buffer.alloc(0)
  #continues = false
  #ended = false
  readonly #listeners = new Set<(entry: Entry | undefined) => void>()

  append(chunk: Buffer): void {
    let rest = this.#partial.length > 0 ? Buffer.concat([this.#partial, chunk]) : chunk
    for (;;) {
      const end = rest.indexOf(10)
      const cut = end >= 0 && end < LINE_LIMIT ? end + 1 : rest.length >= LINE_LIMIT ? LINE_LIMIT : 0
      if (cut === 0) break
      this.#add(rest.subarray(0, cut))
      rest = rest.subarray(cut)
    }
    this.#partial = rest
  }

  /** No more will come; a line without its end is kept as it is. */
  end(): void {
    if (this.#ended) return
    if (this.#partial.length > 0) this.#add(this.#partial)
    this.#partial = Buffer.alloc(0)
    this.#ended = true
    for (const listener of this.#listeners) listener(undefined)
    this.#listeners.clear()
  }

  /** Sends what the options ask for and ends the sink, when following once the container has ended. Returns how to stop early. */
  read(options: LogOptions, sink: LogSink): () => void {
    let left = options.limitBytes ?? Number.POSITIVE_INFINITY
    const send = (entry: Entry): void => {
      const whole =
        options.timestamps && entry.starts
          ? Buffer.concat([Buffer.from(`${stamp(entry.at)} `), entry.data])
          : entry.data
      const chunk = whole.length > left ? whole.subarray(0, left) : whole
      left -= chunk.length
      if (chunk.length > 0) sink.write(chunk)
    }
    for (const entry of this.#selected(options)) {
      if (left <= 0) break
      send(entry)
    }
    if (!options.follow || this.#ended || left <= 0) {
      sink.end()
      return () => {}
    }
    const listener = (entry: Entry | undefined): void => {
      if (entry) send(entry)
      if (!entry || left <= 0) {
        this.#listeners.delete(listener)
        sink.end()
      }
    }
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  #selected({ tailLines, since }: LogOptions): Entry[] {
    const recent = since === undefined ? this.#entries : this.#entries.filter(entry => entry.at >= since)
    if (tailLines === undefined) return recent
    let index = recent.length
    for (let lines = 0; index > 0 && lines < tailLines; index--) if (recent[index - 1]!.starts) lines++
    return recent.slice(index)
  }

  #add(data: Buffer): void {
    const entry = { at: performance.timeOrigin + performance.now(), data: Buffer.from(data), starts: !this.#continues }
    this.#continues = data.at(-1) !== 10
    this.#entries.push(entry)
    this.#size += entry.data.length
    while (this.#size > LOG_LIMIT) {
      const half = this.#entries.splice(0, Math.ceil(this.#entries.length / 4))
      this.#size -= half.reduce((sum, dropped) => sum + dropped.data.length, 0)
    }
    for (const listener of this.#listeners) listener(entry)
  }
}

/** RFC 3339 with nine digits of a second, as the kubelet writes it. */
function stamp(at: number): string {
  const whole = Math.floor(at)
  const fraction = Math.floor((at - whole) * 1e6)
  return `${new Date(whole).toISOString().slice(0, 23)}${String(fraction).padStart(6, '0')}Z`
}
