import { createHash, randomBytes } from 'node:crypto'
import type { FastifyBaseLogger } from 'fastify'
import type { Config } from './config.ts'
import { preflightImage } from './domain/image.ts'
import type { RuntimeName } from './domain/runtime-id.ts'
import { formatRuntimeId } from './domain/runtime-id.ts'
import { generateName } from './domain/workload-name.ts'
import { RuntimeError } from './errors.ts'
import { createAuth } from './http/auth.ts'
import type { Limits } from './http/limits.ts'
import { createMetrics, type Metrics } from './http/metrics.ts'
import { createServer, drain, listen } from './http/server.ts'
import { createKubeBackend } from './kube/backend.ts'
import { loadKubeConfig } from './kube/kube-config.ts'
import { productionProfile, type ReflectorProfile } from './kube/reflector-profile.ts'
import { observeCalls, observeDaemon } from './metrics.ts'
import { Adoption } from './service/adoption.ts'
import type { Services } from './service/api.ts'
import { Backends } from './service/backends.ts'
import { Backoff, type BackoffProfile, PRODUCTION_BACKOFF } from './service/backoff.ts'
import { systemClock } from './service/clock.ts'
import { Effects } from './service/effects.ts'
import { EventFeed } from './service/event-feed.ts'
import { HealthService } from './service/health-service.ts'
import { IdempotencyKeys } from './service/idempotency.ts'
import { Janitor } from './service/janitor.ts'
import { KeyedQueue } from './service/keyed-queue.ts'
import { LogService } from './service/log-service.ts'
import type { Backend, CallObserver, Clock } from './service/ports.ts'
import { Reconciler } from './service/reconciler.ts'
import { ChangeSignals, Recorder } from './service/recorder.ts'
import { Resync } from './service/resync.ts'
import { Rewind } from './service/rewind.ts'
import { RuntimeReader } from './service/runtime-reader.ts'
import { RuntimeVerbs } from './service/runtime-verbs.ts'
import { Runtimes } from './service/runtimes.ts'
import { TakeUp } from './service/take-up.ts'
import { Views } from './service/views.ts'
import { createStore, type SqliteStore } from './store/store.ts'

/** Keys reconciled at once: enough to keep the cluster's 32 connections busy, few enough to leave some for verbs. */
const WORKERS = 24
/** Under STRICT_START a runtime that has not synced after so many deadlines of a call ends the process. */
const STRICT_START_CALLS = 3

export interface AppOptions {
  readonly config: Config
  readonly logger: FastifyBaseLogger
  /** A failed sync of the disk, or a runtime that STRICT_START demands: the process must end with an error. */
  readonly onFatal: (error: Error) => void
  readonly clock?: Clock
  /** Times of watches, of calls to the cluster, and of tries that are repeated; tests shorten them. */
  readonly reflectorProfile?: ReflectorProfile
  readonly backoff?: BackoffProfile
  readonly limits?: Partial<Limits>
}

export interface App {
  /** Listens, opens the watches and takes rows up in the background; resolves when requests are served. */
  start(): Promise<{ readonly url: string }>
  /** Not ready at once, drains, closes: at most 10 s. No workload is touched. */
  stop(): Promise<void>
  readonly services: Services
  readonly metrics: Metrics
  readonly store: SqliteStore
  readonly queue: KeyedQueue
  readonly feed: EventFeed
}

/** The composition root: names every concrete class, decides nothing. Throws what keeps the daemon from starting. */
export function createApp(options: AppOptions): App {
  const parts = compose(options)
  const { config, logger } = options
  const { backends, queue, feed, health, adoption, resync, janitor, store, services, metrics } = parts
  const auth = createAuth({
    tokensFile: config.TOKENS_FILE,
    namespaces: config.NAMESPACES,
    allowAnonymous: config.ALLOW_ANONYMOUS,
    onBadFile: error => logger.error({ err: error }, 'cannot read TOKENS_FILE; the tokens read before stay in force'),
  })
  const stopping = new AbortController()
  let server: Awaited<ReturnType<typeof createServer>> | null = null

  const takeUp = async (backend: Backend): Promise<void> => {
    try {
      await backend.lifecycle.synced(stopping.signal)
      await adoption.start(backend.name)
      health.adopted(backend.name)
    } catch (error) {
      if (!stopping.signal.aborted) logger.error({ err: error, runtime: backend.name }, 'cannot take rows up again')
    }
  }

  return {
    services,
    metrics,
    store,
    queue,
    feed,
    async start() {
      server = await createServer({
        services,
        auth,
        logger,
        metrics,
        ...(options.limits ? { limits: options.limits } : {}),
      })
      const url = await listen(server, { host: config.HOST, port: config.PORT })
      for (const backend of backends.all) {
        backend.lifecycle.start(id => queue.add(formatRuntimeId(id)))
        void takeUp(backend)
      }
      if (config.STRICT_START) requireRuntimes(backends, { ...options, clock: parts.clock, signal: stopping.signal })
      janitor.start()
      resync.start()
      return { url }
    },
    async stop() {
      health.shutDown()
      stopping.abort()
      feed.close()
      janitor.stop()
      resync.stop()
      if (server !== null) await drain(server)
      await queue.close()
      await Promise.all(backends.all.map(backend => backend.lifecycle.stop()))
      store.close()
    },
  }
}

function compose(options: AppOptions) {
  const { config, logger } = options
  const clock = options.clock ?? systemClock
  const metrics = createMetrics()
  const store = createStore(config.DATABASE_PATH, {
    now: () => clock.now(),
    onFatal: options.onFatal,
    configured: { runtimes: config.RUNTIMES, namespaces: config.NAMESPACES },
  })
  const onCall = observeCalls(metrics.registry)
  const all = config.RUNTIMES.map(name => createBackend(name, options, { clock, onCall, rewind: () => rewind }))
  const backends = new Backends(all, config.CONTAINER_RUNTIME, config.NAMESPACES)
  const recorder = new Recorder(store)
  const newNonce = (): string => randomBytes(16).toString('hex')
  const effects = new Effects({ recorder, clock, workloadsOf: life => backends.get(life.id.runtime).workloads })
  const backoff = new Backoff(options.backoff ?? PRODUCTION_BACKOFF, Math.random)
  const queue: KeyedQueue = new KeyedQueue({
    work: (key, fresh) => reconciler.reconcile(key, fresh),
    backoff,
    clock,
    workers: WORKERS,
  })
  const reconciler = new Reconciler({
    table: store,
    backends,
    effects,
    recorder,
    clock,
    log: logger,
    again: (key, ms) => queue.addAfter(key, ms),
    aside: wait => queue.aside(wait),
  })
  const rewind = new Rewind({ table: store, recorder, queue, log: logger })
  const takeUp = new TakeUp({
    table: store,
    backends,
    recorder,
    clock,
    instance: config.INSTANCE,
    newNonce,
    defaults: { jobStop: config.JOB_STOP, startTimeoutSeconds: config.START_TIMEOUT_SECONDS },
  })
  const changes = new ChangeSignals()
  const feed = new EventFeed({ table: store, backends, clock })
  const logService = new LogService({ table: store, backends, takeUp, clock, log: logger })
  for (const listener of [feed.listener, changes.listener, logService.listener]) recorder.onCommit(listener)
  const views = new Views(backends)
  const verbs = new RuntimeVerbs({
    table: store,
    backends,
    queue,
    effects,
    recorder,
    keys: new IdempotencyKeys(store),
    takeUp,
    clock,
    defaults: createDefaults(config),
    newNonce,
    newName: () => generateName(randomBytes(10)),
    sha256: text => createHash('sha256').update(text).digest('hex'),
  })
  const reader = new RuntimeReader({ table: store, backends, views, takeUp, changes, clock })
  const health = new HealthService({ store, backends, clock })
  const adoption = new Adoption({
    table: store,
    backends,
    queue,
    takeUp,
    clock,
    log: logger,
    adoptOrphans: config.ADOPT_ORPHANS,
  })
  const services: Services = {
    runtimes: new Runtimes({ verbs, reader, logService, backends }),
    events: feed,
    health,
    adoption,
    images: {
      preflight: (image, policy) => ({
        accepted: true,
        ...preflightImage(policy === undefined ? { image } : { image, imagePullPolicy: policy }),
      }),
    },
  }
  const janitor = new Janitor({
    store,
    clock,
    log: logger,
    retentionSeconds: config.EVENT_RETENTION_SECONDS,
    retentionCount: config.EVENT_RETENTION_COUNT,
  })
  const resync = new Resync({ table: store, queue, clock })
  recorder.onCommit(observeDaemon({ registry: metrics.registry, health, queue, feed, store, clock }))
  return { clock, metrics, store, backends, queue, feed, health, adoption, services, janitor, resync }
}

const createDefaults = (config: Config) => ({
  namespace: config.NAMESPACE,
  startTimeoutSeconds: config.START_TIMEOUT_SECONDS,
  jobStop: config.JOB_STOP,
  policy: { runtimes: config.RUNTIMES, hostPathRoots: config.HOST_PATH_ROOTS, podSecurity: config.POD_SECURITY },
})

function createBackend(
  name: RuntimeName,
  options: AppOptions,
  { clock, onCall, rewind }: { clock: Clock; onCall: CallObserver; rewind: () => Rewind },
): Backend {
  const { config, logger } = options
  if (name === 'docker') {
    throw new RuntimeError('CONFIGURATION_ERROR', 'cannot use runtime "docker": it is not built yet; use k8s or k3s')
  }
  const own = name === 'k3s' && config.K3S_KUBECONFIG !== null
  const file = own ? config.K3S_KUBECONFIG : config.KUBECONFIG
  const context = name === 'k3s' ? config.K3S_CONTEXT : config.K8S_CONTEXT
  const profile = productionProfile(config.KUBE_TIMEOUT_SECONDS * 1000, config.WATCH_TIMEOUT_SECONDS * 1000)
  return createKubeBackend({
    name,
    connection: loadKubeConfig({ file: file ?? undefined, context: context ?? undefined }),
    namespaces: config.NAMESPACES,
    instance: config.INSTANCE,
    clusterDomain: config.CLUSTER_DOMAIN,
    podSecurity: config.POD_SECURITY,
    imagePullSecrets: config.IMAGE_PULL_SECRETS,
    serviceAccountName: config.SERVICE_ACCOUNT_NAME,
    rewind: {
      newestKnown: (kind, namespace) => rewind().newestKnown(name, kind, namespace),
      onRewind: (kind, namespace) => void rewind().forget(name, kind, namespace),
    },
    profile: options.reflectorProfile ?? profile,
    transport: { onAttempt: (method, outcome, seconds) => onCall(method, String(outcome), seconds) },
    clock,
    log: logger,
  })
}

/** STRICT_START: a runtime that has not synced in time ends the process, saying which and why. */
function requireRuntimes(
  backends: Backends,
  { config, onFatal, clock, signal }: Pick<AppOptions, 'config' | 'onFatal'> & { clock: Clock; signal: AbortSignal },
): void {
  const late = new AbortController()
  const cancel = clock.after(STRICT_START_CALLS * config.KUBE_TIMEOUT_SECONDS * 1000, () => late.abort())
  signal.addEventListener('abort', cancel, { once: true })
  for (const { name, lifecycle } of backends.all) {
    lifecycle.synced(late.signal).catch(() => {
      const reason = lifecycle.health().reason ?? 'no answer'
      onFatal(
        new RuntimeError(
          'BACKEND_UNAVAILABLE',
          `cannot start: runtime "${name}" cannot be reached (${reason}); STRICT_START demands it`,
        ),
      )
    })
  }
}
