import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'

/** The process's metrics. Others add theirs to `registry`; `/metrics` shows them all. */
export interface Metrics {
  readonly registry: Registry
  /** Seconds, by method, route pattern and status; never by path, which has no bound. */
  readonly requests: Histogram<'method' | 'route' | 'status'>
  readonly streams: Gauge
  /** Readers of the feed that were cut off because they left too much unsent. */
  readonly cutReaders: Counter
}

/** `process: false` leaves out memory, CPU and event-loop metrics, whose collectors a test need not start. */
export function createMetrics({ process = true }: { process?: boolean } = {}): Metrics {
  const registry = new Registry()
  if (process) collectDefaultMetrics({ register: registry })
  const registers = [registry]
  return {
    registry,
    requests: new Histogram({
      name: 'runtimed_http_request_duration_seconds',
      help: 'Time from the request line to the end of the reply.',
      labelNames: ['method', 'route', 'status'],
      buckets: [0.001, 0.005, 0.025, 0.1, 0.5, 1, 5, 15, 60],
      registers,
    }),
    streams: new Gauge({ name: 'runtimed_event_streams', help: 'Open readers of the event stream.', registers }),
    cutReaders: new Counter({
      name: 'runtimed_event_streams_cut_total',
      help: 'Readers of the event stream that were cut off for being too slow.',
      registers,
    }),
  }
}
