import { flushCompileCache } from 'node:module'
import closeWithGrace from 'close-with-grace'
import { createApp } from './app.ts'
import { ConfigError, loadConfig } from './config.ts'
import { isRuntimeError } from './errors.ts'
import { createLogger } from './logger.ts'

/** Time for requests under way and open streams to end after SIGTERM. */
const GRACE_MS = 10_000

/** A start that cannot go on is told in one line an operator can act on; anything else is a fault of ours, with its stack. */
function giveUp(error: unknown): never {
  if (error instanceof ConfigError || isRuntimeError(error)) process.stderr.write(`runtimed: ${error.message}\n`)
  else process.stderr.write(`runtimed: ${error instanceof Error ? error.stack : String(error)}\n`)
  process.exit(1)
}

async function main(): Promise<void> {
  const config = loadConfig(process.env)
  const logger = createLogger(config.LOG_LEVEL)
  const app = createApp({
    config,
    logger,
    onFatal: error => {
      const isDisk = isRuntimeError(error, 'STORAGE_UNAVAILABLE')
      const why = isDisk ? 'the disk failed a sync: nothing more is acknowledged' : 'cannot go on'
      logger.fatal({ err: error }, `${why}; the process ends`)
      process.exit(1)
    },
  })
  closeWithGrace({ delay: GRACE_MS, logger, onSecondSignal: () => process.exit(1) }, async ({ signal, err }) => {
    if (err !== undefined) logger.error({ err }, 'a fault that nobody handled; the process ends')
    logger.info({ signal }, 'shutting down')
    await app.stop()
  })
  const { url } = await app.start()
  logger.info({ url }, 'listening')
  // With NODE_COMPILE_CACHE, as `npm start` sets it: kept for the next start whatever becomes of this process.
  flushCompileCache()
}

main().catch(giveUp)
