import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import closeWithGrace from 'close-with-grace'
import { createApp } from './app.ts'
import { loadConfig } from './config.ts'
import { createLogger } from './logger.ts'
import { type SandboxOptions, startSandbox } from './sandbox/index.ts'

const GRACE_MS = 10_000

/** The lines a newcomer pastes: a Job that prints a line and exits 3, its log, how it ended and what was told of it. */
function script(url: string): string {
  const job = `${url}/v1/runtimes/k8s-default%7Cjob%7Chello`
  const body = JSON.stringify({
    kind: 'job',
    name: 'hello',
    image: 'busybox',
    entrypoint: ['sh', '-c'],
    command: ['echo hello from a job; sleep 1; exit 3'],
  })
  return `
runtimed with a sandbox cluster: ${url}   (documentation: ${url}/docs, Ctrl-C ends it)

  curl -sS -w '\\n' -X POST ${url}/v1/runtimes -H 'content-type: application/json' -d '${body}'

  curl -sS '${job}/logs?follow=true'

  curl -sS -w '\\n' '${job}/wait?for=ended' '${job}/events'

`
}

/**
 * SANDBOX_KUBELET=instant: pods that never run anything, for whoever cannot vouch for the commands, such as a test that
 * makes them up. Anything else but `process`, the default, is refused: a typo here must not start processes.
 */
function kubeletOf(kind = 'process'): SandboxOptions['kubelet'] {
  if (kind === 'process' || kind === 'instant') return kind
  throw new Error(`SANDBOX_KUBELET must be process or instant, not "${kind}"`)
}

async function demo(): Promise<void> {
  const kubelet = kubeletOf(process.env.SANDBOX_KUBELET)
  const folder = mkdtempSync(join(tmpdir(), 'runtimed-demo-'))
  const logger = createLogger(process.env.LOG_LEVEL ?? 'warn')
  const sandbox = await startSandbox({ kubelet })
  const kubeconfig = join(folder, 'kubeconfig')
  writeFileSync(kubeconfig, sandbox.kubeconfig())
  const config = loadConfig({ DATABASE_PATH: join(folder, 'runtimed.db'), ...process.env, KUBECONFIG: kubeconfig })
  const app = createApp({
    config,
    logger,
    onFatal: error => {
      logger.fatal({ err: error }, 'cannot go on')
      process.exit(1)
    },
  })
  const end = async (): Promise<void> => {
    await app.stop()
    await sandbox.close()
    rmSync(folder, { recursive: true, force: true })
  }
  closeWithGrace({ delay: GRACE_MS, logger, onSecondSignal: () => process.exit(1) }, async ({ err }) => {
    if (err !== undefined) logger.error({ err }, 'a fault that nobody handled; the demo ends')
    await end()
  })
  try {
    const { url } = await app.start()
    process.stdout.write(script(url))
  } catch (error) {
    await end()
    throw error
  }
}

await demo().catch(error => {
  process.stderr.write(`cannot start the demo: ${error instanceof Error ? error.message : String(error)}\n`)
  process.exit(1)
})
