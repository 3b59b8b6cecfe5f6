import type { RuntimeName } from '../domain/runtime-id.ts'
import type { BackendView, HealthApi, HealthCheck } from './api.ts'
import type { Backends } from './backends.ts'
import type { Backend, Clock, Maintenance } from './ports.ts'

/** The write probe of the database is asked at most this often. */
const PROBE_EVERY_MS = 1000

export interface HealthServiceOptions {
  readonly store: Maintenance
  readonly backends: Backends
  readonly clock: Clock
}

/** livez, readyz and /v1/backends: what an operator is told, with the reason. */
export class HealthService implements HealthApi {
  readonly #options: HealthServiceOptions
  readonly #adopted = new Set<RuntimeName>()
  #shuttingDown = false
  #probe: HealthCheck = { name: 'database', ok: true, reason: null }
  #probedAt = Number.NEGATIVE_INFINITY

  constructor(options: HealthServiceOptions) {
    this.#options = options
  }

  /** The rows of this runtime are taken up again after the start; its check is red until then. */
  adopted(name: RuntimeName): void {
    this.#adopted.add(name)
  }

  shutDown(): void {
    this.#shuttingDown = true
  }

  live(): { status: 'ok'; checks: readonly HealthCheck[] } {
    return { status: 'ok', checks: [{ name: 'process', ok: true, reason: null }] }
  }

  ready(): { ready: boolean; status: 'ok' | 'degraded' | 'unavailable'; checks: readonly HealthCheck[] } {
    const { backends } = this.#options
    const runtimes = backends.all.map(backend => this.#runtime(backend))
    const own: HealthCheck[] = [
      this.#database(),
      { name: 'shutdown', ok: !this.#shuttingDown, reason: this.#shuttingDown ? 'the daemon is shutting down' : null },
    ]
    const checks = [...own, ...runtimes]
    const ready = own.every(check => check.ok) && runtimes.some(check => check.ok)
    const allOk = checks.every(check => check.ok)
    return { ready, status: ready ? (allOk ? 'ok' : 'degraded') : 'unavailable', checks }
  }

  backends(): readonly BackendView[] {
    const { backends } = this.#options
    return backends.all.map(backend => {
      const { fresh, reason, version, informers } = backend.lifecycle.health()
      const { name, type } = backend
      return { name, type, default: backend === backends.default, healthy: fresh, reason, version, informers }
    })
  }

  #database(): HealthCheck {
    const now = this.#options.clock.now()
    if (now - this.#probedAt >= PROBE_EVERY_MS) {
      this.#probedAt = now
      this.#probe = { name: 'database', ...this.#options.store.writable() }
    }
    return this.#probe
  }

  #runtime(backend: Backend): HealthCheck {
    const { fresh, reason } = backend.lifecycle.health()
    const name = `runtime ${backend.name}`
    if (!fresh) return { name, ok: false, reason: reason ?? 'the cluster has not been heard of' }
    const ok = this.#adopted.has(backend.name)
    return { name, ok, reason: ok ? null : 'its rows are not taken up again yet' }
  }
}
