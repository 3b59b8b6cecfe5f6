import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { poll, type Scope, temporaryFolder } from '../helpers/daemon.ts'
import { type BenchDaemon, spawnDaemon } from './daemon.ts'
import { type FakeApi, startApi } from './fake-api.ts'
import { seed } from './seed.ts'

export interface WorldOptions {
  readonly count: number
  readonly state?: 'ready' | 'starting'
  /** The one core the daemon may use. */
  readonly core?: number
}

export interface World {
  readonly api: FakeApi
  readonly daemon: BenchDaemon
}

/** A fake API server with `count` Deployments and a daemon that has taken up a row for each and is at rest. */
export async function startWorld(t: Scope, { count, state = 'ready', core }: WorldOptions): Promise<World> {
  const database = join(temporaryFolder(t), 'runtimed.db')
  await seed(database, count, state)
  const api = await startApi(t, count, state)
  const daemon = await spawnDaemon(t, { kubeconfig: api.kubeconfig, database, ...(core === undefined ? {} : { core }) })
  await daemon.ready()
  await atRest(daemon, api)
  return { api, daemon }
}

/** Nothing queued, all watches open and no call for a while. */
async function atRest(daemon: BenchDaemon, api: FakeApi): Promise<void> {
  let before = ''
  await poll(
    async () => {
      await sleep(500)
      const calls = JSON.stringify(await api.calls())
      const quiet =
        calls === before && (await api.watches()) === 1 && (await daemon.metric('runtimed_queue_depth')) === 0
      before = calls
      return quiet
    },
    quiet => quiet,
    240,
  )
}
