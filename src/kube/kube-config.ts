import { existsSync, readFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { delimiter, dirname, isAbsolute, join, resolve } from 'node:path'
import { load } from 'js-yaml'
import { z } from 'zod'
import { RuntimeError } from '../errors.ts'

/** PEM text, or a file holding it that may be replaced while we run. */
export type PemSource = { readonly pem: string } | { readonly file: string }

export interface ExecPlugin {
  readonly command: string
  readonly args: readonly string[]
  readonly env: Readonly<Record<string, string>>
  readonly apiVersion: string
  /** Sent as KUBERNETES_EXEC_INFO.spec.cluster when the kubeconfig asks for it. */
  readonly cluster: Readonly<Record<string, unknown>> | null
}

export type CredentialSource =
  | { readonly kind: 'none' }
  | { readonly kind: 'token'; readonly token: string }
  | { readonly kind: 'tokenFile'; readonly file: string }
  | { readonly kind: 'basic'; readonly username: string; readonly password: string }
  | { readonly kind: 'exec'; readonly plugin: ExecPlugin }

/** How to reach one cluster: where, as whom, trusting whom. Holds secrets: never log it. */
export interface ClusterAccess {
  /** Base URL without a trailing slash; `http://` is accepted as it is. */
  readonly server: string
  /** Namespace of the context or of the pod we run in; null if none is named. */
  readonly namespace: string | null
  readonly ca: PemSource | null
  readonly cert: PemSource | null
  readonly key: PemSource | null
  readonly skipVerify: boolean
  readonly serverName: string | null
  readonly credential: CredentialSource
  readonly impersonate: { readonly user: string; readonly groups: readonly string[] } | null
}

export interface KubeConfigOptions {
  /** A kubeconfig, or several in the manner of KUBECONFIG (the first to define a thing wins). */
  readonly file?: string | undefined
  readonly context?: string | undefined
  readonly env?: Readonly<Record<string, string | undefined>>
  readonly home?: string
  /** Where a pod finds its service account. */
  readonly serviceAccountFolder?: string
}

/**
 * Loading rules of wire.md §2: the given file, else in-cluster, else `~/.kube/config`.
 * Throws CONFIGURATION_ERROR; in a pod whose service account files are missing it does not fall through to another cluster.
 */
export function loadKubeConfig(options: KubeConfigOptions = {}): ClusterAccess {
  const env = options.env ?? process.env
  if (options.file) return fromFiles(options.file.split(delimiter).filter(Boolean), options.context)
  if (env.KUBERNETES_SERVICE_HOST) {
    return fromServiceAccount(env, options.serviceAccountFolder ?? '/var/run/secrets/kubernetes.io/serviceaccount')
  }
  const usual = join(options.home ?? homedir(), '.kube', 'config')
  if (!existsSync(usual)) {
    throw refuse('found neither a kubeconfig (KUBECONFIG, ~/.kube/config) nor a service account; set KUBECONFIG')
  }
  return fromFiles([usual], options.context)
}

const refuse = (why: string, cause?: unknown): RuntimeError =>
  new RuntimeError('CONFIGURATION_ERROR', `cannot load the cluster's configuration: ${why}`, { cause })

function fromServiceAccount(env: Readonly<Record<string, string | undefined>>, folder: string): ClusterAccess {
  const token = join(folder, 'token')
  const ca = join(folder, 'ca.crt')
  for (const file of [token, ca]) {
    if (!existsSync(file)) {
      throw refuse(`this is a pod but ${file} is missing; mount a service account token or set KUBECONFIG`)
    }
  }
  const host = env.KUBERNETES_SERVICE_HOST ?? ''
  const namespace = join(folder, 'namespace')
  return {
    ...ANYONE,
    server: `https://${host.includes(':') ? `[${host}]` : host}:${env.KUBERNETES_SERVICE_PORT ?? '443'}`,
    namespace: existsSync(namespace) ? readFileSync(namespace, 'utf8').trim() || null : null,
    ca: { file: ca },
    credential: { kind: 'tokenFile', file: token },
  }
}

const ANYONE = {
  cert: null,
  key: null,
  skipVerify: false,
  serverName: null,
  impersonate: null,
} as const

const text = z.union([z.string(), z.number(), z.boolean()]).transform(String)
const listOf = <T extends z.ZodType>(item: T) =>
  z
    .array(item)
    .nullish()
    .transform(items => items ?? [])

const Exec = z.object({
  command: text,
  args: listOf(text),
  env: listOf(z.object({ name: text, value: text })),
  apiVersion: text,
  provideClusterInfo: z.boolean().nullish(),
})
const Cluster = z.object({
  server: text,
  'certificate-authority': text.nullish(),
  'certificate-authority-data': text.nullish(),
  'insecure-skip-tls-verify': z.boolean().nullish(),
  'tls-server-name': text.nullish(),
  'proxy-url': text.nullish(),
})
const User = z.object({
  token: text.nullish(),
  tokenFile: text.nullish(),
  username: text.nullish(),
  password: text.nullish(),
  'client-certificate': text.nullish(),
  'client-certificate-data': text.nullish(),
  'client-key': text.nullish(),
  'client-key-data': text.nullish(),
  as: text.nullish(),
  'as-groups': listOf(text),
  exec: Exec.nullish(),
  'auth-provider': z.unknown().optional(),
})
const Context = z.object({ cluster: text, user: text.nullish(), namespace: text.nullish() })
const KubeConfigFile = z.object({
  'current-context': text.nullish(),
  clusters: listOf(z.object({ name: text, cluster: Cluster })),
  users: listOf(z.object({ name: text, user: User.nullish() })),
  contexts: listOf(z.object({ name: text, context: Context })),
})

/** A parsed file together with the folder its relative paths start from. */
interface Parsed {
  readonly folder: string
  readonly config: z.output<typeof KubeConfigFile>
}

function parse(file: string): Parsed {
  let content: string
  try {
    content = readFileSync(file, 'utf8')
  } catch (cause) {
    throw refuse(`the kubeconfig ${file} cannot be read; check KUBECONFIG`, cause)
  }
  try {
    return { folder: dirname(resolve(file)), config: KubeConfigFile.parse(load(content) ?? {}) }
  } catch (error) {
    // no cause: a YAML error quotes the lines around it, and those hold secrets
    const where = error instanceof z.ZodError ? ` (at ${error.issues[0]?.path.join('.') || 'the top'})` : ''
    throw refuse(`${file} is not a kubeconfig${where}`)
  }
}

/** The first entry of that name over all files, with the folder of its file. */
function find<T extends { readonly name: string }>(parsed: readonly Parsed[], name: string, pick: (p: Parsed) => T[]) {
  for (const one of parsed) {
    const entry = pick(one).find(candidate => candidate.name === name)
    if (entry) return { folder: one.folder, entry }
  }
  return null
}

function fromFiles(files: readonly string[], wanted: string | undefined): ClusterAccess {
  const parsed = files.map(parse)
  const name = wanted || parsed.map(one => one.config['current-context']).find(Boolean)
  if (!name) throw refuse('no context is current; set K8S_CONTEXT')
  const context = find(parsed, name, p => p.config.contexts)?.entry.context
  if (!context) throw refuse(`there is no context "${name}"; set K8S_CONTEXT to one of the kubeconfig's`)
  const cluster = find(parsed, context.cluster, p => p.config.clusters)
  if (!cluster) throw refuse(`the context "${name}" names a cluster that is not there`)
  const user = context.user ? find(parsed, context.user, p => p.config.users) : null
  if (context.user && !user) throw refuse(`the context "${name}" names a user that is not there`)
  const at = cluster.entry.cluster
  if (at['proxy-url']) throw refuse('proxy-url is not supported; remove it')
  return {
    ...(user?.entry.user ? userPart(user.entry.user, user.folder, at) : { ...ANYONE, credential: { kind: 'none' } }),
    server: serverOf(at.server),
    namespace: context.namespace || null,
    ca: pem(at['certificate-authority-data'], at['certificate-authority'], cluster.folder),
    skipVerify: at['insecure-skip-tls-verify'] ?? false,
    serverName: at['tls-server-name'] || null,
  }
}

function serverOf(server: string): string {
  const url = URL.parse(server)
  if (!url || !/^https?:$/.test(url.protocol)) throw refuse('the cluster needs an http:// or https:// server')
  return server.replace(/\/+$/, '')
}

const inFolder = (folder: string, file: string): string => (isAbsolute(file) ? file : join(folder, file))

function pem(data: string | null | undefined, file: string | null | undefined, folder: string): PemSource | null {
  if (data) return { pem: Buffer.from(data, 'base64').toString('utf8') }
  return file ? { file: inFolder(folder, file) } : null
}

function userPart(user: z.output<typeof User>, folder: string, cluster: z.output<typeof Cluster>) {
  if (user['auth-provider']) throw refuse('auth-provider is no longer supported by Kubernetes; use an exec plugin')
  return {
    cert: pem(user['client-certificate-data'], user['client-certificate'], folder),
    key: pem(user['client-key-data'], user['client-key'], folder),
    credential: credentialOf(user, folder, cluster),
    impersonate: user.as ? { user: user.as, groups: user['as-groups'] } : null,
  }
}

function credentialOf(
  user: z.output<typeof User>,
  folder: string,
  cluster: z.output<typeof Cluster>,
): CredentialSource {
  if (user.tokenFile) return { kind: 'tokenFile', file: inFolder(folder, user.tokenFile) }
  if (user.token) return { kind: 'token', token: user.token }
  if (user.username) return { kind: 'basic', username: user.username, password: user.password ?? '' }
  if (!user.exec) return { kind: 'none' }
  const { command, args, env, apiVersion, provideClusterInfo } = user.exec
  return {
    kind: 'exec',
    plugin: {
      command: command.includes('/') ? inFolder(folder, command) : command,
      args,
      env: Object.fromEntries(env.map(({ name, value }) => [name, value])),
      apiVersion,
      cluster: provideClusterInfo ? { ...cluster } : null,
    },
  }
}
