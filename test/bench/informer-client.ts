import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { get } from 'node:http'
import { monitorEventLoopDelay, performance } from 'node:perf_hooks'
import type { KubernetesObject, Informer as LibraryInformer, ObjectCache } from '@kubernetes/client-node'

/** One side of the informer bench, run as a child: `ours` or `client-node`. Sends its figures to the parent. */
const [, , side = '', url = '', events = '0'] = process.argv
const kinds = ['deployments', 'pods'] as const
type Plural = (typeof kinds)[number]

interface Side {
  /** Resolves once both collections are complete; calls `onEvent` for each later change. */
  start(onEvent: () => void): Promise<void>
  size(): number
}

/** Peak and present memory in MB; the peak only where /proc tells. */
const memory = () => ({
  rssMb: Math.round(process.memoryUsage.rss() / 1e6),
  heapMb: Math.round(process.memoryUsage().heapUsed / 1e6),
  peakMb: peak(),
})
function peak(): number | null {
  try {
    const line = /VmHWM:\s+(\d+) kB/.exec(readFileSync('/proc/self/status', 'utf8'))
    return line ? Math.round(Number(line[1]) / 1000) : null
  } catch {
    return null // not Linux
  }
}

async function ours(): Promise<Side> {
  const { Informer } = await import('../../src/kube/informer.ts')
  const { POD_INDEXES } = await import('../../src/kube/informers.ts')
  const { Transport } = await import('../../src/kube/transport.ts')
  const { productionProfile } = await import('../../src/kube/reflector-profile.ts')
  const { TRIM } = await import('../../src/kube/trim.ts')
  const quiet = { info: () => {}, warn: console.error, error: console.error }
  const access = {
    server: url,
    namespace: null,
    ca: null,
    cert: null,
    key: null,
    skipVerify: false,
    serverName: null,
    impersonate: null,
  }
  const transport = new Transport({ ...access, credential: { kind: 'none' } }, { deadlineMs: 10_000 })
  const common = {
    transport,
    namespace: null,
    labelSelector: 'gobrave-workload',
    profile: productionProfile(),
    log: quiet,
  }
  const deployments = new Informer({ ...common, kind: 'Deployment', transform: TRIM.Deployment })
  const pods = new Informer({ ...common, kind: 'Pod', transform: TRIM.Pod, indexes: POD_INDEXES })
  return {
    size: () => deployments.size + pods.size,
    start: async onEvent => {
      for (const informer of [deployments, pods]) {
        informer.start()
        await informer.whenSynced()
        informer.onChange(onEvent)
      }
    },
  }
}

async function clientNode(): Promise<Side> {
  const k8s = await import('@kubernetes/client-node')
  const config = new k8s.KubeConfig()
  config.loadFromClusterAndUser({ name: 'c', server: url, skipTLSVerify: true }, { name: 'u' })
  const apps = config.makeApiClient(k8s.AppsV1Api)
  const core = config.makeApiClient(k8s.CoreV1Api)
  const informers: (LibraryInformer<KubernetesObject> & ObjectCache<KubernetesObject>)[] = [
    k8s.makeInformer(config, '/apis/apps/v1/deployments', () => apps.listDeploymentForAllNamespaces()),
    k8s.makeInformer(config, '/api/v1/pods', () => core.listPodForAllNamespaces()),
  ]
  return {
    size: () => informers.reduce((sum, informer) => sum + informer.list().length, 0),
    start: async onEvent => {
      for (const informer of informers) {
        await informer.start()
        informer.on('update', onEvent)
      }
    },
  }
}

/** Lets the garbage go, as far as one can from inside. */
async function settle(): Promise<void> {
  globalThis.gc?.()
  await new Promise(resolve => setTimeout(resolve, 200))
}

/** Counts the changes that reached the cache, and tells when there are enough of them. */
class Counter {
  #seen = 0
  #goal = Number.POSITIVE_INFINITY
  #reached = Promise.withResolvers<void>()

  add(): void {
    this.#seen += 1
    if (this.#seen === this.#goal) this.#reached.resolve()
  }

  async more(wanted: number): Promise<void> {
    this.#goal = this.#seen + wanted
    this.#reached = Promise.withResolvers()
    await this.#reached.promise
  }
}

async function watchRate(counter: Counter, plural: Plural, wanted: number) {
  const cpu = process.cpuUsage()
  const started = performance.now()
  const all = counter.more(wanted)
  get(`${url}/emit?kind=${plural}&events=${wanted}`, reply => reply.resume())
  await all
  const seconds = (performance.now() - started) / 1000
  const { user, system } = process.cpuUsage(cpu)
  return { perSecond: Math.round(wanted / seconds), perCpuSecond: Math.round((wanted / (user + system)) * 1e6) }
}

async function measure(): Promise<void> {
  const subject = side === 'ours' ? await ours() : await clientNode()
  const base = memory().rssMb
  const counter = new Counter()
  const delay = monitorEventLoopDelay({ resolution: 5 })
  delay.enable()
  const started = performance.now()
  await subject.start(() => counter.add())
  const listSeconds = (performance.now() - started) / 1000
  await new Promise(resolve => setTimeout(resolve, 50))
  const listBlockMs = Math.round(delay.max / 1e6)
  await settle()
  const afterList = memory()
  delay.reset()
  const watch: Record<string, unknown> = {}
  for (const plural of kinds) watch[plural] = await watchRate(counter, plural, Number(events))
  const watchBlockMs = Math.round(delay.max / 1e6)
  await settle()
  const figures = {
    objects: subject.size(),
    baseMb: base,
    listSeconds,
    listBlockMs,
    afterList,
    watch,
    watchBlockMs,
    afterWatch: memory(),
  }
  process.send?.(figures)
  await once(process, 'disconnect')
}

await measure()
process.exit()
