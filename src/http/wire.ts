import type { RuntimeEvent } from '../domain/event.ts'
import type { WorkloadSpec } from '../domain/workload-spec.ts'
import type { EventPage, RuntimeListPage } from '../service/api.ts'
import { eventId } from '../service/cursor.ts'
import type { InspectedRuntime, RuntimeView } from '../service/runtime-view.ts'

/** Service types as the wire shows them. What is not named here does not leave the process. */
export const isoTime = (ms: number): string => new Date(ms).toISOString()
const isoOrNull = (ms: number | null): string | null => (ms === null ? null : isoTime(ms))

export const locationOf = (runtimeId: string): string => `/v1/runtimes/${encodeURIComponent(runtimeId)}`

export const toRuntime = (view: RuntimeView) => ({
  ...view,
  labels: { ...view.labels },
  createdAt: isoTime(view.createdAt),
  startedAt: isoOrNull(view.startedAt),
  endedAt: isoOrNull(view.endedAt),
  observedAt: isoOrNull(view.observedAt),
})

export const toRuntimeList = (page: RuntimeListPage) => ({
  items: page.items.map(toRuntime),
  nextCursor: page.nextCursor,
})

export const toEvent = (epoch: string, event: RuntimeEvent) => ({
  id: eventId(epoch, event.seq),
  seq: event.seq,
  type: event.type,
  runtimeId: event.runtimeId,
  uid: event.uid,
  run: event.run,
  reason: event.reason,
  message: event.message,
  exitCode: event.exitCode,
  time: isoTime(event.time),
})

export const toEventList = (epoch: string, page: EventPage) => ({
  items: page.items.map(event => toEvent(epoch, event)),
  cursor: page.cursor,
})

const toSpec = (spec: WorkloadSpec) => ({
  ...spec,
  entrypoint: [...spec.entrypoint],
  command: [...spec.command],
  supplementalGroups: [...spec.supplementalGroups],
  volumes: spec.volumes.map(volume => ({ ...volume })),
  schedulingConstraints: spec.schedulingConstraints.map(rule => ({ ...rule, values: [...rule.values] })),
  imagePullSecrets: [...spec.imagePullSecrets],
})

export const toInspected = (epoch: string, runtime: InspectedRuntime) => ({
  ...toRuntime(runtime),
  spec: runtime.spec === null ? null : toSpec(runtime.spec),
  events: runtime.events.map(event => toEvent(epoch, event)),
})
