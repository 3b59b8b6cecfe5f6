import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { ControllerContext } from './controller.ts'
import type { LogBuffer } from './log-buffer.ts'
import type { LogSource } from './pod-logs.ts'
import { PodRunner } from './pod-runner.ts'
import { NODE_NAME } from './scheduler.ts'
import type { KubeObject } from './types.ts'

/** The kubelet of the sandbox's node: runs the pods bound to it as local processes, each pod in a temporary folder. */
export class ProcessKubelet implements LogSource {
  readonly #context: ControllerContext
  readonly #folder = mkdtempSync(join(tmpdir(), 'runtimed-sandbox-'))
  readonly #runners = new Map<string, PodRunner>()
  readonly #leaving = new Set<PodRunner>()
  readonly #unsubscribe: () => void
  #closed = false

  constructor(context: ControllerContext) {
    this.#context = context
    this.#unsubscribe = context.registry.store.subscribe(({ resource, object, type }) => {
      if (resource !== 'pods' || object.spec.nodeName !== NODE_NAME) return
      if (type === 'DELETED') this.#gone(object)
      else this.#seen(object)
    })
  }

  instances(podUid: string, container: string): LogBuffer[] {
    return this.#runners.get(podUid)?.logs(container) ?? []
  }

  /** Kills all processes and removes their folders; resolves when none is left. */
  async close(): Promise<void> {
    this.#closed = true
    this.#unsubscribe()
    const all = [...this.#runners.values(), ...this.#leaving]
    for (const runner of all) runner.kill()
    for (let waited = 0; waited < 5000 && all.some(runner => !runner.idle); waited += 10) await sleep(10)
    rmSync(this.#folder, { recursive: true, force: true })
  }

  #seen(pod: KubeObject): void {
    const runner = this.#runners.get(pod.metadata.uid)
    if (runner) {
      runner.update(pod)
      return
    }
    if (pod.metadata.deletionTimestamp !== undefined || this.#closed) return
    const folder = join(this.#folder, pod.metadata.uid)
    mkdirSync(folder)
    const started = new PodRunner(this.#context, pod, folder)
    this.#runners.set(pod.metadata.uid, started)
    setImmediate(() => {
      if (!this.#closed && this.#runners.get(pod.metadata.uid) === started) started.start()
    })
  }

  #gone(pod: KubeObject): void {
    const runner = this.#runners.get(pod.metadata.uid)
    if (!runner) return
    this.#runners.delete(pod.metadata.uid)
    runner.objectGone()
    this.#leaving.add(runner)
    void this.#bury(runner, join(this.#folder, pod.metadata.uid))
  }

  async #bury(runner: PodRunner, folder: string): Promise<void> {
    while (!runner.idle) await sleep(20)
    this.#leaving.delete(runner)
    rmSync(folder, { recursive: true, force: true })
  }
}
