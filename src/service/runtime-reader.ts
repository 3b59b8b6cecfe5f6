import { parseLabelSelector } from '../domain/label-selector.ts'
import type { Life } from '../domain/life.ts'
import { formatRuntimeId, isRuntimeName, parseRuntimeId } from '../domain/runtime-id.ts'
import { RuntimeError } from '../errors.ts'
import type { RuntimeListPage, RuntimeListQuery, WaitQuery } from './api.ts'
import type { Backends } from './backends.ts'
import type { Clock, EventTable, RuntimeTable } from './ports.ts'
import type { ChangeSignals } from './recorder.ts'
import { notFound } from './runtime-verbs.ts'
import type { InspectedRuntime, RuntimeView } from './runtime-view.ts'
import { allows, requireNamespace, type Scope } from './scope.ts'
import type { TakeUp } from './take-up.ts'
import type { Views } from './views.ts'
import { waitFor } from './waiter.ts'

const SHOWN_EVENTS = 20

export interface RuntimeReaderOptions {
  readonly table: Pick<RuntimeTable, 'newest' | 'byLife' | 'list' | 'monitored'> & Pick<EventTable, 'newestOf'>
  readonly backends: Backends
  readonly views: Views
  readonly takeUp: TakeUp
  readonly changes: ChangeSignals
  readonly clock: Clock
}

/** inspect, list, wait: from rows and cache. Only an ID without a row costs a call: one GET. */
export class RuntimeReader {
  readonly #options: RuntimeReaderOptions

  constructor(options: RuntimeReaderOptions) {
    this.#options = options
  }

  async inspect(scope: Scope, text: string): Promise<InspectedRuntime> {
    const key = this.#keyOf(scope, text)
    const { table, views } = this.#options
    const life = table.newest(key)
    if (life === null || life.state === 'deleted') {
      const orphan = await this.#orphan(key)
      if (orphan !== null) return { ...orphan, spec: null, events: [] }
      throw notFound(key, life)
    }
    return { ...views.of(life), spec: life.spec, events: table.newestOf(key, SHOWN_EVENTS) }
  }

  list(scope: Scope, query: RuntimeListQuery): RuntimeListPage {
    const { table, views, backends } = this.#options
    if (query.namespace !== undefined) requireNamespace(scope, query.namespace)
    const selector = query.labelSelector === undefined ? null : parseLabelSelector(query.labelSelector)
    const { lives, next } = table.list({
      runtime: query.runtime === undefined ? undefined : requireConfigured(query.runtime, backends),
      namespaces: query.namespace === undefined ? scope.namespaces : [query.namespace],
      kind: query.kind,
      states: query.states,
      accept: life => selector === null || selector.matches(life.labels),
      after: query.cursor === undefined ? undefined : readListCursor(query.cursor),
      limit: query.limit,
    })
    return { items: lives.map(life => views.of(life)), nextCursor: next === null ? null : listCursor(next) }
  }

  async wait(scope: Scope, text: string, query: WaitQuery): Promise<{ reached: boolean; runtime: RuntimeView }> {
    const key = this.#keyOf(scope, text)
    const { table, changes, clock, views } = this.#options
    const first = table.newest(key)
    if (first === null) throw notFound(key, null)
    const ofThisLife = (): Life | null => {
      const newest = table.newest(key)
      return newest?.life === first.life ? newest : table.byLife(first.life)
    }
    const { reached, life } = await waitFor({ id: key, read: ofThisLife }, query, { changes, clock, first })
    return { reached, runtime: views.of(life) }
  }

  monitored(scope: Scope): readonly string[] {
    return this.#options.table.monitored().filter(id => allows(scope, parseRuntimeId(id).namespace))
  }

  view(life: Life): RuntimeView {
    return this.#options.views.of(life)
  }

  #keyOf(scope: Scope, text: string): string {
    const id = parseRuntimeId(text)
    requireNamespace(scope, id.namespace)
    this.#options.backends.get(id.runtime)
    return formatRuntimeId(id)
  }

  /** What is seen of a labelled workload without a row; takes nothing up (§2.8). */
  async #orphan(key: string): Promise<RuntimeView | null> {
    const found = await this.#options.takeUp.find(parseRuntimeId(key))
    const shown = found === null ? null : await this.#options.takeUp.preview(found)
    return shown === null ? null : this.#options.views.of(shown.life, shown.seen)
  }
}

function requireConfigured(text: string, backends: Backends): string {
  const name = text.trim().toLowerCase() === 'kubernetes' ? 'k8s' : text.trim().toLowerCase()
  if (isRuntimeName(name) && backends.all.some(backend => backend.name === name)) return name
  const configured = backends.all.map(backend => backend.name).join(', ')
  throw new RuntimeError('REQUEST_INVALID', `cannot list runtimes of "${text}": it is not configured`, {
    errors: [{ path: 'runtime', message: `one of ${configured}` }],
  })
}

/** Opaque to callers: the last ID of the page, so that what exists throughout is seen once whatever comes and goes. */
export const listCursor = (lastId: string): string => Buffer.from(lastId).toString('base64url')

/** Throws REQUEST_INVALID for a text that no page gave out. */
export function readListCursor(text: string): string {
  const id = Buffer.from(text, 'base64url').toString()
  try {
    if (listCursor(id) === text && formatRuntimeId(parseRuntimeId(id)) === id) return id
  } catch {
    // told below
  }
  throw new RuntimeError('REQUEST_INVALID', 'cannot read the cursor: use the nextCursor of the page before', {
    errors: [{ path: 'cursor', message: 'a nextCursor that a page of this list gave out' }],
  })
}
