import { rmSync, writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { HELP } from './help.ts'
import { type Sandbox, startSandbox } from './index.ts'

const DEFAULT_PORT = 6443

interface Arguments {
  port: number
  kubeconfig: string | undefined
  namespaces: string[]
  tokens: string[] | undefined
  help: boolean
}

function parse(argv: string[]): Arguments {
  const { values } = parseArgs({
    args: argv,
    options: {
      port: { type: 'string', default: String(DEFAULT_PORT) },
      kubeconfig: { type: 'string' },
      namespace: { type: 'string', multiple: true, default: [] },
      token: { type: 'string', multiple: true },
      help: { type: 'boolean', short: 'h', default: false },
    },
  })
  const port = Number(values.port)
  if (!Number.isInteger(port) || port < 0 || port > 65535) {
    throw new Error(`cannot use port ${values.port}: give a number from 0 to 65535`)
  }
  return { port, kubeconfig: values.kubeconfig, namespaces: values.namespace, tokens: values.token, help: values.help }
}

/** Serves until SIGTERM or SIGINT; a second signal ends the process at once. */
async function serve({ port, kubeconfig, namespaces, tokens }: Arguments): Promise<void> {
  const sandbox = await startSandbox({ port, namespaces, ...(tokens ? { tokens } : {}) })
  if (kubeconfig !== undefined) writeFileSync(kubeconfig, sandbox.kubeconfig(), { mode: 0o600 })
  console.log(
    `sandbox Kubernetes API on ${sandbox.url}${kubeconfig === undefined ? '' : `, kubeconfig in ${kubeconfig}`}`,
  )
  let stopping = false
  const stop = (): void => {
    if (stopping) process.exit(1)
    stopping = true
    void shutDown(sandbox, kubeconfig)
  }
  process.on('SIGTERM', stop)
  process.on('SIGINT', stop)
}

async function shutDown(sandbox: Sandbox, kubeconfig: string | undefined): Promise<void> {
  await sandbox.close()
  if (kubeconfig !== undefined) rmSync(kubeconfig, { force: true })
  process.exit(0)
}

try {
  const options = parse(process.argv.slice(2))
  if (options.help) console.log(HELP)
  else await serve(options)
} catch (error) {
  console.error((error as Error).message)
  process.exitCode = 1
}
