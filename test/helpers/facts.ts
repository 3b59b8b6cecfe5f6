import type { Life } from '../../src/domain/life.ts'
import { decide, newLife, settle } from '../../src/domain/lifecycle.ts'
import type { DeploymentFacts, Gone, JobFacts, PodFacts, PodSeen, Seen, Trouble } from '../../src/domain/observation.ts'
import type { Kind } from '../../src/domain/runtime-id.ts'
import { specOf } from './specs.ts'

export const NOW = 1_700_000_000_000
export const UID = 'uid-1'

export const podSeen = (patch: Partial<PodSeen> = {}): PodSeen => ({
  uid: 'pod-1',
  phase: 'Running',
  terminating: false,
  gone: false,
  ended: false,
  ready: true,
  readyAt: NOW,
  ran: true,
  running: true,
  startedAt: NOW,
  finishedAt: null,
  exitCode: null,
  oomKilled: false,
  endingCounts: true,
  reason: null,
  message: null,
  creatingSince: null,
  ...patch,
})

export const pendingPod = (patch: Partial<PodSeen> = {}): PodSeen =>
  podSeen({ phase: 'Pending', ready: false, ran: false, running: false, startedAt: null, ...patch })

export const endedPod = (code: number, patch: Partial<PodSeen> = {}): PodSeen =>
  podSeen({
    phase: code === 0 ? 'Succeeded' : 'Failed',
    ended: true,
    ready: false,
    running: false,
    finishedAt: NOW,
    exitCode: code,
    ...patch,
  })

export const troubleOf = (patch: Partial<Trouble> = {}): Trouble => ({
  cause: 'image',
  reason: 'ErrImagePull',
  message: 'no such image',
  hint: null,
  quiet: false,
  at: null,
  pod: null,
  ...patch,
})

/** A Deployment at 1 and up, unless told otherwise. */
export const deployment = (patch: Partial<DeploymentFacts> = {}): DeploymentFacts => ({
  kind: 'deployment',
  desired: 1,
  replicas: 1,
  ready: 0,
  replicaFailure: null,
  deadline: null,
  pods: [],
  troubles: [],
  ...patch,
})

export const job = (patch: Partial<JobFacts> = {}): JobFacts => ({
  kind: 'job',
  suspended: false,
  suspendedSeen: false,
  active: 0,
  succeeded: 0,
  failed: 0,
  ready: 0,
  terminating: 0,
  hasStartTime: false,
  completions: 1,
  backoffLimit: 0,
  complete: null,
  failure: null,
  deciding: false,
  pods: [],
  troubles: [],
  ...patch,
})

export const agent = (pod: PodSeen, troubles: readonly Trouble[] = []): PodFacts => ({
  kind: 'pod',
  pods: [pod],
  troubles,
})

/** As by a live look with its pods, unless told otherwise. */
export const seen = (facts: Seen['facts'], patch: Partial<Seen> = {}): Seen => ({
  type: 'seen',
  live: true,
  livePods: true,
  at: NOW,
  uid: UID,
  nonce: 'n',
  version: '100',
  generation: 1,
  current: true,
  labelled: true,
  instance: 'default',
  deleting: false,
  deletionAskedAt: null,
  finalizers: [],
  createdAt: NOW,
  display: { replicas: { desired: 1, current: 1, ready: 0 }, restarts: 0, podName: null, podIp: null, nodeName: null },
  facts,
  ...patch,
})

export const goneOf = (patch: Partial<Gone> = {}): Gone => ({
  type: 'gone',
  live: true,
  livePods: true,
  at: NOW,
  otherUid: null,
  podsLeft: 0,
  last: null,
  ...patch,
})

export interface LifeRequest {
  readonly start?: boolean
  readonly jobStop?: 'delete' | 'suspend'
  readonly startTimeoutSeconds?: number
}

/** The claim of a create. */
export function claimed(
  kind: Kind,
  { start = true, jobStop = 'delete', startTimeoutSeconds = 0 }: LifeRequest = {},
): Life {
  const request = { name: 'x', start, startTimeoutSeconds, ...(kind === 'job' ? { jobStop } : {}) }
  return {
    ...newLife({ spec: specOf(request, { defaults: { kind } }), nonce: 'n', now: NOW, lastEventAt: 0 }),
    life: 1,
  }
}

/** Created and bound; nothing observed yet. */
export function bound(kind: Kind, request: LifeRequest = {}): Life {
  const life = claimed(kind, request)
  const written = { uid: UID, version: '1', generation: 1 }
  const plan = { write: 'make', active: life.open } as const
  return settle(life, { type: 'done', plan, seen: null, written }, { now: NOW }).life
}

const UP = {
  deployment: deployment({ ready: 1, pods: [podSeen()] }),
  job: job({ active: 1, ready: 1, hasStartTime: true, pods: [podSeen()] }),
  pod: agent(podSeen()),
} as const

/** Started, and seen running. */
export const running = (kind: Kind, request: LifeRequest = {}): Life =>
  decide(bound(kind, request), seen(UP[kind], { version: '10' }), { now: NOW }).life
