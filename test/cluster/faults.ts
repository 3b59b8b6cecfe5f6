import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { request } from 'undici'
import { connect, poll } from './connect.ts'

/** The processes of a cluster of this folder, by the names that `component` takes. */
export type Component =
  | 'etcd'
  | 'apiserver'
  | 'controllers'
  | 'scheduler'
  | 'containerd'
  | 'kubelet'
  | 'dns'
  | 'proxy'
  | 'kwok'

const tools = process.env.RUNTIMED_CLUSTER_TOOLS
const etcd = 'http://127.0.0.1:2379'

/** Test options: skips where the cluster is somebody else's, which nobody may break. */
export const onOwnCluster = { skip: tools === undefined && 'the cluster is not one of test/cluster' }

async function tool(name: string, ...args: string[]): Promise<void> {
  if (tools === undefined) throw new Error(`cannot run ${name}: the cluster is not one of test/cluster`)
  await promisify(execFile)(join(tools, name), args)
}

/** Sends a signal: after STOP it is silent (connections are accepted, nothing answers), after KILL it has ended when this resolves. */
export function signal(component: Component, name: 'STOP' | 'CONT' | 'TERM' | 'KILL'): Promise<void> {
  return tool('component', component, name)
}

/** Starts a component that has ended, with the same arguments. Resolves before it is ready. */
export function start(component: Component): Promise<void> {
  return tool('component', component, 'start')
}

/** Resolves when the API server says that it is ready; rejects after 60 s. */
export async function apiReady(): Promise<void> {
  const api = await connect()
  const unanswered = (error: Error) => ({ status: 0, body: error.message })
  try {
    await poll(
      () => api.send('GET', '/readyz').catch(unanswered),
      ({ status }) => status === 200,
    )
  } finally {
    await api.close()
  }
}

/** Kills the API server and starts it again: watches break, nothing is lost. Resolves when it is ready. */
export async function restartApiServer(): Promise<void> {
  await signal('apiserver', 'KILL')
  await start('apiserver')
  await apiReady()
}

/** Lets packets to the API server vanish while `during` runs: time-outs, no resets. */
export async function withoutPackets<T>(during: () => Promise<T>): Promise<T> {
  const rule = ['INPUT', '-p', 'tcp', '--dport', '6443', '-j', 'DROP']
  await tool('exec', 'iptables', '-I', ...rule)
  try {
    return await during()
  } finally {
    await tool('exec', 'iptables', '-D', ...rule)
  }
}

async function askEtcd(path: string, body: object) {
  const response = await request(etcd + path, { method: 'POST', body: JSON.stringify(body) })
  // biome-ignore lint/suspicious/noExplicitAny: the answers of etcd's JSON gateway
  const answer = (await response.body.json()) as any
  if (response.statusCode !== 200) throw new Error(`cannot compact: etcd answers ${JSON.stringify(answer)}`)
  return answer
}

/**
 * Forgets every resourceVersion up to now: reading or watching from one of them is then 410 Gone. Compaction alone shows nothing,
 * because the API server's watch cache still has the old versions; so it is restarted too.
 */
export async function expireHistory(): Promise<void> {
  const { header } = await askEtcd('/v3/kv/range', { key: 'AA==', limit: 1 })
  await askEtcd('/v3/kv/compaction', { revision: header.revision, physical: true })
  await restartApiServer()
}
