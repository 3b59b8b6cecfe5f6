import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { startCommand } from './daemon.ts'
import { startApi } from './fake-api.ts'
import type { Bench, Figure } from './figures.ts'
import { scoped } from './scope.ts'

/** What informer-client.ts tells. */
interface Figures {
  readonly objects: number
  readonly listSeconds: number
  readonly listBlockMs: number
  readonly watch: Readonly<
    Record<'deployments' | 'pods', { readonly perSecond: number; readonly perCpuSecond: number }>
  >
  readonly watchBlockMs: number
  readonly afterList: { readonly rssMb: number; readonly peakMb: number | null }
  readonly afterWatch: { readonly rssMb: number; readonly peakMb: number | null }
}

type Side = 'ours' | 'client-node'

/**
 * Memory, longest block of the event loop, time of the first list and watch events a second of our informers, beside the
 * informer of @kubernetes/client-node on the same kind of objects: fewer, for with more than 20,000 it takes over 1 GB.
 */
export const benchInformer: Bench = async ({ small }) => {
  const [count, few, events] = small ? [10_000, 2000, 10_000] : [100_000, 10_000, 100_000]
  const many = await run('ours', count, events)
  const ours = await run('ours', few, events / 5)
  const library = await run('client-node', few, events / 5)
  return [...ofMany(many, count), ...beside(ours, library, few)]
}

function ofMany(
  { listSeconds, listBlockMs, afterList, afterWatch, watchBlockMs, watch, objects }: Figures,
  count: number,
): Figure[] {
  const { deployments, pods } = watch
  const perCpuSecond = Math.min(deployments.perCpuSecond, pods.perCpuSecond)
  const name = `informer: ${count} Deployments and Pods`
  return [
    { name: `${name}, missing`, value: 2 * count - objects, unit: '', target: { max: 0 } },
    { name: `${name}, RSS`, value: afterList.rssMb, unit: 'MB', target: { max: 300 } },
    { name: `${name}, RSS at its peak`, value: afterWatch.peakMb ?? afterWatch.rssMb, unit: 'MB' },
    { name: `${name}, list of one kind`, value: listSeconds / 2, unit: 's', target: { max: 8 } },
    { name: `${name}, longest block`, value: Math.max(listBlockMs, watchBlockMs), unit: 'ms', target: { max: 100 } },
    { name: `${name}, events a core-second`, value: perCpuSecond, unit: '/s', target: { min: 50_000 } },
  ]
}

function beside(ours: Figures, library: Figures, few: number): Figure[] {
  const of = 'client-node'
  const name = `informer: ${few} of each`
  const compared = (what: string, unit: string, read: (figures: Figures) => number): Figure => ({
    name: `${name}, ${what}`,
    value: read(ours),
    unit,
    baseline: { value: read(library), of },
  })
  return [
    compared('RSS', 'MB', ({ afterList }) => afterList.rssMb),
    compared('list of one kind', 's', ({ listSeconds }) => listSeconds / 2),
    compared('longest block', 'ms', ({ listBlockMs }) => listBlockMs),
    compared('Deployment events a core-second', '/s', ({ watch }) => watch.deployments.perCpuSecond),
  ]
}

const path = (name: string): string => fileURLToPath(new URL(name, import.meta.url))

async function run(side: Side, count: number, events: number): Promise<Figures> {
  return await scoped(async t => {
    const api = await startApi(t, count)
    const { args, env } = startCommand()
    const client = fork(path('informer-client.ts'), [side, api.url, String(events)], {
      execArgv: args.filter(argument => argument.startsWith('--')),
      env: { ...process.env, ...env },
    })
    t.after(() => void (client.connected && client.disconnect()))
    const failed = once(client, 'exit').then(([code]) => {
      throw new Error(`the informer of ${side} ended with ${code}`)
    })
    failed.catch(() => {})
    const [figures] = await Promise.race([once(client, 'message'), failed])
    return figures as Figures
  })
}
