import type { BenchDaemon } from './daemon.ts'
import { type Bench, now } from './figures.ts'
import { scoped } from './scope.ts'
import { startWorld } from './world.ts'

const LIMIT = 1000

/** A walk over all pages of the list, beside the walk over the same Deployments at the API server. */
export const benchList: Bench = async ({ small }) =>
  await scoped(async t => {
    const count = small ? 5000 : 100_000
    const { api, daemon } = await startWorld(t, { count })
    const bare = await walk(
      token => `${api.url}/apis/apps/v1/namespaces/default/deployments?limit=${LIMIT}&continue=${token}`,
    )
    await daemon.metric(BLOCK) // a reading begins a new maximum
    const ours = await walk(
      token => `${daemon.url}/v1/runtimes?limit=${LIMIT}${token === '' ? '' : `&cursor=${token}`}`,
    )
    const block = await daemon.metric(BLOCK)
    return [
      { name: `list: rows of ${count} missed`, value: count - ours.items, unit: '', target: { max: 0 } },
      {
        name: `list: ${count} rows`,
        value: ours.seconds,
        unit: 's',
        target: { max: 8 },
        baseline: { value: bare.seconds, of: 'API server' },
      },
      { name: 'list: longest block of the event loop', value: block * 1000, unit: 'ms', target: { max: 100 } },
    ]
  })

const BLOCK: Parameters<BenchDaemon['metric']>[0] = 'nodejs_eventloop_lag_max_seconds'

async function walk(pageAt: (token: string) => string): Promise<{ items: number; seconds: number }> {
  const started = now()
  let items = 0
  let token = ''
  do {
    const page = (await (await fetch(pageAt(token))).json()) as Page
    items += page.items.length
    token = page.nextCursor ?? page.metadata?.continue ?? ''
  } while (token !== '')
  return { items, seconds: (now() - started) / 1000 }
}

interface Page {
  readonly items: readonly unknown[]
  readonly nextCursor?: string | null
  readonly metadata?: { readonly continue?: string }
}
