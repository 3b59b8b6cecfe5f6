import type { RawObject } from './decode.ts'
import type { KubeKind } from './objects.ts'
import type { ReflectorProfile } from './reflector-profile.ts'
import { pause } from './timing.ts'
import type { Transport } from './transport.ts'

/** What is told of a collection. Nothing of it may throw. */
export interface ReflectorSink {
  /** A whole list begins; `rewound`: the collection went back in time, older versions are to be believed. */
  begin(rewound: boolean): void
  page(objects: Iterable<RawObject>): void
  /** The list is complete: what it did not show is gone. */
  end(): Promise<void>
  apply(object: RawObject): void
  remove(object: RawObject): void
}

/** As much of a logger as we need; pino fits. */
export interface Log {
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
  error(fields: object, message: string): void
}

export interface Clock {
  now(): number
  pause(ms: number, signal: AbortSignal): Promise<void>
  /** 0 ≤ x < 1 */
  random(): number
}
export const systemClock: Clock = { now: Date.now, pause, random: Math.random }

export interface ReflectorOptions {
  readonly transport: Transport
  readonly kind: KubeKind
  /** null = all namespaces. */
  readonly namespace: string | null
  readonly labelSelector: string
  readonly sink: ReflectorSink
  readonly profile: ReflectorProfile
  readonly log: Log
  readonly clock?: Clock
  /** Newest version known of this collection from before, asked at the start: an older list is doubted. null = none. */
  readonly newestKnown?: () => string | null
}

export interface ReflectorCounters {
  lists: number
  watches: number
  /** Failures of lists and watches, each followed by a back-off. */
  restarts: number
  events: number
  badLines: number
}
