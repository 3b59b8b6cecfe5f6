import { poll } from '../helpers/daemon.ts'
import { startChild } from './child.ts'
import type { Bench } from './figures.ts'
import { scoped } from './scope.ts'
import { startWorld } from './world.ts'

const RATE = 1000

/** From a Deployment that becomes ready at the API to its event at a reader of the stream, beside a bare watch. */
export const benchLatency: Bench = async ({ small }) =>
  await scoped(async t => {
    const count = small ? 2000 : 10_000
    const { api, daemon } = await startWorld(t, { count, state: 'starting' })
    const feed = await startChild(t, 'feed-client.ts')
    const watch = await startChild(t, 'watch-client.ts')
    await watch.ask('watch', api.url)
    await feed.ask('read', { url: daemon.url, readers: 1 })
    await poll(
      () => api.watches(),
      open => open >= 1,
    )
    const times = await api.makeReady({ from: 0, to: count, perSecond: RATE })
    await poll(
      () => feed.ask('count'),
      seen => seen >= count,
      60,
    )
    const made = { from: 0, times }
    const ours = await feed.ask('delays', made)
    const bare = await watch.ask('delays', made)
    const rate = (times.length - 1) / (((times.at(-1) ?? 0) - (times[0] ?? 0)) / 1000)
    const of = 'bare watch'
    return [
      { name: 'latency: changes at the API', value: rate, unit: '/s' },
      { name: 'latency: change to event, p50', value: ours.p50, unit: 'ms', baseline: { value: bare.p50, of } },
      {
        name: 'latency: change to event, p99',
        value: ours.p99,
        unit: 'ms',
        target: { max: 250 },
        baseline: { value: bare.p99, of },
      },
    ]
  })
