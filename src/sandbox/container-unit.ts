import { argumentsOf, directoryOf, environmentOf } from './container-command.ts'
import { type Ending, type RunningContainer, startContainer } from './container-process.ts'
import { pullFailure } from './image-pull.ts'
import { timestamp } from './json.ts'
import { LogBuffer } from './log-buffer.ts'
import { type ContainerState, UNKNOWN_STATE } from './pod-status.ts'
import { startProbe } from './readiness.ts'
import { Timers } from './timers.ts'
import type { KubeObject, Loose, Timing } from './types.ts'

/** A container that ran this long starts over with the back-off (10 min on a real cluster too). */
const HEALTHY_MS = 600_000
/** CrashLoopBackOff shows at the latest so long after the end. */
const SHOW_BACKOFF_MS = 1000

/** The pod around a container, as the container needs it. */
export interface PodHost {
  readonly pod: KubeObject
  readonly timing: Timing
  /** nothing restarts any more */
  readonly terminating: boolean
  /** the object is gone: nothing is told any more */
  readonly gone: boolean
  /** working directory of its processes */
  readonly folder: string
  publish(): void
  /** the container has ended and will not start again */
  settle(): void
  event(type: 'Normal' | 'Warning', reason: string, message: string): void
}

/** One container of a pod: image, process, restarts with back-off, readiness, output. Its `state` is what the API shows. */
export class ContainerUnit {
  readonly state: ContainerState
  readonly #host: PodHost
  readonly #spec: Loose
  readonly #timers = new Timers()
  #logs: LogBuffer[] = []
  #running: RunningContainer | undefined
  #stopProbe: (() => void) | undefined
  #startedAt = 0
  #crashes = 0
  #pulls = 0

  constructor(host: PodHost, spec: Loose) {
    this.#host = host
    this.#spec = spec
    this.state = {
      name: spec.name,
      image: String(spec.image),
      state: { waiting: { reason: 'ContainerCreating' } },
      lastState: undefined,
      ready: false,
      started: false,
      restartCount: 0,
    }
  }

  /** Output of the newest two instances, oldest first. */
  get logs(): LogBuffer[] {
    return this.#logs
  }

  get isRunning(): boolean {
    return this.#running !== undefined
  }

  get hasEnded(): boolean {
    return this.state.state.terminated !== undefined
  }

  /** No more tries, restarts and probes. */
  cancel(): void {
    this.#timers.clear()
    this.#stopProbe?.()
  }

  stop(graceMs: number): void {
    this.#running?.stop(graceMs)
  }

  kill(): void {
    this.#running?.kill()
  }

  /** What never ran, and will not, is said to be lost. */
  giveUp(): void {
    if (!this.hasEnded) this.state.state = { terminated: this.state.lastState?.terminated ?? LOST }
  }

  /** Gets the image and starts; tries again for ever. */
  pull(): void {
    const failure = pullFailure(this.#spec)
    if (!failure) {
      this.#run()
      return
    }
    const { image } = this.state
    if (failure.reason === 'ErrImagePull')
      this.#host.event('Warning', 'Failed', `Failed to pull image "${image}": ${failure.message}`)
    this.#host.event('Warning', 'Failed', `Error: ${failure.reason}`)
    this.#wait(failure)
    const pause = this.#host.timing.imageBackoffMs * 2 ** Math.min(this.#pulls++, 5)
    this.#timers.later(pause, () => this.pull())
    if (failure.reason !== 'ErrImagePull') return
    this.#timers.later(pause / 2, () => {
      this.#host.event('Normal', 'BackOff', `Back-off pulling image "${image}"`)
      this.#host.event('Warning', 'Failed', 'Error: ImagePullBackOff')
      this.#wait({
        reason: 'ImagePullBackOff',
        message: `Back-off pulling image "${image}": ${failure.reason}: ${failure.message}`,
      })
    })
  }

  #wait(waiting: { reason: string; message: string }): void {
    this.state.state = { waiting }
    this.#host.publish()
  }

  #run(): void {
    const { pod, folder, timing } = this.#host
    const env = environmentOf(pod, this.#spec)
    const cwd = directoryOf(this.#spec, folder)
    const log = new LogBuffer()
    this.#logs = [...this.#logs.slice(-1), log]
    const { image, name } = this.state
    this.#host.event(
      'Normal',
      'Pulled',
      `Container image "${image}" already present on machine and can be accessed by the pod`,
    )
    this.#host.event('Normal', 'Created', 'Container created')
    this.#running = startContainer({
      argv: argumentsOf(this.#spec, env),
      env,
      cwd,
      image,
      log,
      greeting: `sandbox: container ${name} of pod ${pod.metadata.name} waits until it is stopped`,
      oomMs: timing.oomMs,
      onStarted: () => this.#started({ env, cwd }),
      onEnded: (ending, started) => this.#ended(ending, started),
    })
  }

  #started(place: { env: Record<string, string>; cwd: string }): void {
    if (this.#host.gone) return
    this.#startedAt = Date.now()
    this.#host.event('Normal', 'Started', 'Container started')
    this.#countRestart()
    this.state.state = { running: { startedAt: timestamp(this.#startedAt) } }
    this.state.started = true
    this.state.ready = this.#spec.readinessProbe === undefined
    if (!this.state.ready) {
      this.#stopProbe = startProbe(this.#spec, place, ready => {
        this.state.ready = ready
        this.#host.publish()
      })
    }
    this.#host.publish()
  }

  /** How the instance before ended moves to lastState. */
  #countRestart(): void {
    const { state, lastState } = this.state
    const previous = state.terminated ?? (state.waiting && lastState?.terminated)
    if (!previous) return
    this.state.lastState = { terminated: previous }
    this.state.restartCount++
  }

  #ended(ending: Ending, started: boolean): void {
    this.#running = undefined
    this.#stopProbe?.()
    if (this.#host.gone) return
    if (!started) {
      this.#countRestart()
      this.#host.event('Warning', 'Failed', `Error: ${ending.message}`)
    }
    const terminated = {
      exitCode: ending.exitCode,
      reason: ending.reason,
      ...(ending.message ? { message: ending.message } : {}),
      startedAt: started ? timestamp(this.#startedAt || Date.now()) : '1970-01-01T00:00:00Z',
      finishedAt: timestamp(Date.now()),
    }
    const restarts = this.#restarts(ending.exitCode)
    this.state.ready = false
    this.state.started = false
    if (!started && restarts) {
      this.state.lastState = { terminated }
      this.state.state = { waiting: { reason: 'RunContainerError', message: ending.message } }
    } else this.state.state = { terminated }
    if (restarts) this.#restartLater(terminated)
    else this.#host.settle()
  }

  #restarts(exitCode: number): boolean {
    const policy = this.#host.pod.spec.restartPolicy
    return !this.#host.terminating && (policy === 'Always' || (policy === 'OnFailure' && exitCode !== 0))
  }

  #restartLater(terminated: Loose): void {
    this.#host.publish()
    const { crashBackoffMs, crashBackoffMaxMs, imagePullMs } = this.#host.timing
    if (this.#startedAt > 0 && Date.now() - this.#startedAt > HEALTHY_MS) this.#crashes = 0
    const crashes = this.#crashes++
    const pause = crashes === 0 ? imagePullMs : Math.min(crashBackoffMs * 2 ** (crashes - 1), crashBackoffMaxMs)
    this.#timers.later(pause, () => this.#run())
    if (crashes === 0) return
    const { name, namespace, uid } = this.#host.pod.metadata
    const whose = `${name}_${namespace}(${uid})`
    this.#host.event('Warning', 'BackOff', `Back-off restarting failed container ${this.state.name} in pod ${whose}`)
    this.#timers.later(Math.min(pause / 2, SHOW_BACKOFF_MS), () => {
      this.state.lastState = { terminated }
      this.#wait({
        reason: 'CrashLoopBackOff',
        message: `back-off ${duration(pause)} restarting failed container=${this.state.name} pod=${whose}`,
      })
    })
  }
}

/** What the kubelet says of a container that never ran and never will. */
const LOST = {
  exitCode: 137,
  reason: UNKNOWN_STATE,
  message: 'The container could not be located when the pod was terminated',
  startedAt: null,
  finishedAt: null,
}

function duration(milliseconds: number): string {
  const seconds = Math.max(1, Math.round(milliseconds / 1000))
  return seconds < 60 ? `${seconds}s` : `${Math.floor(seconds / 60)}m${seconds % 60}s`
}
