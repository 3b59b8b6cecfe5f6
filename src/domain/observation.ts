/**
 * What a backend saw of one life: facts, never a state (lifecycle.md §3). Backend-neutral: the Kubernetes and the
 * Docker observers both speak it. What the facts mean for a runtime is `lifecycle.ts`'s business.
 */
export type Observation = Seen | Gone

/** Why it does not run (lifecycle.md §8). */
export interface Trouble {
  readonly cause: TroubleCause
  readonly reason: string
  readonly message: string | null
  readonly hint: string | null
  /** Shown but never a Warning (waiting reasons outside the table). */
  readonly quiet: boolean
}

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

interface Common {
  /** From a direct GET, or the answer of our own write, rather than from the cache. */
  readonly live: boolean
  /** The pods come from a live LIST as well. */
  readonly livePods: boolean
  /** When it was looked at, ms. */
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
  /** That other object carries the nonce of this life (our own create that was not bound yet). */
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
  readonly finalizers: readonly string[]
  readonly createdAt: number
  readonly display: Display
  readonly facts: DeploymentFacts | JobFacts | PodFacts
}

export interface DeploymentFacts {
  readonly kind: 'deployment'
}
export interface JobFacts {
  readonly kind: 'job'
}
export interface PodFacts {
  readonly kind: 'pod'
}
