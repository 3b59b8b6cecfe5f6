import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Sandbox, type SandboxOptions, startSandbox, TEST_TIMING } from '../../src/sandbox/index.ts'

// biome-ignore lint/suspicious/noExplicitAny: replies are open JSON, asserted field by field
export type Json = any

export interface Reply {
  code: number
  body: Json
  text: string
  headers: Headers
}

export const DEPLOYMENTS = '/apis/apps/v1/namespaces/default/deployments'
export const JOBS = '/apis/batch/v1/namespaces/default/jobs'
export const PODS = '/api/v1/namespaces/default/pods'
export const MERGE = 'application/merge-patch+json'

/** A shell that ends well at SIGTERM. */
export const POLITE = ['sh', '-c', "trap 'exit 0' TERM; echo up; while :; do sleep 0.05; done"]
/** A shell that ignores SIGTERM. */
export const STUBBORN = ['sh', '-c', "trap '' TERM; echo up; while :; do sleep 0.05; done"]

/** A quick sandbox that ends with the test. */
export async function sandboxFor(
  t: { after(run: () => Promise<void>): void },
  options: SandboxOptions = {},
): Promise<Client> {
  const sandbox = await startSandbox({ ...options, timing: { ...TEST_TIMING, ...options.timing } })
  const client = new Client(sandbox)
  t.after(async () => {
    client.stopWatches()
    await sandbox.close()
  })
  return client
}

export async function until<T>(
  what: string,
  look: () => T | undefined | false | Promise<T | undefined | false>,
  ms = 8000,
): Promise<T> {
  const end = Date.now() + ms
  for (;;) {
    const found = await look()
    if (found) return found
    assert.ok(Date.now() < end, `waited in vain for: ${what}`)
    await sleep(5)
  }
}

export class Client {
  readonly sandbox: Sandbox
  readonly #watches: Watch[] = []

  constructor(sandbox: Sandbox) {
    this.sandbox = sandbox
  }

  async call(method: string, path: string, body?: Json, headers: Record<string, string> = {}): Promise<Reply> {
    const response = await fetch(this.sandbox.url + path, {
      method,
      headers: { 'content-type': 'application/json', ...headers },
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    })
    const text = await response.text()
    const isJson = response.headers.get('content-type')?.includes('json')
    return { code: response.status, body: isJson ? JSON.parse(text) : undefined, text, headers: response.headers }
  }

  get(path: string): Promise<Reply> {
    return this.call('GET', path)
  }

  post(path: string, body: Json): Promise<Reply> {
    return this.call('POST', path, body)
  }

  patch(path: string, body: Json, type = MERGE): Promise<Reply> {
    return this.call('PATCH', path, body, { 'content-type': type })
  }

  delete(path: string, options?: Json): Promise<Reply> {
    return this.call('DELETE', path, options)
  }

  scale(name: string, replicas: number): Promise<Reply> {
    return this.patch(`${DEPLOYMENTS}/${name}/scale`, { spec: { replicas } })
  }

  /** The one pod of an owner, once it satisfies the check. */
  pod(check: (pod: Json) => unknown, what = 'a pod'): Promise<Json> {
    return until(what, () => this.sandbox.store.list('pods', 'default').find(pod => check(pod)))
  }

  async watch(path: string): Promise<Watch> {
    const watch = await Watch.open(this.sandbox.url + path)
    this.#watches.push(watch)
    return watch
  }

  stopWatches(): void {
    for (const watch of this.#watches) watch.stop()
  }
}

/** An open watch: its lines so far. */
export class Watch {
  readonly lines: string[] = []
  readonly response: Response
  readonly #controller: AbortController
  readonly ended: Promise<void>
  over = false

  constructor(response: Response, controller: AbortController) {
    this.response = response
    this.#controller = controller
    this.ended = this.#read().finally(() => {
      this.over = true
    })
  }

  static async open(url: string): Promise<Watch> {
    const controller = new AbortController()
    return new Watch(await fetch(url, { signal: controller.signal }), controller)
  }

  get events(): Json[] {
    return this.lines.map(line => JSON.parse(line))
  }

  /** The first event that satisfies the check. */
  event(check: (event: Json) => unknown, what = 'an event'): Promise<Json> {
    return until(what, () => this.events.find(check))
  }

  stop(): void {
    this.#controller.abort()
  }

  async #read(): Promise<void> {
    const decoder = new TextDecoder()
    let rest = ''
    try {
      for await (const chunk of this.response.body!) {
        const parts = (rest + decoder.decode(chunk, { stream: true })).split('\n')
        rest = parts.pop()!
        this.lines.push(...parts)
      }
    } catch {
      // aborted or reset: what came is in `lines`
    }
  }
}

export const deployment = (name: string, command: string[] = POLITE, container: Json = {}, spec: Json = {}): Json => ({
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name, labels: { app: name } },
  spec: {
    selector: { matchLabels: { app: name } },
    template: {
      metadata: { labels: { app: name } },
      spec: {
        terminationGracePeriodSeconds: 1,
        containers: [{ name: 'main', image: 'registry.local/busybox:1', command, ...container }],
      },
    },
    ...spec,
  },
})

export const job = (name: string, command: string[], spec: Json = {}, container: Json = {}): Json => ({
  apiVersion: 'batch/v1',
  kind: 'Job',
  metadata: { name, labels: { app: name } },
  spec: {
    backoffLimit: 0,
    template: {
      metadata: { labels: { app: name } },
      spec: {
        restartPolicy: 'Never',
        terminationGracePeriodSeconds: 1,
        containers: [{ name: 'main', image: 'registry.local/busybox:1', command, ...container }],
      },
    },
    ...spec,
  },
})

export const pod = (name: string, command: string[] | undefined, container: Json = {}, spec: Json = {}): Json => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, labels: { app: name } },
  spec: {
    restartPolicy: 'Never',
    terminationGracePeriodSeconds: 1,
    containers: [{ name: 'main', image: 'registry.local/busybox:1', ...(command ? { command } : {}), ...container }],
    ...spec,
  },
})

export const condition = (object: Json, type: string): Json =>
  object?.status?.conditions?.find((entry: Json) => entry.type === type)
