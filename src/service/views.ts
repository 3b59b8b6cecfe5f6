import type { Life } from '../domain/life.ts'
import { isMonitored } from '../domain/life.ts'
import type { Display, Observation } from '../domain/observation.ts'
import { formatRuntimeId } from '../domain/runtime-id.ts'
import type { Backends } from './backends.ts'
import type { RuntimeView } from './runtime-view.ts'

const NOTHING: Display = {
  replicas: { desired: 0, current: 0, ready: 0 },
  restarts: 0,
  podName: null,
  podIp: null,
  nodeName: null,
}

/** Shows rows: what the row says of state and run, what the cache says of pods and replicas. Reads only, no call. */
export class Views {
  readonly #backends: Backends

  constructor(backends: Backends) {
    this.#backends = backends
  }

  /** `seen`: show this instead of what the cache has (an orphan that was just read live). */
  of(life: Life, seen?: Observation | null): RuntimeView {
    const served = this.#backends.serves(life.id)
    const backend = served ? this.#backends.get(life.id.runtime) : null
    const observation = seen ?? (life.gone || life.state === 'deleted' ? null : backend?.workloads.observe(life))
    const display = observation?.type === 'seen' && observation.uid === life.uid ? observation.display : NOTHING
    return {
      id: formatRuntimeId(life.id),
      ...life.id,
      uid: life.uid,
      run: life.run,
      state: life.state,
      ready: life.ready,
      monitored: isMonitored(life),
      reason: life.reason ?? (life.state === 'stopped' ? life.exitReason : null),
      message: life.message,
      hint: life.hint,
      exitCode: life.exitCode,
      ...display,
      image: life.image,
      labels: life.labels,
      address: life.state === 'deleted' ? null : (backend?.address(life) ?? display.podIp),
      createdAt: life.createdAt,
      startedAt: life.startedAt,
      endedAt: life.endedAt,
      observedAt: life.observedAt,
      stale: life.foreign || backend === null || !backend.lifecycle.freshFor(life.id),
    }
  }
}
