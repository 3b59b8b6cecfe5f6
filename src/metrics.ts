import { Counter, Gauge, Histogram, type Registry } from 'prom-client'
import { EVENT_TYPES } from './domain/event.ts'
import { STATES } from './domain/life.ts'
import type { HealthApi } from './service/api.ts'
import type { CallObserver, Clock } from './service/ports.ts'
import type { CommitListener } from './service/recorder.ts'

/** What the gauges read when they are asked for; nothing is sampled in between. */
export interface Measured {
  readonly registry: Registry
  readonly health: HealthApi
  readonly queue: { readonly depth: number }
  readonly feed: { readonly newest: number }
  readonly store: {
    countByState(): ReadonlyMap<string, number>
    metrics(): { readonly databaseBytes: number; readonly walBytes: number; readonly lastCommitMs: number }
  }
  readonly clock: Clock
}

/** Times the calls to clusters. */
export function observeCalls(registry: Registry): CallObserver {
  const calls = new Histogram({
    name: 'runtimed_kube_request_duration_seconds',
    help: 'Calls to the cluster until the headers of the reply, by method and HTTP status or kind of failure.',
    labelNames: ['method', 'outcome'],
    buckets: [0.005, 0.025, 0.1, 0.5, 1, 5, 10, 30],
    registers: [registry],
  })
  return (method, outcome, seconds) => calls.observe({ method, outcome }, seconds)
}

/** Metrics an operator alerts on, beside those of http and of the process. Names follow Prometheus' conventions: base units, `_total` for counters. */
export function observeDaemon(measured: Measured): CommitListener {
  gauges(measured)
  informerGauges(measured)
  const registers = [measured.registry]
  const events = new Counter({
    name: 'runtimed_events_total',
    help: 'Events written to the feed.',
    labelNames: ['type'],
    registers,
  })
  for (const type of EVENT_TYPES) events.inc({ type }, 0)
  const lag = new Histogram({
    name: 'runtimed_event_lag_seconds',
    help: 'From what happened, by the time in the object (whole seconds), to its durable event.',
    buckets: [0.5, 1, 2, 5, 15, 60, 300],
    registers,
  })
  return committed => {
    for (const event of committed.events) {
      events.inc({ type: event.type })
      lag.observe(Math.max(0, measured.clock.now() - event.time) / 1000)
    }
  }
}

function gauges({ registry, queue, feed, store, health }: Measured): void {
  const gauge = (name: string, help: string, read: () => number): void => {
    new Gauge({
      name,
      help,
      registers: [registry],
      collect() {
        this.set(read())
      },
    })
  }
  gauge('runtimed_ready', '1 while readyz answers 200.', () => Number(health.ready().ready))
  gauge('runtimed_queue_depth', 'Runtime IDs waiting for or under reconciliation or a verb.', () => queue.depth)
  gauge('runtimed_feed_newest_seq', 'Seq of the newest event.', () => feed.newest)
  gauge('runtimed_database_bytes', 'Size of the database file.', () => store.metrics().databaseBytes)
  gauge('runtimed_database_wal_bytes', 'Size of the write-ahead log.', () => store.metrics().walBytes)
  gauge('runtimed_database_commit_seconds', 'Duration of the newest commit.', () => store.metrics().lastCommitMs / 1000)
  new Gauge({
    name: 'runtimed_runtimes',
    help: 'Runtimes that are not deleted, by state.',
    labelNames: ['state'],
    registers: [registry],
    collect() {
      const counts = store.countByState()
      for (const state of STATES) if (state !== 'deleted') this.set({ state }, counts.get(state) ?? 0)
    },
  })
}

const COUNTERS = {
  lists: 'Full lists of an informer.',
  watches: 'Watches that an informer opened.',
  restarts: 'Watches and lists of an informer that broke.',
  events: 'Changes that an informer was told of.',
  badLines: 'Lines of a watch that could not be read.',
} as const

/** Their counts live in the informers; here they are only shown. */
function informerGauges({ registry, health }: Measured): void {
  const labelNames = ['runtime', 'kind', 'namespace'] as const
  const informers = () =>
    health.backends().flatMap(({ name, informers: all }) =>
      all.map(informer => ({
        informer,
        labels: { runtime: name, kind: informer.kind, namespace: informer.namespace ?? '*' },
      })),
    )
  const shown = [
    ['runtimed_informer_synced', 'Whether the first full list is in the cache.', i => Number(i.synced)],
    ['runtimed_informer_objects', 'Objects in the cache.', i => i.objects],
    [
      'runtimed_informer_last_contact_seconds',
      'Since the cluster was last heard of.',
      i => i.lastContactSeconds ?? 1e9,
    ],
  ] satisfies Array<[string, string, (i: ReturnType<typeof informers>[number]['informer']) => number]>
  for (const [name, help, read] of shown) {
    new Gauge({
      name,
      help,
      labelNames,
      registers: [registry],
      collect() {
        for (const { informer, labels } of informers()) this.set(labels, read(informer))
      },
    })
  }
  for (const [counter, help] of Object.entries(COUNTERS) as Array<[keyof typeof COUNTERS, string]>) {
    new Counter({
      name: `runtimed_informer_${counter === 'badLines' ? 'bad_lines' : counter}_total`,
      help,
      labelNames,
      registers: [registry],
      collect() {
        this.reset()
        for (const { informer, labels } of informers()) this.inc(labels, informer.counters[counter])
      },
    })
  }
}
