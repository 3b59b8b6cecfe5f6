import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { poll, type Scope, temporaryFolder } from '../helpers/daemon.ts'
import { pin } from './child.ts'

export interface BenchDaemon {
  readonly pid: number
  readonly url: string
  /** Resolves when `/readyz` is 200. */
  ready(seconds?: number): Promise<void>
  /** A sample of `/metrics` by its name with labels, as it stands there. */
  metric(name: string): Promise<number>
}

export interface BenchDaemonOptions {
  readonly kubeconfig: string
  readonly database: string
  readonly core?: number
  readonly env?: Readonly<Record<string, string>>
}

const ROOT = join(import.meta.dirname, '../..')

/** `npm start`, taken apart: settings before the program, what is behind it. */
export function startCommand(): { readonly env: Readonly<Record<string, string>>; readonly args: readonly string[] } {
  const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { scripts: { start: string } }
  const words = scripts.start.split(' ')
  const program = words.indexOf('node')
  const env = Object.fromEntries(words.slice(0, program).map(word => word.split('=') as [string, string]))
  return { env, args: words.slice(program + 1) }
}

/** The daemon as it is run, in a process of its own, its log in a file. Killed with the scope. */
export async function spawnDaemon(
  t: Scope,
  { kubeconfig, database, core, env }: BenchDaemonOptions,
): Promise<BenchDaemon> {
  const log = join(temporaryFolder(t), 'daemon.log')
  const output = openSync(log, 'a')
  const { args, env: settings } = startCommand()
  const child = spawn(process.execPath, args, {
    cwd: ROOT,
    env: {
      PATH: process.env.PATH,
      HOME: '/nonexistent',
      PORT: '0',
      KUBECONFIG: kubeconfig,
      DATABASE_PATH: database,
      ...settings,
      ...env,
    },
    stdio: ['ignore', output, output],
  })
  const ended = once(child, 'close')
  t.after(async () => {
    child.kill('SIGKILL')
    await ended
  })
  if (core !== undefined) pin(child.pid ?? 0, core)
  const url = await poll(
    () => {
      const text = readFileSync(log, 'utf8')
      if (child.exitCode !== null) throw new Error(`the daemon ended with ${child.exitCode}: ${text}`)
      return /"url":"(http:[^"]+)"/.exec(text)?.[1] ?? null
    },
    found => found !== null,
    60,
  )
  const get = (path: string) => fetch(`${url}${path}`)
  return {
    pid: child.pid ?? 0,
    url: url ?? '',
    async ready(seconds = 120) {
      const until = Date.now() + seconds * 1000
      while ((await get('/readyz')).status !== 200) {
        if (Date.now() > until)
          throw new Error(`the daemon is not ready after ${seconds} s: ${readFileSync(log, 'utf8').slice(-2000)}`)
        await sleep(20)
      }
    },
    async metric(name) {
      const text = await (await get('/metrics')).text()
      const line = text.split('\n').find(candidate => candidate.startsWith(`${name} `))
      return line === undefined ? Number.NaN : Number(line.slice(name.length + 1))
    },
  }
}
