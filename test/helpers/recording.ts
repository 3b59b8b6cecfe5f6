import { readFileSync } from 'node:fs'
import type { ClusterEvent, Deployment, Job, Pod, ReplicaSet } from '../../src/kube/objects.ts'

export type RecordedKind = 'Deployment' | 'ReplicaSet' | 'Job' | 'Pod' | 'Event'
export type RecordedObject = Deployment & Job & Pod & ReplicaSet & ClusterEvent

/** One line of a watch. `t`: ms when the recorder saw it. */
export interface WatchLine {
  readonly t: number
  readonly kind: RecordedKind
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'
  readonly object: RecordedObject
}

/** One line of what was done, with its answer. `t`: when it was sent. */
export interface ActionLine {
  readonly t: number
  readonly action: string
  readonly request?: { readonly replicas?: number; readonly suspend?: boolean } | null
  readonly answer?: {
    readonly code: number
    readonly t?: number
    readonly metadata?: { readonly uid: string; readonly resourceVersion: string; readonly generation?: number }
  }
}

export type Line = WatchLine | ActionLine
export const isAction = (line: Line): line is ActionLine => 'action' in line
export const isWatch = (line: Line): line is WatchLine => 'object' in line

export interface ExpectedEvent {
  readonly at: number
  readonly run: number
  readonly type: string
  readonly reason: string | null
  readonly exitCode: number | null
}
export interface ExpectedRow {
  readonly kind: 'Deployment' | 'Job' | 'Pod'
  readonly name: string
  readonly life: number
  readonly run: number
  readonly events: readonly ExpectedEvent[]
  readonly state: string
  readonly reason: string | null
}
/** How to read a `delete` that is not by hand. */
export type DeletesBy = 'request' | 'delete' | 'stop' | 'others'
export interface Expectation {
  readonly deletesBy: DeletesBy
  readonly rows: readonly ExpectedRow[]
}

const FOLDER = new URL('../recordings/', import.meta.url)

export const expectations = (): Readonly<Record<string, readonly Expectation[]>> =>
  JSON.parse(readFileSync(new URL('expected.json', FOLDER), 'utf8'))

export const recording = (name: string): Line[] =>
  readFileSync(new URL(`${name}.jsonl`, FOLDER), 'utf8')
    .trim()
    .split('\n')
    .map(line => JSON.parse(line))
