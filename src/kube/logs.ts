import { Readable } from 'node:stream'
import type { Life } from '../domain/life.ts'
import { formatRuntimeId } from '../domain/runtime-id.ts'
import { isDnsLabel } from '../domain/workload-name.ts'
import { isRuntimeError, RuntimeError } from '../errors.ts'
import type { LogOptions, Logs } from '../service/ports.ts'
import type { KubeClient, LogOptions as KubeLogOptions } from './client.ts'
import { isKubeStatus } from './errors.ts'
import { followLog } from './log-follow.ts'
import { type LogTarget, targetOf } from './log-target.ts'
import type { Pod } from './objects.ts'
import { pause } from './timing.ts'

export interface KubeLogsOptions {
  readonly client: Pick<KubeClient, 'podLog'>
  readonly pods: LogPods
  /** Resolves with the next change of the workload, after ms, or by the signal. */
  readonly changed: (life: Life, ms: number, signal: AbortSignal) => Promise<void>
}

/** Pods as logs need them: live, by owner. */
export interface LogPods {
  /** The newest pod of the workload (lifecycle.md §3); null = it has none. */
  newest(life: Life): Promise<Pod | null>
  /** The same pod again; null = gone. */
  again(pod: Pod): Promise<Pod | null>
  /** The workload itself is still there. */
  isThere(life: Life): Promise<boolean>
}

/** Logs of the newest pod of a workload, bytes as they were written. Nothing that goes wrong in a stream leaves it. */
export class KubeLogs implements Logs {
  readonly #options: KubeLogsOptions

  constructor(options: KubeLogsOptions) {
    this.#options = options
  }

  async read(life: Life, options: LogOptions): Promise<Readable> {
    if (options.container !== null && !isDnsLabel(options.container)) throw badContainer(life)
    const target = await this.#target(life, options)
    const waits = options.follow && !options.previous
    if (target === null && !(waits && life.state === 'creating')) throw noPod(life)
    if (!waits) return await this.#once(life, target as LogTarget, options)
    return await this.#follow(life, target, options)
  }

  async #once(life: Life, target: LogTarget, options: LogOptions): Promise<Readable> {
    if (target.state !== 'readable' && !options.previous) throw notReady(life, target)
    return streamOf(options.signal, async signal => {
      const limit = options.limitBytes ?? Number.POSITIVE_INFINITY
      const query = queryOf(options, target, signal)
      return firstBytes(await this.#open(life, target, query), limit)
    })
  }

  async #follow(life: Life, target: LogTarget | null, options: LogOptions): Promise<Readable> {
    if (target?.state === 'never') throw notReady(life, target)
    return await streamOf(options.signal, async signal => {
      const open = (which: LogTarget, query: KubeLogOptions) =>
        this.#open(life, which, { ...query, signal, deadlineMs: SILENCE_MS })
      const query = { ...queryOf({ ...options, limitBytes: null }, target, signal), follow: true, timestamps: true }
      const body = target?.state === 'readable' ? open(target, query) : null
      if (body !== null) await refusedSoon(body, signal)
      return followLog({
        first: target === null ? null : { target, body },
        query,
        timestamps: options.timestamps,
        signal,
        open,
        again: which => this.#again(which),
        find: () => this.#whileThere(life, options),
        changed: ms => this.#options.changed(life, ms, signal),
      })
    })
  }

  async #target(life: Life, options: LogOptions): Promise<LogTarget | null> {
    const pod = await this.#options.pods.newest(life)
    return pod === null ? null : targetOf(pod, options.container)
  }

  /** `none`: not yet a pod. `gone`: there will be none. */
  async #whileThere(life: Life, options: LogOptions): Promise<LogTarget | 'none' | 'gone'> {
    const target = await this.#target(life, options)
    if (target !== null) return target
    return (await this.#options.pods.isThere(life)) ? 'none' : 'gone'
  }

  async #again(target: LogTarget): Promise<LogTarget | null> {
    const pod = await this.#options.pods.again(target.pod)
    return pod === null ? null : targetOf(pod, target.container)
  }

  async #open(life: Life, { pod, ...target }: LogTarget, query: KubeLogOptions): Promise<Readable> {
    const { namespace = '', name = '' } = pod.metadata ?? {}
    try {
      const body = await this.#options.client.podLog(namespace, name, { ...query, container: target.container })
      return body.on('error', () => {}) // who reads it sees the error; who no longer does must not die of it
    } catch (error) {
      if (isKubeStatus(error, 404)) throw podNotFound(life)
      if (!isKubeStatus(error, 400)) throw error
      const told = error.kube.message
      if (WAITING.test(told)) throw notReady(life, { pod, ...target, reason: WAITING.exec(told)?.[1] ?? target.reason })
      const runtimeId = formatRuntimeId(life.id)
      throw new RuntimeError('REQUEST_INVALID', `cannot read logs of ${runtimeId}: ${told}`, {
        cause: error,
        runtimeId,
      })
    }
  }
}

/** A kubelet sends no headers before the first byte of a log; a followed one that stays silent so long is asked for anew. */
const SILENCE_MS = 300_000
/** How long the caller is kept waiting for an error that can still be told as one. */
const REFUSAL_MS = 1000

/** Throws what the opening fails with, if it fails soon; a container that is not ready after all is waited for. */
async function refusedSoon(opening: Promise<Readable>, signal: AbortSignal): Promise<void> {
  const done = new AbortController()
  const refused = opening.catch(error => {
    if (!isRuntimeError(error, 'LOGS_NOT_READY')) throw error
  })
  refused.catch(() => {})
  try {
    await Promise.race([refused, pause(REFUSAL_MS, AbortSignal.any([signal, done.signal]))])
  } finally {
    done.abort()
  }
}

/** The API server's words for a container without a log yet, with the reason where they have one. */
const WAITING = /waiting to start(?:: (\w+)\b)?|ContainerCreating|PodInitializing/

/** A stream out of what `open` gives; ends its source when it is closed, or by the signal. Its errors end it and nothing else. */
async function streamOf(outer: AbortSignal, open: (signal: AbortSignal) => Promise<AsyncIterable<Buffer>>) {
  const controller = new AbortController()
  const abort = (): void => controller.abort()
  if (outer.aborted) abort()
  outer.addEventListener('abort', abort)
  try {
    const stream = Readable.from(await open(controller.signal), { objectMode: false, highWaterMark: 64 * 1024 })
    stream.on('error', () => {})
    stream.once('close', () => {
      outer.removeEventListener('abort', abort)
      abort()
    })
    return stream
  } catch (error) {
    outer.removeEventListener('abort', abort)
    abort()
    throw error
  }
}

async function* firstBytes(body: Readable, limit: number): AsyncGenerator<Buffer> {
  let left = limit
  for await (const chunk of body as AsyncIterable<Buffer>) {
    yield chunk.length > left ? chunk.subarray(0, left) : chunk
    left -= chunk.length
    if (left <= 0) return
  }
}

/** sinceSeconds 0 = nothing that was; the API server accepts no such value, and means the same by tailLines 0. */
function queryOf(options: LogOptions, target: LogTarget | null, signal: AbortSignal): KubeLogOptions {
  const { tail, sinceSeconds, sinceTime, timestamps, previous, limitBytes } = options
  const tailLines = sinceSeconds === 0 ? 0 : tail
  return {
    signal,
    ...(target === null ? {} : { container: target.container }),
    ...(tailLines === null ? {} : { tailLines }),
    ...(sinceSeconds ? { sinceSeconds: Math.ceil(sinceSeconds) } : {}),
    ...(sinceTime === null ? {} : { sinceTime }),
    ...(timestamps ? { timestamps } : {}),
    ...(previous ? { previous } : {}),
    ...(limitBytes === null ? {} : { limitBytes }),
  }
}

function notReady(life: Life, target: LogTarget): RuntimeError {
  const runtimeId = formatRuntimeId(life.id)
  const why = [target.reason, target.message].filter(text => text !== null && text !== '').join(': ')
  const tail = why === '' ? '' : ` (${why})`
  const message = `cannot read logs of ${runtimeId} yet: its container has not started${tail}; follow waits for it`
  return new RuntimeError('LOGS_NOT_READY', message, {
    runtimeId,
    ...(target.reason === null ? {} : { reason: target.reason }),
  })
}

/** Not started yet is 409, as it is with a pod; an orphan, of which there is no row, may be anything. */
function noPod(life: Life): RuntimeError {
  const { life: row, run, open, started, state, reason } = life
  const toCome = row !== 0 && (run === 0 || (open && !started))
  if (!toCome) return podNotFound(life)
  const runtimeId = formatRuntimeId(life.id)
  const why = reason === null ? '' : ` (${reason})`
  const then = state === 'created' ? 'start it first' : 'repeat, or use follow, which waits'
  const message = `cannot read logs of ${runtimeId} yet: it is ${state} and has no pod${why}; ${then}`
  return new RuntimeError('LOGS_NOT_READY', message, { runtimeId, ...(reason === null ? {} : { reason }) })
}

function podNotFound(life: Life): RuntimeError {
  const runtimeId = formatRuntimeId(life.id)
  const { state, endedAt } = life
  const since = endedAt === null ? '' : ` since ${new Date(endedAt).toISOString()}`
  const why = life.reason === null ? `; it is ${state}${since}` : ` (${life.reason}); it is ${state}${since}`
  return new RuntimeError('POD_NOT_FOUND', `cannot read logs of ${runtimeId}: it has no pod${why}`, {
    runtimeId,
    ...(life.reason === null ? {} : { reason: life.reason }),
  })
}

function badContainer(life: Life): RuntimeError {
  const runtimeId = formatRuntimeId(life.id)
  return new RuntimeError('REQUEST_INVALID', `cannot read logs of ${runtimeId}: "container" is no container name`, {
    runtimeId,
    errors: [{ path: 'container', message: 'a DNS label: a-z, 0-9 and "-", at most 63' }],
  })
}
