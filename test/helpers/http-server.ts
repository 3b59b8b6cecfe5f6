import type { AddressInfo } from 'node:net'
import { Writable } from 'node:stream'
import type { TestContext } from 'node:test'
import { pino } from 'pino'
import type { App } from '../../src/http/app.ts'
import { type AuthOptions, createAuth } from '../../src/http/auth.ts'
import type { Limits } from '../../src/http/limits.ts'
import { createMetrics, type Metrics } from '../../src/http/metrics.ts'
import { createServer } from '../../src/http/server.ts'
import { FakeServices } from './fake-services.ts'

export interface TestServer {
  readonly app: App
  readonly services: FakeServices
  readonly metrics: Metrics
  readonly port: number
  readonly url: string
  /** Every line logged so far. */
  readonly lines: string[]
}

export interface TestServerOptions {
  readonly auth?: Partial<AuthOptions>
  readonly limits?: Partial<Limits>
}

/** The real server on a port of its own over fake services; closed at the end of the test. */
export async function startServer(t: TestContext | null, options: TestServerOptions = {}): Promise<TestServer> {
  const services = new FakeServices()
  const metrics = createMetrics({ process: false })
  const lines: string[] = []
  const log = new Writable({
    write(chunk, _encoding, done) {
      lines.push(String(chunk))
      done()
    },
  })
  const auth = createAuth({
    tokensFile: null,
    namespaces: '*',
    allowAnonymous: false,
    onBadFile: () => {},
    ...options.auth,
  })
  const logger = pino({ level: 'debug' }, log)
  const app = await createServer({
    services,
    auth,
    logger,
    metrics,
    ...(options.limits ? { limits: options.limits } : {}),
  })
  await app.listen({ host: '127.0.0.1', port: 0 })
  t?.after(() => app.close())
  const { port } = app.server.address() as AddressInfo
  return { app, services, metrics, port, url: `http://127.0.0.1:${port}`, lines }
}
