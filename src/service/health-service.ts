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
  #adopted = false
  #shuttingDown = false
  #probe: HealthCheck = { name: 'database', ok: true, reason: null }
  #probedAt = Number.NEGATIVE_INFINITY

  constructor(options: HealthServiceOptions) {
    this.#options = options
  }

  /** Re-adoption after the start is done; readyz is red until then. */
  adopted(): void {
    this.#adopted = true
  }

  shutDown(): void {
    this.#shuttingDown = true
  }

  live(): { status: 'ok'; checks: readonly HealthCheck[] } {
    return { status: 'ok', checks: [{ name: 'process', ok: true, reason: null }] }
  }

  ready(): { ready: boolean; status: 'ok' | 'degraded' | 'unavailable'; checks: readonly HealthCheck[] } {
    const { backends } = this.#options
    const runtimes = backends.all.map(checkOf)
    const own: HealthCheck[] = [
      this.#database(),
      { name: 'adoption', ok: this.#adopted, reason: this.#adopted ? null : 'rows are not taken up again yet' },
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
}

function checkOf(backend: Backend): HealthCheck {
  const { fresh, reason } = backend.lifecycle.health()
  return { name: `runtime ${backend.name}`, ok: fresh, reason }
}
