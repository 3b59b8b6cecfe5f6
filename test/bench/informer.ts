import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

export interface InformerBenchOptions {
  /** Deployments, and as many Pods, in our cache. */
  readonly count?: number
  /** The same for client-node's informer, which keeps whole objects: more than 20,000 of each take it over 1 GB. */
  readonly baselineCount?: number
  /** MODIFIED events for each kind. */
  readonly events?: number
}

/** As the daemon is to be started: Node 24 lets the young generation grow, which costs 80 MB and gains little here. */
const FLAGS = ['--max-semi-space-size=8']

const path = (name: string): string => fileURLToPath(new URL(name, import.meta.url))

async function run(side: 'ours' | 'client-node', count: number, events: number): Promise<Record<string, unknown>> {
  const server = fork(path('informer-server.ts'), [String(count)])
  const [{ url }] = (await once(server, 'message')) as [{ url: string }]
  const client = fork(path('informer-client.ts'), [side, url, String(events)], { execArgv: FLAGS })
  try {
    const outcome = Promise.race([
      once(client, 'message').then(([figures]) => figures as Record<string, unknown>),
      once(client, 'exit').then(([code]) => ({ failed: `ended with ${code}` })),
    ])
    return { bench: 'informer', side, ...(await outcome) }
  } finally {
    client.disconnect()
    server.disconnect()
  }
}

/**
 * Memory, longest block of the event loop, time of the first list and watch events a second of our informers, beside the
 * informer of @kubernetes/client-node on the same kind of objects (fewer, for it needs 10 times the memory). One row each.
 */
export async function benchInformer(options: InformerBenchOptions = {}): Promise<Record<string, unknown>[]> {
  const { count = 100_000, baselineCount = 10_000, events = 100_000 } = options
  const rows = [await run('ours', count, events)]
  if (baselineCount > 0) {
    rows.push(await run('ours', baselineCount, Math.min(events, 20_000)))
    rows.push(await run('client-node', baselineCount, Math.min(events, 20_000)))
  }
  return rows
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [count, baselineCount, events] = process.argv.slice(2).map(Number)
  const given = {
    ...(count ? { count } : {}),
    ...(events ? { events } : {}),
    ...(baselineCount === undefined ? {} : { baselineCount }),
  }
  for (const row of await benchInformer(given)) console.log(JSON.stringify(row))
}
