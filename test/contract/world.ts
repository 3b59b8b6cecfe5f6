import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import type { Faults } from '../../src/sandbox/index.ts'
import type { Answer, Connection } from '../cluster/connect.ts'
import {
  type Client,
  type Daemon,
  poll,
  type Reply,
  type Runtime,
  type Scope,
  startDaemon,
  type WireEvent,
} from '../helpers/daemon.ts'

/** A cluster to run the suite on, and how things are said there. */
export interface Environment {
  /** A file with all rights. */
  readonly kubeconfig: string
  readonly api: Connection
  /** Has a shell at /bin/sh with the usual tools. */
  readonly image: string
  /** Fields of a spec whose container is killed for its memory. */
  readonly hungry: { readonly image: string; readonly entrypoint: string[]; readonly memory: string }
  /** An image that no node can pull. */
  readonly badImage: string
  /** From the creation of a Job until its pod has surely begun to run. */
  readonly podStartSeconds: number
  /** Knobs of the sandbox; a real cluster has none. */
  readonly faults?: Faults
  /** A kubeconfig whose user has what the daemon needs in these namespaces, and nothing anywhere else. */
  readonly restricted: (
    scope: Scope,
  ) => Promise<{ readonly kubeconfig: string; readonly namespaces: readonly string[] }>
}

/** What the cases of one suite share. */
export interface Stage {
  readonly environment: Environment
  readonly daemon: Daemon
  /** The namespace of the suite; the daemon's default. */
  readonly namespace: string
}

export type Register = (title: string, run: (world: World) => Promise<void>, options?: CaseOptions) => void
export interface CaseOptions {
  /** Skipped where there are no knobs for faults. */
  readonly needsFaults?: boolean
}

export interface SpecFields {
  readonly name?: string
  readonly kind?: string
  readonly namespace?: string
  readonly [field: string]: unknown
}

let counter = 0

/** Ends with 0 when it is told to: the shell waits beside the sleep, so SIGTERM is heard at once. */
export const waiting = 'trap "exit 0" TERM; echo up; sleep 3600 & wait'
/** Hears SIGTERM and goes on. */
export const stubborn = 'trap "" TERM; echo up; sleep 3600'

/** One case: a daemon to speak to as a user, a cluster to act in as others do, names of its own. */
export class World {
  readonly t: TestContext
  readonly stage: Stage
  readonly client: Client

  constructor(t: TestContext, stage: Stage, client: Client = stage.daemon) {
    this.t = t
    this.stage = stage
    this.client = client
  }

  get namespace(): string {
    return this.stage.namespace
  }

  get faults(): Faults {
    if (this.stage.environment.faults === undefined) throw new Error('this cluster has no knobs')
    return this.stage.environment.faults
  }

  /** The same case seen through another daemon. */
  through(client: Client): World {
    return new World(this.t, this.stage, client)
  }

  /** A name nobody else has. */
  name(prefix: string): string {
    counter += 1
    return `${prefix}-${counter}`
  }

  id(kind: string, name: string, namespace = this.namespace): string {
    return `k8s-${namespace}|${kind}|${name}`
  }

  /** Fields of a spec that runs a script in the shell. */
  script(script: string): { image: string; entrypoint: string[]; command: string[] } {
    return { image: this.stage.environment.image, entrypoint: ['/bin/sh', '-c'], command: [script] }
  }

  post(spec: SpecFields, headers?: Record<string, string>): Promise<Reply> {
    return this.client.api('POST', '/v1/runtimes', spec, headers)
  }

  /** Creates and answers the runtime; deleted after the case. Rejects unless 201. */
  async create(spec: SpecFields): Promise<Runtime> {
    const reply = await this.post({ terminationGracePeriodSeconds: 1, ...spec })
    assert.equal(reply.status, 201, JSON.stringify(reply.body))
    this.t.after(() => this.client.api('DELETE', this.client.path(reply.body.id)).catch(() => {}))
    return reply.body
  }

  deployment(script: string, fields: SpecFields = {}): Promise<Runtime> {
    return this.create({ kind: 'deployment', name: this.name('web'), ...this.script(script), ...fields })
  }

  job(script: string, fields: SpecFields = {}): Promise<Runtime> {
    return this.create({ kind: 'job', name: this.name('job'), ...this.script(script), ...fields })
  }

  get(id: string): Promise<Reply> {
    return this.client.api('GET', this.client.path(id))
  }

  verb(id: string, verb: 'start' | 'stop' | 'pause' | 'resume'): Promise<Reply> {
    return this.client.api('POST', this.client.path(id, `/${verb}`))
  }

  /** The verb, accepted: rejects unless 202. */
  async accepted(id: string, verb: 'start' | 'stop' | 'pause' | 'resume' | 'delete'): Promise<Runtime> {
    const reply = await (verb === 'delete' ? this.delete(id) : this.verb(id, verb))
    assert.equal(reply.status, 202, JSON.stringify(reply.body))
    return reply.body
  }

  delete(id: string): Promise<Reply> {
    return this.client.api('DELETE', this.client.path(id))
  }

  logs(id: string, query = ''): Promise<Reply> {
    return this.client.api('GET', this.client.path(id, `/logs${query}`))
  }

  reach(id: string, accept: (runtime: Runtime) => boolean, seconds = 30): Promise<Runtime> {
    return this.client.waitFor(id, runtime => runtime !== null && accept(runtime), seconds)
  }

  state(id: string, state: string, seconds = 30): Promise<Runtime> {
    return this.reach(id, runtime => runtime.state === state, seconds)
  }

  /** Resolves when the runtime is answered with 404. */
  async gone(id: string, seconds = 30): Promise<void> {
    await this.client.waitFor(id, runtime => runtime === null, seconds)
  }

  /** What was told of it so far: `Exited 1 StoppedByRequest 0` = type, run, reason, exit code; a dash for null. */
  async story(id: string): Promise<string[]> {
    return (await this.client.eventsOf(id)).map(told)
  }

  /** Deletes it, waits until it is gone, and answers everything that was told of it: nothing comes after. */
  async end(id: string, seconds = 30): Promise<string[]> {
    await this.accepted(id, 'delete')
    await this.gone(id, seconds)
    return this.story(id)
  }

  /** Asks the cluster itself. */
  send(method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE', path: string, body?: object): Promise<Answer> {
    return this.stage.environment.api.send(method, path, body)
  }

  /** Path of an object in the namespace of the suite. */
  at(plural: string, name = '', namespace = this.namespace): string {
    const group =
      { deployments: 'apis/apps/v1', replicasets: 'apis/apps/v1', jobs: 'apis/batch/v1' }[plural] ?? 'api/v1'
    return `/${group}/namespaces/${namespace}/${plural}${name && `/${name}`}`
  }

  /** The object of a runtime as the cluster has it; rejects unless it is there. */
  // biome-ignore lint/suspicious/noExplicitAny: Kubernetes objects of any kind
  async object({ kind, name, namespace }: Runtime): Promise<any> {
    const { status, body } = await this.send('GET', this.at(`${kind}s`, name, namespace))
    assert.equal(status, 200, JSON.stringify(body))
    return body
  }

  /** The pods that carry the name of a runtime, whoever owns them. */
  // biome-ignore lint/suspicious/noExplicitAny: Kubernetes objects of any kind
  async pods({ name, namespace }: Runtime): Promise<any[]> {
    const selector = encodeURIComponent(`gobrave-workload=${name}`)
    const { body } = await this.send('GET', `${this.at('pods', '', namespace)}?labelSelector=${selector}`)
    return body.items
  }

  /** As others do: a merge patch on the object of a runtime. */
  async byHand({ kind, name, namespace }: Runtime, patch: object): Promise<void> {
    const { status, body } = await this.send('PATCH', this.at(`${kind}s`, name, namespace), patch)
    assert.equal(status, 200, JSON.stringify(body))
  }

  /** As others do: deletes the object of a runtime. */
  async deleteByHand({ kind, name, namespace }: Runtime, policy: 'Foreground' | 'Background' = 'Background') {
    const { status, body } = await this.send('DELETE', this.at(`${kind}s`, name, namespace), {
      kind: 'DeleteOptions',
      apiVersion: 'v1',
      propagationPolicy: policy,
    })
    assert.equal(status, 200, JSON.stringify(body))
  }

  /** As others do: evicts a pod through the Eviction API. */
  async evict(pod: { metadata: { name: string } }): Promise<void> {
    const { name } = pod.metadata
    const eviction = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name, namespace: this.namespace } }
    const { status, body } = await this.send('POST', `${this.at('pods', name)}/eviction`, eviction)
    assert.equal(status, 201, JSON.stringify(body))
  }

  /** A namespace of its own, deleted after the case. */
  async newNamespace(prefix: string): Promise<string> {
    const name = `${this.namespace}-${this.name(prefix)}`
    const { status, body } = await this.send('POST', '/api/v1/namespaces', { metadata: { name } })
    assert.equal(status, 201, JSON.stringify(body))
    this.t.after(() => this.send('DELETE', `/api/v1/namespaces/${name}`))
    return name
  }

  /** Another daemon, with a database and an instance of its own unless `env` says otherwise. */
  async daemon(env: Record<string, string> = {}): Promise<Daemon> {
    const daemon = await startDaemon(this.t, {
      kubeconfig: this.stage.environment.kubeconfig,
      env: { NAMESPACE: this.namespace, INSTANCE: this.name('other'), ...env },
    })
    await daemon.ready()
    return daemon
  }
}

export const told = ({ type, run, reason, exitCode }: WireEvent): string => {
  const code = type === 'ContainerExited' || type === 'ContainerFailed' ? ` ${exitCode ?? '-'}` : ''
  return `${type.slice('Container'.length)} ${run} ${reason ?? '-'}${code}`
}

export { poll }
