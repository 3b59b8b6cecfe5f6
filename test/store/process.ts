import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { TestContext } from 'node:test'

const SCRIPT = join(import.meta.dirname, 'child.ts')

export interface Child {
  readonly process: ChildProcess
  /** What it said so far. */
  readonly lines: string[]
  /** Its stderr so far. */
  errors(): string
  /** Resolves with its exit code (null: by a signal) once everything it said has arrived. */
  readonly ended: Promise<number | null>
}

/** Starts child.ts; `under` is a command that runs it, such as strace. Killed after the test at the latest. */
export function startChild(t: TestContext, args: string[], under: string[] = [], env: NodeJS.ProcessEnv = {}): Child {
  const [command = '', ...rest] = [...under, process.execPath, SCRIPT, ...args]
  const child = spawn(command, rest, { env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'pipe'] })
  t.after(() => child.kill('SIGKILL'))
  const lines: string[] = []
  const reader = createInterface({ input: child.stdout }).on('line', line => lines.push(line))
  let errors = ''
  child.stderr.on('data', chunk => {
    errors += chunk
  })
  const ended = Promise.all([once(child, 'close'), once(reader, 'close')]).then(([[code]]) => code as number | null)
  return { process: child, lines, errors: () => errors, ended }
}

/** Polls until `condition` holds; throws after `ms`. */
export async function until(condition: () => boolean, ms = 8_000): Promise<void> {
  const deadline = performance.now() + ms
  while (!condition()) {
    if (performance.now() > deadline) throw new Error(`not within ${ms} ms: ${condition}`)
    await new Promise(resolve => setTimeout(resolve, 3))
  }
}

/** Whether system calls can be made to fail here. */
export const canTrace = spawnSync('strace', ['-e', 'trace=none', 'true']).status === 0
if (!canTrace) console.warn('left out: tests that make system calls fail (F-39, parts of F-41 and F-42) need strace')

/** strace that follows all threads and touches only these calls, so that everything else runs at full speed. */
export const tracing = (...options: string[]): string[] => ['strace', '-f', '-qq', '--seccomp-bpf', ...options]
