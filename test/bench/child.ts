import { execFileSync, fork } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { Scope } from '../helpers/daemon.ts'

// biome-ignore lint/suspicious/noExplicitAny: each child knows what its commands take and give
type Any = any

/** A process of this folder that takes commands. */
export interface Child {
  readonly pid: number
  ask(command: string, argument?: unknown): Promise<Any>
}

export interface ChildOptions {
  readonly args?: readonly string[]
  /** The one core it may use. */
  readonly core?: number
}

/** Starts a file of this folder that calls `answer`; ended with the scope. */
export async function startChild(t: Scope, file: string, { args = [], core }: ChildOptions = {}): Promise<Child> {
  const child = fork(fileURLToPath(new URL(file, import.meta.url)), args)
  t.after(() => void (child.connected && child.disconnect()))
  const failed = once(child, 'exit').then(([code]) => {
    throw new Error(`${file} ended with ${code}`)
  })
  failed.catch(() => {})
  await Promise.race([once(child, 'message'), failed])
  if (core !== undefined) pin(child.pid ?? 0, core)
  let last = 0
  const ask = async (command: string, argument?: unknown): Promise<Any> => {
    const number = ++last
    const reply = new Promise<Any>(resolve => {
      const take = (message: Any): void => {
        if (message.number !== number) return
        child.off('message', take)
        resolve(message)
      }
      child.on('message', take)
    })
    child.send({ number, command, argument })
    const { result, error } = await Promise.race([reply, failed])
    if (error !== undefined) throw new Error(`${file}: ${error}`)
    return result
  }
  return { pid: child.pid ?? 0, ask }
}

/** In the child: answers commands until the parent is gone. */
export function answer(commands: Readonly<Record<string, (argument: Any) => unknown>>): void {
  process.on('message', ({ number, command, argument }: Any) => {
    const reply = async () => await commands[command]?.(argument)
    reply().then(
      result => process.send?.({ number, result }),
      error => process.send?.({ number, error: String(error?.stack ?? error) }),
    )
  })
  process.once('disconnect', () => process.exit())
  process.send?.({ ready: true })
}

/** Keeps a process to one core where the machine can (util-linux). */
export function pin(pid: number, core: number): void {
  try {
    execFileSync('taskset', ['-a', '-c', '-p', String(core), String(pid)], { stdio: 'ignore' })
  } catch {
    // not Linux, or one core: what is measured is the share of the processor anyway
  }
}

const TICKS_A_SECOND = 100

/** Processor seconds a process has used so far, its threads included. Linux. */
export function cpuSeconds(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? []
  return (Number(fields[11]) + Number(fields[12])) / TICKS_A_SECOND
}

/** Resident memory now and at its peak, in MB of 10^6 bytes. Linux. */
export function memoryMb(pid: number): { now: number; peak: number } {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  const read = (name: string): number => (Number(new RegExp(`${name}:\\s+(\\d+) kB`).exec(status)?.[1]) * 1024) / 1e6
  return { now: read('VmRSS'), peak: read('VmHWM') }
}
