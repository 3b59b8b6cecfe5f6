import { loadavg } from 'node:os'
import { parseArgs } from 'node:util'
import { benchAdoption } from './adoption.ts'
import { benchCreate } from './create.ts'
import { type Bench, isMet, table } from './figures.ts'
import { benchIdle } from './idle.ts'
import { benchInformer } from './informer.ts'
import { benchInspect } from './inspect.ts'
import { benchLatency } from './latency.ts'
import { benchList } from './list.ts'
import { benchReaders } from './readers.ts'

const BENCHES: Readonly<Record<string, Bench>> = {
  informer: benchInformer,
  latency: benchLatency,
  adoption: benchAdoption,
  inspect: benchInspect,
  list: benchList,
  readers: benchReaders,
  idle: benchIdle,
  create: benchCreate,
}

const HELP = `npm run bench -- [NAME…] [--small] [--cluster] [--json]

Measures and prints one table: each figure, what it is to be, and its ratio to the same work done as barely as can be in
the same run. Without names all that need no cluster. Exit code 1 when a figure misses its target.

  NAME       ${Object.keys(BENCHES).join(', ')}
  --small    a tenth of the sizes, to try it out
  --cluster  adds what is measured against the API server of KUBECONFIG: create
  --json     one JSON object instead of the table

Crashes are not timed: SIGKILLS=60 npm run test:unit -- test/recovery runs them.`

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    small: { type: 'boolean', default: false },
    cluster: { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
    help: { type: 'boolean', short: 'h', default: false },
  },
})

async function main(): Promise<void> {
  const unknown = positionals.filter(name => BENCHES[name] === undefined)
  if (values.help || unknown.length > 0) {
    console.log(unknown.length > 0 ? `no bench is called ${unknown.join(', ')}\n\n${HELP}` : HELP)
    process.exitCode = unknown.length > 0 ? 1 : 0
    return
  }
  const names = positionals.length > 0 ? positionals : Object.keys(BENCHES)
  const load = loadavg()
  const figures = []
  for (const name of names) {
    const started = Date.now()
    if (!values.json) process.stderr.write(`${name} … `)
    const measured = (await BENCHES[name]?.(values)) ?? []
    figures.push(...measured)
    if (!values.json) process.stderr.write(`${Math.round((Date.now() - started) / 1000)} s\n`)
  }
  const rated = figures.map(figure => ({ ...figure, ok: isMet(figure) }))
  if (values.json)
    console.log(
      JSON.stringify({ node: process.version, loadavg: { before: load, after: loadavg() }, figures: rated }, null, 2),
    )
  else
    console.log(
      `\n${table(figures)}\n\nload average ${load.map(one => one.toFixed(1)).join(' ')} before, ${loadavg()
        .map(one => one.toFixed(1))
        .join(' ')} after`,
    )
  if (rated.some(({ ok }) => ok === false)) process.exitCode = 1
}

await main()
