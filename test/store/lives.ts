import type { NewEvent } from '../../src/domain/event.ts'
import type { Life } from '../../src/domain/life.ts'
import { parseRuntimeId } from '../../src/domain/runtime-id.ts'
import type { Change } from '../../src/service/ports.ts'

export const T0 = Date.parse('2026-01-01T00:00:00.000Z')

/** A running Deployment that no row holds yet. */
export function newLife(id: string, more: Partial<Life> = {}): Life {
  const life: Partial<Life> = {
    life: 0,
    id: parseRuntimeId(id),
    uid: 'u-1',
    nonce: 'n-1',
    spec: null,
    image: 'web:1',
    labels: { team: 'a' },
    jobStop: 'delete',
    startTimeoutSeconds: 0,
    state: 'running',
    verb: null,
    run: 1,
    open: true,
    podControllers: [],
    exitReason: null,
    gone: false,
    createdAt: T0,
    endedAt: null,
    deletedAt: null,
    goneAt: null,
    lastEventAt: T0,
  }
  return { ...(life as Life), ...more }
}

export const deletedLife = (life: Life, at = T0): Life => ({
  ...life,
  state: 'deleted',
  open: false,
  gone: true,
  goneAt: at,
  deletedAt: at,
})

export const newEvent = (type: NewEvent['type'], more: Partial<NewEvent> = {}): NewEvent => ({
  type,
  run: 1,
  cause: null,
  reason: null,
  message: null,
  exitCode: null,
  time: T0,
  ...more,
})

export const change = (life: Life, ...events: NewEvent[]): Change => ({ rows: [{ life, events }] })
