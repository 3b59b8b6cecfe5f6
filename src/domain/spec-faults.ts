import { type FieldError, RuntimeError } from '../errors.ts'
import type { Reading } from './quantity.ts'

/** malformed → 400; policy → 422 SPEC_REFUSED; image → 422 IMAGE_REFUSED. */
type Weight = 'malformed' | 'policy' | 'image'

/** Longest part of a user's text repeated in a message. */
const MAX_QUOTE = 80

/** A body of 256 KiB can hold thousands of faults; nobody reads more than these. */
const MAX_ERRORS = 100

/** A text of the user's made safe for a message: quoted, escaped and cut. Never for env values, which may be secrets. */
export const quote = (text: string): string =>
  JSON.stringify(text.length > MAX_QUOTE ? `${text.slice(0, MAX_QUOTE)}…` : text)

/** One JSON pointer from raw keys (RFC 6901). */
export const pointer = (...keys: readonly (string | number)[]): string =>
  keys.map(key => `/${String(key).slice(0, 253).replaceAll('~', '~0').replaceAll('/', '~1')}`).join('')

/** Collects what is wrong with one request, so that its sender can mend everything in one go. */
export class SpecFaults {
  readonly #faults: { weight: Weight; error: FieldError }[] = []

  malformed(path: string, message: string): void {
    this.#faults.push({ weight: 'malformed', error: { path, message } })
  }

  /** The message names the setting that forbids it. */
  refused(path: string, message: string, weight: 'policy' | 'image' = 'policy'): void {
    this.#faults.push({ weight, error: { path, message } })
  }

  /** The value of a reading, or the stand-in once its fault is noted. */
  take<T>(path: string, reading: Reading<T>, standIn: T): T {
    if ('value' in reading) return reading.value
    this.malformed(path, reading.fault)
    return standIn
  }

  /** Throws when there is a fault: REQUEST_INVALID if any is malformed, else IMAGE_REFUSED or SPEC_REFUSED. */
  throwIfAny(doing: string): void {
    const [first] = this.#faults
    if (!first) return
    const errors = this.#faults.slice(0, MAX_ERRORS).map(fault => fault.error)
    const more = this.#faults.length > 1 ? ` (and ${this.#faults.length - 1} more, see errors)` : ''
    throw new RuntimeError(this.#code(), `cannot ${doing}: ${first.error.path} ${first.error.message}${more}`, {
      errors,
    })
  }

  #code(): 'REQUEST_INVALID' | 'IMAGE_REFUSED' | 'SPEC_REFUSED' {
    if (this.#faults.some(fault => fault.weight === 'malformed')) return 'REQUEST_INVALID'
    return this.#faults.every(fault => fault.weight === 'image') ? 'IMAGE_REFUSED' : 'SPEC_REFUSED'
  }
}
