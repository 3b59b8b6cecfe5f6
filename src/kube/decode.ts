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

const ITEMS = Buffer.from('"items":[')
const END = Buffer.from(']}')
const BETWEEN = Buffer.from('},{"metadata":{"name":"')

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
  const list = asList(simple ? Buffer.concat([body.subarray(0, from), END]) : body)
  const { resourceVersion, continue: token } = list.metadata
  const items = simple ? itemsOf(body, from, close) : (list.items ?? [])
  return { version: resourceVersion || undefined, token: token || undefined, items }
}

/**
 * Gives a page's memory back at once; `body` is empty afterwards. Left to the garbage collector, dozens of pages lie
 * about, for what outlives two turns of it is looked at seldom. Memory that others may share is left alone.
 */
export function free(body: Buffer): void {
  const { buffer } = body
  if (buffer instanceof ArrayBuffer && buffer.byteLength === body.byteLength) buffer.transfer(0)
}

interface ListBody {
  metadata: { resourceVersion?: string; continue?: string }
  items?: RawObject[] | null
}

function asList(body: Buffer): ListBody {
  const list = parse(body) as Partial<ListBody> | null
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
      item = parse(body.subarray(from, to)) as RawObject
    } catch {
      yield* asList(body).items ?? [] // cut at the wrong place: once more, whole
      return
    }
    yield item
    from = to + 1
  }
}

/** A line of a watch. Throws SyntaxError, or TypeError when it is no event. */
export function decodeEvent(line: Buffer): RawEvent {
  const event = parse(line) as Partial<RawEvent> | null
  if (typeof event?.type !== 'string' || typeof event.object !== 'object' || event.object === null) {
    throw new TypeError('not an event')
  }
  return event as RawEvent
}

function parse(bytes: Buffer): unknown {
  const shorter = withoutUnread(bytes)
  if (shorter === null) return JSON.parse(bytes.toString('utf8'))
  try {
    return JSON.parse(shorter)
  } catch {
    return JSON.parse(bytes.toString('utf8'))
  }
}

const MANAGED_FIELDS = { key: Buffer.from('"managedFields":'), value: Buffer.from('[{"manager":"') }
const METADATA_END = Buffer.from(']},"spec":')
const ENV = { key: Buffer.from('"env":'), value: Buffer.from('[{"name":"') }
const ARRAY_END = Buffer.from('}]')
const ENV_END = Buffer.from('}],"resources":')
const CONDITIONS = { key: Buffer.from('"conditions":'), value: Buffer.from('[{"type":"') }
const NEXT_CONDITION = Buffer.from('},{"type":"')
/** Said of every pod that came up, and read by nobody. */
const NO_NEWS = [Buffer.from('{"type":"PodReadyToStartContainers",'), Buffer.from('{"type":"Initialized",')]
const BRACE = 125
/** What is left of one text, put together before it becomes a string: joining strings costs JSON.parse a copy. */
let left = Buffer.alloc(0)
const MOST_LEFT = 256 * 1024
const BRACKET = 93
const COMMA = 44

/**
 * JSON text less what is of no use here and makes up more than half of many an object, metadata.managedFields, the env of
 * containers and the first conditions of a pod; null if there is none. Cutting it out of the bytes costs a tenth of parsing it. It relies on the API
 * server's order of keys (managedFields ends metadata, spec follows; resources follow env), on neither having arrays within, and
 * on quotes within strings being escaped; where it is otherwise, that part stays as it is.
 */
export function withoutUnread(bytes: Buffer): string | null {
  let size = 0
  let from = 0
  const cut = (open: number, end: number): void => {
    if (left.length < bytes.length) left = Buffer.allocUnsafeSlow(bytes.length)
    size += bytes.copy(left, size, from, bytes[open - 1] === COMMA ? open - 1 : open)
    from = end
  }
  for (let open = find(bytes, MANAGED_FIELDS, 0); open >= 0; ) {
    const close = bytes.indexOf(BRACKET, open + MANAGED_FIELDS.key.length)
    if (close < 0) break
    if (startsAt(bytes, METADATA_END, close)) cut(open, close + 1)
    open = find(bytes, MANAGED_FIELDS, close)
  }
  for (let open = find(bytes, ENV, from); open >= 0; ) {
    const close = bytes.indexOf(ARRAY_END, open)
    if (close < 0) break
    if (startsAt(bytes, ENV_END, close)) cut(open, close + 2)
    open = find(bytes, ENV, close)
  }
  const conditions = find(bytes, CONDITIONS, from)
  if (conditions >= 0) {
    const first = conditions + CONDITIONS.key.length + 1
    const end = endOfNoNews(bytes, first)
    if (end > first) cut(first, end)
  }
  if (from === 0) return null
  size += bytes.copy(left, size, from)
  const text = left.toString('utf8', 0, size)
  if (left.length > MOST_LEFT) left = Buffer.alloc(0)
  return text
}

/** Where the key begins. It is looked for by its value, whose first character is a rare one: quotes are everywhere. */
function find(bytes: Buffer, { key, value }: { key: Buffer; value: Buffer }, from: number): number {
  for (let at = bytes.indexOf(value, from); at >= 0; at = bytes.indexOf(value, at + 1)) {
    const open = at - key.length
    if (open >= from && startsAt(bytes, key, open)) return open
  }
  return -1
}

/** Behind the conditions at the head of the list that are no news, and their comma; the last of all stays. */
function endOfNoNews(bytes: Buffer, first: number): number {
  let at = first
  while (NO_NEWS.some(head => startsAt(bytes, head, at))) {
    const close = bytes.indexOf(BRACE, at)
    if (!startsAt(bytes, NEXT_CONDITION, close)) break
    at = close + 2
  }
  return at
}

function startsAt(bytes: Buffer, what: Buffer, at: number): boolean {
  for (let n = 0; n < what.length; n += 1) if (bytes[at + n] !== what[n]) return false
  return true
}

const NEWLINE = 10

/** Cuts a stream of bytes into lines; each is to be read at once, for its bytes are those of the chunk. */
export class LineSplitter {
  readonly #limit: number
  #rest: Buffer[] = []
  #size = 0

  constructor(limit: number) {
    this.#limit = limit
  }

  /** Calls back for each line that is now complete. Throws RangeError once a line is longer than the limit. */
  push(chunk: Buffer, onLine: (line: Buffer) => void): void {
    let from = 0
    for (let at = chunk.indexOf(NEWLINE); at >= 0; at = chunk.indexOf(NEWLINE, from)) {
      this.#check(at - from)
      onLine(this.#line(chunk.subarray(from, at)))
      from = at + 1
    }
    if (from === chunk.length) return
    this.#check(chunk.length - from)
    this.#rest.push(chunk.subarray(from))
    this.#size += chunk.length - from
  }

  #line(end: Buffer): Buffer {
    if (this.#size === 0) return end
    const line = Buffer.concat([...this.#rest, end])
    this.#rest = []
    this.#size = 0
    return line
  }

  #check(more: number): void {
    if (this.#size + more > this.#limit) throw new RangeError('the line is too long')
  }
}
