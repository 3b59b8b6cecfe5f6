import { setImmediate as nextTurn } from 'node:timers/promises'
import { decodeEvent, decodeList, free, type RawList, type RawObject } from './decode.ts'
import { readStatus } from './errors.ts'
import { collectionPath } from './objects.ts'
import { judgeFailure, statusOf } from './reflector-failure.ts'
import { type Clock, type ReflectorCounters, type ReflectorOptions, systemClock } from './reflector-options.ts'
import type { ReflectorProfile } from './reflector-profile.ts'
import { backoffDelay } from './timing.ts'
import type { Reply } from './transport.ts'
import { isOlderVersion } from './versions.ts'
import { readWatch, WatchFault } from './watch-stream.ts'

/** What the next step waits for. `longest`: what will not heal by itself soon (403, 404). */
interface Outcome {
  readonly wait: 'none' | 'jitter' | 'backoff' | 'longest'
  readonly failure?: string
  readonly retryAfterMs?: number | undefined
}

/**
 * Lists and watches one collection for ever, one request at a time, and tells the sink.
 *
 * It promises that the last thing told of an object is, in the end, the server's; not that each change is told. A broken
 * stream resumes from the last version; an expired version (410), silence over two watches, three unreadable streams in a
 * row and the passing of ten minutes start over with a list. Semantics: kube-client.md §6.2 and §6.3.
 */
export class Reflector {
  readonly counters: ReflectorCounters = { lists: 0, watches: 0, restarts: 0, events: 0, badLines: 0 }
  readonly #options: ReflectorOptions
  readonly #profile: ReflectorProfile
  readonly #clock: Clock
  readonly #path: string
  #controller: AbortController | null = null
  #loop: Promise<void> = Promise.resolve()
  /** Where to resume; null = list first. */
  #version: string | null = null
  #highest: string | null = null
  #relistAt = 0
  #contact: number | null = null
  #failure: string | null = null
  #failures = 0
  #failedAt = Number.NEGATIVE_INFINITY
  #silences = 0
  #unreadable = 0
  #bookmarks = false
  #rewind: { lists: number; since: number } | null = null

  constructor(options: ReflectorOptions) {
    this.#options = options
    this.#profile = options.profile
    this.#clock = options.clock ?? systemClock
    this.#path = collectionPath(options.kind, options.namespace)
  }

  /** When the server last said something of this collection (ms): a page of a list, a byte of a watch. */
  get lastContact(): number | null {
    return this.#contact
  }

  /** The last failure, while it lasts; without addresses. */
  get reason(): string | null {
    return this.#failure
  }

  /** Does nothing while it runs. After stop() it goes on from where it was. */
  start(): void {
    if (this.#controller && !this.#controller.signal.aborted) return
    const controller = new AbortController()
    this.#controller = controller
    this.#highest ??= this.#options.newestKnown?.() ?? null
    this.#loop = this.#loop.then(() => this.#run(controller.signal))
  }

  /** Ends list, watch and waiting; afterwards nothing is told any more. */
  async stop(): Promise<void> {
    this.#controller?.abort()
    await this.#loop
  }

  async #run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const outcome = await this.#step(signal)
      if (signal.aborted) return
      await this.#wait(outcome, signal)
    }
  }

  async #step(signal: AbortSignal): Promise<Outcome> {
    const listing = this.#version === null || this.#clock.now() >= this.#relistAt
    try {
      return listing ? await this.#list(signal) : await this.#watch(this.#version as string, signal)
    } catch (error) {
      if (listing) this.#relistAt = this.#clock.now() + this.#profile.backoffMaxMs // until then the watch may go on
      return this.#judge(error, listing ? 'list' : 'watch')
    }
  }

  async #wait(outcome: Outcome, signal: AbortSignal): Promise<void> {
    const { now, random } = this.#clock
    if (outcome.failure !== undefined) this.#noteFailure(outcome.failure)
    if (outcome.wait === 'none') return
    if (outcome.wait === 'jitter') {
      await this.#clock.pause(random() * this.#profile.reconnectJitterMs, signal)
      return
    }
    const { backoffBaseMs: base, backoffMaxMs: max, healthyMs } = this.#profile
    if (now() - this.#failedAt > healthyMs) this.#failures = 0
    const delay = backoffDelay(outcome.wait === 'longest' ? 30 : this.#failures, base, max, random)
    this.#failures += 1
    await this.#clock.pause(Math.max(delay, outcome.retryAfterMs ?? 0), signal)
    this.#failedAt = now()
  }

  #noteFailure(failure: string): void {
    this.#failure = failure
    this.counters.restarts += 1
    const { kind, namespace, log } = this.#options
    log.warn({ kind, namespace, reason: failure }, 'the watch of the cluster was interrupted')
  }

  #heard(): void {
    this.#contact = this.#clock.now()
    this.#failure = null
  }

  async #list(signal: AbortSignal): Promise<Outcome> {
    const { transport, labelSelector, sink } = this.#options
    const { pageSize: limit, callDeadlineMs: deadlineMs, pageDeadlineMs: bodyDeadlineMs, relistMs } = this.#profile
    this.counters.lists += 1
    let page: RawList | null = null
    do {
      const query = { labelSelector, limit, continue: page?.token }
      const call = { method: 'GET', path: this.#path, query, retry: false, gzip: true } as const
      const reply: Reply = await transport.request({ ...call, deadlineMs, bodyDeadlineMs, signal })
      if (signal.aborted) return { wait: 'none' }
      if (reply.status !== 200) throw new WatchFault('status', readStatus(reply))
      const first = page === null
      page = decodeList(reply.body)
      this.#heard()
      if (first) {
        const doubt = this.#doubt(page.version)
        if (doubt) return doubt
      }
      sink.page(page.items)
      free(reply.body)
      await nextTurn()
      if (signal.aborted) return { wait: 'none' }
    } while (page.token !== undefined)
    await sink.end()
    this.#version = page.version ?? null
    this.#highest = page.version ?? null
    this.#silences = 0
    this.#relistAt = this.#clock.now() + relistMs * (0.8 + 0.4 * this.#clock.random())
    return { wait: 'none' }
  }

  /** A list older than what we know is believed only when the server insists (an etcd restored from a backup). */
  #doubt(version: string | undefined): Outcome | null {
    if (version === undefined) return { wait: 'backoff', failure: 'a list without a version' }
    const back = this.#highest !== null && isOlderVersion(version, this.#highest)
    if (back) {
      const now = this.#clock.now()
      this.#rewind ??= { lists: 0, since: now }
      this.#rewind.lists += 1
      const { rewindLists, rewindMs } = this.#profile
      if (this.#rewind.lists < rewindLists || now - this.#rewind.since < rewindMs) {
        this.#version = null
        return { wait: 'backoff', failure: 'the cluster showed an older list than before' }
      }
      const { kind, namespace, log } = this.#options
      log.warn(
        { kind, namespace, from: this.#highest, to: version },
        'rv-rewind: the cluster went back in time (restored, or another one); it is believed from now on',
      )
    }
    this.#rewind = null
    this.#options.sink.begin(back)
    return null
  }

  async #watch(version: string, signal: AbortSignal): Promise<Outcome> {
    const { now, random } = this.#clock
    const { callDeadlineMs, watchMs, watchMarginMs, idleMs, maxLineBytes } = this.#profile
    const timeoutSeconds = Math.max(1, Math.round((watchMs / 1000) * (1 - 0.1 * random())))
    this.counters.watches += 1
    const started = now()
    const query = {
      watch: true,
      labelSelector: this.#options.labelSelector,
      resourceVersion: version,
      allowWatchBookmarks: true,
      timeoutSeconds,
    }
    const call = { method: 'GET', path: this.#path, query, deadlineMs: callDeadlineMs, signal } as const
    const reply = await this.#options.transport.stream(call)
    const hardMs = timeoutSeconds * 1000 + watchMarginMs
    const end = await readWatch(reply, {
      signal,
      maxLineBytes,
      hardMs: Math.max(1, Math.min(hardMs, this.#relistAt - started)),
      idleMs: () => (this.#bookmarks ? idleMs : hardMs),
      onBytes: () => this.#heard(),
      onLine: line => this.#take(line),
    })
    return this.#ended({ ...end, lastedMs: now() - started, askedMs: timeoutSeconds * 1000 })
  }

  /** How a watch that was not broken off by an error goes on. */
  #ended(end: { how: 'clean' | 'idle' | 'hard'; silent: boolean; lastedMs: number; askedMs: number }): Outcome {
    if (this.#clock.now() >= this.#relistAt) return { wait: 'none' }
    const long = Math.min(end.askedMs, this.#profile.idleMs) / 2
    if (!end.silent) this.#silences = 0
    else if (end.lastedMs >= long) this.#silences += 1
    if (this.#silences >= 2) {
      this.#silences = 0
      this.#version = null
      return { wait: 'backoff', failure: 'two watches in a row were silent' }
    }
    if (end.how !== 'clean' && end.silent) return { wait: 'backoff', failure: 'the watch fell silent' }
    if (end.how === 'idle') return { wait: 'backoff', failure: 'the watch fell silent' }
    if (end.lastedMs < this.#profile.shortWatchMs) return { wait: 'backoff', failure: 'the watch was ended at once' }
    return { wait: 'jitter' }
  }

  /** One line of a watch. The version moves on only after the sink was told. Throws WatchFault. */
  #take(line: Buffer): void {
    const { type, object } = read(line)
    if (type === 'ERROR') throw new WatchFault('status', statusOf(object))
    const version = object.metadata?.resourceVersion
    if (!version) throw new WatchFault('unreadable')
    if (type === 'BOOKMARK') this.#bookmarks = true
    else this.#tell(type, object)
    this.#unreadable = 0
    this.#version = version
    if (this.#highest === null || !isOlderVersion(version, this.#highest)) this.#highest = version
  }

  #tell(type: string, object: RawObject): void {
    const { kind, sink } = this.#options
    if (object.kind !== kind || !object.metadata?.name || !object.metadata.uid) throw new WatchFault('unreadable')
    if (type === 'ADDED' || type === 'MODIFIED') sink.apply(object)
    else if (type === 'DELETED') sink.remove(object)
    else throw new WatchFault('unreadable')
    this.counters.events += 1
  }

  #judge(error: unknown, what: 'list' | 'watch'): Outcome {
    const failure = judgeFailure(error, what)
    if (failure.kind === 'unreadable') {
      this.counters.badLines += 1
      this.#unreadable += 1
    }
    if (failure.kind === 'expired' || this.#unreadable >= 3) {
      this.#unreadable = 0
      this.#version = null
    }
    const wait = failure.kind === 'refused' ? 'longest' : 'backoff'
    return { wait, failure: failure.text, retryAfterMs: failure.retryAfterMs }
  }
}

function read(line: Buffer) {
  try {
    return decodeEvent(line)
  } catch (cause) {
    throw new WatchFault('unreadable', null, cause)
  }
}
