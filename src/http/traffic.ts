import { setMaxListeners } from 'node:events'
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { RuntimeError } from '../errors.ts'
import type { Limits } from './limits.ts'

/** What is in hand: how many requests and streams, and whether new ones are still taken. */
export class Traffic {
  readonly #limits: Limits
  readonly #shutdown = new AbortController()
  readonly #replies = new Map<Socket, ServerResponse>()
  #active = 0
  #streams = 0
  #idle: (() => void) | null = null

  constructor(limits: Limits) {
    this.#limits = limits
    // Every wait and stream listens to it.
    setMaxListeners(0, this.#shutdown.signal)
  }

  get draining(): boolean {
    return this.#shutdown.signal.aborted
  }

  get active(): number {
    return this.#active
  }

  get streams(): number {
    return this.#streams
  }

  /** The reply that a socket is waiting for, if any. */
  replyOn(socket: Socket): ServerResponse | undefined {
    return this.#replies.get(socket)
  }

  /** Counts every request from its headers to the end of its reply, whatever becomes of it. */
  watch(server: Server): void {
    server.prependListener('request', (request: IncomingMessage, reply: ServerResponse) => {
      const { socket } = request
      this.#active += 1
      this.#replies.set(socket, reply)
      reply.once('close', () => {
        this.#active -= 1
        if (this.#replies.get(socket) === reply) this.#replies.delete(socket)
        if (this.#active === 0) this.#idle?.()
      })
    })
    server.on('timeout', (socket: Socket) => this.#stalled(socket))
  }

  /** Throws SHUTTING_DOWN or TOO_MANY_REQUESTS. */
  admit(): void {
    if (this.draining) throw new RuntimeError('SHUTTING_DOWN', 'cannot take this on: the daemon is shutting down')
    if (this.#active > this.#limits.requests) {
      throw new RuntimeError('TOO_MANY_REQUESTS', 'cannot take this on: too many requests are in hand; repeat later')
    }
  }

  /** Counts a stream until its reply is closed. Throws TOO_MANY_REQUESTS. */
  openStream(reply: ServerResponse): void {
    if (this.#streams >= this.#limits.streams) {
      throw new RuntimeError('TOO_MANY_REQUESTS', 'cannot open another stream: too many are open; repeat later', {
        retryAfterSeconds: 5,
      })
    }
    this.#streams += 1
    reply.once('close', () => {
      this.#streams -= 1
    })
  }

  /** Aborts when the caller is gone or the daemon shuts down, whichever comes first. */
  signalFor(reply: ServerResponse): AbortSignal {
    const controller = new AbortController()
    const abort = (): void => controller.abort()
    const { signal: shutdown } = this.#shutdown
    if (shutdown.aborted || reply.closed) abort()
    shutdown.addEventListener('abort', abort, { once: true })
    reply.once('close', () => {
      shutdown.removeEventListener('abort', abort)
      abort()
    })
    return controller.signal
  }

  /** From now on nothing new is taken and what waits or streams is ended; resolves when nothing is in hand, or in time. */
  async drain(): Promise<void> {
    this.#shutdown.abort()
    if (this.#active === 0) return
    await new Promise<void>(resolve => {
      const timer = setTimeout(resolve, this.#limits.drainMs)
      this.#idle = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }

  /** Nothing moved on this socket for `stallMs`: a reader that reads nothing is cut, one that is waiting is let wait. */
  #stalled(socket: Socket): void {
    const reply = this.#replies.get(socket)
    if (reply === undefined || socket.writableLength > 0) socket.destroy()
    else socket.setTimeout(this.#limits.stallMs)
  }
}
