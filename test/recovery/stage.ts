import type { TestContext } from 'node:test'
import type { ReflectorProfile } from '../../src/kube/reflector-profile.ts'
import {
  type KubeObject,
  type Sandbox,
  type SandboxOptions,
  startSandbox,
  TEST_TIMING,
} from '../../src/sandbox/index.ts'
import { type Client, type Daemon, kubeconfigFile, quick, startDaemon, type WireEvent } from '../helpers/daemon.ts'
import { Ledger } from './digest.ts'

/** A deadline that a test can wait for and a loaded machine keeps. */
export const impatient: ReflectorProfile = { ...quick, callDeadlineMs: 2_000 }

export interface StageOptions {
  readonly sandbox?: SandboxOptions
  readonly env?: Readonly<Record<string, string>>
  readonly profile?: 'quick' | 'test' | ReflectorProfile
  /** Text of the kubeconfig; default: the sandbox's. */
  readonly kubeconfig?: (sandbox: Sandbox) => string
}

/** A sandbox and a daemon on it, both in this process; pods are ready at once and gone at once. */
export interface Stage {
  readonly sandbox: Sandbox
  readonly ledger: Ledger
  /** The newest daemon. */
  daemon: Daemon
  /** Starts the daemon again, on the database that it has unless `env` names another; resolves when it listens. */
  restart(env?: Readonly<Record<string, string>>): Promise<Daemon>
}

/** Resolves when the daemon is ready. */
export async function stageOf(t: TestContext, options: StageOptions = {}): Promise<Stage> {
  const sandbox = await startSandbox({ kubelet: 'instant', timing: TEST_TIMING, ...options.sandbox })
  t.after(() => sandbox.close())
  const kubeconfig = kubeconfigFile(t, options.kubeconfig?.(sandbox) ?? sandbox.kubeconfig())
  const start = (env: Readonly<Record<string, string>>) =>
    startDaemon(t, { kubeconfig, env: { ...options.env, ...env }, profile: options.profile ?? 'quick' })
  const stage: Stage = {
    sandbox,
    ledger: new Ledger(sandbox),
    daemon: await start({}),
    async restart(env = {}) {
      const { database } = stage.daemon
      await stage.daemon.stop()
      stage.daemon = await start({ DATABASE_PATH: database, ...env })
      return stage.daemon
    },
  }
  await stage.daemon.ready()
  return stage
}

export interface Spec {
  readonly name: string
  readonly kind?: 'deployment' | 'job'
  readonly [field: string]: unknown
}

export const create = (client: Client, spec: Spec, headers?: Record<string, string>) =>
  client.api('POST', '/v1/runtimes', { image: 'busybox', ...spec }, headers)

export const verb = (client: Client, id: string, what: 'start' | 'stop' | 'delete') =>
  what === 'delete' ? client.api('DELETE', client.path(id)) : client.api('POST', client.path(id, `/${what}`))

export const deployment = (name: string, namespace = 'default'): string => `k8s-${namespace}|deployment|${name}`
export const job = (name: string, namespace = 'default'): string => `k8s-${namespace}|job|${name}`

export const inState = (client: Client, id: string, state: string, seconds?: number) =>
  client.waitFor(id, runtime => runtime?.state === state, seconds)

export const isGone = (client: Client, id: string) => client.waitFor(id, runtime => runtime === null)

/** `Exited 1 StoppedByRequest`: type, run, reason. */
export const told = ({ type, run, reason }: WireEvent): string =>
  `${type.slice('Container'.length)} ${run} ${reason ?? '-'}`

export const storyOf = async (client: Client, id: string): Promise<string[]> => (await client.eventsOf(id)).map(told)

/** The object of a name, which must be there. */
export function objectOf({ store }: Sandbox, resource: string, name: string, namespace = 'default'): KubeObject {
  const found = store.get(resource, namespace, name)
  if (found === undefined) throw new Error(`there is no ${resource}/${name}`)
  return found
}

/** What a refused create must leave behind: nothing. */
export async function leftovers({ sandbox, daemon }: Stage): Promise<object> {
  const runtimes = await daemon.api('GET', '/v1/runtimes?limit=1000')
  const objects = ['deployments', 'jobs', 'services', 'pods'].flatMap(resource =>
    sandbox.store.list(resource).map(({ metadata }) => `${resource}/${metadata.name}`),
  )
  return { runtimes: runtimes.body.items, objects, events: await daemon.events() }
}
export const NOTHING = { runtimes: [], objects: [], events: [] }

/** The pod of a Job ends with this exit code, as a kubelet says it. */
export function endPod({ store, registry }: Sandbox, name: string, exitCode: number): void {
  const pod = store.list('pods', 'default').find(({ metadata }) => metadata.labels?.['gobrave-workload'] === name)
  if (pod === undefined) throw new Error(`${name} has no pod`)
  const at = new Date().toISOString().replace(/\.\d+/, '')
  registry.updateStatus('pods', 'default', pod.metadata.name, draft => {
    const [main] = draft.status.containerStatuses
    const { startedAt } = main.state.running
    draft.status.phase = exitCode === 0 ? 'Succeeded' : 'Failed'
    main.ready = false
    const reason = exitCode === 0 ? 'Completed' : 'Error'
    main.state = { terminated: { exitCode, reason, startedAt, finishedAt: at } }
  })
}
