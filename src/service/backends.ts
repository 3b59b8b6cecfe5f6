import type { RuntimeId, RuntimeName } from '../domain/runtime-id.ts'
import { RuntimeError } from '../errors.ts'
import type { Backend } from './ports.ts'

/** The configured runtimes by name; each is one object for the life of the process. */
export class Backends {
  readonly #byName: ReadonlyMap<RuntimeName, Backend>
  readonly #namespaces: readonly string[] | '*'
  /** The runtime of a request that names none. */
  readonly default: Backend

  constructor(all: readonly Backend[], defaultName: RuntimeName, namespaces: readonly string[] | '*') {
    this.#byName = new Map(all.map(backend => [backend.name, backend]))
    this.#namespaces = namespaces
    this.default = this.get(defaultName)
  }

  /** Throws RUNTIME_ID_INVALID, listing what is configured. */
  get(name: RuntimeName): Backend {
    const backend = this.#byName.get(name)
    if (backend !== undefined) return backend
    throw new RuntimeError(
      'RUNTIME_ID_INVALID',
      `cannot use runtime "${name}": it is not configured; RUNTIMES has ${[...this.#byName.keys()].join(', ')}`,
    )
  }

  /** Whether this daemon may touch it: runtime configured, namespace watched. Rows that it may not rest (lifecycle.md §9). */
  serves(id: RuntimeId): boolean {
    return this.#byName.has(id.runtime) && (this.#namespaces === '*' || this.#namespaces.includes(id.namespace))
  }

  get all(): readonly Backend[] {
    return [...this.#byName.values()]
  }
}
