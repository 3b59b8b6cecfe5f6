import { join } from 'node:path'
import { temporaryFolder } from '../helpers/daemon.ts'
import { spawnDaemon } from './daemon.ts'
import { startApi } from './fake-api.ts'
import { type Bench, now } from './figures.ts'
import { scoped } from './scope.ts'
import { seed } from './seed.ts'

/** A daemon that starts on a full database: until its rows are taken up again, and what it asks the cluster for it. */
export const benchAdoption: Bench = async ({ small }) =>
  await scoped(async t => {
    const count = small ? 1000 : 10_000
    const database = join(temporaryFolder(t), 'runtimed.db')
    await seed(database, count)
    const api = await startApi(t, count)
    const bareSeconds = await bareLists(api.url)
    const before = await api.calls()
    const started = now()
    const daemon = await spawnDaemon(t, { kubeconfig: api.kubeconfig, database })
    await daemon.ready()
    const ended = now()
    const calls = await api.calls()
    const made = (call: string): number => (calls[call] ?? 0) - (before[call] ?? 0)
    const afterSync = (ended - (await api.lastListEnded())) / 1000
    return [
      { name: `adoption: ${count} rows, after the lists`, value: afterSync, unit: 's', target: { max: 5 } },
      {
        name: 'adoption: from process start to ready',
        value: (ended - started) / 1000,
        unit: 's',
        baseline: { value: bareSeconds, of: 'bare lists' },
      },
      {
        name: 'adoption: GETs of workloads and pods',
        value: made('get deployments') + made('get pods'),
        unit: '',
        target: { max: 0 },
      },
      {
        name: 'adoption: reads of ReplicaSets',
        value: made('get replicasets') + made('list replicasets'),
        unit: '',
        target: { max: 0 },
      },
    ]
  })

/** Seconds to read and parse the same objects in pages of the same size. */
async function bareLists(url: string): Promise<number> {
  const started = now()
  for (const path of ['/apis/apps/v1/namespaces/default/deployments', '/api/v1/namespaces/default/pods']) {
    let token = ''
    do {
      const reply = await fetch(`${url}${path}?limit=500&continue=${token}`)
      const page = (await reply.json()) as { metadata: { continue?: string } }
      token = page.metadata.continue ?? ''
    } while (token !== '')
  }
  return (now() - started) / 1000
}
