import { DNS_LABEL, formatRuntimeId, type RuntimeId, type RuntimeName } from '../domain/runtime-id.ts'
import type { Clock, Health, Lifecycle } from '../service/ports.ts'
import type { ChangeHub } from './change-hub.ts'
import type { KubeClient } from './client.ts'
import type { Informers } from './informers.ts'
import { isOwnWorkload, type WorkloadKind, workloadOfPod } from './kinds.ts'
import type { LastSeenMemory, WorkloadRecord } from './last-seen.ts'
import type { Pod } from './objects.ts'
import type { Ownership } from './ownership.ts'
import type { PodRecord } from './trim.ts'

export interface KubeLifecycleOptions {
  readonly name: RuntimeName
  readonly client: Pick<KubeClient, 'version'>
  readonly informers: Informers
  readonly ownership: Ownership
  readonly memory: LastSeenMemory
  readonly hub: ChangeHub
  readonly clock: Clock
  readonly close: () => Promise<void>
}

const VERSION_EVERY_MS = 30_000

/** Watches, what becomes of their changes, and their health. */
export class KubeLifecycle implements Lifecycle {
  readonly #options: KubeLifecycleOptions
  #onChange: (id: RuntimeId) => void = () => {}
  #version: string | null = null
  #versionAskedAt = Number.NEGATIVE_INFINITY
  #stopped = false

  constructor(options: KubeLifecycleOptions) {
    this.#options = options
    options.informers.onChange((kind, record, gone) => this.#take(kind, record, gone))
  }

  start(onChange: (id: RuntimeId) => void): void {
    this.#onChange = onChange
    this.#options.informers.start()
    this.#askVersion()
  }

  async synced(signal: AbortSignal): Promise<void> {
    await this.#options.informers.synced(signal)
  }

  health(): Health {
    const { informers } = this.#options
    if (this.#version === null) this.#askVersion()
    const { fresh, reason } = informers
    return { fresh, reason: fresh ? null : reason, version: this.#version, informers: informers.health() }
  }

  freshFor(id: RuntimeId): boolean {
    return this.#options.informers.freshFor(id)
  }

  async stop(): Promise<void> {
    this.#stopped = true
    this.#options.ownership.stop()
    await this.#options.informers.stop()
    await this.#options.close()
  }

  /** Has the ID decided again. */
  wake(id: RuntimeId): void {
    if (this.#stopped) return
    this.#options.hub.notify(formatRuntimeId(id))
    this.#onChange(id)
  }

  /** Wakes the workload that a pod names. */
  wakeOwner(pod: Pod): void {
    const workload = workloadOfPod(pod.metadata)
    if (workload !== null) this.#wake(pod.metadata?.namespace ?? '', workload)
  }

  #take(kind: WorkloadKind, record: WorkloadRecord, gone: boolean): void {
    const { namespace, name } = record.metadata
    if (kind === 'Pod' && !isOwnWorkload(record.metadata)) {
      if (gone) this.#options.memory.podGone(record as PodRecord)
      this.wakeOwner(record as PodRecord)
      return
    }
    const id = { namespace, kind: kind === 'Deployment' ? 'deployment' : kind === 'Job' ? 'job' : 'pod', name } as const
    if (gone) this.#rememberWorkload({ ...id, runtime: this.#options.name }, record)
    this.#wake(namespace, id)
  }

  #rememberWorkload(id: RuntimeId, record: WorkloadRecord): void {
    const { informers, ownership, memory } = this.#options
    const pods = id.kind === 'pod' ? [] : informers.podsNaming(id)
    memory.objectGone(record, ownership.known(pods, { kind: id.kind, uid: record.metadata.uid }) as PodRecord[])
  }

  /** Names that no ID can have are nobody's. */
  #wake(namespace: string, { kind, name }: { kind: RuntimeId['kind']; name: string }): void {
    if (DNS_LABEL.test(name)) this.wake({ runtime: this.#options.name, namespace, kind, name })
  }

  #askVersion(): void {
    const now = this.#options.clock.now()
    if (this.#stopped || now - this.#versionAskedAt < VERSION_EVERY_MS) return
    this.#versionAskedAt = now
    this.#options.client.version().then(
      version => {
        this.#version = version
      },
      () => {}, // health says why by the informers; it is asked again
    )
  }
}
