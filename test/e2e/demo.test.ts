import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { promisify } from 'node:util'
import { poll, temporaryFolder } from '../helpers/daemon.ts'

const ROOT = join(import.meta.dirname, '../..')
const bash = async (line: string): Promise<string> => (await promisify(execFile)('bash', ['-c', line])).stdout

/** `npm run demo` as a terminal runs it: a process group of its own, temporary files below `folder`. */
function startDemo(t: TestContext, env: Record<string, string>) {
  const child = spawn('npm', ['run', '--silent', 'demo'], {
    cwd: ROOT,
    detached: true,
    env: { ...process.env, PORT: '0', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', chunk => (output += chunk))
  const ended = once(child, 'close')
  const signal = (name: NodeJS.Signals): boolean => child.exitCode === null && process.kill(-(child.pid ?? 0), name)
  t.after(() => child.exitCode === null && child.signalCode === null && signal('SIGKILL'))
  const curls = async (): Promise<string[]> => {
    await poll(
      () => output,
      text => text.split('curl ').length === 4 || child.exitCode !== null,
    )
    return output.split('\n').flatMap(line => (line.trim().startsWith('curl ') ? [line.trim()] : []))
  }
  return { signal, ended, curls, output: () => output }
}

/** Processes that live in a folder, or were started with it as theirs for temporary files. */
function processesOf(folder: string): string[] {
  return readdirSync('/proc').filter(pid => {
    if (!/^\d+$/.test(pid) || Number(pid) === process.pid) return false
    try {
      return (
        readlinkSync(`/proc/${pid}/cwd`).startsWith(folder) ||
        readFileSync(`/proc/${pid}/environ`, 'utf8').includes(`TMPDIR=${folder}`)
      )
    } catch {
      return false // ended meanwhile
    }
  })
}

test('demo: the three lines it prints show a Job, its log and its end; Ctrl-C leaves nothing behind', async t => {
  const folder = temporaryFolder(t)
  // npm keeps a cache of its own code in the folder for temporary files, unless told not to.
  const demo = startDemo(t, { TMPDIR: folder, NODE_DISABLE_COMPILE_CACHE: '1' })
  const lines = await demo.curls()
  assert.equal(lines.length, 3, demo.output())
  const [create = '', logs = '', end = ''] = lines
  assert.equal(JSON.parse(await bash(create)).state, 'creating')
  assert.equal(await bash(logs), 'hello from a job\n')
  const [waited = '', events = ''] = (await bash(end)).trim().split('\n')
  const { reached, runtime } = JSON.parse(waited)
  assert.deepEqual([reached, runtime.state, runtime.exitCode], [true, 'failed', 3])
  assert.deepEqual(
    JSON.parse(events).items.map((event: { type: string; exitCode: number | null }) => [event.type, event.exitCode]),
    [
      ['ContainerStarted', null],
      ['ContainerFailed', 3],
    ],
  )
  const url = /http:\/\/[^/\s]+/.exec(create)?.[0]
  const spec = { image: 'busybox', name: 'web', entrypoint: ['/bin/sh', '-c'], command: ['sleep 3600'] }
  await fetch(`${url}/v1/runtimes`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(spec),
  })
  await fetch(`${url}/v1/runtimes/${encodeURIComponent('k8s-default|deployment|web')}/wait?for=running`)
  assert.ok(processesOf(folder).length > 0)
  demo.signal('SIGINT')
  await demo.ended
  await poll(
    () => processesOf(folder),
    found => found.length === 0,
    5,
  )
  assert.deepEqual(readdirSync(folder), [])
})

test('demo, K10: killed outright and started again on its database it still knows the failed Job', async t => {
  const folder = temporaryFolder(t)
  const env = { TMPDIR: folder, DATABASE_PATH: join(folder, 'kept.db') }
  const first = startDemo(t, env)
  const [create = '', , end = ''] = await first.curls()
  await bash(create)
  const [, told = ''] = (await bash(end)).trim().split('\n')
  first.signal('SIGKILL')
  await first.ended
  const second = startDemo(t, env)
  const [, , again = ''] = await second.curls()
  const [waited = '', events = ''] = (await bash(again)).trim().split('\n')
  assert.equal(JSON.parse(waited).runtime.state, 'failed')
  assert.deepEqual(JSON.parse(events), JSON.parse(told))
  second.signal('SIGINT')
  await second.ended
})
