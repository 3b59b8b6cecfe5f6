import type { Kind, RuntimeId } from './runtime-id.ts'
import type { WorkloadSpec } from './workload-spec.ts'

export const STATES = [
  'created',
  'creating',
  'running',
  'stopping',
  'stopped',
  'failed',
  'deleting',
  'deleted',
  'unknown',
] as const
export type State = (typeof STATES)[number]

export type Verb = 'create' | 'start' | 'stop' | 'delete'

/**
 * A verb that is not finished (lifecycle.md §1): durable before the first write to the cluster, cleared when the
 * cluster has accepted it (create, start) or when its end is seen (stop, delete).
 */
export interface VerbInHand {
  readonly verb: Verb
  /** Stop: StoppedByRequest, StartTimeout or the trouble's reason. Delete: DeletedByRequest, Expired, Replaced. Else null. */
  readonly cause: string | null
  /** The cluster has accepted it; only its end is awaited (stop, delete). */
  readonly accepted: boolean
  /** A first attempt got no answer: from then on only a final refusal of the write withdraws it. */
  readonly tried: boolean
  /** A start that joins an open run (row 3): accepted, it opens no new one. */
  readonly joins: boolean
  /** What a withdrawal gives back. What was observed since stays. */
  readonly previous: Intent | null
}

/** The part of a row that a verb's intent changes, and that its withdrawal restores. */
export interface Intent {
  readonly state: State
  readonly ready: boolean
  readonly reason: string | null
  readonly message: string | null
  readonly hint: string | null
  readonly verb: VerbInHand | null
}

/** What stood already when the run was allotted, and therefore proves nothing of it. */
export interface Standing {
  /** A Job's count. */
  readonly succeeded: number
  /** Failure conditions, each as type and lastTransitionTime (`failureKey`). */
  readonly failures: readonly string[]
  /** uids of the pods of earlier runs. */
  readonly pods: readonly string[]
}

/** One workload from create (or take-up) to its end: one uid, one row. Times are ms since the epoch. */
export interface Life {
  /** Number of the row, given by the store; rises with each life of the database. */
  readonly life: number
  readonly id: RuntimeId
  readonly uid: string | null
  readonly nonce: string
  /** As accepted; null for a workload that was taken up. */
  readonly spec: WorkloadSpec | null
  readonly image: string | null
  /** The user's labels. */
  readonly labels: Readonly<Record<string, string>>
  readonly jobStop: 'delete' | 'suspend'
  /** 0 = never. */
  readonly startTimeoutSeconds: number

  readonly state: State
  readonly reason: string | null
  readonly message: string | null
  readonly hint: string | null
  readonly ready: boolean
  readonly verb: VerbInHand | null

  /** Newest run, 0 = never started. */
  readonly run: number
  /** `run` is allotted and has neither Exited, Failed nor Deleted. */
  readonly open: boolean
  /** `run` has its Started. */
  readonly started: boolean
  /** A Job's proof that this run's container ran, kept for the run once true. An agent Pod: it was Ready once. */
  readonly evidence: boolean
  readonly runAt: number | null
  readonly startBy: number | null
  /** Ended by our own suspend, so that start may open a new run (Jobs). */
  readonly suspendedByUs: boolean
  readonly standing: Standing
  /** uids of its ReplicaSets, newest last: whose its pods are need not be asked again after a restart. */
  readonly podControllers: readonly string[]

  /** Reason of the Exited of the newest run, null if it ended by itself or has not ended. */
  readonly exitReason: string | null
  readonly exitCode: number | null
  /** Causes of the Warnings already given in this run. */
  readonly warned: readonly string[]
  /** Since when what must last has been seen: ReplicaFailure, a Job without a pod, an agent's trouble. */
  readonly failingSince: number | null
  /** When Warning Events were last looked up (lifecycle.md §8: at most once a minute). */
  readonly warningsAt: number | null

  /** resourceVersion of the answer to our last write: nothing older is believed. */
  readonly writtenVersion: string | null
  /** metadata.generation in that answer, null where the answer has none. */
  readonly writtenGeneration: number | null
  /** resourceVersion of what last changed the row, or was read live: nothing older is believed. */
  readonly seenVersion: string | null
  /** The object is gone; final for a uid. */
  readonly gone: boolean
  /** Only our label was removed: the row rests, nothing is written to the workload. */
  readonly foreign: boolean

  readonly createdAt: number
  readonly startedAt: number | null
  readonly endedAt: number | null
  readonly observedAt: number | null
  readonly deletedAt: number | null
  readonly goneAt: number | null
  /** Time of the newest event of this runtime, earlier lives included: event times never go back. */
  readonly lastEventAt: number
  /** Agent Pods: last use and time to live. */
  readonly lastUsedAt: number | null
}

/** Open run or verb in hand: what `/v1/monitoring` lists. */
export const isMonitored = (life: Life): boolean => life.open || life.verb !== null

export const kindOf = (life: Life): Kind => life.id.kind
