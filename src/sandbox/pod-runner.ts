import { ContainerUnit, type PodHost } from './container-unit.ts'
import type { ControllerContext } from './controller.ts'
import { timestamp } from './json.ts'
import type { LogBuffer } from './log-buffer.ts'
import { type PodFacts, phaseOf, podStatus } from './pod-status.ts'
import { StatusError } from './status-error.ts'
import { Timers } from './timers.ts'
import type { KubeObject, Loose, Timing } from './types.ts'

const DEADLINE_TEXT = 'Pod was active on the node longer than the specified deadline'
/** Grace of what still runs when the object was deleted by force. */
const FORCED_GRACE_MS = 1000

/**
 * One pod on the node, from its first status to the deletion of its object. Everything it does is written to the API as a
 * kubelet would; it reads nothing but the pod it is shown.
 */
export class PodRunner implements PodHost {
  readonly folder: string
  readonly #context: ControllerContext
  readonly #units: ContainerUnit[]
  readonly #timers = new Timers()
  readonly #startTime = timestamp(Date.now())
  #pod: KubeObject
  #sandboxReady = false
  #terminating = false
  #pastDeadline = false
  #holdPhase = false
  #gone = false

  constructor(context: ControllerContext, pod: KubeObject, folder: string) {
    this.#context = context
    this.#pod = pod
    this.folder = folder
    this.#units = pod.spec.containers.map((container: Loose) => new ContainerUnit(this, container))
  }

  get pod(): KubeObject {
    return this.#pod
  }

  get timing(): Timing {
    return this.#context.timing
  }

  get terminating(): boolean {
    return this.#terminating
  }

  get gone(): boolean {
    return this.#gone
  }

  /** No process of it runs. */
  get idle(): boolean {
    return this.#units.every(unit => !unit.isRunning)
  }

  /** The output of a container's instances, oldest first. */
  logs(container: string): LogBuffer[] {
    return this.#units.find(unit => unit.state.name === container)?.logs ?? []
  }

  /** Takes the pod on: first status, then images, then processes. */
  start(): void {
    if (this.#terminating) return
    this.publish()
    this.#timers.later(this.timing.imagePullMs / 2, () => {
      this.#sandboxReady = true
      this.publish()
    })
    this.#timers.later(this.timing.imagePullMs, () => {
      for (const unit of this.#units) unit.pull()
    })
    const deadline = this.#pod.spec.activeDeadlineSeconds
    if (deadline !== undefined) this.#timers.later(deadline * 1000, () => this.#exceedDeadline())
  }

  /** The pod as it is in the API now. */
  update(pod: KubeObject): void {
    this.#pod = pod
    if (pod.metadata.deletionTimestamp !== undefined)
      this.#terminate((pod.metadata.deletionGracePeriodSeconds ?? 0) * 1000)
  }

  /** The object is gone: what still runs is stopped, and killed a second later. */
  objectGone(): void {
    this.#gone = true
    this.#cancel()
    for (const unit of this.#units) unit.stop(FORCED_GRACE_MS)
  }

  /** Kills everything at once. */
  kill(): void {
    this.#gone = true
    this.#cancel()
    for (const unit of this.#units) unit.kill()
  }

  publish(): void {
    if (this.#gone) return
    const { namespace, name, uid } = this.#pod.metadata
    this.#quietly(() => {
      this.#pod = this.#context.registry.updateStatus('pods', namespace, name, draft => {
        if (draft.metadata.uid === uid) draft.status = podStatus(this.#facts(), Date.now())
      })
    })
  }

  settle(): void {
    if (!this.#units.every(unit => unit.hasEnded)) {
      this.publish()
      return
    }
    this.#cancel()
    this.#holdPhase = !this.#terminating
    this.publish()
    if (this.#terminating) this.#release()
    else {
      this.#timers.later(this.timing.podPhaseMs, () => {
        this.#holdPhase = false
        this.publish()
      })
    }
  }

  event(type: 'Normal' | 'Warning', reason: string, message: string): void {
    this.#context.events.record({ resource: 'pods', object: this.#pod, component: 'kubelet', type, reason, message })
  }

  /** A deletion seen again only shortens the grace. */
  #terminate(graceMs: number): void {
    if (this.#terminating && !this.#pastDeadline) {
      for (const unit of this.#units) unit.stop(graceMs)
      return
    }
    this.#terminating = true
    this.#pastDeadline = false
    this.#holdPhase = false
    this.#stopAll(graceMs)
  }

  #stopAll(graceMs: number): void {
    this.#cancel()
    for (const unit of this.#units.filter(unit => unit.isRunning)) {
      this.event('Normal', 'Killing', `Stopping container ${unit.state.name}`)
      unit.stop(graceMs)
    }
    this.publish()
    if (!this.idle) return
    this.#timers.later(this.timing.podCleanupMs, () => {
      for (const unit of this.#units) unit.giveUp()
      this.publish()
      this.#release()
    })
  }

  #exceedDeadline(): void {
    const phase = phaseOf(this.#facts())
    if (this.#terminating || phase === 'Succeeded' || phase === 'Failed') return
    this.event('Normal', 'DeadlineExceeded', DEADLINE_TEXT)
    this.#terminating = true
    this.#pastDeadline = true
    this.#stopAll((this.#pod.spec.terminationGracePeriodSeconds ?? 30) * 1000)
  }

  /** All containers of a deleted pod have ended: its object may go. */
  #release(): void {
    if (this.#pod.metadata.deletionTimestamp === undefined) return
    const { namespace, name, uid } = this.#pod.metadata
    this.#timers.later(this.timing.podCleanupMs, () => {
      this.#quietly(() =>
        this.#context.registry.delete('pods', namespace, name, { gracePeriodSeconds: 0, preconditions: { uid } }),
      )
    })
  }

  #facts(): PodFacts {
    return {
      pod: this.#pod,
      containers: this.#units.map(unit => unit.state),
      startTime: this.#startTime,
      sandboxReady: this.#sandboxReady,
      terminating: this.#terminating,
      holdPhase: this.#holdPhase,
      ...(this.#pastDeadline && this.idle ? { reason: 'DeadlineExceeded', message: DEADLINE_TEXT } : {}),
    }
  }

  #cancel(): void {
    this.#timers.clear()
    for (const unit of this.#units) unit.cancel()
  }

  /** What became of the object meanwhile decides: one that is gone needs no status and no delete. */
  #quietly(write: () => void): void {
    try {
      write()
    } catch (error) {
      if (!(error instanceof StatusError)) throw error
    }
  }
}
