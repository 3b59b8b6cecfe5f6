import { argumentsOf, directoryOf, environmentOf } from './container-command.ts'
import { type Ending, type RunningContainer, startContainer } from './container-process.ts'
import type { ControllerContext } from './controller.ts'
import { pullFailure } from './image-pull.ts'
import { timestamp } from './json.ts'
import { LogBuffer } from './log-buffer.ts'
import { type ContainerState, type PodFacts, phaseOf, podStatus, UNKNOWN_STATE } from './pod-status.ts'
import { startProbe } from './readiness.ts'
import { StatusError } from './status-error.ts'
import type { KubeObject, Loose } from './types.ts'

/** A container that ran this long starts over with the back-off (10 min on a real cluster too). */
const HEALTHY_MS = 600_000
const DEADLINE_TEXT = 'Pod was active on the node longer than the specified deadline'

interface Unit {
  spec: Loose
  state: ContainerState
  /** newest two instances' output */
  logs: LogBuffer[]
  running: RunningContainer | undefined
  stopProbe: (() => void) | undefined
  startedAt: number
  crashes: number
  pulls: number
}

/**
 * One pod on the node: its containers from pulling to the end, its status, its deletion. Everything it does is written
 * to the API as a kubelet would; it reads nothing but the pod it is shown.
 */
export class PodRunner {
  readonly #context: ControllerContext
  readonly #folder: string
  readonly #units: Unit[]
  readonly #timers = new Set<NodeJS.Timeout>()
  readonly #startTime = timestamp(Date.now())
  #pod: KubeObject
  #sandboxReady = false
  #terminating = false
  #holdPhase = false
  #reason: string | undefined
  #gone = false

  constructor(context: ControllerContext, pod: KubeObject, folder: string) {
    this.#context = context
    this.#pod = pod
    this.#folder = folder
    this.#units = pod.spec.containers.map(unitOf)
  }

  /** The output of a container's instances, oldest first. */
  logs(container: string): LogBuffer[] {
    return this.#units.find(unit => unit.state.name === container)?.logs ?? []
  }

  /** Takes the pod on: first status, then images, then processes. */
  start(): void {
    if (this.#terminating) return
    this.#publish()
    const { imagePullMs } = this.#context.timing
    this.#later(imagePullMs / 2, () => {
      this.#sandboxReady = true
      this.#publish()
    })
    this.#later(imagePullMs, () => {
      for (const unit of this.#units) this.#pull(unit)
    })
    const deadline = this.#pod.spec.activeDeadlineSeconds
    if (deadline !== undefined) this.#later(deadline * 1000, () => this.#exceedDeadline())
  }

  /** The pod as it is in the API now. */
  update(pod: KubeObject): void {
    this.#pod = pod
    if (pod.metadata.deletionTimestamp !== undefined)
      this.#terminate((pod.metadata.deletionGracePeriodSeconds ?? 0) * 1000)
  }

  /** The object is gone: whatever still runs is stopped, and killed a second later. */
  objectGone(): void {
    this.#gone = true
    this.#clearTimers()
    for (const unit of this.#units) {
      unit.stopProbe?.()
      unit.running?.stop(1000)
    }
  }

  get idle(): boolean {
    return this.#units.every(unit => unit.running === undefined)
  }

  /** Kills everything at once. */
  kill(): void {
    this.#gone = true
    this.#clearTimers()
    for (const unit of this.#units) {
      unit.stopProbe?.()
      unit.running?.kill()
    }
  }

  #pull(unit: Unit): void {
    const failure = pullFailure(unit.spec)
    if (!failure) {
      this.#run(unit)
      return
    }
    const image = unit.spec.image
    const { imageBackoffMs } = this.#context.timing
    if (failure.reason === 'ErrImagePull')
      this.#event('Warning', 'Failed', `Failed to pull image "${image}": ${failure.message}`)
    this.#event('Warning', 'Failed', `Error: ${failure.reason}`)
    unit.state.state = { waiting: failure }
    this.#publish()
    const pause = imageBackoffMs * 2 ** Math.min(unit.pulls++, 5)
    this.#later(pause, () => this.#pull(unit))
    if (failure.reason !== 'ErrImagePull') return
    this.#later(pause / 2, () => {
      this.#event('Normal', 'BackOff', `Back-off pulling image "${image}"`)
      this.#event('Warning', 'Failed', 'Error: ImagePullBackOff')
      unit.state.state = {
        waiting: {
          reason: 'ImagePullBackOff',
          message: `Back-off pulling image "${image}": ${failure.reason}: ${failure.message}`,
        },
      }
      this.#publish()
    })
  }

  #run(unit: Unit): void {
    const { spec, state } = unit
    const env = environmentOf(this.#pod, spec)
    const log = new LogBuffer()
    unit.logs = [...unit.logs.slice(-1), log]
    if (unit.pulls === 0)
      this.#event(
        'Normal',
        'Pulled',
        `Container image "${spec.image}" already present on machine and can be accessed by the pod`,
      )
    this.#event('Normal', 'Created', 'Container created')
    const cwd = directoryOf(spec, this.#folder)
    unit.running = startContainer({
      argv: argumentsOf(spec, env),
      env,
      cwd,
      image: String(spec.image),
      log,
      greeting: `sandbox: container ${state.name} of pod ${this.#pod.metadata.name} waits until it is stopped`,
      oomMs: this.#context.timing.oomMs,
      onStarted: () => this.#started(unit, { env, cwd }),
      onEnded: (ending, started) => this.#ended(unit, ending, started),
    })
  }

  #started(unit: Unit, place: { env: Record<string, string>; cwd: string }): void {
    if (this.#gone) return
    const { state, spec } = unit
    unit.startedAt = Date.now()
    this.#event('Normal', 'Started', 'Container started')
    const previous = endOf(state)
    if (previous) this.#restarted(state, previous)
    state.state = { running: { startedAt: timestamp(unit.startedAt) } }
    state.started = true
    state.ready = spec.readinessProbe === undefined
    if (!state.ready) {
      unit.stopProbe = startProbe(spec, place, ready => {
        state.ready = ready
        this.#publish()
      })
    }
    this.#publish()
  }

  #restarted(state: ContainerState, previous: Loose): void {
    state.lastState = { terminated: previous }
    state.restartCount++
  }

  #ended(unit: Unit, ending: Ending, started: boolean): void {
    unit.running = undefined
    unit.stopProbe?.()
    if (this.#gone) return
    const { state } = unit
    const before = started ? undefined : endOf(state)
    if (before) this.#restarted(state, before)
    const terminated = {
      exitCode: ending.exitCode,
      reason: ending.reason,
      ...(ending.message ? { message: ending.message } : {}),
      startedAt: started ? timestamp(unit.startedAt || Date.now()) : '1970-01-01T00:00:00Z',
      finishedAt: timestamp(Date.now()),
    }
    state.ready = false
    state.started = false
    if (!started) this.#event('Warning', 'Failed', `Error: ${ending.message}`)
    const restarts = this.#restarts(ending.exitCode)
    if (!started && restarts) {
      state.lastState = { terminated }
      state.state = { waiting: { reason: 'RunContainerError', message: ending.message } }
    } else state.state = { terminated }
    if (restarts) this.#restartLater(unit, terminated)
    else this.#settle()
  }

  #restarts(exitCode: number): boolean {
    const policy = this.#pod.spec.restartPolicy
    return !this.#terminating && (policy === 'Always' || (policy === 'OnFailure' && exitCode !== 0))
  }

  #restartLater(unit: Unit, terminated: Loose): void {
    this.#publish()
    const { crashBackoffMs, crashBackoffMaxMs, imagePullMs } = this.#context.timing
    if (unit.startedAt > 0 && Date.now() - unit.startedAt > HEALTHY_MS) unit.crashes = 0
    const crashes = unit.crashes++
    const pause = crashes === 0 ? imagePullMs : Math.min(crashBackoffMs * 2 ** (crashes - 1), crashBackoffMaxMs)
    this.#later(pause, () => this.#run(unit))
    if (crashes === 0) return
    const { name, namespace, uid } = this.#pod.metadata
    this.#event(
      'Warning',
      'BackOff',
      `Back-off restarting failed container ${unit.state.name} in pod ${name}_${namespace}(${uid})`,
    )
    this.#later(Math.min(pause / 2, 1000), () => {
      unit.state.lastState = { terminated }
      unit.state.state = {
        waiting: {
          reason: 'CrashLoopBackOff',
          message: `back-off ${seconds(pause)} restarting failed container=${unit.state.name} pod=${name}_${namespace}(${uid})`,
        },
      }
      this.#publish()
    })
  }

  /** A container has ended for good; when it was the last, so has the pod. */
  #settle(): void {
    const over = this.#units.every(unit => unit.state.state.terminated)
    if (!over) {
      this.#publish()
      return
    }
    this.#clearTimers()
    if (this.#terminating) {
      this.#publish()
      this.#release()
      return
    }
    this.#holdPhase = true
    this.#publish()
    this.#later(this.#context.timing.podPhaseMs, () => {
      this.#holdPhase = false
      this.#publish()
    })
  }

  #terminate(graceMs: number): void {
    if (this.#terminating && this.#reason === undefined) {
      for (const unit of this.#units) unit.running?.stop(graceMs)
      return
    }
    this.#terminating = true
    this.#reason = undefined
    this.#holdPhase = false
    this.#stopAll(graceMs)
  }

  #stopAll(graceMs: number): void {
    this.#clearTimers()
    for (const unit of this.#units) {
      unit.stopProbe?.()
      if (unit.running) {
        this.#event('Normal', 'Killing', `Stopping container ${unit.state.name}`)
        unit.running.stop(graceMs)
      }
    }
    this.#publish()
    if (this.idle) this.#later(this.#context.timing.podCleanupMs, () => this.#giveUpWaiting())
  }

  /** Nothing runs and nothing will: containers that never ran are lost. */
  #giveUpWaiting(): void {
    for (const { state } of this.#units) {
      if (!state.state.terminated) state.state = { terminated: state.lastState?.terminated ?? lost() }
    }
    this.#publish()
    this.#release()
  }

  #exceedDeadline(): void {
    if (this.#terminating || phaseOf(this.#facts()) === 'Succeeded' || phaseOf(this.#facts()) === 'Failed') return
    this.#event('Normal', 'DeadlineExceeded', DEADLINE_TEXT)
    this.#terminating = true
    this.#reason = 'DeadlineExceeded'
    this.#stopAll((this.#pod.spec.terminationGracePeriodSeconds ?? 30) * 1000)
  }

  /** All containers of a deleted pod have ended: its object may go. */
  #release(): void {
    if (this.#pod.metadata.deletionTimestamp === undefined) return
    this.#later(this.#context.timing.podCleanupMs, () => {
      const { namespace, name, uid } = this.#pod.metadata
      this.#quietly(() =>
        this.#context.registry.delete('pods', namespace, name, { gracePeriodSeconds: 0, preconditions: { uid } }),
      )
    })
  }

  #facts(): PodFacts {
    const ended = this.#reason !== undefined && this.idle
    return {
      pod: this.#pod,
      containers: this.#units.map(unit => unit.state),
      startTime: this.#startTime,
      sandboxReady: this.#sandboxReady,
      terminating: this.#terminating,
      holdPhase: this.#holdPhase,
      ...(ended ? { reason: this.#reason!, message: DEADLINE_TEXT } : {}),
    }
  }

  #publish(): void {
    if (this.#gone) return
    const { namespace, name, uid } = this.#pod.metadata
    this.#quietly(() => {
      this.#pod = this.#context.registry.updateStatus('pods', namespace, name, draft => {
        if (draft.metadata.uid === uid) draft.status = podStatus(this.#facts(), Date.now())
      })
    })
  }

  /** What became of the object meanwhile decides: one that is gone needs no status and no delete. */
  #quietly(write: () => void): void {
    try {
      write()
    } catch (error) {
      if (!(error instanceof StatusError)) throw error
    }
  }

  #event(type: 'Normal' | 'Warning', reason: string, message: string): void {
    this.#context.events.record({ resource: 'pods', object: this.#pod, component: 'kubelet', type, reason, message })
  }

  #later(delayMs: number, run: () => void): void {
    const timer = setTimeout(() => {
      this.#timers.delete(timer)
      run()
    }, delayMs)
    this.#timers.add(timer)
  }

  #clearTimers(): void {
    for (const timer of this.#timers) clearTimeout(timer)
    this.#timers.clear()
  }
}

function unitOf(spec: Loose): Unit {
  return {
    spec,
    state: {
      name: spec.name,
      image: String(spec.image),
      state: { waiting: { reason: 'ContainerCreating' } },
      lastState: undefined,
      ready: false,
      started: false,
      restartCount: 0,
    },
    logs: [],
    running: undefined,
    stopProbe: undefined,
    startedAt: 0,
    crashes: 0,
    pulls: 0,
  }
}

/** How the instance before this one ended, if there was one. */
const endOf = (state: ContainerState): Loose | undefined =>
  state.state.terminated ?? (state.state.waiting && state.lastState ? state.lastState.terminated : undefined)

/** What the kubelet says of a container that never ran and never will. */
const lost = (): Loose => ({
  exitCode: 137,
  reason: UNKNOWN_STATE,
  message: 'The container could not be located when the pod was terminated',
  startedAt: null,
  finishedAt: null,
})

const seconds = (milliseconds: number): string => {
  const whole = Math.max(1, Math.round(milliseconds / 1000))
  return whole < 60 ? `${whole}s` : `${Math.floor(whole / 60)}m${whole % 60}s`
}
