import { spawn } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { cpuSeconds, memoryMb } from './child.ts'
import type { Bench } from './figures.ts'
import { scoped } from './scope.ts'
import { startWorld } from './world.ts'

const RUNTIMES = 1000

/** A daemon that nobody asks anything, beside a Node that does nothing. */
export const benchIdle: Bench = async ({ small }) =>
  await scoped(async t => {
    const seconds = small ? 5 : 20
    const { daemon } = await startWorld(t, { count: RUNTIMES })
    const bare = spawn(process.execPath, ['-e', 'setInterval(() => {}, 60_000)'])
    t.after(() => void bare.kill('SIGKILL'))
    const pids = [daemon.pid, bare.pid ?? 0] as const
    const before = pids.map(cpuSeconds)
    await sleep(seconds * 1000)
    const [ours = 0, nothing = 0] = pids.map((pid, n) => ((cpuSeconds(pid) - (before[n] ?? 0)) / seconds) * 100)
    const of = 'bare Node'
    return [
      {
        name: `idle: share of a core, ${RUNTIMES} runtimes`,
        value: ours,
        unit: '%',
        target: { max: 1 },
        baseline: { value: nothing, of },
      },
      {
        name: `idle: RSS, ${RUNTIMES} runtimes`,
        value: memoryMb(daemon.pid).now,
        unit: 'MB',
        target: { max: 150 },
        baseline: { value: memoryMb(bare.pid ?? 0).now, of },
      },
    ]
  })
