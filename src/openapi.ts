import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { pino } from 'pino'
import { createAuth } from './http/auth.ts'
import { createMetrics } from './http/metrics.ts'
import { createServer } from './http/server.ts'
import type { Services } from './service/api.ts'

const FILE = new URL('../openapi/openapi.json', import.meta.url)

/** Routes ask for methods only when they are called; the document needs none. */
const stub = new Proxy({} as Services, { get: () => ({}) })

/** The document as `openapi/openapi.json` holds it: the same bytes each time, without any cluster. */
export async function openapiText(): Promise<string> {
  const logger = pino({ level: 'silent' })
  const auth = createAuth({ tokensFile: null, namespaces: '*', allowAnonymous: false, onBadFile: () => {} })
  const app = await createServer({ services: stub, auth, logger, metrics: createMetrics({ process: false }) })
  const text = `${JSON.stringify(app.swagger(), null, 2)}\n`
  await app.close()
  return text
}

async function run(verb: string | undefined): Promise<number> {
  const text = await openapiText()
  if (verb === 'write') {
    writeFileSync(FILE, text)
    return 0
  }
  if (verb !== 'check') {
    console.error('usage: openapi.ts write|check')
    return 2
  }
  if (readFileSync(FILE, 'utf8') === text) return 0
  console.error('openapi/openapi.json is not what the code serves: run "npm run openapi"')
  return 1
}

if (process.argv[1] === fileURLToPath(import.meta.url)) process.exitCode = await run(process.argv[2])
