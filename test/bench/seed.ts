import type { NewEvent } from '../../src/domain/event.ts'
import type { Life } from '../../src/domain/life.ts'
import { newLife } from '../../src/domain/lifecycle.ts'
import { createStore } from '../../src/store/store.ts'
import { specOf } from '../helpers/specs.ts'
import { replicaSetUidOf, uidOf } from './api-objects.ts'

const ROWS_A_COMMIT = 1000
const CREATED_AT = Date.parse('2026-11-29T17:22:00Z')

/** Fills a new database with the rows of the fake API's Deployments, as a daemon would have left them. */
export async function seed(database: string, count: number, state: 'ready' | 'starting' = 'ready'): Promise<void> {
  const store = createStore(database)
  for (let from = 0; from < count; from += ROWS_A_COMMIT) {
    const ids = Array.from({ length: Math.min(ROWS_A_COMMIT, count - from) }, (_, n) => from + n)
    await store.commit({ rows: ids.map(id => rowOf(id, state)) })
  }
  store.close()
}

function rowOf(id: number, state: 'ready' | 'starting'): { life: Life; events: NewEvent[] } {
  const spec = specOf({
    name: `web-${id}`,
    image: 'registry.local/web:1.2',
    env: { LOG_LEVEL: 'info', PORT: '8080' },
    labels: { team: 'a' },
    cpu: 0.5,
    memory: '512Mi',
  })
  const made: Life = {
    ...newLife({ spec, nonce: `866c6837${String(id).padStart(12, '0')}`, now: CREATED_AT, lastEventAt: 0 }),
    uid: uidOf(id),
    podControllers: state === 'ready' ? [replicaSetUidOf(id)] : [],
    verb: null,
  }
  if (state === 'starting') return { life: made, events: [] }
  const life: Life = {
    ...made,
    state: 'running',
    ready: true,
    started: true,
    startedAt: CREATED_AT,
    lastEventAt: CREATED_AT,
  }
  const event = { run: 1, cause: null, reason: null, message: null, exitCode: null, time: CREATED_AT }
  return { life, events: [{ ...event, type: 'ContainerStarted' }] }
}
