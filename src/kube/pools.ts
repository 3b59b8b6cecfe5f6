import { type Dispatcher, Pool } from 'undici'
import type { TlsMaterial } from './credentials.ts'
import type { ClusterAccess } from './kube-config.ts'

export interface PoolOptions {
  readonly connections: number
  readonly connectTimeoutMs: number
  readonly maxResponseSize: number
}

interface Pools {
  readonly id: string
  readonly calls: Dispatcher
  readonly streams: Dispatcher
  readonly raw: readonly Pool[]
}

/**
 * The connections to one server: some shared by calls, and one per watch or log. Made anew when CA, certificate or key
 * change; the old ones finish what they carry.
 */
export class ConnectionPools {
  /** Path of the server's URL (Rancher and other proxies serve clusters below one). */
  readonly prefix: string
  readonly #access: ClusterAccess
  readonly #options: PoolOptions
  readonly #retired = new Set<Pool>()
  #pools: Pools | null = null
  #destroyed = false

  constructor(access: ClusterAccess, options: PoolOptions) {
    this.#access = access
    this.#options = options
    this.prefix = new URL(access.server).pathname.replace(/\/+$/, '')
  }

  use(tls: TlsMaterial): Pools {
    if (this.#destroyed) throw new Error('the transport is closed')
    if (this.#pools?.id === tls.id) return this.#pools
    for (const old of this.#pools?.raw ?? []) this.#retire(old)
    this.#pools = this.#open(tls)
    return this.#pools
  }

  async destroy(): Promise<void> {
    this.#destroyed = true
    const all = [...this.#retired, ...(this.#pools?.raw ?? [])]
    this.#pools = null
    await Promise.all(all.map(pool => pool.destroy()))
  }

  #retire(pool: Pool): void {
    this.#retired.add(pool)
    void pool.close().then(
      () => this.#retired.delete(pool),
      () => this.#retired.delete(pool),
    )
  }

  #open(tls: TlsMaterial): Pools {
    const { origin } = new URL(this.#access.server)
    const common = {
      allowH2: false,
      pipelining: 1,
      keepAliveTimeout: 60_000,
      keepAliveMaxTimeout: 60_000,
      connect: {
        timeout: this.#options.connectTimeoutMs,
        keepAlive: true,
        ...(tls.ca === null ? {} : { ca: tls.ca }),
        ...(tls.cert === null ? {} : { cert: tls.cert }),
        ...(tls.key === null ? {} : { key: tls.key }),
        ...(this.#access.serverName === null ? {} : { servername: this.#access.serverName }),
        rejectUnauthorized: !this.#access.skipVerify,
      },
    }
    const calls = new Pool(origin, {
      ...common,
      connections: this.#options.connections,
      maxResponseSize: this.#options.maxResponseSize,
    })
    const streams = new Pool(origin, { ...common, connections: null })
    return {
      id: tls.id,
      calls: calls.compose(noteSending),
      streams: streams.compose(noteSending),
      raw: [calls, streams],
    }
  }
}

interface Progress {
  sent: boolean
}

/** undici calls onRequestStart once a connection stands, right before it writes: the line between "surely not done" and "maybe". */
const noteSending: Dispatcher.DispatcherComposeInterceptor = dispatch => (options, handler) => {
  const progress = (options as { progress?: Progress }).progress
  return dispatch(options, {
    onRequestStart(controller, context) {
      if (progress) progress.sent = true
      handler.onRequestStart?.(controller, context)
    },
    onRequestUpgrade: (...rest) => handler.onRequestUpgrade?.(...rest),
    onResponseStart: (...rest) => handler.onResponseStart?.(...rest),
    onResponseData: (...rest) => handler.onResponseData?.(...rest),
    onResponseEnd: (...rest) => handler.onResponseEnd?.(...rest),
    onResponseError: (...rest) => handler.onResponseError?.(...rest),
  })
}
