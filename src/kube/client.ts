import type { Readable } from 'node:stream'
import { type Doing, fromTransport, KubeStatusError, readStatus } from './errors.ts'
import {
  type ClusterEvent,
  collectionPath,
  type KubeKind,
  type KubeObjects,
  objectPath,
  type Scale,
} from './objects.ts'
import type { Call, QueryValue, Reply, StreamReply, Transport } from './transport.ts'

/** Ends a call early; it then fails as one that got no answer. */
export interface CallOptions {
  readonly signal?: AbortSignal
  readonly deadlineMs?: number
}

export interface ListOptions extends CallOptions {
  readonly labelSelector?: string
  readonly fieldSelector?: string
}

export interface DeleteOptions extends CallOptions {
  readonly propagation: 'Foreground' | 'Background' | 'Orphan'
  /** Only this very object; another of the name gives 409 Conflict. */
  readonly uid?: string
  readonly gracePeriodSeconds?: number
}

export interface LogOptions extends CallOptions {
  readonly container?: string
  readonly follow?: boolean
  readonly previous?: boolean
  readonly timestamps?: boolean
  readonly tailLines?: number
  readonly limitBytes?: number
  readonly sinceSeconds?: number
  readonly sinceTime?: string
}

/**
 * The few calls we make. Bodies are plain JSON with the generated types, not the generated API classes: their
 * (de)serialiser costs more than JSON.parse and drops every field newer than itself.
 *
 * Every failure is a RuntimeError; with an answer of the cluster it is a KubeStatusError, so that 404 and 409 can be
 * judged by who knows what they mean there. Names are checked before a path is built.
 */
export class KubeClient {
  readonly #transport: Transport

  constructor(transport: Transport) {
    this.#transport = transport
  }

  async get<K extends KubeKind>(kind: K, namespace: string, name: string, options: CallOptions = {}) {
    const call: Call = { method: 'GET', path: objectPath(kind, namespace, name), ...options }
    return await this.#json<KubeObjects[K]>(call, { action: `read the ${kind} ${name} in ${namespace}`, write: false })
  }

  /** All pages, consistent (no resourceVersion). A continue token that expired on the way starts the list over, once. */
  async list<K extends KubeKind>(kind: K, namespace: string | null, options: ListOptions = {}) {
    try {
      return await this.#listOnce(kind, namespace, options)
    } catch (error) {
      if (!(error instanceof KubeStatusError) || error.kube.code !== 410) throw error
      return await this.#listOnce(kind, namespace, options)
    }
  }

  async #listOnce<K extends KubeKind>(kind: K, namespace: string | null, options: ListOptions) {
    const { labelSelector, fieldSelector, ...rest } = options
    const doing = { action: `list the ${kind}s in ${namespace ?? 'all namespaces'}`, write: false }
    const items: KubeObjects[K][] = []
    for (let token: string | undefined = ''; token !== undefined; ) {
      const query = { labelSelector, fieldSelector, limit: 500, continue: token || undefined }
      const call: Call = { method: 'GET', path: collectionPath(kind, namespace), query, gzip: true, ...rest }
      const page: Page<KubeObjects[K]> = await this.#json<Page<KubeObjects[K]>>(call, doing)
      for (const item of page.items ?? []) items.push(item)
      token = page.metadata?.continue || undefined
    }
    return items
  }

  /** 404 here means that the namespace is missing, and is SPEC_REFUSED. */
  async create<K extends KubeKind>(kind: K, namespace: string, object: Named, options: CallOptions = {}) {
    const name = object.metadata?.name ?? ''
    const call: Call = { method: 'POST', path: collectionPath(kind, namespace), body: object, ...options }
    const doing = { action: `create the ${kind} ${name} in ${namespace}`, write: true, create: true }
    return await this.#json<KubeObjects[K]>(call, doing)
  }

  /** The object as the delete left it (finalizers, grace), or null where the cluster answered a mere Status. */
  async delete<K extends KubeKind>(kind: K, namespace: string, name: string, options: DeleteOptions) {
    const { propagation, uid, gracePeriodSeconds, ...rest } = options
    const body = {
      apiVersion: 'v1',
      kind: 'DeleteOptions',
      propagationPolicy: propagation,
      ...(uid === undefined ? {} : { preconditions: { uid } }),
      ...(gracePeriodSeconds === undefined ? {} : { gracePeriodSeconds }),
    }
    const call: Call = { method: 'DELETE', path: objectPath(kind, namespace, name), body, ...rest }
    const doing = { action: `delete the ${kind} ${name} in ${namespace}`, write: true }
    const answer = await this.#json<KubeObjects[K] & { kind?: string }>(call, doing)
    return answer.kind === 'Status' ? null : (answer as KubeObjects[K])
  }

  /** JSON merge patch (RFC 7396); never a replace, which would drop fields we do not know. */
  async patch<K extends KubeKind>(
    kind: K,
    namespace: string,
    name: string,
    patch: object,
    options: CallOptions = {},
  ): Promise<KubeObjects[K]> {
    const path = objectPath(kind, namespace, name)
    return await this.#merge<KubeObjects[K]>(path, patch, `change the ${kind} ${name} in ${namespace}`, options)
  }

  async readScale(namespace: string, name: string, options: CallOptions = {}): Promise<Scale> {
    const call: Call = { method: 'GET', path: objectPath('Deployment', namespace, name, 'scale'), ...options }
    return await this.#json<Scale>(call, { action: `read the scale of ${name} in ${namespace}`, write: false })
  }

  /** Succeeds only on the version that was read; another one gives 409 Conflict: read again and decide again. */
  async patchScale(
    namespace: string,
    name: string,
    scale: { readonly replicas: number; readonly resourceVersion: string },
    options: CallOptions = {},
  ): Promise<Scale> {
    const path = objectPath('Deployment', namespace, name, 'scale')
    const patch = { metadata: { resourceVersion: scale.resourceVersion }, spec: { replicas: scale.replicas } }
    return await this.#merge<Scale>(path, patch, `scale the Deployment ${name} in ${namespace}`, options)
  }

  /** Events about one object, in no order that can be relied on. */
  async eventsOf(namespace: string, uid: string, options: CallOptions = {}): Promise<ClusterEvent[]> {
    return await this.list('Event', namespace, { ...options, fieldSelector: `involvedObject.uid=${uid}` })
  }

  /**
   * The log as it was written, byte by byte. The deadline covers the headers only. The stream fails when the connection
   * does; destroy it (or abort the signal) to close the connection. 400 = the container has not started, or is unknown.
   */
  async podLog(namespace: string, name: string, options: LogOptions = {}): Promise<Readable> {
    const { signal, deadlineMs, ...query } = options
    const doing = { action: `read the log of the Pod ${name} in ${namespace}`, write: false }
    const path = objectPath('Pod', namespace, name, 'log')
    const call: Call = {
      method: 'GET',
      path,
      query: query as Record<string, QueryValue>,
      ...only({ signal, deadlineMs }),
    }
    let reply: StreamReply
    try {
      reply = await this.#transport.stream(call)
    } catch (error) {
      throw fromTransport(error, doing)
    }
    if (reply.status === 200) return reply.body
    throw new KubeStatusError(readStatus({ ...reply, body: await firstBytes(reply.body) }), doing)
  }

  /** gitVersion of the server, e.g. `v1.36.2`. */
  async version(options: CallOptions = {}): Promise<string> {
    const doing = { action: 'read the version of the cluster', write: false }
    const answer = await this.#json<{ gitVersion?: string }>({ method: 'GET', path: '/version', ...options }, doing)
    return answer.gitVersion ?? 'unknown'
  }

  async #merge<T>(path: string, body: object, action: string, options: CallOptions): Promise<T> {
    const contentType = 'application/merge-patch+json'
    return await this.#json<T>({ method: 'PATCH', path, body, contentType, ...options }, { action, write: true })
  }

  async #json<T>(call: Call, doing: Doing): Promise<T> {
    let reply: Reply
    try {
      reply = await this.#transport.request(call)
    } catch (error) {
      throw fromTransport(error, doing)
    }
    if (reply.status < 200 || reply.status > 299) throw new KubeStatusError(readStatus(reply), doing)
    try {
      return JSON.parse(reply.body.toString('utf8')) as T
    } catch (error) {
      throw fromTransport(error, doing)
    }
  }
}

/** An object to be made, as the builders make it. */
interface Named {
  readonly metadata?: { readonly name?: string }
}

interface Page<T> {
  items?: T[] | null
  metadata?: { continue?: string }
}

const only = (options: { signal: AbortSignal | undefined; deadlineMs: number | undefined }): CallOptions => ({
  ...(options.signal ? { signal: options.signal } : {}),
  ...(options.deadlineMs === undefined ? {} : { deadlineMs: options.deadlineMs }),
})

const STATUS_BYTES = 256 * 1024
const STATUS_MS = 2000

/** Enough of an error reply to read its Status; then the connection is closed. */
async function firstBytes(body: Readable): Promise<Buffer> {
  const chunks: Buffer[] = []
  let size = 0
  const timer = setTimeout(() => body.destroy(), STATUS_MS)
  try {
    for await (const chunk of body as AsyncIterable<Buffer>) {
      chunks.push(chunk)
      size += chunk.length
      if (size > STATUS_BYTES) break
    }
  } catch {
    // the rest of an error's text: what came is enough
  } finally {
    clearTimeout(timer)
    body.destroy()
  }
  return Buffer.concat(chunks)
}
