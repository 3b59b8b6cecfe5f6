import { z } from 'zod'
import { resolvePath } from './domain/host-path.ts'
import { imageFault } from './domain/image.ts'
import { isDnsSubdomain, isLabelValue } from './domain/labels.ts'
import { RUNTIME_NAMES, type RuntimeName, toRuntimeName } from './domain/runtime-id.ts'
import { isDnsLabel } from './domain/workload-name.ts'

/** setTimeout holds no longer time: 2^31 ms. */
const MAX_TIMER_SECONDS = 2_147_483
const TEN_YEARS_SECONDS = 315_360_000

const LEGAL_RUNTIMES = `${RUNTIME_NAMES.join(', ')} (or kubernetes, which is k8s)`

/** Decimal digits and nothing else: "0x50", "8e1", " 80" and "" are typos, not numbers. */
const whole = (min: number, max: number) =>
  z
    .string()
    .regex(/^\d{1,15}$/, `must be a whole number from ${min} to ${max}`)
    .transform(Number)
    .refine(value => value >= min && value <= max, `must be a whole number from ${min} to ${max}`)

const flag = z.enum(['true', 'false'], 'must be true or false').transform(text => text === 'true')

const oneOf = <const T extends string>(names: readonly T[]) => z.enum(names, `must be one of ${names.join(', ')}`)

/** A text with outer blanks trimmed that passes `accepts`. */
const text = (accepts: (value: string) => boolean, message: string) => z.string().trim().refine(accepts, message)

const anyText = text(value => value !== '', 'must not be blank')

/** Comma separated, blanks trimmed, each item once; empty items are no items. */
const list = <T>(item: z.ZodType<T, string>) =>
  z
    .string()
    .transform(value => [...new Set(value.split(',').map(part => part.trim()))].filter(part => part !== ''))
    .pipe(z.array(item))
    .transform((items): readonly T[] => Object.freeze([...new Set(items)]))

const namespace = z.string().refine(isDnsLabel, 'must be a DNS label: 1 to 63 of a-z, 0-9 and "-"')

const runtime = z.string().transform((value, context): RuntimeName => {
  const name = toRuntimeName(value)
  if (name !== undefined) return name
  context.addIssue({ code: 'custom', message: `must be one of ${LEGAL_RUNTIMES}` })
  return z.NEVER
})

const folder = z.string().transform((value, context): string => {
  const path = resolvePath(value)
  if (path !== null) return path
  context.addIssue({ code: 'custom', message: 'must be an absolute path' })
  return z.NEVER
})

const image = text(value => imageFault(value) === null, 'must be an image reference, such as registry/agent:1.0')
const dnsName = 'must be a DNS name: a-z, 0-9, "-" and "."'

/** Every variable of wire.md §2, by its own name. What has no default here is absent as null, or filled in by `settle`. */
const FIELDS = {
  HOST: text(value => /^[^\s/]+$/.test(value), 'must be an address or a host name').default('127.0.0.1'),
  /** 0 = any free port. */
  PORT: whole(0, 65_535).default(8080),
  ALLOW_ANONYMOUS: flag.default(false),
  DATABASE_PATH: anyText.default('./data/runtimed.db'),
  INSTANCE: text(
    value => value !== '' && isLabelValue(value),
    'must be a label value: at most 63 letters, digits, "-", "_", "."',
  ).default('default'),
  RUNTIMES: list(runtime).nullable().default(null),
  CONTAINER_RUNTIME: runtime.nullable().default(null),
  KUBECONFIG: anyText.nullable().default(null),
  K8S_CONTEXT: anyText.nullable().default(null),
  K3S_KUBECONFIG: anyText.nullable().default(null),
  K3S_CONTEXT: anyText.nullable().default(null),
  NAMESPACE: namespace.nullable().default(null),
  NAMESPACES: list(z.union([z.literal('*'), namespace], 'must be DNS labels, or * alone for all'))
    .nullable()
    .default(null),
  CLUSTER_DOMAIN: text(isDnsSubdomain, dnsName).default('cluster.local'),
  TOKENS_FILE: anyText.nullable().default(null),
  HOST_PATH_ROOTS: list(folder).default([]),
  IMAGE_PULL_SECRETS: list(z.string().refine(isDnsSubdomain, dnsName)).default([]),
  SERVICE_ACCOUNT_NAME: text(isDnsSubdomain, dnsName).nullable().default(null),
  POD_SECURITY: oneOf(['baseline', 'restricted']).default('baseline'),
  /** 0 = none; for agent containers 0 means 120. */
  START_TIMEOUT_SECONDS: whole(0, MAX_TIMER_SECONDS).default(0),
  JOB_STOP: oneOf(['delete', 'suspend']).default('delete'),
  AGENT_IMAGE: image.nullable().default(null),
  AGENT_IMAGE_COMPUTER: image.nullable().default(null),
  AGENT_PORT: whole(1, 65_535).default(50_051),
  /** Null = never. */
  POD_TTL_SECONDS: whole(1, TEN_YEARS_SECONDS).nullable().default(null),
  ADOPT_ORPHANS: flag.default(false),
  EVENT_RETENTION_SECONDS: whole(1, TEN_YEARS_SECONDS).default(604_800),
  EVENT_RETENTION_COUNT: whole(1, 1_000_000_000).default(1_000_000),
  KUBE_TIMEOUT_SECONDS: whole(1, 3600).default(10),
  WATCH_TIMEOUT_SECONDS: whole(1, 3600).default(290),
  STRICT_START: flag.default(false),
  LOG_LEVEL: oneOf(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent']).default('info'),
  DOCKER_HOST: anyText.default('unix:///var/run/docker.sock'),
}

type Read = z.infer<z.ZodObject<typeof FIELDS>>

/** The environment as it was read: every variable under its own name, units as in that name, absent ones null. Frozen. */
export type Config = Readonly<
  Omit<Read, 'RUNTIMES' | 'CONTAINER_RUNTIME' | 'NAMESPACE' | 'NAMESPACES'> & {
    /** Never empty; in the order given. */
    RUNTIMES: readonly RuntimeName[]
    CONTAINER_RUNTIME: RuntimeName
    NAMESPACE: string
    /** `*` = all, watched cluster-wide. */
    NAMESPACES: readonly string[] | '*'
  }
>

export type Environment = Readonly<Record<string, string | undefined>>

/** Everything that is wrong with the environment, one line a fault. */
export class ConfigError extends Error {
  readonly faults: readonly string[]

  constructor(faults: readonly string[]) {
    super(`cannot read the configuration:\n${faults.map(fault => `  ${fault}`).join('\n')}`)
    this.name = 'ConfigError'
    this.faults = faults
  }
}

/**
 * Reads the environment once. A variable that is blank counts as unset. Files that it names are not looked at.
 * Throws ConfigError with every fault at the same time, so that an operator mends them in one go.
 */
export function loadConfig(environment: Environment): Config {
  const faults: string[] = []
  const read: Partial<Record<string, unknown>> = {}
  for (const [name, schema] of Object.entries(FIELDS)) {
    const given = environment[name]
    const result = schema.safeParse(given === '' || (isBlankable(name) && given?.trim() === '') ? undefined : given)
    if (result.success) read[name] = result.data
    else faults.push(`${name} ${[...new Set(result.error.issues.map(issue => issue.message))].join('; ')}`)
  }
  const known = read as Partial<Read>
  const settled = settle(known)
  faults.push(...contradictions(known, settled))
  if (faults.length > 0) throw new ConfigError(faults)
  return Object.freeze({ ...(known as Read), ...settled })
}

/** Numbers and switches are strict: a blank there is a typo. */
const isBlankable = (name: string): boolean => !/_SECONDS$|_COUNT$|PORT$|^ALLOW_|^ADOPT_|^STRICT_/.test(name)

/** What follows for the variables whose default depends on others. Faulty ones count as unset: they are reported anyway. */
function settle(
  read: Partial<Read>,
): Pick<Config, 'RUNTIMES' | 'CONTAINER_RUNTIME' | 'NAMESPACE' | 'NAMESPACES' | 'AGENT_IMAGE_COMPUTER'> {
  const asked = read.RUNTIMES?.length ? read.RUNTIMES : null
  const runtimes = asked ?? Object.freeze([read.CONTAINER_RUNTIME ?? 'k8s'])
  const listed = read.NAMESPACES?.length ? read.NAMESPACES : null
  const all = listed?.includes('*') ?? false
  const namespace = read.NAMESPACE ?? (all ? 'default' : (listed?.[0] ?? 'default'))
  return {
    RUNTIMES: runtimes,
    CONTAINER_RUNTIME: read.CONTAINER_RUNTIME ?? runtimes[0] ?? 'k8s',
    NAMESPACE: namespace,
    NAMESPACES: all ? '*' : (listed ?? Object.freeze([namespace])),
    AGENT_IMAGE_COMPUTER: read.AGENT_IMAGE_COMPUTER ?? read.AGENT_IMAGE ?? null,
  }
}

/** Faults between variables, each of which is fine alone. */
function contradictions(
  read: Partial<Read>,
  { RUNTIMES, CONTAINER_RUNTIME, NAMESPACE, NAMESPACES }: ReturnType<typeof settle>,
): string[] {
  const faults: string[] = []
  if (read.RUNTIMES !== undefined && !RUNTIMES.includes(CONTAINER_RUNTIME)) {
    faults.push(`CONTAINER_RUNTIME ${CONTAINER_RUNTIME} must be one of RUNTIMES: ${RUNTIMES.join(', ')}`)
  }
  if (read.K3S_KUBECONFIG === null && RUNTIMES.includes('k8s') && RUNTIMES.includes('k3s')) {
    faults.push('K3S_KUBECONFIG must be set when RUNTIMES has k8s and k3s: the same rules would find the same cluster')
  }
  if (read.NAMESPACES?.includes('*') && read.NAMESPACES.length > 1) {
    faults.push('NAMESPACES must be * alone or a list without it')
  }
  if (read.NAMESPACES !== undefined && NAMESPACES !== '*' && !NAMESPACES.includes(NAMESPACE)) {
    faults.push(`NAMESPACE ${NAMESPACE} must be one of NAMESPACES: ${NAMESPACES.join(', ')}`)
  }
  if (RUNTIMES.includes('docker') && !/^(?:unix|tcp|https?|ssh|npipe):\/\/./.test(read.DOCKER_HOST ?? 'unix:///')) {
    faults.push('DOCKER_HOST must be a URL as the Docker client takes it, such as unix:///var/run/docker.sock')
  }
  if (
    read.HOST !== undefined &&
    !isLoopback(read.HOST) &&
    read.TOKENS_FILE === null &&
    read.ALLOW_ANONYMOUS === false
  ) {
    faults.push(`HOST ${read.HOST} is beyond loopback: set TOKENS_FILE, or ALLOW_ANONYMOUS=true to let everybody in`)
  }
  return faults
}

/** `localhost`, 127.0.0.0/8 and `::1`, with or without brackets. */
export const isLoopback = (host: string): boolean => /^(?:localhost|127(?:\.\d{1,3}){3}|\[?::1\]?)$/i.test(host)
