import type { RequestOptions } from 'node:https'
import { KubeConfig } from '@kubernetes/client-node'
import { Agent, request } from 'undici'

/** An answer of the API server: `body` is the parsed JSON, or the text where it is not JSON (logs, `/readyz`). */
export interface Answer {
  status: number
  // biome-ignore lint/suspicious/noExplicitAny: tests look into objects of any kind
  body: any
}

/** A plain connection to one API server with one user's credentials: no retries, no watch, independent of the code under test. */
export interface Connection {
  server: string
  send(method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE', path: string, body?: object): Promise<Answer>
  close(): Promise<void>
}

const requestTimeoutMs = 30_000

/**
 * Reads a kubeconfig (default: the usual loading rules, so KUBECONFIG first) without speaking to the server.
 * A PATCH is sent as a merge patch. `send` rejects only when no answer came, within 30 s; a refusal is an answer.
 */
export async function connect(file?: string): Promise<Connection> {
  const config = new KubeConfig()
  if (file === undefined) config.loadFromDefault()
  else config.loadFromFile(file)
  const server = config.getCurrentCluster()?.server
  if (server === undefined)
    throw new Error(`cannot use the kubeconfig ${file ?? '(default)'}: it names no current cluster`)
  const tls: RequestOptions = {}
  await config.applyToHTTPSOptions(tls)
  const agent = new Agent({
    connect: { ca: tls.ca, cert: tls.cert, key: tls.key, rejectUnauthorized: tls.rejectUnauthorized },
  } as Agent.Options)
  const credentials = tls.headers as Record<string, string> | undefined

  async function send(method: string, path: string, body?: object): Promise<Answer> {
    const type = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json'
    const response = await request(server + path, {
      method: method as 'GET',
      dispatcher: agent,
      headers: { ...credentials, ...(body && { 'content-type': type }) },
      body: body && JSON.stringify(body),
      headersTimeout: requestTimeoutMs,
      bodyTimeout: requestTimeoutMs,
    })
    const text = await response.body.text()
    const json = String(response.headers['content-type']).startsWith('application/json')
    return { status: response.statusCode, body: json ? JSON.parse(text) : text }
  }
  return { server, send, close: () => agent.close() }
}

/** Asks until `accept` is true of an answer and returns that one; rejects with the last answer after `seconds`. */
export async function poll(
  ask: () => Promise<Answer>,
  accept: (answer: Answer) => boolean,
  seconds = 60,
): Promise<Answer> {
  const deadline = Date.now() + seconds * 1000
  for (;;) {
    const answer = await ask()
    if (accept(answer)) return answer
    if (Date.now() > deadline)
      throw new Error(`not so within ${seconds} s; last: ${JSON.stringify(answer).slice(0, 4000)}`)
    await new Promise(resolve => setTimeout(resolve, 200))
  }
}

/** What the cluster suite assumes of any cluster: it answers, and says its version. */
if (import.meta.main) {
  const api = await connect()
  const version = await api.send('GET', '/version')
  if (version.status !== 200)
    throw new Error(`cannot use the cluster at ${api.server}: GET /version answers ${version.status}`)
  console.log(`Kubernetes ${version.body.gitVersion} answers at ${api.server}`)
  await api.close()
}
