import type { ObjectStore } from './object-store.ts'
import { allows, denial, type PolicyRule } from './rbac.ts'
import type { RequestFacts } from './request.ts'
import { unauthorized } from './status-error.ts'
import type { Change } from './types.ts'

/** Which requests a fault meets: all given parts must hold; a text `path` must be equal, a RegExp must match. */
export type Match = Partial<Omit<RequestFacts, 'path'> & { path: string | RegExp }> | ((facts: RequestFacts) => boolean)

/** What happens to a matched request. One of status, hang, reset; `slowMs` alone only delays. */
export interface Failure {
  /** how many requests it meets; absent: all until removed */
  times?: number
  /** answers with this status: `body` as given, else a Status object with `reason` and `message` */
  status?: number
  body?: string
  reason?: string
  message?: string
  /** seconds, sent as Retry-After and in the Status' details */
  retryAfter?: number
  /** never answers; the connection stays open */
  hang?: boolean
  /** resets the connection */
  reset?: boolean
  /** waits before it goes on */
  slowMs?: number
  /** the request is carried out first, and only its answer is lost or replaced */
  performed?: boolean
}

/** A fault in force. */
export interface FaultHandle {
  readonly hits: number
  remove(): void
}

export interface JournalEntry extends RequestFacts {
  at: number
  /** status answered; 0 while under way, hung or reset */
  status: number
}

/** What a stream must offer to be muted, closed or corrupted. */
export interface Stream {
  readonly facts: RequestFacts
  mute(muted: boolean): void
  close(how: 'end' | 'reset'): void
}

type CrashHook = { at: number; when: 'before' | 'after'; run: () => void | Promise<void> }
interface Planned {
  match: Match
  failure: Failure
  handle: { hits: number; remove(): void }
}

/** Requests kept in the journal; the oldest are dropped beyond it. */
const JOURNAL_LIMIT = 100_000

/**
 * Knobs of the sandbox for tests: failing, hanging, lying, forgetting, refusing. All act on the wire, never on the store,
 * save `compact` and `travelBack`. Nothing is on unless asked for.
 */
export class Faults {
  readonly journal: JournalEntry[] = []
  readonly streams = new Set<Stream>()
  readonly #store: ObjectStore
  #planned: Planned[] = []
  #hidden = new Set<(change: Change) => boolean>()
  #corrupt: { line: string; times: number }[] = []
  #crash: CrashHook[] = []
  #rules: PolicyRule[] | undefined
  #user = 'system:serviceaccount:default:runtimed'
  #tokens: string[] | undefined
  #writes = 0
  #muteNew = false
  #staleAt: number | undefined
  #paused = false
  #onResume = new Set<() => void>()

  constructor(store: ObjectStore, tokens?: string[]) {
    this.#store = store
    this.#tokens = tokens
  }

  /** Makes matching requests fail; the newest fault that matches counts. */
  fail(match: Match, failure: Failure): FaultHandle {
    const handle = {
      hits: 0,
      remove: () => {
        this.#planned = this.#planned.filter(planned => planned.handle !== handle)
      },
    }
    this.#planned.unshift({ match, failure, handle })
    return handle
  }

  /** Takes all faults of `fail` back. */
  clear(): void {
    this.#planned = []
  }

  /** Open streams say nothing more (no bytes, no end), as over a dead line; `future`: streams opened later too. */
  muteStreams(options: { future?: boolean } = {}): void {
    this.#muteNew = options.future ?? false
    for (const stream of this.streams) stream.mute(true)
  }

  /** Muted streams go on, what they kept back first. */
  unmuteStreams(): void {
    this.#muteNew = false
    for (const stream of this.streams) stream.mute(false)
  }

  /** Ends or resets the open streams. */
  closeStreams(how: 'end' | 'reset' = 'end'): void {
    for (const stream of [...this.streams]) stream.close(how)
  }

  /** Changes for which the function says true never reach a watch; lists show them. Returns how to stop hiding. */
  hideFromWatch(hide: (change: Change) => boolean): () => void {
    this.#hidden.add(hide)
    return () => this.#hidden.delete(hide)
  }

  /** The next events of watches are replaced by this text (its line end is added). */
  corruptLine(line = '{"type":"MODIFIED","object":{"kind":', times = 1): void {
    this.#corrupt.push({ line, times })
  }

  /** Forgets the history: watches and continue tokens from before are 410. */
  compact(): void {
    this.#store.compact()
  }

  /** The cluster becomes what it was at that version (a restored backup): streams end, versions jump back. */
  travelBack(version: number): void {
    this.closeStreams('reset')
    this.#store.restore(version)
  }

  /** Lists and gets show the past, as a lagging API server does; undefined: the present again. */
  serveStale(version: number | undefined): void {
    this.#staleAt = version
  }

  get staleAt(): number | undefined {
    return this.#staleAt
  }

  /** Only what the rules allow is allowed, the rest is 403; undefined: everything. */
  enforceRole(rules: PolicyRule[] | undefined, user = this.#user): void {
    this.#rules = rules
    this.#user = user
  }

  /** Only these bearer tokens are accepted, others are 401; undefined: no token is asked for. */
  setTokens(tokens: string[] | undefined): void {
    this.#tokens = tokens
  }

  /** Controllers, scheduler and garbage collector stand still; processes run on. */
  pauseControllers(): void {
    this.#paused = true
  }

  resumeControllers(): void {
    this.#paused = false
    for (const resume of this.#onResume) resume()
  }

  get paused(): boolean {
    return this.#paused
  }

  onResume(resume: () => void): () => void {
    this.#onResume.add(resume)
    return () => this.#onResume.delete(resume)
  }

  /** Runs once at the n-th write request from now on: `before` = carried out but not yet answered, `after` = answered. */
  onWrite(n: number, when: 'before' | 'after', run: () => void | Promise<void>): void {
    this.#crash.push({ at: this.#writes + n, when, run })
  }

  /** Requests of the journal that match. */
  requests(match: Match = {}): JournalEntry[] {
    return this.journal.filter(entry => matches(match, entry))
  }

  /** Write requests (POST, PUT, PATCH, DELETE) of the journal. */
  writes(): JournalEntry[] {
    return this.journal.filter(isWrite)
  }

  /** How often each kind of write was made: `create deployments`, `patch deployments/scale` … */
  writeCounts(): Record<string, number> {
    const counts: Record<string, number> = {}
    for (const entry of this.writes()) {
      const key = `${entry.verb} ${entry.resource}${entry.subresource ? `/${entry.subresource}` : ''}`
      counts[key] = (counts[key] ?? 0) + 1
    }
    return counts
  }

  /** For the server: enters a request into the journal. */
  record(facts: RequestFacts): JournalEntry {
    const entry = { ...facts, at: Date.now(), status: 0 }
    this.journal.push(entry)
    if (this.journal.length > JOURNAL_LIMIT) this.journal.splice(0, JOURNAL_LIMIT >> 1)
    return entry
  }

  /** For the server: the fault that meets this request, used up by one. */
  take(facts: RequestFacts): Failure | undefined {
    const planned = this.#planned.find(({ match }) => matches(match, facts))
    if (!planned) return undefined
    planned.handle.hits++
    if (planned.failure.times !== undefined && planned.handle.hits >= planned.failure.times) planned.handle.remove()
    return planned.failure
  }

  /** For the server: throws 401 or 403. */
  admit(facts: RequestFacts, authorization: string | undefined): void {
    if (this.#tokens && !this.#tokens.some(token => authorization === `Bearer ${token}`)) throw unauthorized()
    if (this.#rules && !allows(this.#rules, facts)) throw denial(facts, this.#user)
  }

  /** For the server: the number of this write, to be handed to `crashPoint`. */
  countWrite(facts: RequestFacts): number {
    return isWrite(facts) ? ++this.#writes : 0
  }

  /** For the server: runs what `onWrite` asked for at this point. */
  async crashPoint(write: number, when: 'before' | 'after'): Promise<void> {
    if (write === 0) return
    const due = this.#crash.filter(hook => hook.at === write && hook.when === when)
    this.#crash = this.#crash.filter(hook => !due.includes(hook))
    for (const hook of due) await hook.run()
  }

  /** For watches: is the change kept from them? */
  hides(change: Change): boolean {
    for (const hide of this.#hidden) if (hide(change)) return true
    return false
  }

  /** For watches: the text to send instead of the next event. */
  nextCorruption(): string | undefined {
    const first = this.#corrupt[0]
    if (!first) return undefined
    if (--first.times <= 0) this.#corrupt.shift()
    return first.line
  }

  /** For streams: enters one; it starts muted if asked for. */
  open(stream: Stream): void {
    this.streams.add(stream)
    if (this.#muteNew) stream.mute(true)
  }
}

const isWrite = (facts: RequestFacts): boolean => !['GET', 'HEAD', 'OPTIONS'].includes(facts.method)

function matches(match: Match, facts: RequestFacts): boolean {
  if (typeof match === 'function') return match(facts)
  return Object.entries(match).every(([key, wanted]) => {
    const value = facts[key as keyof RequestFacts]
    return wanted instanceof RegExp ? wanted.test(String(value ?? '')) : value === wanted
  })
}
