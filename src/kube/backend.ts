import type { RuntimeName } from '../domain/runtime-id.ts'
import { serviceDns } from '../domain/workload-name.ts'
import type { Backend, Clock, Log } from '../service/ports.ts'
import { type BuildOptions, renderObjects, serviceNameOf } from './build-workload.ts'
import { ChangeHub } from './change-hub.ts'
import { KubeClient } from './client.ts'
import { Informers, type RewindOptions } from './informers.ts'
import { KubeInventory } from './inventory.ts'
import type { ClusterAccess } from './kube-config.ts'
import { LastSeenMemory } from './last-seen.ts'
import { KubeLifecycle } from './lifecycle.ts'
import { LivePods } from './live-pods.ts'
import { KubeLogs } from './logs.ts'
import { Ownership } from './ownership.ts'
import type { ReflectorProfile } from './reflector-profile.ts'
import { Transport, type TransportOptions } from './transport.ts'
import { Views } from './views.ts'
import { Warnings } from './warnings.ts'
import { KubeWorkloads } from './workloads.ts'

export interface KubeBackendOptions extends Omit<BuildOptions, 'instance'> {
  readonly name: Extract<RuntimeName, 'k8s' | 'k3s'>
  /** What loadKubeConfig answers. */
  readonly connection: ClusterAccess
  /** `*` asks for cluster-wide watches; a list for nothing cluster-wide. */
  readonly namespaces: readonly string[] | '*'
  readonly instance: string
  readonly clusterDomain: string
  /** productionProfile(KUBE_TIMEOUT_SECONDS, WATCH_TIMEOUT_SECONDS), both in ms. */
  readonly profile: ReflectorProfile
  readonly transport?: Partial<TransportOptions>
  readonly rewind?: RewindOptions
  readonly clock: Clock
  readonly log: Log
}

/** One Kubernetes cluster behind the ports of the services. Makes no call before its lifecycle is started or a method is used. */
export function createKubeBackend(options: KubeBackendOptions): Backend {
  const { name, namespaces, profile, clock, log, instance } = options
  const transport = new Transport(options.connection, { deadlineMs: profile.callDeadlineMs, ...options.transport })
  const build: BuildOptions = pickBuild(options)
  const client = new KubeClient(transport)
  const hub = new ChangeHub(clock)
  const memory = new LastSeenMemory(() => clock.now())
  const rewind: RewindOptions = {
    newestKnown: (kind, namespace) => options.rewind?.newestKnown(kind, namespace) ?? null,
    onRewind(kind, namespace) {
      memory.forget()
      options.rewind?.onRewind(kind, namespace)
    },
  }
  const informers = new Informers({ transport, namespaces, profile, clock, log, rewind })
  const ownership = new Ownership({
    client,
    clock,
    onResolved: pod => lifecycle.wakeOwner(pod),
    backoff: profile,
  })
  const lifecycle = new KubeLifecycle({
    name,
    client,
    informers,
    ownership,
    memory,
    hub,
    clock,
    close: () => transport.close(),
  })
  const live = new LivePods(client, ownership)
  const views = new Views({ informers, ownership, memory })
  const warnings = new Warnings(client, clock)
  const wake = lifecycle.wake.bind(lifecycle)
  const changed: ConstructorParameters<typeof KubeLogs>[0]['changed'] = ({ id }, ms, signal) => hub.next(id, ms, signal)
  return {
    name,
    type: 'kubernetes',
    workloads: new KubeWorkloads({ client, build, informers, live, views, warnings, clock, wake }),
    inventory: new KubeInventory({ name, instance, client, cache: informers }),
    logs: new KubeLogs({ client, pods: live, changed }),
    lifecycle,
    render: (id, spec) => renderObjects({ ...spec, ...id }, build),
    address: ({ spec }) =>
      spec?.exposeService === true && spec.port !== null
        ? serviceDns(serviceNameOf(spec), spec.namespace, options.clusterDomain)
        : null,
  }
}

const pickBuild = ({ instance, podSecurity, imagePullSecrets, serviceAccountName }: KubeBackendOptions) => ({
  instance,
  podSecurity,
  imagePullSecrets,
  serviceAccountName,
})
