import type { Scope } from '../helpers/daemon.ts'
import { kubeconfigFile } from '../helpers/daemon.ts'
import { startChild } from './child.ts'

/** The fake API server, in a process of its own. */
export interface FakeApi {
  readonly pid: number
  readonly url: string
  /** A file. */
  readonly kubeconfig: string
  /** Calls so far, by verb and plural. */
  calls(): Promise<Readonly<Record<string, number>>>
  /** Watches of the kind that has fewest. */
  watches(): Promise<number>
  /** When the last list was answered in full. */
  lastListEnded(): Promise<number>
  /** Makes the Deployments `from` to before `to` ready at that rate; answers the time of each change. */
  makeReady(which: { readonly from: number; readonly to: number; readonly perSecond: number }): Promise<number[]>
}

/** `starting`: no Deployment is ready until it is made so. */
export async function startApi(t: Scope, count: number, state: 'ready' | 'starting' = 'ready'): Promise<FakeApi> {
  const child = await startChild(t, 'api-server.ts', { args: [String(count), state] })
  const url: string = await child.ask('url')
  const kubeconfig = JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'fake', cluster: { server: url } }],
    users: [{ name: 'nobody', user: {} }],
    contexts: [{ name: 'fake', context: { cluster: 'fake', user: 'nobody', namespace: 'default' } }],
    'current-context': 'fake',
  })
  return {
    pid: child.pid,
    url,
    kubeconfig: kubeconfigFile(t, kubeconfig),
    calls: () => child.ask('calls'),
    watches: () => child.ask('watches'),
    lastListEnded: () => child.ask('lastListEnded'),
    makeReady: which => child.ask('makeReady', which),
  }
}
