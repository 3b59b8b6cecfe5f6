import { findCondition, withTime } from './conditions.ts'
import type { KubeObject, Loose } from './types.ts'

/** One container as the kubelet knows it; the shapes of `state` and `lastState` are those of the API. */
export interface ContainerState {
  name: string
  image: string
  state: Loose
  lastState: Loose | undefined
  ready: boolean
  started: boolean
  restartCount: number
}

export interface PodFacts {
  pod: KubeObject
  containers: ContainerState[]
  startTime: string
  /** its network and volumes are there */
  sandboxReady: boolean
  /** being deleted, or past its deadline: nothing restarts any more */
  terminating: boolean
  /** the last containers ended a moment ago: their state shows, the phase not yet */
  holdPhase: boolean
  reason?: string
  message?: string
}

export const UNKNOWN_STATE = 'ContainerStatusUnknown'
const POD_IP = '127.0.0.1'

/** The status the kubelet writes. Conditions in its order; those of others (DisruptionTarget) first. */
export function podStatus(facts: PodFacts, now: number): Loose {
  const { pod, containers, startTime } = facts
  const phase = phaseOf(facts)
  const before: Loose[] = pod.status?.conditions ?? []
  const shown = facts.holdPhase && phase !== 'Running' ? (pod.status?.phase ?? 'Running') : phase
  const hasIp = containers.some(
    ({ state, lastState }) => !state.waiting || lastState || state.waiting.reason !== 'ContainerCreating',
  )
  return {
    observedGeneration: pod.metadata.generation,
    phase: shown,
    conditions: conditionsOf(facts, phase, shown).map(condition =>
      withTime(condition, findCondition(before, condition.type), now),
    ),
    ...(facts.message ? { message: facts.message } : {}),
    ...(facts.reason ? { reason: facts.reason } : {}),
    hostIP: '127.0.0.1',
    hostIPs: [{ ip: '127.0.0.1' }],
    ...(hasIp ? { podIP: POD_IP, podIPs: [{ ip: POD_IP }] } : {}),
    startTime,
    containerStatuses: containers.map(containerStatus),
    qosClass: pod.status?.qosClass,
  }
}

function containerStatus({ name, image, state, lastState, ready, started, restartCount }: ContainerState): Loose {
  return {
    name,
    state,
    ...(lastState ? { lastState } : {}),
    ready,
    restartCount,
    image,
    imageID: state.waiting ? '' : `sandbox:${image}`,
    started,
  }
}

/** The phase the containers add up to, by the kubelet's rules. */
export function phaseOf({ pod, containers, terminating, reason }: PodFacts): string {
  if (reason === 'DeadlineExceeded' && containers.every(container => !container.state.running)) return 'Failed'
  const waiting = containers.filter(({ state, lastState }) => state.waiting && !lastState)
  if (waiting.length > 0) return 'Pending'
  if (containers.some(container => container.state.running)) return 'Running'
  const policy = terminating ? 'Never' : pod.spec.restartPolicy
  if (policy === 'Always') return 'Running'
  const succeeded = containers.every(
    ({ state, lastState }) => (state.terminated ?? lastState?.terminated)?.exitCode === 0,
  )
  if (succeeded) return 'Succeeded'
  return policy === 'Never' ? 'Failed' : 'Running'
}

function conditionsOf({ pod, containers, sandboxReady }: PodFacts, phase: string, shown: string): Loose[] {
  const others = (pod.status?.conditions ?? []).filter((condition: Loose) => !OWN.has(condition.type))
  const ready = readiness(containers, phase)
  const initialized = phase === 'Succeeded' ? { reason: 'PodCompleted' } : {}
  const ended = shown === 'Succeeded' || shown === 'Failed'
  return [
    ...others,
    { type: 'PodReadyToStartContainers', status: sandboxReady && !ended ? 'True' : 'False' },
    { type: 'Initialized', status: 'True', ...initialized },
    { type: 'Ready', ...ready },
    { type: 'ContainersReady', ...ready },
    { type: 'PodScheduled', status: 'True' },
  ]
}

const OWN = new Set(['PodReadyToStartContainers', 'Initialized', 'Ready', 'ContainersReady', 'PodScheduled'])

function readiness(containers: ContainerState[], phase: string): Loose {
  const unready = containers.filter(container => !container.ready).map(container => container.name)
  if (unready.length === 0) return { status: 'True' }
  const lost = containers.some(container => container.state.terminated?.reason === UNKNOWN_STATE)
  if (phase === 'Succeeded') return { status: 'False', reason: 'PodCompleted' }
  if (phase === 'Failed' && !lost) return { status: 'False', reason: 'PodFailed' }
  return {
    status: 'False',
    reason: 'ContainersNotReady',
    message: `containers with unready status: [${unready.join(' ')}]`,
  }
}
