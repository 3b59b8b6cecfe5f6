import { spawn } from 'node:child_process'
import { z } from 'zod'
import type { ExecPlugin } from './kube-config.ts'

/** What a credential plugin gave us; `expiresAt` in ms, null = until the cluster refuses it. */
export interface ExecCredential {
  readonly token: string | null
  readonly cert: string | null
  readonly key: string | null
  readonly expiresAt: number | null
}

const Answer = z.object({
  kind: z.literal('ExecCredential'),
  status: z.object({
    token: z.string().optional(),
    clientCertificateData: z.string().optional(),
    clientKeyData: z.string().optional(),
    expirationTimestamp: z.string().optional(),
  }),
})

const MAX_OUTPUT = 1024 * 1024

/**
 * Runs a client-go credential plugin (client.authentication.k8s.io) once.
 * Throws when it fails, says nonsense or takes longer than `timeoutMs`; its output is in no message, for it holds the secret.
 */
export async function runExecPlugin(plugin: ExecPlugin, timeoutMs: number): Promise<ExecCredential> {
  const spec = { interactive: false, ...(plugin.cluster ? { cluster: plugin.cluster } : {}) }
  const info = JSON.stringify({ apiVersion: plugin.apiVersion, kind: 'ExecCredential', spec })
  const child = spawn(plugin.command, [...plugin.args], {
    env: { ...process.env, ...plugin.env, KUBERNETES_EXEC_INFO: info },
    stdio: ['ignore', 'pipe', 'ignore'],
    timeout: timeoutMs,
    killSignal: 'SIGKILL',
  })
  const chunks: Buffer[] = []
  let size = 0
  child.stdout.on('data', (chunk: Buffer) => {
    size += chunk.length
    if (size > MAX_OUTPUT) child.kill('SIGKILL')
    else chunks.push(chunk)
  })
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once('error', reject)
    child.once('close', resolve)
  })
  if (code !== 0) throw new Error(`the credential plugin ended with ${code ?? 'a signal (time-out?)'}`)
  return read(Buffer.concat(chunks).toString('utf8'))
}

function read(output: string): ExecCredential {
  let parsed: unknown
  try {
    parsed = JSON.parse(output)
  } catch {
    throw new Error('the credential plugin did not answer JSON')
  }
  const answer = Answer.safeParse(parsed)
  if (!answer.success) throw new Error('the credential plugin did not answer an ExecCredential')
  const { token, clientCertificateData, clientKeyData, expirationTimestamp } = answer.data.status
  const expires = expirationTimestamp === undefined ? Number.NaN : Date.parse(expirationTimestamp)
  return {
    token: token ?? null,
    cert: clientCertificateData ?? null,
    key: clientKeyData ?? null,
    expiresAt: Number.isNaN(expires) ? null : expires,
  }
}
