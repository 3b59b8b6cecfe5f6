import type { Readable } from 'node:stream'
import type { EventType, RuntimeEvent } from '../domain/event.ts'
import type { Kind, RuntimeName } from '../domain/runtime-id.ts'
import type { CreateRequest } from '../domain/workload-spec.ts'
import type { InformerHealth } from './ports.ts'
import type { InspectedRuntime, RuntimeView } from './runtime-view.ts'
import type { Scope } from './scope.ts'

/**
 * What http may ask of the services. IDs come as the caller wrote them (decoded once); each method parses, checks the
 * namespace against the scope, and throws RuntimeError. `scope.write` was checked by the route.
 */
export interface RuntimeApi {
  create(scope: Scope, request: CreateRequest, idempotencyKey: string | null): Promise<RuntimeView>
  /** All checks of create; no call, nothing written. */
  render(scope: Scope, request: CreateRequest): readonly unknown[]
  start(scope: Scope, id: string): Promise<RuntimeView>
  stop(scope: Scope, id: string): Promise<RuntimeView>
  remove(scope: Scope, id: string): Promise<RuntimeView>
  inspect(scope: Scope, id: string): Promise<InspectedRuntime>
  list(scope: Scope, query: RuntimeListQuery): RuntimeListPage
  wait(scope: Scope, id: string, query: WaitQuery): Promise<{ reached: boolean; runtime: RuntimeView }>
  logs(scope: Scope, id: string, query: LogQuery): Promise<{ body: Readable; kept: boolean }>
  /** IDs with an open run or a verb in hand, sorted. */
  monitored(scope: Scope): readonly string[]
}

export interface RuntimeListQuery {
  readonly runtime?: string | undefined
  readonly namespace?: string | undefined
  readonly kind?: Kind | undefined
  readonly states?: readonly string[] | undefined
  readonly labelSelector?: string | undefined
  readonly limit: number
  /** Opaque; REQUEST_INVALID when it is not one of ours. */
  readonly cursor?: string | undefined
}
export interface RuntimeListPage {
  readonly items: readonly RuntimeView[]
  readonly nextCursor: string | null
}

export interface WaitQuery {
  readonly for: 'running' | 'ended' | 'deleted'
  readonly run?: number | undefined
  readonly timeoutSeconds: number
  /** Aborted when the client is gone or the daemon shuts down. */
  readonly signal: AbortSignal
}

export interface LogQuery {
  readonly tail: number
  readonly follow: boolean
  /** Seconds back, or an RFC 3339 time. */
  readonly since?: { readonly seconds: number } | { readonly time: string } | undefined
  readonly timestamps: boolean
  readonly container?: string | undefined
  readonly previous: boolean
  /** Without follow at most this many bytes. */
  readonly limitBytes: number
  readonly signal: AbortSignal
}

export interface EventFilter {
  readonly runtimeIds?: readonly string[] | undefined
  readonly types?: readonly EventType[] | undefined
  readonly namespaces?: readonly string[] | undefined
  readonly labelSelector?: string | undefined
}

export interface EventApi {
  readonly epoch: string
  /** Event id, seq, `now`, or absent = the oldest kept. Throws CURSOR_EXPIRED (with oldest, newest) or REQUEST_INVALID. */
  page(scope: Scope, filter: EventFilter, after: string | undefined, limit: number): Promise<EventPage>
  /** One runtime, all its lives; RUNTIME_NOT_FOUND if it never was. */
  pageOf(scope: Scope, id: string, after: string | undefined, limit: number): Promise<EventPage>
  /**
   * History at the reader's pace, then live. The cursor is checked when this is called: throws then, as `page` does.
   * Ends when the signal aborts or the daemon stops. Yields in order of seq. Nothing is buffered for the reader: the
   * next batch is read from the store when it is asked for. http does not ask while unsent history waits, and asks at
   * once when `live`, so that it is http that counts what a reader leaves unsent, and cuts it off.
   */
  stream(scope: Scope, filter: EventFilter, after: string | undefined, signal: AbortSignal): AsyncIterable<EventBatch>
}
export interface EventBatch {
  /** May be empty: the first `live` one comes as soon as there is nothing older to send, events or not. */
  readonly events: readonly RuntimeEvent[]
  /** Nothing older is left to send: this batch reached the newest event. Once true it stays true. */
  readonly live: boolean
}
export interface EventPage {
  readonly items: readonly RuntimeEvent[]
  /** Event id of the last event looked at, matching or not. */
  readonly cursor: string
}

export interface BackendView {
  readonly name: RuntimeName
  readonly type: 'kubernetes' | 'docker'
  readonly default: boolean
  readonly healthy: boolean
  readonly reason: string | null
  readonly version: string | null
  readonly informers: readonly InformerHealth[]
}

export interface HealthCheck {
  readonly name: string
  readonly ok: boolean
  readonly reason: string | null
}

export interface HealthApi {
  live(): { status: 'ok'; checks: readonly HealthCheck[] }
  /** `ready` false = 503. */
  ready(): { ready: boolean; status: 'ok' | 'degraded' | 'unavailable'; checks: readonly HealthCheck[] }
  backends(): readonly BackendView[]
}

export interface AdoptionReport {
  /** Of the last start, ms. */
  readonly at: number
  readonly adopted: readonly string[]
  readonly vanished: readonly string[]
  readonly foreign: readonly string[]
  readonly orphaned: readonly string[]
}

export interface AdoptionApi {
  report(scope: Scope): AdoptionReport
  act(
    scope: Scope,
    ids: readonly string[],
    action: 'adopt' | 'remove',
  ): Promise<ReadonlyArray<{ id: string; done: boolean; code: string | null }>>
}

export interface ImageApi {
  /** The policy check of create; no registry is asked. */
  preflight(image: string, imagePullPolicy: string | undefined): { accepted: true; imagePullPolicy: string }
}

export interface Services {
  readonly runtimes: RuntimeApi
  readonly events: EventApi
  readonly health: HealthApi
  readonly adoption: AdoptionApi
  readonly images: ImageApi
}
