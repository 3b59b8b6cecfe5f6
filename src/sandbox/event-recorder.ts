import { timestamp } from './json.ts'
import type { Registry } from './registry.ts'
import { apiVersionOf, resourceOf } from './resources.ts'
import { StatusError } from './status-error.ts'
import type { KubeObject } from './types.ts'

/** Event objects kept in all; the oldest go first (a real cluster keeps them for an hour). */
const EVENT_LIMIT = 2_000

export interface Occurrence {
  resource: string
  object: KubeObject
  type: 'Normal' | 'Warning'
  reason: string
  message: string
  component: string
}

/** Writes Event objects; the same occurrence again raises the count of its Event. */
export class EventRecorder {
  readonly #registry: Registry
  readonly #warningsOnly: boolean
  readonly #known = new Map<string, { namespace: string; name: string }>()
  #serial = Date.now()

  /** `warningsOnly` leaves out Normal occurrences, for thousands of workloads. */
  constructor(registry: Registry, warningsOnly = false) {
    this.#registry = registry
    this.#warningsOnly = warningsOnly
  }

  record(occurrence: Occurrence): void {
    const { object, type, reason, message } = occurrence
    if (this.#warningsOnly && type === 'Normal') return
    const key = [object.metadata.uid, type, reason, message].join('|')
    const known = this.#known.get(key)
    try {
      if (known && this.#registry.store.get('events', known.namespace, known.name)) this.#repeat(known)
      else this.#create(key, occurrence)
    } catch (error) {
      if (!(error instanceof StatusError)) throw error
    }
  }

  #repeat({ namespace, name }: { namespace: string; name: string }): void {
    this.#registry.update('events', namespace, name, draft => {
      draft.count = (draft.count ?? 1) + 1
      draft.lastTimestamp = timestamp(Date.now())
    })
  }

  #create(key: string, { resource, object, type, reason, message, component }: Occurrence): void {
    const namespace = object.metadata.namespace ?? 'default'
    const name = `${object.metadata.name}.${(++this.#serial).toString(16)}`
    const now = timestamp(Date.now())
    const { kind } = resourceOf(resource)
    this.#registry.create('events', namespace, {
      metadata: { name },
      involvedObject: {
        kind,
        namespace,
        name: object.metadata.name,
        uid: object.metadata.uid,
        apiVersion: apiVersionOf(resourceOf(resource)),
        resourceVersion: object.metadata.resourceVersion,
      },
      reason,
      message,
      source: { component },
      firstTimestamp: now,
      lastTimestamp: now,
      count: 1,
      type,
      eventTime: null,
      reportingComponent: component,
      reportingInstance: '',
    })
    this.#known.set(key, { namespace, name })
    if (this.#known.size > EVENT_LIMIT) this.#dropOldest()
  }

  #dropOldest(): void {
    const [key, { namespace, name }] = this.#known.entries().next().value!
    this.#known.delete(key)
    const event = this.#registry.store.get('events', namespace, name)
    if (event) this.#registry.store.remove('events', event)
  }
}
