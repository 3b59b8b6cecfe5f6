// biome-ignore lint/suspicious/noExplicitAny: a Kubernetes object is open JSON; the sandbox stores whatever shape was sent
export type Loose = any

/** Metadata as stored: always has name, uid, resourceVersion and creationTimestamp. */
export interface Metadata {
  name: string
  namespace?: string
  generateName?: string
  uid: string
  resourceVersion: string
  generation?: number
  creationTimestamp: string
  deletionTimestamp?: string
  deletionGracePeriodSeconds?: number
  labels?: Record<string, string>
  annotations?: Record<string, string>
  ownerReferences?: OwnerReference[]
  finalizers?: string[]
}

export interface OwnerReference {
  apiVersion: string
  kind: string
  name: string
  uid: string
  controller?: boolean
  blockOwnerDeletion?: boolean
}

/** A stored object, without kind and apiVersion (they follow from its resource). Stored objects are shared: never change one. */
export interface KubeObject {
  metadata: Metadata
  spec?: Loose
  status?: Loose
  [field: string]: Loose
}

export type ChangeType = 'ADDED' | 'MODIFIED' | 'DELETED'

/** One committed write. `object` of a DELETED change is the last stored state under the version of the deletion. */
export interface Change {
  version: number
  type: ChangeType
  resource: string
  object: KubeObject
  previous?: KubeObject
}

/** Speed of everything that takes its time on a real cluster, in milliseconds. */
export interface Timing {
  /** from a change to the controller that looks at it */
  controllerLagMs: number
  /** a Job looks at its pods this long after one of them changed (1 s on a real cluster) */
  jobSyncMs: number
  /** before a Job replaces its first failed pod; doubles with each failure (10 s) */
  jobBackoffMs: number
  /** before the second restart of a container; doubles up to crashBackoffMaxMs (10 s, 5 min) */
  crashBackoffMs: number
  crashBackoffMaxMs: number
  /** from scheduling to the start of the container */
  imagePullMs: number
  /** between two tries to pull an image */
  imageBackoffMs: number
  /** from the end of the last container to the pod's phase Succeeded or Failed (1.2 s) */
  podPhaseMs: number
  /** from the end of the last container of a deleted pod until its object is gone (0.3 to 0.8 s) */
  podCleanupMs: number
  /** how long a container of the image sandbox/oom lives */
  oomMs: number
  /** longest pause between two tries of a controller that cannot make a pod */
  controllerRetryMaxMs: number
  /** from the deletion of a namespace until its content goes (5 s) */
  namespaceLagMs: number
  /** between two bookmarks of a watch (60 s) */
  bookmarkMs: number
}

/** Quick enough to watch, slow enough to see each step. */
export const DEMO_TIMING: Timing = {
  controllerLagMs: 10,
  jobSyncMs: 200,
  jobBackoffMs: 2_000,
  crashBackoffMs: 2_000,
  crashBackoffMaxMs: 30_000,
  imagePullMs: 100,
  imageBackoffMs: 2_000,
  podPhaseMs: 200,
  podCleanupMs: 100,
  oomMs: 300,
  controllerRetryMaxMs: 2_000,
  namespaceLagMs: 500,
  bookmarkMs: 60_000,
}

/** As quick as the order of facts allows: for tests. */
export const TEST_TIMING: Timing = {
  controllerLagMs: 1,
  jobSyncMs: 10,
  jobBackoffMs: 100,
  crashBackoffMs: 100,
  crashBackoffMaxMs: 1_000,
  imagePullMs: 5,
  imageBackoffMs: 100,
  podPhaseMs: 20,
  podCleanupMs: 50,
  oomMs: 30,
  controllerRetryMaxMs: 200,
  namespaceLagMs: 50,
  bookmarkMs: 60_000,
}
