import type { ObjectMeta } from './objects.ts'

/** Any object of the API, before we know that it is one. */
export interface RawObject {
  kind?: string
  metadata?: ObjectMeta
}

export interface RawList {
  readonly version: string | undefined
  readonly token: string | undefined
  /** To be gone through once; decoded one by one. Throws SyntaxError where the text is none. */
  readonly items: Iterable<RawObject>
}

export interface RawEvent {
  readonly type: string
  readonly object: RawObject
}

const ITEMS = '"items":['
const BETWEEN = '},{"metadata":{"name":"'

/**
 * A page of a list. Its objects are cut apart and decoded one by one, which leaves much less garbage than one great tree;
 * that relies on the API server's order of keys, and where the order is another the page is decoded whole.
 * Throws SyntaxError, or TypeError when it is no list.
 */
export function decodeList(body: Buffer): RawList {
  const open = body.indexOf(ITEMS)
  const close = body.lastIndexOf(']')
  const from = open + ITEMS.length
  const simple = open > 0 && close >= from && body.toString('latin1', close).trim() === ']}'
  const list = asList(simple ? `${body.toString('utf8', 0, from)}]}` : body.toString('utf8'))
  const { resourceVersion, continue: token } = list.metadata
  const items = simple ? itemsOf(body, from, close) : (list.items ?? [])
  return { version: resourceVersion || undefined, token: token || undefined, items }
}

interface ListBody {
  metadata: { resourceVersion?: string; continue?: string }
  items?: RawObject[] | null
}

function asList(text: string): ListBody {
  const list = parse(text) as Partial<ListBody> | null
  if (typeof list?.metadata !== 'object' || !(Array.isArray(list.items) || list.items == null)) {
    throw new TypeError('not a list')
  }
  return list as ListBody
}

function* itemsOf(body: Buffer, start: number, end: number): Generator<RawObject> {
  for (let from = start; from < end; ) {
    const next = body.indexOf(BETWEEN, from)
    const to = next < 0 ? end : next + 1
    let item: RawObject
    try {
      item = parse(body.toString('utf8', from, to)) as RawObject
    } catch {
      yield* asList(body.toString('utf8')).items ?? [] // cut at the wrong place: once more, whole
      return
    }
    yield item
    from = to + 1
  }
}

/** A line of a watch. Throws SyntaxError, or TypeError when it is no event. */
export function decodeEvent(line: string): RawEvent {
  const event = parse(line) as Partial<RawEvent> | null
  if (typeof event?.type !== 'string' || typeof event.object !== 'object' || event.object === null) {
    throw new TypeError('not an event')
  }
  return event as RawEvent
}

function parse(text: string): unknown {
  const shorter = withoutManagedFields(text)
  if (shorter === text) return JSON.parse(text)
  try {
    return JSON.parse(shorter)
  } catch {
    return JSON.parse(text)
  }
}

const OPEN = '"managedFields":['
const CLOSE = ']},"spec":'
const COMMA = 44

/**
 * JSON text less metadata.managedFields, half of many an object and of no use here: cutting costs a fifth of parsing it.
 * It relies on the API server's order of keys (managedFields ends metadata, spec follows) and on quotes within strings
 * being escaped; where the order is another, that part stays as it is.
 */
export function withoutManagedFields(text: string): string {
  let open = text.indexOf(OPEN)
  if (open < 0) return text
  const parts: string[] = []
  let from = 0
  while (open >= 0) {
    const close = text.indexOf(CLOSE, open)
    if (close < 0) break
    if (!text.slice(open, close).includes('"metadata":')) {
      parts.push(text.slice(from, text.charCodeAt(open - 1) === COMMA ? open - 1 : open))
      from = close + 1
    }
    open = text.indexOf(OPEN, Math.max(from, open + 1))
  }
  parts.push(text.slice(from))
  return parts.join('')
}

const NEWLINE = 10

/** Cuts a stream of bytes into lines of text; characters split over chunks stay whole. */
export class LineSplitter {
  readonly #limit: number
  #rest: Buffer[] = []
  #size = 0

  constructor(limit: number) {
    this.#limit = limit
  }

  /** Calls back for each line that is now complete. Throws RangeError once a line is longer than the limit. */
  push(chunk: Buffer, onLine: (line: string) => void): void {
    let from = 0
    for (let at = chunk.indexOf(NEWLINE); at >= 0; at = chunk.indexOf(NEWLINE, from)) {
      this.#check(at - from)
      onLine(this.#line(chunk, from, at))
      from = at + 1
    }
    if (from === chunk.length) return
    this.#check(chunk.length - from)
    this.#rest.push(chunk.subarray(from))
    this.#size += chunk.length - from
  }

  #line(chunk: Buffer, from: number, to: number): string {
    if (this.#size === 0) return chunk.toString('utf8', from, to)
    this.#rest.push(chunk.subarray(from, to))
    const line = Buffer.concat(this.#rest).toString('utf8')
    this.#rest = []
    this.#size = 0
    return line
  }

  #check(more: number): void {
    if (this.#size + more > this.#limit) throw new RangeError('the line is too long')
  }
}
