/** The wire's event types (wire.md §5). Closed in the code, open in the OpenAPI document. */
export const EVENT_TYPES = [
  'ContainerStarted',
  'ContainerExited',
  'ContainerFailed',
  'ContainerDeleted',
  'ContainerWarning',
] as const
export type EventType = (typeof EVENT_TYPES)[number]

/** An event as the transition decides it; the store numbers it. `time` is ms since the epoch. */
export interface NewEvent {
  readonly type: EventType
  readonly run: number
  /** Warnings only: one is kept per (life, run, cause). */
  readonly cause: string | null
  readonly reason: string | null
  readonly message: string | null
  readonly exitCode: number | null
  readonly time: number
}

/** A stored event. `seq` rises strictly over the whole feed and is never used twice. */
export interface RuntimeEvent extends NewEvent {
  readonly seq: number
  readonly life: number
  readonly runtimeId: string
  readonly namespace: string
  readonly uid: string | null
  /** The runtime's user labels when the event was written; what `labelSelector` speaks of. */
  readonly labels: Readonly<Record<string, string>>
}
