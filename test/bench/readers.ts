import { setTimeout as sleep } from 'node:timers/promises'
import { poll } from '../helpers/daemon.ts'
import { type Child, cpuSeconds, startChild } from './child.ts'
import type { BenchDaemon } from './daemon.ts'
import type { FakeApi } from './fake-api.ts'
import type { Bench } from './figures.ts'
import { scoped } from './scope.ts'
import { startWorld } from './world.ts'

const RATE = 200
const READERS = 500
const NEVER = 50
/** Events before the figures are taken. */
const WARM_UP = 400
/** Until what a socket's buffers take of its own accord is full and the limit of unsent events is passed. */
const BURST_RATE = 1500
const CUT = 'runtimed_event_streams_cut_total'

/** Many readers of the stream; the same with readers that never read; then what becomes of those in a burst. */
export const benchReaders: Bench = async ({ small }) =>
  await scoped(async t => {
    const seconds = small ? 3 : 8
    const step = RATE * seconds
    const burst = 16_000
    const { api, daemon } = await startWorld(t, { count: WARM_UP + 2 * step + burst, state: 'starting' })
    const feed = await startChild(t, 'feed-client.ts')
    const slow = await startChild(t, 'feed-client.ts')
    await feed.ask('read', { url: daemon.url, readers: READERS })
    await follow({ api, daemon, feed }, 0, WARM_UP)
    const alone = await follow({ api, daemon, feed }, WARM_UP, WARM_UP + step)
    await slow.ask('neverRead', { url: daemon.url, readers: NEVER })
    const together = await follow({ api, daemon, feed }, WARM_UP + step, WARM_UP + 2 * step)
    await feed.ask('leave')
    const { cut, kept } = await burstOf(
      { api, daemon },
      { from: WARM_UP + 2 * step, burst },
      await startChild(t, 'feed-client.ts'),
    )
    return [
      { name: `readers: p99 of ${READERS} at ${RATE}/s`, value: alone.p99, unit: 'ms', target: { max: 250 } },
      {
        name: `readers: p99 with ${NEVER} that never read`,
        value: together.p99,
        unit: 'ms',
        target: { max: 250 },
        baseline: { value: alone.p99, of: 'without them' },
      },
      {
        name: `readers: share of a core with them`,
        value: together.cores * 100,
        unit: '%',
        baseline: { value: alone.cores * 100, of: 'without them' },
      },
      {
        name: 'readers: events missed by readers',
        value: alone.missed + together.missed + kept,
        unit: '',
        target: { max: 0 },
      },
      { name: `readers: cut off, of ${NEVER} that never read`, value: cut, unit: '', target: { min: NEVER } },
    ]
  })

interface Parts {
  readonly api: FakeApi
  readonly daemon: BenchDaemon
  readonly feed: Child
}

async function follow({ api, daemon, feed }: Parts, from: number, to: number) {
  await feed.ask('forget')
  const before = cpuSeconds(daemon.pid)
  const times = await api.makeReady({ from, to, perSecond: RATE })
  const cores = (cpuSeconds(daemon.pid) - before) / (((times.at(-1) ?? 0) - (times[0] ?? 0)) / 1000)
  const wanted = (to - from) * READERS
  await settled(() => feed.ask('count'), wanted)
  const { p99, count } = await feed.ask('delays', { from, times })
  return { p99, cores, missed: wanted - count }
}

/** One good reader goes through the burst beside those that do not read; `kept`: what it missed. */
async function burstOf(
  { api, daemon }: Pick<Parts, 'api' | 'daemon'>,
  { from, burst }: { from: number; burst: number },
  good: Child,
): Promise<{ cut: number; kept: number }> {
  await good.ask('read', { url: daemon.url, readers: 1 })
  await api.makeReady({ from, to: from + burst, perSecond: BURST_RATE })
  await settled(() => good.ask('count'), burst)
  await settled(() => daemon.metric(CUT), NEVER)
  return { cut: await daemon.metric(CUT), kept: burst - (await good.ask('count')) }
}

/** Waits until a count is reached, or for long enough to say that it will not be. */
async function settled(read: () => Promise<number>, wanted: number): Promise<void> {
  await poll(read, count => count >= wanted, 20).catch(() => sleep(0))
}
