import { ANNOTATION_NONCE, LABEL_INSTANCE, LABEL_WORKLOAD } from '../domain/labels.ts'
import type { Condition, DeploymentFacts, Gone, JobFacts, PodFacts, Seen, Trouble } from '../domain/observation.ts'
import { controllerOf } from './kinds.ts'
import type { ClusterEvent, Deployment, Job, ObjectMeta, Pod } from './objects.ts'
import { deletionAskedAt, displayOf, type KeptPod, observePod } from './observe-pod.ts'
import { conditionsOf, millis, type StatusCondition } from './status.ts'
import { eventTroubles, inOrder, podTroubles, trouble } from './trouble.ts'

export { deletionAskedAt, type KeptPod, newestPod } from './observe-pod.ts'

/** How it was looked at. */
export interface LookedAt {
  readonly at: number
  readonly live: boolean
  readonly livePods: boolean
  /** Warning Events of `warningSubject`, or null if they were not asked for. */
  readonly warnings: readonly ClusterEvent[] | null
}

/** What a Deployment and the pods it owns prove (lifecycle.md §3). Absent numbers are 0, absent spec.replicas is 1. */
export function observeDeployment(object: Deployment, pods: readonly KeptPod[], look: LookedAt): Seen {
  const { spec, status, metadata } = object
  const desired = spec?.replicas ?? 1
  const replicas = status?.replicas ?? 0
  const ready = status?.readyReplicas ?? 0
  const replicaFailure = whenTrue(conditionsOf(object).get('ReplicaFailure'))
  const deadline = deadlineOf(object)
  const facts: DeploymentFacts = {
    kind: 'deployment',
    desired,
    replicas,
    ready,
    replicaFailure,
    deadline,
    pods: pods.map(observePod),
    troubles: inOrder([
      ...troublesOf(pods, look),
      ...replicaTrouble(replicaFailure, ready),
      ...(deadline !== null && ready > 0 ? [trouble('others', deadline)] : []),
    ]),
  }
  const current = (status?.observedGeneration ?? 0) >= (metadata?.generation ?? 0)
  const display = displayOf(pods, { desired, current: replicas, ready })
  const podControllers = [...new Set(pods.flatMap(({ pod }) => controllerOf(pod.metadata)?.uid ?? []))]
  return { ...common(metadata, look), current, podControllers, display, facts }
}

/** What a Job and its pods prove. Jobs have no observedGeneration. */
export function observeJob(object: Job, pods: readonly KeptPod[], look: LookedAt): Seen {
  const { spec, status, metadata } = object
  const conditions = conditionsOf(object)
  const { active = 0, succeeded = 0, failed = 0, ready = 0, terminating = 0, startTime } = status ?? {}
  const suspended = spec?.suspend === true
  const complete = whenTrue(conditions.get('Complete'))
  const failure = whenTrue(conditions.get('Failed'))
  const facts: JobFacts = {
    kind: 'job',
    suspended,
    suspendedSeen: conditions.isTrue('Suspended'),
    active,
    succeeded,
    failed,
    ready,
    terminating,
    hasStartTime: Boolean(startTime),
    completions: spec?.completions ?? 1,
    backoffLimit: spec?.backoffLimit ?? 6,
    complete,
    failure,
    deciding: conditions.isTrue('SuccessCriteriaMet') || conditions.isTrue('FailureTarget'),
    pods: pods.map(observePod),
    troubles: inOrder(troublesOf(pods, look)),
  }
  const ended = complete !== null || failure !== null
  const desired = suspended || ended ? 0 : (spec?.parallelism ?? 1)
  const display = displayOf(pods, { desired, current: active, ready }, failed)
  return { ...common(metadata, look), current: true, display, facts }
}

/** What an agent Pod proves. It is its own and only pod. */
export function observeAgentPod(kept: KeptPod, look: LookedAt): Seen {
  const { metadata } = kept.pod
  const pod = observePod(kept)
  const facts: PodFacts = { kind: 'pod', pods: [pod], troubles: inOrder(troublesOf([kept], look)) }
  const current = pod.ended ? 0 : 1
  const display = displayOf([kept], { desired: 1, current, ready: pod.ready && !pod.ended ? 1 : 0 })
  const deletion = kept.deletionAskedAt ?? deletionAskedAt(metadata)
  return { ...common(metadata, look), deletionAskedAt: deletion, current: true, display, facts }
}

export interface GoneInput {
  /** uid of another object under the name. */
  readonly otherUid: string | null
  /** Its pods that are still there: from a live LIST if `look.livePods`. */
  readonly pods: readonly KeptPod[]
  /** The last that was seen of it, with the last states of its pods, gone ones too. */
  readonly last: Seen | null
}

export function observeGone({ otherUid, pods, last }: GoneInput, look: LookedAt): Gone {
  const podsLeft = pods.map(observePod).filter(pod => !pod.gone && !pod.ended).length
  const { at, live, livePods } = look
  return { type: 'gone', at, live, livePods, liveWarnings: look.warnings !== null, otherUid, podsLeft, last }
}

/** uid whose Warning Events tell why it does not get on: its pod that is being made, else the workload. */
export function warningSubject(seen: Seen): string {
  const making = seen.facts.pods.find(pod => !pod.gone && !pod.terminating && pod.creatingSince !== null)
  return making?.uid ?? seen.uid
}

function common(meta: ObjectMeta | undefined, look: LookedAt) {
  const { at, live, livePods } = look
  return {
    type: 'seen' as const,
    at,
    live,
    livePods,
    liveWarnings: look.warnings !== null,
    uid: meta?.uid ?? '',
    nonce: meta?.annotations?.[ANNOTATION_NONCE] ?? null,
    version: meta?.resourceVersion ?? '',
    generation: meta?.generation ?? null,
    labelled: meta?.labels?.[LABEL_WORKLOAD] !== undefined,
    instance: meta?.labels?.[LABEL_INSTANCE] ?? null,
    deleting: Boolean(meta?.deletionTimestamp),
    deletionAskedAt: deletionAskedAt(meta),
    finalizers: meta?.finalizers ?? [],
    createdAt: millis(meta?.creationTimestamp) ?? at,
  }
}

function troublesOf(pods: readonly KeptPod[], { at, warnings }: LookedAt): Trouble[] {
  const there = pods.filter(({ gone }) => !gone).map(({ pod }) => pod)
  const found = podTroubles(there, at)
  if (warnings === null) return found
  const making = there.find(
    (pod: Pod) => observePod({ pod }).creatingSince !== null && !pod.metadata?.deletionTimestamp,
  )
  const told = making
    ? eventTroubles(warnings, 'podStart', making.metadata?.uid ?? null)
    : eventTroubles(warnings, 'create', null)
  return [...found, ...told]
}

/** While a replica is ready the condition's type is the news; else why no pod can be made. */
function replicaTrouble(condition: Condition | null, ready: number): Trouble[] {
  if (condition === null) return []
  return [trouble('create', ready > 0 ? { ...condition, reason: 'ReplicaFailure' } : condition)]
}

function deadlineOf(object: Deployment): Condition | null {
  const progressing = conditionsOf(object).get('Progressing')
  if (progressing?.status !== 'False' || progressing.reason !== 'ProgressDeadlineExceeded') return null
  return toCondition(progressing)
}

const whenTrue = (condition: StatusCondition | undefined): Condition | null =>
  condition?.status === 'True' ? toCondition(condition) : null

const toCondition = ({ type, reason, message, lastTransitionTime }: StatusCondition): Condition => ({
  at: millis(lastTransitionTime),
  reason: reason || type,
  message: message || null,
})
