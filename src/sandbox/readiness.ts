import { spawn } from 'node:child_process'
import { connect } from 'node:net'
import type { Loose } from './types.ts'

interface Place {
  env: Record<string, string>
  cwd: string
}

/** Runs a container's readinessProbe until stopped: exec is run as a process, tcpSocket and httpGet ask 127.0.0.1. Returns how to stop. */
export function startProbe(container: Loose, place: Place, tell: (ready: boolean) => void): () => void {
  const probe = container.readinessProbe
  const periodMs = (probe.periodSeconds ?? 10) * 1000
  const limit = probe.failureThreshold ?? 3
  let stopped = false
  let ready = false
  let failures = 0
  let timer: NodeJS.Timeout
  const look = async (): Promise<void> => {
    const passed = await check(container, place, (probe.timeoutSeconds ?? 1) * 1000)
    if (stopped) return
    failures = passed ? 0 : failures + 1
    const next = passed || (ready && failures < limit)
    if (next !== ready) {
      ready = next
      tell(ready)
    }
    timer = setTimeout(look, periodMs)
  }
  timer = setTimeout(look, (probe.initialDelaySeconds ?? 0) * 1000)
  return () => {
    stopped = true
    clearTimeout(timer)
  }
}

function check(container: Loose, place: Place, timeoutMs: number): Promise<boolean> {
  const { exec, tcpSocket, httpGet } = container.readinessProbe
  if (exec) return passes(exec.command, place, timeoutMs)
  const port = numberOf((tcpSocket ?? httpGet)?.port, container)
  if (httpGet) return answers(`http://127.0.0.1:${port}${httpGet.path ?? '/'}`, timeoutMs)
  return tcpSocket ? listens(port, timeoutMs) : Promise.resolve(true)
}

function numberOf(port: Loose, container: Loose): number {
  if (typeof port === 'number') return port
  return (container.ports ?? []).find((entry: Loose) => entry.name === port)?.containerPort ?? Number(port)
}

function passes([command, ...args]: string[], { env, cwd }: Place, timeout: number): Promise<boolean> {
  return new Promise(resolve => {
    const child = spawn(command!, args, { env, cwd, stdio: 'ignore', timeout, killSignal: 'SIGKILL' })
    child.once('error', () => resolve(false))
    child.once('exit', code => resolve(code === 0))
  })
}

function listens(port: number, timeout: number): Promise<boolean> {
  return new Promise(resolve => {
    const socket = connect({ host: '127.0.0.1', port, timeout })
    const done = (passed: boolean): void => {
      socket.destroy()
      resolve(passed)
    }
    socket.once('connect', () => done(true))
    socket.once('timeout', () => done(false))
    socket.once('error', () => done(false))
  })
}

async function answers(url: string, timeout: number): Promise<boolean> {
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(timeout), redirect: 'manual' })
    await response.body?.cancel()
    return response.status >= 200 && response.status < 400
  } catch {
    return false
  }
}
