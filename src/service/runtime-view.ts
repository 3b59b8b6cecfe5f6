import type { RuntimeEvent } from '../domain/event.ts'
import type { State } from '../domain/life.ts'
import type { Kind, RuntimeName } from '../domain/runtime-id.ts'
import type { WorkloadSpec } from '../domain/workload-spec.ts'

/** A runtime as every verb, list and inspect shows it (wire.md §4). Times are ms since the epoch; the wire's text is http's business. */
export interface RuntimeView {
  readonly id: string
  readonly runtime: RuntimeName
  readonly namespace: string
  readonly kind: Kind
  readonly name: string
  readonly uid: string | null
  readonly run: number
  readonly state: State
  readonly ready: boolean
  readonly monitored: boolean
  readonly reason: string | null
  readonly message: string | null
  readonly hint: string | null
  readonly exitCode: number | null
  readonly restarts: number
  readonly replicas: { readonly desired: number; readonly current: number; readonly ready: number }
  readonly image: string | null
  readonly labels: Readonly<Record<string, string>>
  readonly address: string | null
  readonly podName: string | null
  readonly podIp: string | null
  readonly nodeName: string | null
  readonly createdAt: number
  readonly startedAt: number | null
  readonly endedAt: number | null
  readonly observedAt: number | null
  readonly stale: boolean
}

/** `GET /v1/runtimes/{id}`. `events`: the newest 20, newest first. */
export interface InspectedRuntime extends RuntimeView {
  readonly spec: WorkloadSpec | null
  readonly events: readonly RuntimeEvent[]
}
