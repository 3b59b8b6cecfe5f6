/**
 * `npm run test:cluster [-- FILE…]`: the cluster suite (test/cluster/*.cluster.ts, or the files named) against a real Kubernetes.
 *
 * With KUBECONFIG it uses that cluster; without, it builds one, brings it up and always takes it down again. KEEP=1 leaves it up, and
 * finds it again next time. Files run one after another: they share the cluster, and some break it on purpose.
 * The tests get KUBECONFIG, and on a cluster of this folder RUNTIMED_CLUSTER_TOOLS (this folder) and RUNTIMED_CLUSTER_DIR, so that they
 * can call `component`; they then run inside its network namespace, where pods and Services are reachable.
 * The exit code is the test runner's, and the last lines are its summary.
 */
import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process'
import { existsSync, globSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { constants, tmpdir } from 'node:os'
import { basename, delimiter, dirname, join, relative } from 'node:path'

const tools = import.meta.dirname
const tmp = tmpdir()
const prefix = 'runtimed-cluster-test-'
const testTimeoutMs = 15 * 60_000

let running: ChildProcess | undefined
let stoppedBy: NodeJS.Signals | undefined

/** Runs a command in a process group of its own to its end and returns its exit code; a signal counts as 128 + its number. */
function run(command: string[], options: SpawnOptions = {}): Promise<number> {
  if (stoppedBy) throw new Error(`stopped by ${stoppedBy}`)
  return runAlways(command, options)
}

function runAlways(command: string[], options: SpawnOptions): Promise<number> {
  return new Promise((resolve, reject) => {
    const child = spawn(command[0]!, command.slice(1), {
      stdio: ['ignore', 'inherit', 'inherit'],
      detached: true,
      ...options,
    })
    running = child
    child.on('error', reject)
    child.on('close', (code, signal) => {
      running = undefined
      resolve(code ?? 128 + constants.signals[signal!])
    })
  })
}

/** A second signal does not wait for the command to end by itself. */
function stop(signal: NodeJS.Signals): void {
  const force = stoppedBy !== undefined
  stoppedBy ??= signal
  if (running?.pid === undefined) return
  try {
    process.kill(-running.pid, force ? 'SIGKILL' : 'SIGTERM')
  } catch {
    // The group has ended since: its close event follows.
  }
}

async function tool(name: string, env: NodeJS.ProcessEnv): Promise<void> {
  const code = await run([join(tools, name)], { env })
  if (code !== 0) throw new Error(`test/cluster/${name} failed with exit code ${code}`)
}

/** Silent when nothing is wrong, so that the runner's summary stays the last thing printed. The logs of a failed run are kept. */
async function down(env: NodeJS.ProcessEnv, keepLogs: boolean): Promise<boolean> {
  let output = ''
  const ended = runAlways([join(tools, 'down'), ...(keepLogs ? ['--keep-logs'] : [])], {
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  running?.stdout?.on('data', chunk => (output += chunk))
  running?.stderr?.on('data', chunk => (output += chunk))
  const ok = (await ended) === 0
  if (!ok) console.error(output)
  return ok
}

/** Clusters of runs that were killed outright: nobody else ends them. */
async function removeOrphans(): Promise<void> {
  for (const name of readdirSync(tmp).filter(entry => entry.startsWith(prefix))) {
    const pid = Number.parseInt(name.slice(prefix.length), 10)
    if (existsSync(`/proc/${pid}`)) continue
    if (name.endsWith('.log')) rmSync(join(tmp, name), { recursive: true, force: true })
    else await down({ ...process.env, RUNTIMED_CLUSTER_DIR: join(tmp, name) }, false)
  }
}

/** The prefix that runs a command in the network namespace of the cluster; empty for a cluster that is not of this folder. */
function inside(kubeconfig: string): string[] {
  const holder = join(dirname(kubeconfig), 'holder.pid')
  return existsSync(holder) ? ['nsenter', '--target', readFileSync(holder, 'utf8').trim(), '--net', '--'] : []
}

async function runTests(kubeconfig: string, args: string[]): Promise<number> {
  const enter = inside(kubeconfig)
  const own = enter.length > 0 && { RUNTIMED_CLUSTER_TOOLS: tools, RUNTIMED_CLUSTER_DIR: dirname(kubeconfig) }
  const env = { ...process.env, KUBECONFIG: kubeconfig, ...own }
  const answers = await run([...enter, process.execPath, join(tools, 'connect.ts')], { env })
  if (answers !== 0) throw new Error(`the cluster of ${kubeconfig} does not answer`)
  const files = args.filter(arg => !arg.startsWith('--'))
  const options = args.filter(arg => arg.startsWith('--'))
  // TAP ends in the counts; the default reporter repeats failed tests after them.
  if (!process.stdout.isTTY && !options.some(arg => arg.startsWith('--test-reporter')))
    options.push('--test-reporter=tap')
  if (files.length === 0) files.push(...globSync(join(tools, '*.cluster.ts')).sort())
  console.log(`testing ${files.map(file => relative('.', file)).join(' ')}`)
  const flags = ['--test', '--test-concurrency=1', `--test-timeout=${testTimeoutMs}`, ...options]
  return run([...enter, process.execPath, ...flags, ...files], { env })
}

async function withOwnCluster(args: string[]): Promise<number> {
  const keep = process.env.KEEP === '1'
  await removeOrphans()
  const env = { ...process.env }
  if (!keep) env.RUNTIMED_CLUSTER_DIR = join(tmp, prefix + process.pid)
  let code = 1
  try {
    await tool('build', env)
    const state = await bringUp(env, keep)
    code = await runTests(join(state, 'kubeconfig'), args)
  } finally {
    if (!keep && !(await down(env, code !== 0))) code ||= 1
  }
  return code
}

/** Returns the state folder of the cluster; a kept one that lives is taken as it is. */
async function bringUp(env: NodeJS.ProcessEnv, keep: boolean): Promise<string> {
  const state = await stateFolder(env)
  if (keep && (await run([join(tools, 'exec'), 'true'], { env, stdio: 'ignore' })) === 0) return state
  await tool('up', env)
  return state
}

async function stateFolder(env: NodeJS.ProcessEnv): Promise<string> {
  let output = ''
  const ended = run(['bash', '-c', '. "$0/lib.sh"; echo "$STATE"', tools], {
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  running?.stdout?.on('data', chunk => (output += chunk))
  await ended
  return output.trim()
}

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, stop)
const args = process.argv.slice(2)
const given = process.env.KUBECONFIG?.split(delimiter)[0]
try {
  process.exitCode = given ? await runTests(given, args) : await withOwnCluster(args)
} catch (error) {
  console.error(`${basename(import.meta.filename)}: ${(error as Error).message}`)
  process.exitCode = 1
}
if (stoppedBy) process.exitCode = 128 + constants.signals[stoppedBy]
