import type { PullPolicy } from './image.ts'
import type { Kind, RuntimeId, RuntimeName } from './runtime-id.ts'
import type { SchedulingConstraint, SchedulingConstraintRequest } from './scheduling.ts'

export type VolumeMode = 'ro' | 'rw'
export type JobStop = 'delete' | 'suspend'
export type PodSecurity = 'baseline' | 'restricted'

/** What a create asks for, its JSON types checked and nothing else (wire.md §3). */
export interface CreateRequest {
  runtime?: string | undefined
  namespace?: string | undefined
  kind?: string | undefined
  name?: string | undefined
  image: string
  entrypoint?: readonly string[] | undefined
  command?: readonly string[] | undefined
  workdir?: string | undefined
  env?: Readonly<Record<string, string>> | undefined
  cpu?: number | string | undefined
  memory?: number | string | undefined
  user?: string | undefined
  supplementalGroups?: readonly number[] | undefined
  volumes?: readonly { source: string; target: string; mode?: string | undefined }[] | undefined
  port?: number | undefined
  exposeService?: boolean | undefined
  schedulingConstraints?: readonly SchedulingConstraintRequest[] | undefined
  labels?: Readonly<Record<string, string>> | undefined
  imagePullPolicy?: string | undefined
  imagePullSecrets?: readonly string[] | undefined
  backoffLimit?: number | undefined
  startTimeoutSeconds?: number | undefined
  terminationGracePeriodSeconds?: number | undefined
  jobStop?: string | undefined
  start?: boolean | undefined
}

export interface VolumeMount {
  /** Resolved path on the node, below one of the configured roots. */
  readonly source: string
  readonly target: string
  readonly mode: VolumeMode
}

/**
 * What one runtime is to be, the same for every backend, accepted and normalised: defaults filled in, units canonical,
 * every key there. Plain JSON; equal requests give equal specs.
 */
export interface WorkloadSpec extends RuntimeId {
  readonly image: string
  /** Replaces the image's ENTRYPOINT; empty = the image's own. */
  readonly entrypoint: readonly string[]
  /** Replaces the image's CMD; empty = the image's own. */
  readonly command: readonly string[]
  readonly workdir: string | null
  /** Keys in order. */
  readonly env: Readonly<Record<string, string>>
  /** Whole cores (`2`) or millicores (`500m`); null = no limit. */
  readonly cpu: string | null
  /** Bytes; null = no limit. */
  readonly memory: number | null
  /** `uid` or `uid:gid`, on Docker names too; null = the image's own. */
  readonly user: string | null
  readonly supplementalGroups: readonly number[]
  readonly volumes: readonly VolumeMount[]
  readonly port: number | null
  /** True only for what gets a Service: a Deployment with a port, or an agent Pod. */
  readonly exposeService: boolean
  readonly schedulingConstraints: readonly SchedulingConstraint[]
  /** The user's labels, keys in order. */
  readonly labels: Readonly<Record<string, string>>
  /** Ours, set by agent containers; users cannot. */
  readonly annotations: Readonly<Record<string, string>>
  readonly imagePullPolicy: PullPolicy
  readonly imagePullSecrets: readonly string[]
  /** Null unless a Job. */
  readonly backoffLimit: number | null
  /** 0 = none. */
  readonly startTimeoutSeconds: number
  /** Null = the cluster's default of 30 s. */
  readonly terminationGracePeriodSeconds: number | null
  /** Null unless a Job. */
  readonly jobStop: JobStop | null
  readonly start: boolean
}

/** What fills the gaps of a request. */
export interface SpecDefaults {
  readonly runtime: RuntimeName
  readonly namespace: string
  /** `deployment`, or `pod` for agent containers; a request itself may only ask for deployment or job. */
  readonly kind: Kind
  /** A unique name for a request without one (`generateName`). */
  readonly name: string
  readonly startTimeoutSeconds: number
  readonly jobStop: JobStop
  /** Of agent containers. */
  readonly annotations?: Readonly<Record<string, string>>
}

/** What the operator allows. */
export interface SpecPolicy {
  /** Configured runtimes; any other is 400. */
  readonly runtimes: readonly RuntimeName[]
  /** HOST_PATH_ROOTS, resolved. */
  readonly hostPathRoots: readonly string[]
  readonly podSecurity: PodSecurity
}

export { canonicalJson } from './canonical-json.ts'
export { normaliseSpec } from './normalise-spec.ts'
