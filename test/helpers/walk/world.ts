import type { Seen } from '../../../src/domain/observation.ts'
import type { Deployment, Job, Pod } from '../../../src/kube/objects.ts'
import type { KeptPod, LookedAt } from '../../../src/kube/observe.ts'

/** One possible next step of a world. */
export interface Move {
  readonly label: string
  /** How likely beside the others; 0 = only when nothing else is left to go. */
  readonly weight: number
  readonly run: () => void
}

export const move = (label: string, run: () => void, weight = 4): Move => ({ label, weight, run })

export type WorldPodPhase = 'Pending' | 'Running' | 'Succeeded' | 'Failed' | 'Unknown'

/** A pod of a world. Times are ms; the API has whole seconds. */
export interface WorldPod {
  readonly uid: string
  readonly owner: string
  readonly madeAt: number
  phase: WorldPodPhase
  ready: boolean
  ranAt: number | null
  endedAt: number | null
  askedAt: number | null
  code: number
  /** Counted by the Job controller. */
  counted: boolean
  /** Its finalizer was taken off first: it never counts. */
  uncounted: boolean
}

export const isLive = (pod: WorldPod): boolean =>
  pod.phase === 'Pending' || pod.phase === 'Running' || pod.phase === 'Unknown'

/** What a world tells of itself while it moves, for the ghosts of the invariants. */
export interface Witness {
  /** The object changed: its watch will tell. */
  changed(): void
  ran(owner: string): void
  ended(owner: string, how: 'success' | 'failure'): void
  /** The workload was brought up from nothing: what ran before proves nothing of the run. */
  broughtUp(): void
  now(): number
}

/** Numbers that rise over a whole walk, however many lives it has. */
export interface Counters {
  uid: number
  version: number
}

/** What others, and the cluster itself, may still do to a workload. */
export interface Budget {
  others: number
  pods: number
  conditions: number
}

/** A small cluster around one name: controllers that lag, pods, and others' hands. */
export interface World {
  readonly object: WorldObject | null
  readonly pods: readonly WorldPod[]
  /** API server: the write as it would be done. */
  make(nonce: string, active: boolean): void
  scale(active: boolean): void
  remove(): void
  isActive(): boolean
  render(object: WorldObject): Deployment | Job | Pod
  observe(object: WorldObject, pods: readonly KeptPod[], look: LookedAt): Seen
  /** Controllers, kubelet, garbage collector: what goes on by itself. */
  moves(): Move[]
  /** Others' hands. */
  othersMoves(): Move[]
}

export interface WorldObject {
  readonly uid: string
  readonly nonce: string
  version: number
  generation: number
  deletingSince: number | null
}

export const seconds = (ms: number | null): string | undefined =>
  ms === null ? undefined : `${new Date(ms).toISOString().slice(0, 19)}Z`

export function metaOf(object: WorldObject) {
  return {
    uid: object.uid,
    name: 'x',
    resourceVersion: String(object.version),
    generation: object.generation,
    labels: { 'gobrave-workload': 'x' },
    annotations: { 'runtimed.dev/create-nonce': object.nonce },
    creationTimestamp: seconds(0),
    ...(object.deletingSince === null
      ? {}
      : {
          deletionTimestamp: seconds(object.deletingSince),
          deletionGracePeriodSeconds: 0,
          finalizers: ['foregroundDeletion'],
        }),
  }
}

export function renderPod(pod: WorldPod): Pod {
  const { phase, ranAt, endedAt, askedAt, ready } = pod
  const running = phase === 'Running' || phase === 'Unknown'
  const state =
    endedAt !== null && ranAt !== null
      ? {
          terminated: {
            exitCode: pod.code,
            reason: pod.code === 0 ? 'Completed' : 'Error',
            startedAt: seconds(ranAt),
            finishedAt: seconds(endedAt),
          },
        }
      : running
        ? { running: { startedAt: seconds(ranAt) } }
        : { waiting: { reason: 'ContainerCreating' } }
  return {
    metadata: {
      uid: pod.uid,
      name: pod.uid,
      resourceVersion: '1',
      creationTimestamp: seconds(pod.madeAt),
      ...(askedAt === null ? {} : { deletionTimestamp: seconds(askedAt + 30_000), deletionGracePeriodSeconds: 30 }),
    },
    status: {
      phase,
      conditions: [
        { type: 'Ready', status: ready ? 'True' : 'False', reason: 'x', lastTransitionTime: seconds(ranAt) },
      ],
      containerStatuses: [{ name: 'main', ready, restartCount: 0, image: '', imageID: '', state }],
    },
  } as unknown as Pod
}

export const keptPod = (pod: WorldPod, gone = false): KeptPod => ({
  pod: renderPod(pod),
  deletionAskedAt: pod.askedAt,
  gone,
})

export function newPod(uid: string, owner: string, madeAt: number): WorldPod {
  return {
    uid,
    owner,
    madeAt,
    phase: 'Pending',
    ready: false,
    ranAt: null,
    endedAt: null,
    askedAt: null,
    code: 0,
    counted: false,
    uncounted: false,
  }
}
