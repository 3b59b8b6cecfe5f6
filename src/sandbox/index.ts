import { ApiServer } from './api-server.ts'
import type { ControllerContext, Stop } from './controller.ts'
import { startDeploymentController } from './deployment-controller.ts'
import { EventRecorder } from './event-recorder.ts'
import { Faults } from './faults.ts'
import { startGarbageCollector } from './garbage-collector.ts'
import { startInstantKubelet } from './instant-kubelet.ts'
import { startJobController } from './job-controller.ts'
import { kubeconfigText } from './kubeconfig.ts'
import { ListWatch } from './list-watch.ts'
import { startNamespaceController } from './namespace-controller.ts'
import { ObjectStore } from './object-store.ts'
import type { LogSource } from './pod-logs.ts'
import { ProcessKubelet } from './process-kubelet.ts'
import { Registry } from './registry.ts'
import { startReplicaSetController } from './replicaset-controller.ts'
import { NODE, startScheduler } from './scheduler.ts'
import { DEMO_TIMING, type Timing } from './types.ts'

export type { Failure, FaultHandle, Faults, JournalEntry, Match } from './faults.ts'
export type { ObjectStore } from './object-store.ts'
export type { PolicyRule } from './rbac.ts'
export type { Registry } from './registry.ts'
export type { Change, KubeObject, Timing } from './types.ts'
export { DEMO_TIMING, TEST_TIMING } from './types.ts'

export interface SandboxOptions {
  /** port on 127.0.0.1; 0 or absent: any free one */
  port?: number
  /** namespaces besides default and kube-system */
  namespaces?: string[]
  /**
   * `process` (default): pods run as local processes. `instant`: pods are ready at once and gone at once, nothing runs,
   * no Normal Events.
   * `none`: neither scheduler nor kubelet, the test writes pod statuses itself
   */
  kubelet?: 'process' | 'instant' | 'none'
  /** accepted bearer tokens; absent: none is asked for. The first goes into the kubeconfig */
  tokens?: string[]
  /** changes to the timing of the demo; `TEST_TIMING` is the quick set */
  timing?: Partial<Timing>
  /** no Deployment, ReplicaSet and Job controllers: the test plays them. Garbage collector and namespaces work on */
  controllers?: boolean
}

export interface Sandbox {
  readonly url: string
  readonly port: number
  /** the objects themselves; read it, write through `registry` or HTTP */
  readonly store: ObjectStore
  /** writes with the rules of the API, without HTTP and without faults: "by hand" or by a controller */
  readonly registry: Registry
  readonly faults: Faults
  /** a kubeconfig file's text (JSON, so YAML too) */
  kubeconfig(): string
  /** ends streams, controllers and all processes; resolves when nothing is left running */
  close(): Promise<void>
}

interface Kubelet extends LogSource {
  close(): Promise<void>
}

/** Starts a Kubernetes API in this process: the wire protocol of 1.36 over plain HTTP, loopback only, nothing kept on disk. */
export async function startSandbox(options: SandboxOptions = {}): Promise<Sandbox> {
  const timing: Timing = { ...DEMO_TIMING, ...options.timing }
  const store = new ObjectStore()
  const registry = new Registry(store)
  const faults = new Faults(store, options.tokens)
  const context: ControllerContext = {
    registry,
    faults,
    timing,
    events: new EventRecorder(registry, options.kubelet === 'instant'),
  }
  store.create('nodes', {
    ...NODE,
    metadata: { ...NODE.metadata, uid: '', resourceVersion: '', creationTimestamp: '' },
  })
  for (const name of ['default', 'kube-system', ...(options.namespaces ?? [])]) {
    if (!store.get('namespaces', undefined, name)) registry.create('namespaces', undefined, { metadata: { name } })
  }
  const stops = startControllers(context, options)
  const kubelet = startKubelet(context, options.kubelet ?? 'process')
  const server = new ApiServer({
    registry,
    faults,
    listWatch: new ListWatch(store, faults, timing.bookmarkMs),
    logs: kubelet,
  })
  const port = await server.listen(options.port ?? 0)
  const url = `http://127.0.0.1:${port}`
  let closing: Promise<void> | undefined
  const close = async (): Promise<void> => {
    for (const stop of stops) stop()
    await Promise.all([kubelet.close(), server.close()])
  }
  return {
    url,
    port,
    store,
    registry,
    faults,
    kubeconfig: () => kubeconfigText(url, options.tokens?.[0]),
    close: () => {
      closing ??= close()
      return closing
    },
  }
}

function startControllers(context: ControllerContext, { controllers = true, kubelet }: SandboxOptions): Stop[] {
  const workloads = [startDeploymentController, startReplicaSetController, startJobController]
  return [
    startGarbageCollector,
    startNamespaceController,
    ...(controllers ? workloads : []),
    ...(kubelet === 'none' ? [] : [startScheduler]),
  ].map(start => start(context))
}

function startKubelet(context: ControllerContext, kind: 'process' | 'instant' | 'none'): Kubelet {
  if (kind === 'process') return new ProcessKubelet(context)
  if (kind === 'instant') return startInstantKubelet(context)
  return { instances: () => [], close: async () => {} }
}
