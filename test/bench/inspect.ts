import { cpuSeconds, startChild } from './child.ts'
import type { Bench } from './figures.ts'
import { scoped } from './scope.ts'
import { startWorld } from './world.ts'

const CONNECTIONS = 16
const RUNTIMES = 1000
/** Until what is hot is compiled. */
const WARM_UP_SECONDS = 4

/** GET of single runtimes over kept-alive connections, the daemon on one core and the load on another, beside bare Fastify. */
export const benchInspect: Bench = async ({ small }) =>
  await scoped(async t => {
    const seconds = small ? 3 : 8
    const { daemon } = await startWorld(t, { count: RUNTIMES, core: 0 })
    const paths = Array.from({ length: RUNTIMES }, (_, id) => `/v1/runtimes/k8s-default%7Cdeployment%7Cweb-${id}`)
    const body = await (await fetch(daemon.url + paths[0])).text()
    const bare = await startChild(t, 'bare-server.ts', { args: [body], core: 0 })
    const load = await startChild(t, 'load-client.ts', { core: 1 })
    const measure = async (pid: number, url: string) => {
      await load.ask('run', { url, paths, connections: CONNECTIONS, seconds: WARM_UP_SECONDS })
      const before = cpuSeconds(pid)
      const figures = await load.ask('run', { url, paths, connections: CONNECTIONS, seconds })
      return { ...figures, perCpuSecond: figures.count / (cpuSeconds(pid) - before) }
    }
    const bareFigures = await measure(bare.pid, await bare.ask('url'))
    const ours = await measure(daemon.pid, daemon.url)
    const of = 'bare Fastify'
    return [
      { name: 'inspect: replies that were not 200', value: ours.failed, unit: '', target: { max: 0 } },
      {
        name: 'inspect: requests a core-second',
        value: ours.perCpuSecond,
        unit: '/s',
        target: { min: 5000 },
        baseline: { value: bareFigures.perCpuSecond, of },
      },
      {
        name: 'inspect: requests a second',
        value: ours.count / ours.seconds,
        unit: '/s',
        baseline: { value: bareFigures.count / bareFigures.seconds, of },
      },
      {
        name: `inspect: p99, ${CONNECTIONS} at once`,
        value: ours.p99,
        unit: 'ms',
        target: { max: 20 },
        baseline: { value: bareFigures.p99, of },
      },
    ]
  })
