import type { ServerResponse } from 'node:http'
import type { Faults, Stream } from './faults.ts'
import type { RequestFacts } from './request.ts'

/** A long answer (watch, followed log): chunked, can be muted and closed by faults, ends with its connection. */
export class ResponseStream implements Stream {
  readonly facts: RequestFacts
  readonly #response: ServerResponse
  readonly #faults: Faults
  readonly #onClose: (() => void)[] = []
  #muted = false
  #kept: (string | Buffer)[] = []
  #endAfter = false
  closed = false

  constructor(facts: RequestFacts, response: ServerResponse, faults: Faults) {
    this.facts = facts
    this.#response = response
    this.#faults = faults
    response.on('close', () => this.#finish())
    faults.open(this)
  }

  /** Runs when the stream is over, whoever ended it. */
  onClose(run: () => void): void {
    if (this.closed) run()
    else this.#onClose.push(run)
  }

  write(chunk: string | Buffer): void {
    if (this.closed) return
    if (this.#muted) this.#kept.push(chunk)
    else this.#response.write(chunk)
  }

  /** Ends the stream after what was written; a muted one when it may speak again. */
  end(): void {
    if (this.closed) return
    if (this.#muted) {
      this.#endAfter = true
      return
    }
    this.#response.end()
    this.#finish()
  }

  mute(muted: boolean): void {
    this.#muted = muted
    if (muted) return
    const kept = this.#kept
    this.#kept = []
    for (const chunk of kept) this.write(chunk)
    if (this.#endAfter) this.end()
  }

  close(how: 'end' | 'reset'): void {
    if (how === 'reset') this.#response.socket?.resetAndDestroy()
    else this.#response.end()
    this.#finish()
  }

  #finish(): void {
    if (this.closed) return
    this.closed = true
    this.#faults.streams.delete(this)
    for (const run of this.#onClose) run()
  }
}
