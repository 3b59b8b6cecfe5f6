/**
 * What a backend saw of one life: facts, never a state (lifecycle.md §3). Backend-neutral: the Kubernetes and the
 * Docker observers both speak it. What the facts mean for a runtime is `lifecycle.ts`'s business. Times are ms.
 */
export type Observation = Seen | Gone

/** Why it does not run (lifecycle.md §8). */
export interface Trouble {
  readonly cause: TroubleCause
  readonly reason: string
  readonly message: string | null
  readonly hint: string | null
  /** Shown but never a Warning: what stands outside the table, and a crash loop between two tries. */
  readonly quiet: boolean
  /** Time in the object, where it has one. */
  readonly at: number | null
  /** uid of the pod it was read from. */
  readonly pod: string | null
}

/** In order of priority. */
export const TROUBLE_CAUSES = [
  'image',
  'config',
  'oom',
  'crash',
  'scheduling',
  'evicted',
  'rejected',
  'node',
  'create',
  'podStart',
  'others',
  'other',
] as const
export type TroubleCause = (typeof TROUBLE_CAUSES)[number]

/** What inspect shows of the present; says nothing about states. */
export interface Display {
  readonly replicas: { readonly desired: number; readonly current: number; readonly ready: number }
  readonly restarts: number
  readonly podName: string | null
  readonly podIp: string | null
  readonly nodeName: string | null
}

/** One pod (or container) of the workload, its `main` container first of all. */
export interface PodSeen {
  readonly uid: string
  readonly phase: string | null
  readonly terminating: boolean
  /** Last state of a pod whose object is gone. */
  readonly gone: boolean
  /** Succeeded or Failed. */
  readonly ended: boolean
  /** Condition Ready. */
  readonly ready: boolean
  readonly readyAt: number | null
  /** `main` has run (lifecycle.md §3): not merely left Pending. */
  readonly ran: boolean
  readonly running: boolean
  /** When `main` last began to run. */
  readonly startedAt: number | null
  readonly finishedAt: number | null
  /** Last terminated code of `main`; null if unseen or ContainerStatusUnknown. */
  readonly exitCode: number | null
  readonly oomKilled: boolean
  /** It ended by itself: what its own deletion causes is no verdict. */
  readonly endingCounts: boolean
  readonly reason: string | null
  readonly message: string | null
  /** Since when `main` waits in ContainerCreating; null if it does not. */
  readonly creatingSince: number | null
}

export interface Condition {
  readonly at: number | null
  readonly reason: string
  readonly message: string | null
}

interface Common {
  /** From a direct GET, or the answer of our own write, rather than from the cache. */
  readonly live: boolean
  /** The pods come from a live LIST as well. */
  readonly livePods: boolean
  /** Warning Events were looked up as well. Absent = false. */
  readonly liveWarnings?: boolean
  /** When it was looked at. */
  readonly at: number
}

/**
 * The object is not there. Counts only when `live`: a missing cache entry asks for one GET first (a selector watch says
 * DELETED too when only our label went).
 */
export interface Gone extends Common {
  readonly type: 'gone'
  /** uid of another object under the name, if there is one. */
  readonly otherUid: string | null
  /** Its pods that have not ended. */
  readonly podsLeft: number
  /** The last that was seen of the object and its pods, gone ones too; null if nothing was. */
  readonly last: Seen | null
}

export interface Seen extends Common {
  readonly type: 'seen'
  readonly uid: string
  readonly nonce: string | null
  /** resourceVersion, compared as whole numbers within one uid. */
  readonly version: string
  readonly generation: number | null
  /** observedGeneration ≥ generation; true where the kind has none. */
  readonly current: boolean
  /** Our label is (still) on it. */
  readonly labelled: boolean
  readonly instance: string | null
  readonly deleting: boolean
  /** deletionTimestamp less its grace. */
  readonly deletionAskedAt: number | null
  readonly finalizers: readonly string[]
  readonly createdAt: number
  /** uids of what stands between a workload and its pods (ReplicaSets), as far as pods show them. Absent = none. */
  readonly podControllers?: readonly string[]
  readonly display: Display
  readonly facts: DeploymentFacts | JobFacts | PodFacts
}

export interface DeploymentFacts {
  readonly kind: 'deployment'
  /** spec.replicas, absent = 1. */
  readonly desired: number
  /** status.replicas. */
  readonly replicas: number
  readonly ready: number
  /** Condition ReplicaFailure=True. */
  readonly replicaFailure: Condition | null
  /** Condition Progressing=False with ProgressDeadlineExceeded; another reason is nothing. */
  readonly deadline: Condition | null
  readonly pods: readonly PodSeen[]
  /** In order of priority. */
  readonly troubles: readonly Trouble[]
}

export interface JobFacts {
  readonly kind: 'job'
  readonly suspended: boolean
  /** Condition Suspended=True: the sign that the controller has seen it. */
  readonly suspendedSeen: boolean
  readonly active: number
  readonly succeeded: number
  readonly failed: number
  readonly ready: number
  readonly terminating: number
  readonly hasStartTime: boolean
  readonly completions: number
  readonly backoffLimit: number
  readonly complete: Condition | null
  readonly failure: Condition | null
  /** SuccessCriteriaMet or FailureTarget: the verdict is on its way, the counters are none. */
  readonly deciding: boolean
  readonly pods: readonly PodSeen[]
  readonly troubles: readonly Trouble[]
}

export interface PodFacts {
  readonly kind: 'pod'
  /** The one pod. */
  readonly pods: readonly PodSeen[]
  readonly troubles: readonly Trouble[]
}
