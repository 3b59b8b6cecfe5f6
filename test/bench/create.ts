import { join } from 'node:path'
import { Agent, request } from 'undici'
import { type Connection, connect } from '../cluster/connect.ts'
import { kubeconfigFile, type Scope, temporaryFolder } from '../helpers/daemon.ts'
import { startChild } from './child.ts'
import { spawnDaemon } from './daemon.ts'
import { type Bench, now, spread } from './figures.ts'
import { scoped } from './scope.ts'

const NAMESPACE = 'default'
const DEPLOYMENTS = `/apis/apps/v1/namespaces/${NAMESPACE}/deployments`
const WARM_UP = 10

type Send = (method: 'GET' | 'POST' | 'DELETE', path: string, body?: object) => Promise<{ status: number; body: Any }>
// biome-ignore lint/suspicious/noExplicitAny: objects of any kind
type Any = any

/** `POST /v1/runtimes` beside the bare create and GET of the same object, in turns, by the same client. */
export const benchCreate: Bench = async ({ small, cluster }) =>
  await scoped(async t => {
    const rounds = small ? 30 : 150
    const kubeconfig = cluster ? requireKubeconfig() : await sandboxKubeconfig(t)
    const api = await connect(kubeconfig)
    t.after(() => api.close())
    const daemon = await spawnDaemon(t, { kubeconfig, database: join(temporaryFolder(t), 'runtimed.db') })
    await daemon.ready()
    const ask = client(t, daemon.url)
    const prefix = `bench-${process.pid}`
    const { ours, bare } = await inTurns({ ask, api, prefix, rounds })
    await cleanUp(ask, api, prefix)
    const where = cluster ? 'real API server' : 'sandbox'
    const of = `create + GET at the ${where}`
    return [
      {
        name: `create: p50 on the ${where}`,
        value: ours.p50,
        unit: 'ms',
        // The sandbox keeps nothing on disk, so two syncs of ours weigh more beside it than beside an API server.
        ...(cluster ? { maxRatio: 1.5 } : {}),
        baseline: { value: bare.p50, of },
      },
      { name: `create: p99 on the ${where}`, value: ours.p99, unit: 'ms', baseline: { value: bare.p99, of } },
    ]
  })

function requireKubeconfig(): string {
  const { KUBECONFIG } = process.env
  if (KUBECONFIG) return KUBECONFIG
  throw new Error('cannot run with --cluster: set KUBECONFIG, as test/cluster/up prints it')
}

async function sandboxKubeconfig(t: Scope): Promise<string> {
  const child = await startChild(t, 'sandbox-server.ts')
  return kubeconfigFile(t, await child.ask('kubeconfig'))
}

function client(t: Scope, url: string): Send {
  const dispatcher = new Agent()
  t.after(() => dispatcher.close())
  return async (method, path, body) => {
    const headers = body === undefined ? {} : { 'content-type': 'application/json' }
    const reply = await request(url + path, { method, dispatcher, headers, body: body && JSON.stringify(body) })
    return { status: reply.statusCode, body: await reply.body.json() }
  }
}

interface Turns {
  readonly ask: Send
  readonly api: Connection
  readonly prefix: string
  readonly rounds: number
}

async function inTurns({ ask, api, prefix, rounds }: Turns) {
  const ours: number[] = []
  const bare: number[] = []
  for (let n = -WARM_UP; n < rounds; n += 1) {
    const spec = { name: `${prefix}-r${n + WARM_UP}`, image: 'registry.local/web:1.2', env: { PORT: '8080' }, cpu: 0.1 }
    const template = (await ask('POST', '/v1/runtimes?dryRun=render', spec)).body.objects[0]
    const began = now()
    await expectStatus(201, ask('POST', '/v1/runtimes', spec))
    const created = now()
    const name = `${prefix}-b${n + WARM_UP}`
    await expectStatus(
      201,
      api.send('POST', DEPLOYMENTS, { ...template, metadata: { name, labels: { bench: prefix } } }),
    )
    await expectStatus(200, api.send('GET', `${DEPLOYMENTS}/${name}`))
    if (n < 0) continue
    ours.push(created - began)
    bare.push(now() - created)
  }
  return { ours: spread(ours), bare: spread(bare) }
}

async function expectStatus(status: number, asked: Promise<{ status: number; body: Any }>): Promise<void> {
  const reply = await asked
  if (reply.status !== status) throw new Error(`${reply.status} instead of ${status}: ${JSON.stringify(reply.body)}`)
}

async function cleanUp(ask: Send, api: Connection, prefix: string): Promise<void> {
  const { body } = await ask('GET', '/v1/runtimes?limit=1000')
  for (const { id } of body.items) await ask('DELETE', `/v1/runtimes/${encodeURIComponent(id)}`)
  const mine = await api.send('GET', `${DEPLOYMENTS}?labelSelector=bench%3D${prefix}`)
  for (const { metadata } of mine.body.items) await api.send('DELETE', `${DEPLOYMENTS}/${metadata.name}`)
}
