import type { Sandbox } from '../../src/sandbox/index.ts'
import type { Client, WireEvent } from '../helpers/daemon.ts'

/** What a fault must not change (Sieve's differential test): the cluster in the end, what it took to get there, what was told of it. */
export interface Digest {
  /** `deployments/web`: the object without uid, versions and times; its pods as one line each. */
  readonly objects: Record<string, unknown>
  /** `deployments/web` → how often such an object came into being and ended. */
  readonly counts: Record<string, { made: number; ended: number }>
  /** `deployment|web` → its events without seq and time; uids numbered in their order. */
  readonly events: Record<string, string[]>
  /** `deployment|web` → state and run as the daemon shows them. */
  readonly states: Record<string, string>
}

const WATCHED = ['deployments', 'jobs', 'services']

/** Counts from now on what comes into being and what ends in the cluster: the world itself, not the calls. */
export class Ledger {
  readonly #sandbox: Sandbox
  readonly #counts = new Map<string, { made: number; ended: number }>()

  constructor(sandbox: Sandbox) {
    this.#sandbox = sandbox
    sandbox.store.subscribe(({ type, resource, object }) => {
      if (!WATCHED.includes(resource) || type === 'MODIFIED') return
      const key = `${resource}/${object.metadata.name}`
      const count = this.#counts.get(key) ?? { made: 0, ended: 0 }
      this.#counts.set(key, count)
      count[type === 'ADDED' ? 'made' : 'ended']++
    })
  }

  counts(): Digest['counts'] {
    return Object.fromEntries([...this.#counts].map(([key, count]) => [key, { ...count }]))
  }

  async digest(client: Client): Promise<Digest> {
    const events = await client.events()
    return {
      objects: objectsOf(this.#sandbox),
      counts: this.counts(),
      events: storiesOf(events),
      states: await statesOf(client, events),
    }
  }
}

function objectsOf(sandbox: Sandbox): Record<string, unknown> {
  const found: Record<string, unknown> = {}
  for (const resource of WATCHED) {
    for (const object of sandbox.store.list(resource)) {
      const { uid } = object.metadata
      found[`${resource}/${object.metadata.name}`] = {
        ...(withoutChance(object) as object),
        pods: podsOf(sandbox, uid),
      }
    }
  }
  return found
}

function podsOf(sandbox: Sandbox, uid: string): string[] {
  const owners = [uid, ...sandbox.store.dependents(uid, 'replicasets').map(set => set.metadata.uid)]
  const pods = owners.flatMap(owner => sandbox.store.dependents(owner, 'pods'))
  return pods.map(pod => `${pod.status?.phase}${pod.metadata.deletionTimestamp ? ' ending' : ''}`).sort()
}

/** Fields that differ between any two runs; times are compared by being there or not. */
const CHANCE =
  /^(uid|resourceVersion|creationTimestamp|managedFields|clusterIPs?|controller-uid|batch\.kubernetes\.io\/controller-uid|runtimed\.dev\/create-nonce)$/
const TIME = /^\d{4}-\d\d-\d\dT/

function withoutChance(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutChance)
  if (typeof value === 'string') return TIME.test(value) ? 'a time' : value
  if (typeof value !== 'object' || value === null) return value
  const kept = Object.entries(value).filter(([field]) => !CHANCE.test(field))
  return Object.fromEntries(kept.map(([field, inner]) => [field, withoutChance(inner)]))
}

const shortId = (id: string): string => id.slice(id.indexOf('|') + 1)

export function storiesOf(events: readonly WireEvent[]): Record<string, string[]> {
  const stories: Record<string, string[]> = {}
  const uids = new Map<string, string[]>()
  for (const event of events) {
    const key = shortId(event.runtimeId)
    const known = uids.get(key) ?? []
    uids.set(key, known)
    if (event.uid !== null && !known.includes(event.uid)) known.push(event.uid)
    const life = event.uid === null ? '-' : `life ${known.indexOf(event.uid) + 1}`
    const { type, run, reason, message, exitCode } = event
    stories[key] ??= []
    stories[key].push(`${life} run ${run} ${type} ${reason} ${message} ${exitCode}`)
  }
  return stories
}

/** Of every runtime the daemon lists, and of every one it has told of. */
async function statesOf(client: Client, events: readonly WireEvent[]): Promise<Record<string, string>> {
  const states: Record<string, string> = {}
  for (const { runtimeId } of events) states[shortId(runtimeId)] = 'gone'
  const { body } = await client.api('GET', '/v1/runtimes?limit=1000')
  for (const { id, state, run, monitored } of body.items) states[shortId(id)] = `${state} ${run} ${monitored}`
  return states
}
