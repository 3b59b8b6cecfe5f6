import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Writable } from 'node:stream'
import { type App, createApp } from '../../src/app.ts'
import { loadConfig } from '../../src/config.ts'
import { type ReflectorProfile, testProfile } from '../../src/kube/reflector-profile.ts'
import { createLogger } from '../../src/logger.ts'
import { type Client, createClient, poll } from './http-client.ts'

export type { Client, Reply, Runtime, WireEvent } from './http-client.ts'
export { poll } from './http-client.ts'

/** What a test or a suite offers to end things with. */
export interface Scope {
  after(end: () => Promise<void> | void): void
}

export interface DaemonOptions {
  /** A file. */
  readonly kubeconfig: string
  readonly env?: Readonly<Record<string, string>>
  /** Default: `quick`. `test`: the profile of the fault tables, deadlines of 0.5 s; `production`: as configured; or times of your own. */
  readonly profile?: 'quick' | 'test' | 'production' | ReflectorProfile
}

/** The daemon in this process. */
export interface Daemon extends Client {
  readonly app: App
  readonly database: string
  /** Lines logged so far, parsed. */
  // biome-ignore lint/suspicious/noExplicitAny: log lines have any fields
  readonly lines: any[]
  /** Errors that would have ended the process. */
  readonly fatal: Error[]
  /** Resolves when `/readyz` is 200. */
  ready(seconds?: number): Promise<void>
  /** As SIGTERM does; the database stays for `startDaemon` with its path. */
  stop(): Promise<void>
}

/** Back-off as the test profile has it, deadlines that a loaded machine keeps. */
export const quick: ReflectorProfile = {
  ...testProfile,
  callDeadlineMs: 5_000,
  pageDeadlineMs: 10_000,
  watchMs: 30_000,
  idleMs: 31_000,
}
const BACKOFF = { firstMs: 20, longestMs: 750 }

/** A folder of its own that goes with the test, once `use` of it has ended. */
export function temporaryFolder(t: Scope, use: () => Promise<void> | void = () => {}): string {
  const folder = mkdtempSync(join(tmpdir(), 'runtimed-test-'))
  t.after(async () => {
    await use()
    rmSync(folder, { recursive: true, force: true })
  })
  return folder
}

/** A kubeconfig text as a file. */
export function kubeconfigFile(t: Scope, text: string): string {
  const file = join(temporaryFolder(t), 'kubeconfig')
  writeFileSync(file, text)
  return file
}

/** Starts the daemon in this process on a port of its own; DATABASE_PATH of `env`, else a database that goes with the test. */
export async function startDaemon(t: Scope, options: DaemonOptions): Promise<Daemon> {
  const { kubeconfig, env = {}, profile = 'quick' } = options
  let stop = async (): Promise<void> => {}
  const database =
    env.DATABASE_PATH ??
    join(
      temporaryFolder(t, () => stop()),
      'runtimed.db',
    )
  const config = loadConfig({ ...env, KUBECONFIG: kubeconfig, PORT: '0', DATABASE_PATH: database })
  const lines: unknown[] = []
  const fatal: Error[] = []
  const app = createApp({
    config,
    logger: createLogger(env.LOG_LEVEL ?? 'info', linesInto(lines)),
    onFatal: error => fatal.push(error),
    ...(profile !== 'production' && {
      reflectorProfile: profile === 'test' ? testProfile : profile === 'quick' ? quick : profile,
      backoff: BACKOFF,
    }),
  })
  let stopped: Promise<void> | undefined
  stop = () => {
    stopped ??= app.stop()
    return stopped
  }
  t.after(stop)
  const { url } = await app.start()
  const client = createClient(url)
  const ready = async (seconds = 20) => void (await poll(() => client.api('GET', '/readyz'), isOk, seconds))
  return { ...client, app, database, lines, fatal, ready, stop }
}

const isOk = ({ status }: { status: number }): boolean => status === 200

const linesInto = (lines: unknown[]) =>
  new Writable({
    write(chunk, _encoding, done) {
      lines.push(JSON.parse(String(chunk)))
      done()
    },
  })

/** The daemon as a process of its own. */
export interface ChildDaemon extends Client {
  readonly process: ChildProcess
  readonly database: string
  /** What it wrote so far. */
  output(): string
  ready(seconds?: number): Promise<void>
  /** Exit code, or the signal's name; resolves once it has ended. */
  readonly ended: Promise<number | string>
  /** Sends SIGKILL and resolves once it has ended. */
  kill(): Promise<void>
}

/** A process needs a second of one core to load; a loaded machine takes its time. */
const START_SECONDS = 60

const MAIN = join(import.meta.dirname, '../../src/main.ts')

/** Starts `main.ts` as a child that can be killed and started again on the same DATABASE_PATH; resolves when it listens. */
export async function spawnDaemon(t: Scope, options: Omit<DaemonOptions, 'profile'>): Promise<ChildDaemon> {
  let kill = async (): Promise<void> => {}
  const database =
    options.env?.DATABASE_PATH ??
    join(
      temporaryFolder(t, () => kill()),
      'runtimed.db',
    )
  const child = spawnMain(t, { ...options.env, KUBECONFIG: options.kubeconfig, DATABASE_PATH: database })
  kill = child.kill
  const url = await poll(
    () => urlOf(child.output(), child.process.exitCode),
    found => found !== null,
    START_SECONDS,
  )
  const client = createClient(url ?? '')
  const ready = async (seconds = START_SECONDS) => void (await poll(() => client.api('GET', '/readyz'), isOk, seconds))
  return { ...client, ...child, database, ready }
}

/** Starts `main.ts` with these settings and no others, on a free port unless PORT is set. Killed after the test at the latest. */
export function spawnMain(t: Scope, env: Readonly<Record<string, string>>) {
  const child = spawn(process.execPath, [MAIN], {
    env: { PATH: process.env.PATH, HOME: '/nonexistent', PORT: '0', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', chunk => (output += chunk))
  const ended = once(child, 'close').then(([code, signal]): number | string => code ?? signal)
  const kill = async (): Promise<void> => {
    child.kill('SIGKILL')
    await ended
  }
  t.after(kill)
  return { process: child, output: () => output, ended, kill }
}

function urlOf(output: string, exitCode: number | null): string | null {
  if (exitCode !== null) throw new Error(`the daemon ended with ${exitCode}: ${output}`)
  return /"url":"(http:[^"]+)"/.exec(output)?.[1] ?? null
}
