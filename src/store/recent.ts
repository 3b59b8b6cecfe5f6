/** What was read last, by runtime ID, up to a number of entries; the one not asked for the longest time goes first. */
export class Recent<T> {
  readonly #limit: number
  readonly #entries = new Map<string, T>()

  constructor(limit: number) {
    this.#limit = limit
  }

  get(id: string): T | undefined {
    const entry = this.#entries.get(id)
    if (entry === undefined) return undefined
    this.#entries.delete(id)
    this.#entries.set(id, entry)
    return entry
  }

  keep(id: string, entry: T): void {
    if (this.#entries.size >= this.#limit) this.#forgetOldest()
    this.#entries.set(id, entry)
  }

  /** Whatever becomes of the transaction that changes it: it is read again when it is asked for. */
  forget(id: string): void {
    this.#entries.delete(id)
  }

  clear(): void {
    this.#entries.clear()
  }

  #forgetOldest(): void {
    for (const id of this.#entries.keys()) return void this.#entries.delete(id)
  }
}
