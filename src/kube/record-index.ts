/**
 * Records by a value of theirs, for values that most often belong to one record: a Set for each would cost more than
 * the records. Records are compared by identity.
 */
export class RecordIndex<R> {
  readonly #key: (record: R) => string | undefined
  readonly #records = new Map<string, R | R[]>()

  constructor(key: (record: R) => string | undefined) {
    this.#key = key
  }

  get(value: string): readonly R[] {
    const found = this.#records.get(value)
    return found === undefined ? [] : Array.isArray(found) ? found : [found]
  }

  add(record: R): void {
    const value = this.#key(record)
    if (value === undefined) return
    const found = this.#records.get(value)
    if (found === undefined) this.#records.set(value, record)
    else this.#records.set(value, Array.isArray(found) ? [...found, record] : [found, record])
  }

  /** `record` in the place of `previous`, which was added before. */
  replace(previous: R, record: R): void {
    const value = this.#key(record)
    if (value !== undefined && this.#records.get(value) === previous) {
      this.#records.set(value, record)
      return
    }
    this.remove(previous)
    this.add(record)
  }

  remove(record: R): void {
    const value = this.#key(record)
    if (value === undefined) return
    const rest = this.get(value).filter(other => other !== record)
    if (rest.length === 0) this.#records.delete(value)
    else this.#records.set(value, rest.length === 1 ? (rest[0] as R) : rest)
  }
}
