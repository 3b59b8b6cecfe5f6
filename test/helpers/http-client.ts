import { setTimeout as sleep } from 'node:timers/promises'

/** An answer of the daemon; `body` is the parsed JSON, or the text where it is not JSON. */
export interface Reply {
  readonly status: number
  readonly headers: Headers
  // biome-ignore lint/suspicious/noExplicitAny: tests look into replies of any shape
  readonly body: any
}

// biome-ignore lint/suspicious/noExplicitAny: a runtime as the wire shows it
export type Runtime = any

/** An event as the wire shows it. */
export interface WireEvent {
  readonly id: string
  readonly seq: number
  readonly type: string
  readonly runtimeId: string
  readonly uid: string | null
  readonly run: number
  readonly reason: string | null
  readonly message: string | null
  readonly exitCode: number | null
  readonly time: string
}

export type Api = (method: string, path: string, body?: unknown, headers?: Record<string, string>) => Promise<Reply>

/** A client of the daemon over HTTP, as a user has it: nothing is retried and nothing is hidden. */
export interface Client {
  readonly url: string
  readonly api: Api
  /** Path of a runtime, with `rest` behind it. */
  readonly path: (id: string, rest?: string) => string
  /** All events of a runtime, oldest first. */
  readonly eventsOf: (id: string) => Promise<WireEvent[]>
  /** The feed after a cursor (default: from the oldest kept), at most 5,000. */
  readonly events: (after?: string | number) => Promise<WireEvent[]>
  /** Asks until `accept` is true of the runtime (`null` for a 404) and returns it; rejects after `seconds` with what was seen last. */
  readonly waitFor: (id: string, accept: (runtime: Runtime | null) => boolean, seconds?: number) => Promise<Runtime>
}

const POLL_MS = 30

export function createClient(url: string): Client {
  const api: Api = async (method, path, body, headers = {}) => {
    const text = body === undefined || typeof body === 'string' ? body : JSON.stringify(body)
    const response = await fetch(url + path, {
      method,
      headers: { ...(text !== undefined && { 'content-type': 'application/json' }), ...headers },
      ...(text !== undefined && { body: text }),
    })
    const answer = await response.text()
    const json = /\bjson\b/.test(response.headers.get('content-type') ?? '') && answer !== ''
    return { status: response.status, headers: response.headers, body: json ? JSON.parse(answer) : answer }
  }
  const path = (id: string, rest = ''): string => `/v1/runtimes/${encodeURIComponent(id)}${rest}`
  return {
    url,
    api,
    path,
    async eventsOf(id) {
      const { status, body } = await api('GET', path(id, '/events?limit=5000'))
      if (status !== 200) throw new Error(`cannot read the events of ${id}: ${JSON.stringify(body)}`)
      return body.items
    },
    async events(after) {
      const { status, body } = await api('GET', `/v1/events?limit=5000${after === undefined ? '' : `&after=${after}`}`)
      if (status !== 200) throw new Error(`cannot read the events: ${JSON.stringify(body)}`)
      return body.items
    },
    async waitFor(id, accept, seconds = 20) {
      const ask = () => api('GET', path(id))
      const known = (reply: Reply) => (reply.status === 200 ? reply.body : null)
      const reply = await poll(ask, reply => reply.status < 500 && accept(known(reply)), seconds)
      return known(reply)
    },
  }
}

/** Asks until `accept` holds and returns that answer; rejects after `seconds` with the last one. */
export async function poll<T>(ask: () => Promise<T> | T, accept: (answer: T) => boolean, seconds = 20): Promise<T> {
  const deadline = performance.now() + seconds * 1000
  for (;;) {
    const answer = await ask()
    if (accept(answer)) return answer
    if (performance.now() > deadline) {
      throw new Error(`not so within ${seconds} s: ${accept}; last: ${JSON.stringify(answer)?.slice(0, 3000)}`)
    }
    await sleep(POLL_MS)
  }
}
