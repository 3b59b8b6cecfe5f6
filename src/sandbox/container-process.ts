import { type ChildProcess, spawn } from 'node:child_process'
import type { LogBuffer } from './log-buffer.ts'

export interface Ending {
  exitCode: number
  reason: string
  message?: string
}

export interface ContainerRun {
  argv: string[]
  env: Record<string, string>
  cwd: string
  image: string
  log: LogBuffer
  /** what the built-in prints */
  greeting: string
  /** how long a container of the image sandbox/oom lives */
  oomMs: number
  onStarted: () => void
  /** once, after the last output is in the log; `started` says whether it ever ran */
  onEnded: (ending: Ending, started: boolean) => void
}

/** A running (or starting) container. */
export interface RunningContainer {
  /** SIGTERM now, SIGKILL of the whole process group after the grace; a shorter grace later on counts. */
  stop(graceMs: number): void
  kill(): void
}

/** After the main process has ended, output of its children is waited for so long. */
const DRAIN_MS = 100

/** Starts a container: the image sandbox/oom, a local process, or the built-in when there is nothing to run. */
export function startContainer(run: ContainerRun): RunningContainer {
  if (/^sandbox\/oom(:|@|$)/.test(run.image)) return startTimed(run, run.oomMs)
  if (run.argv.length === 0) return startTimed(run, undefined)
  return startProcess(run)
}

/** No process: lives until stopped, or for a while and is then killed for memory. */
function startTimed(run: ContainerRun, oomAfterMs: number | undefined): RunningContainer {
  let over = false
  const end = (ending: Ending): void => {
    if (over) return
    over = true
    clearTimeout(timer)
    run.log.end()
    run.onEnded(ending, true)
  }
  const timer =
    oomAfterMs === undefined ? undefined : setTimeout(() => end({ exitCode: 137, reason: 'OOMKilled' }), oomAfterMs)
  queueMicrotask(() => {
    run.log.append(Buffer.from(`${run.greeting}\n`))
    if (!over) run.onStarted()
  })
  const stopped = (): void => void setImmediate(() => end({ exitCode: 0, reason: 'Completed' }))
  return { stop: stopped, kill: () => setImmediate(() => end({ exitCode: 137, reason: 'Error' })) }
}

function startProcess(run: ContainerRun): RunningContainer {
  const [command, ...args] = run.argv
  let child: ChildProcess
  try {
    child = spawn(command!, args, { cwd: run.cwd, env: run.env, stdio: ['ignore', 'pipe', 'pipe'], detached: true })
  } catch (error) {
    queueMicrotask(() => failStart(run, error as NodeJS.ErrnoException))
    return { stop: () => {}, kill: () => {} }
  }
  let killTimer: NodeJS.Timeout | undefined
  let killAt = Number.POSITIVE_INFINITY
  child.stdout?.on('data', (chunk: Buffer) => run.log.append(chunk))
  child.stderr?.on('data', (chunk: Buffer) => run.log.append(chunk))
  child.once('spawn', run.onStarted)
  child.once('error', error => {
    if (child.pid === undefined) failStart(run, error)
  })
  child.once('exit', (code, signal) => {
    clearTimeout(killTimer)
    signalGroup(child, 'SIGKILL')
    drained(child).then(() => {
      run.log.end()
      run.onEnded(endingOf(code, signal), true)
    })
  })
  return {
    stop: graceMs => {
      if (killAt === Number.POSITIVE_INFINITY) child.kill('SIGTERM')
      if (Date.now() + graceMs >= killAt) return
      killAt = Date.now() + graceMs
      clearTimeout(killTimer)
      killTimer = setTimeout(() => signalGroup(child, 'SIGKILL'), graceMs)
    },
    kill: () => signalGroup(child, 'SIGKILL'),
  }
}

function signalGroup(child: ChildProcess, signal: NodeJS.Signals): void {
  if (child.pid === undefined) return
  try {
    process.kill(-child.pid, signal)
  } catch {
    // the group is empty already
  }
}

function drained(child: ChildProcess): Promise<void> {
  return new Promise(resolve => {
    const timer = setTimeout(resolve, DRAIN_MS)
    child.once('close', () => {
      clearTimeout(timer)
      resolve()
    })
  })
}

const SIGNAL_NUMBERS: Record<string, number> = {
  SIGHUP: 1,
  SIGINT: 2,
  SIGQUIT: 3,
  SIGABRT: 6,
  SIGKILL: 9,
  SIGSEGV: 11,
  SIGPIPE: 13,
  SIGTERM: 15,
}

function endingOf(code: number | null, signal: NodeJS.Signals | null): Ending {
  const exitCode = code ?? 128 + (SIGNAL_NUMBERS[signal ?? 'SIGKILL'] ?? 9)
  return { exitCode, reason: exitCode === 0 ? 'Completed' : 'Error' }
}

function failStart(run: ContainerRun, error: NodeJS.ErrnoException): void {
  const command = run.argv[0]!
  const causes: Record<string, string> = {
    ENOENT: command.includes('/')
      ? `exec: "${command}": stat ${command}: no such file or directory`
      : `exec: "${command}": executable file not found in $PATH`,
    EACCES: `exec: "${command}": permission denied`,
  }
  const cause = causes[error.code ?? ''] ?? `exec: "${command}": ${error.message}`
  run.log.end()
  run.onEnded(
    {
      exitCode: 128,
      reason: 'StartError',
      message: `failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create failed: unable to start container process: ${cause}: unknown`,
    },
    false,
  )
}
