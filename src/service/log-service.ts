import { Readable } from 'node:stream'
import type { Life } from '../domain/life.ts'
import { formatRuntimeId, parseRuntimeId } from '../domain/runtime-id.ts'
import { isRuntimeError, RuntimeError } from '../errors.ts'
import type { LogQuery } from './api.ts'
import type { Backends } from './backends.ts'
import type { Clock, Log, LogOptions, RuntimeTable, TailTable } from './ports.ts'
import type { CommitListener } from './recorder.ts'
import { notFound } from './runtime-verbs.ts'
import { requireNamespace, type Scope } from './scope.ts'
import type { TakeUp } from './take-up.ts'

/** Kept of a run's log when it ends by itself. */
export const KEPT_TAIL_BYTES = 64 * 1024
const TAIL_LINES = 5000
/** The kept tail is of this container's last run. */
const MAIN_CONTAINER = 'main'
const TAIL_DEADLINE_MS = 10_000
const TAILS_AT_ONCE = 4

export interface LogServiceOptions {
  readonly table: Pick<RuntimeTable, 'newest' | 'byLife'> & TailTable
  readonly backends: Backends
  readonly takeUp: TakeUp
  readonly clock: Clock
  readonly log: Log
}

/** Logs of the newest pod; once no pod is left, the tail that was kept at the own end of its run. */
export class LogService {
  readonly #options: LogServiceOptions
  readonly #tails: number[] = []
  #taking = 0

  constructor(options: LogServiceOptions) {
    this.#options = options
  }

  async read(scope: Scope, text: string, query: LogQuery): Promise<{ body: Readable; kept: boolean }> {
    const id = parseRuntimeId(text)
    requireNamespace(scope, id.namespace)
    const backend = this.#options.backends.get(id.runtime)
    const known = this.#options.table.newest(formatRuntimeId(id))
    if (known?.state === 'deleted') return this.#kept(known, query, null)
    const life = known ?? (await this.#orphan(id))
    if (life === null) throw notFound(formatRuntimeId(id), null)
    try {
      return { body: await backend.logs.read(life, toOptions(query)), kept: false }
    } catch (error) {
      if (isRuntimeError(error, 'POD_NOT_FOUND') && known !== null) return this.#kept(known, query, error)
      throw error
    }
  }

  /** Reads the tail of each run that has just ended by itself; best effort, after the event. */
  readonly listener: CommitListener = ({ events }) => {
    for (const event of events) {
      const ownEnd = event.type === 'ContainerFailed' || (event.type === 'ContainerExited' && event.reason === null)
      if (ownEnd) this.#tails.push(event.life)
    }
    this.#takeTails()
  }

  async #orphan(id: ReturnType<typeof parseRuntimeId>): Promise<Life | null> {
    const found = await this.#options.takeUp.find(id)
    return found === null ? null : this.#options.takeUp.provisional(found)
  }

  #kept(life: Life, query: LogQuery, error: RuntimeError | null): { body: Readable; kept: boolean } {
    const bytes = this.#options.table.tail(life.life)
    const key = formatRuntimeId(life.id)
    const ofMain = !query.previous && (query.container === undefined || query.container === MAIN_CONTAINER)
    if (bytes === null || !ofMain) throw error ?? podGone(key, life)
    const lines = lastLines(bytes, query.tail)
    return { body: Readable.from(lines.length === 0 ? [] : [lines.subarray(0, query.limitBytes)]), kept: true }
  }

  #takeTails(): void {
    while (this.#taking < TAILS_AT_ONCE) {
      const number = this.#tails.shift()
      if (number === undefined) return
      this.#taking++
      void this.#takeTail(number).finally(() => {
        this.#taking--
        this.#takeTails()
      })
    }
  }

  async #takeTail(number: number): Promise<void> {
    const life = this.#options.table.byLife(number)
    if (life === null || life.gone || !this.#options.backends.serves(life.id)) return
    const controller = new AbortController()
    const cancel = this.#options.clock.after(TAIL_DEADLINE_MS, () => controller.abort())
    try {
      const { logs } = this.#options.backends.get(life.id.runtime)
      const body = await logs.read(life, { ...PLAIN, tail: TAIL_LINES, signal: controller.signal })
      let kept = Buffer.alloc(0)
      for await (const chunk of body) kept = Buffer.concat([kept, chunk as Buffer]).subarray(-KEPT_TAIL_BYTES)
      this.#options.table.keepTail(life.life, life.run, kept)
    } catch (error) {
      this.#options.log.debug({ runtimeId: formatRuntimeId(life.id), err: error }, 'cannot keep the last of a log')
    } finally {
      cancel()
    }
  }
}

const PLAIN = {
  follow: false,
  sinceSeconds: null,
  sinceTime: null,
  timestamps: false,
  container: null,
  previous: false,
  limitBytes: null,
} as const

const toOptions = (query: LogQuery): LogOptions => ({
  tail: query.tail,
  follow: query.follow,
  sinceSeconds: query.since !== undefined && 'seconds' in query.since ? query.since.seconds : null,
  sinceTime: query.since !== undefined && 'time' in query.since ? query.since.time : null,
  timestamps: query.timestamps,
  container: query.container ?? null,
  previous: query.previous,
  limitBytes: query.follow ? null : query.limitBytes,
  signal: query.signal,
})

function podGone(key: string, life: Life): RuntimeError {
  const when = life.goneAt ?? life.deletedAt ?? life.endedAt
  const since = when === null ? '' : ` since ${new Date(when).toISOString()}`
  const why = life.reason === null ? '' : ` (${life.reason})`
  return new RuntimeError(
    'POD_NOT_FOUND',
    `cannot read logs of ${key}: its pod is gone${since}${why} and no tail was kept`,
    {
      runtimeId: key,
      ...(life.reason === null ? {} : { reason: life.reason }),
    },
  )
}

/** The last lines as bytes; a last line without its newline counts as one. */
export function lastLines(bytes: Buffer, count: number): Buffer {
  if (count === 0) return Buffer.alloc(0)
  let at = bytes.length
  if (at > 0 && bytes[at - 1] === 0x0a) at--
  for (let left = count; left > 0; left--) {
    const newline = at === 0 ? -1 : bytes.lastIndexOf(0x0a, at - 1)
    if (newline < 0) return bytes
    at = newline
  }
  return bytes.subarray(at + 1)
}
