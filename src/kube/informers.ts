import { LABEL_WORKLOAD } from '../domain/labels.ts'
import type { Kind, RuntimeId } from '../domain/runtime-id.ts'
import type { Clock, InformerHealth, Log } from '../service/ports.ts'
import { Informer } from './informer.ts'
import { isOwnWorkload, kubeKindOf, type WorkloadKind, workloadOfPod } from './kinds.ts'
import type { WorkloadRecord } from './last-seen.ts'
import { type ReflectorProfile, staleAfterMs } from './reflector-profile.ts'
import type { Transport } from './transport.ts'
import { type PodRecord, TRIM } from './trim.ts'

export interface InformersOptions {
  readonly transport: Transport
  /** `*`: one cluster-wide watch per kind; otherwise nothing cluster-wide is asked for. */
  readonly namespaces: readonly string[] | '*'
  readonly profile: ReflectorProfile
  readonly clock: Pick<Clock, 'now'>
  readonly log: Log
  readonly rewind: RewindOptions
}

/** A cluster restored from a backup: its versions begin again below those that were noted (kube-client.md §6.3). */
export interface RewindOptions {
  /** Newest version noted of workloads of this kind; null = none. Asked once, at the start. */
  newestKnown(kind: Kind, namespace: string | null): string | null
  /** The cluster insists, and is believed: what was noted of this kind there is newer than what will come. */
  onRewind(kind: Kind, namespace: string | null): void
}

interface OfNamespace {
  readonly Deployment: Informer<'Deployment'>
  readonly Job: Informer<'Job'>
  readonly Pod: Informer<'Pod'>
}

const KINDS = ['Deployment', 'Job', 'Pod'] as const
const BY_WORKLOAD = 'workload'

/** The caches of one cluster: one informer per kind and watched namespace, whatever the number of workloads. */
export class Informers {
  readonly #options: InformersOptions
  readonly #byNamespace = new Map<string | null, OfNamespace>()

  constructor(options: InformersOptions) {
    this.#options = options
    const namespaces = options.namespaces === '*' ? [null] : [...new Set(options.namespaces)]
    for (const namespace of namespaces) this.#byNamespace.set(namespace, this.#make(namespace))
  }

  start(): void {
    for (const informer of this.#all()) informer.start()
  }

  async stop(): Promise<void> {
    await Promise.all([...this.#all()].map(informer => informer.stop()))
  }

  /** Rejects with the signal's reason when it aborts first. */
  async synced(signal: AbortSignal): Promise<void> {
    await Promise.all([...this.#all()].map(informer => informer.whenSynced(signal)))
    if (![...this.#all()].every(informer => informer.hasSynced)) throw signal.reason
  }

  /** Told of every change once its informer has synced: the record, whether it is gone now. */
  onChange(handler: (kind: WorkloadKind, record: WorkloadRecord, gone: boolean) => void): void {
    for (const { Deployment, Job, Pod } of this.#byNamespace.values()) {
      Deployment.onChange(({ type, record }) => handler('Deployment', record, type === 'deleted'))
      Job.onChange(({ type, record }) => handler('Job', record, type === 'deleted'))
      Pod.onChange(({ type, record }) => handler('Pod', record, type === 'deleted'))
    }
  }

  get(id: RuntimeId): WorkloadRecord | null {
    return this.#of(id.namespace)?.[kubeKindOf(id)].get(id.namespace, id.name) ?? null
  }

  *all(kind: Kind): Generator<WorkloadRecord> {
    for (const informers of this.#byNamespace.values()) {
      for (const record of informers[kind === 'deployment' ? 'Deployment' : kind === 'job' ? 'Job' : 'Pod'].list()) {
        if (kind !== 'pod' || isOwnWorkload(record.metadata)) yield record
      }
    }
  }

  /** Pods that name this workload; whose they are is Ownership's business. */
  podsNaming({ namespace, kind, name }: RuntimeId): readonly PodRecord[] {
    return this.#of(namespace)?.Pod.byIndex(BY_WORKLOAD, keyOf(namespace, kind, name)) ?? []
  }

  /** Objects of this ID's kind and pods are all in: what is missing is missing. */
  syncedFor(id: RuntimeId): boolean {
    return this.#concerning(id).every(informer => informer.hasSynced)
  }

  freshFor(id: RuntimeId): boolean {
    const concerning = this.#concerning(id)
    return concerning.length > 0 && concerning.every(informer => this.#isFresh(informer))
  }

  get fresh(): boolean {
    return [...this.#all()].every(informer => this.#isFresh(informer))
  }

  /** Why it is not fresh, in words without addresses; null = it is. */
  get reason(): string | null {
    for (const informer of this.#all()) {
      if (this.#isFresh(informer)) continue
      const where = informer.namespace === null ? 'all namespaces' : `namespace ${informer.namespace}`
      const silent = informer.hasSynced ? 'nothing was heard for too long' : 'the first list is not complete'
      return `${informer.kind}s in ${where}: ${informer.reason ?? silent}`
    }
    return null
  }

  health(): readonly InformerHealth[] {
    return [...this.#all()].map(informer => ({
      kind: informer.kind,
      namespace: informer.namespace,
      synced: informer.hasSynced,
      objects: informer.size,
      lastContactSeconds:
        informer.lastContact === null ? null : Math.max(0, this.#options.clock.now() - informer.lastContact) / 1000,
      reason: informer.reason,
      counters: informer.counters,
    }))
  }

  #isFresh({ hasSynced, lastContact }: Informer<WorkloadKind>): boolean {
    const stale = staleAfterMs(this.#options.profile.watchMs)
    return hasSynced && lastContact !== null && this.#options.clock.now() - lastContact < stale
  }

  #concerning(id: RuntimeId): Informer<WorkloadKind>[] {
    const informers = this.#of(id.namespace)
    return informers
      ? [informers[kubeKindOf(id)] as Informer<WorkloadKind>, informers.Pod as Informer<WorkloadKind>]
      : []
  }

  #of(namespace: string): OfNamespace | undefined {
    return this.#byNamespace.get(null) ?? this.#byNamespace.get(namespace)
  }

  *#all(): Generator<Informer<WorkloadKind>> {
    for (const informers of this.#byNamespace.values()) {
      for (const kind of KINDS) yield informers[kind] as Informer<WorkloadKind>
    }
  }

  #make(namespace: string | null): OfNamespace {
    const { transport, profile, log, rewind } = this.#options
    const common = { transport, profile, log, namespace, labelSelector: LABEL_WORKLOAD }
    const rewinding = (kind: Kind) => ({
      newestKnown: () => rewind.newestKnown(kind, namespace),
      onRewind: () => rewind.onRewind(kind, namespace),
    })
    return {
      Deployment: new Informer({
        ...common,
        ...rewinding('deployment'),
        kind: 'Deployment',
        transform: TRIM.Deployment,
      }),
      Job: new Informer({ ...common, ...rewinding('job'), kind: 'Job', transform: TRIM.Job }),
      Pod: new Informer({ ...common, ...rewinding('pod'), kind: 'Pod', transform: TRIM.Pod, indexes: POD_INDEXES }),
    }
  }
}

const keyOf = (namespace: string, kind: Kind, name: string): string => `${namespace}|${kind}|${name}`

/** What pods are found by. */
export const POD_INDEXES = { [BY_WORKLOAD]: workloadKeyOf }

function workloadKeyOf({ metadata }: PodRecord): string | undefined {
  const workload = workloadOfPod(metadata)
  return workload === null ? undefined : keyOf(metadata.namespace, workload.kind, workload.name)
}
