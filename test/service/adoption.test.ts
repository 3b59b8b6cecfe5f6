import assert from 'node:assert/strict'
import { test } from 'node:test'
import { formatRuntimeId, type RuntimeId } from '../../src/domain/runtime-id.ts'
import { Adoption } from '../../src/service/adoption.ts'
import { Backoff, PRODUCTION_BACKOFF } from '../../src/service/backoff.ts'
import { KeyedQueue } from '../../src/service/keyed-queue.ts'
import { FakeClock } from '../helpers/clock.ts'

const A = 'k8s-default|deployment|a'
const B = 'k8s-default|job|b'
const SCOPE = { token: null, namespaces: '*', write: true } as const

test('F-55: an ID given many times is looked up once, and each place has its outcome', async () => {
  const asked: string[] = []
  const find = async (id: RuntimeId): Promise<null> => {
    asked.push(formatRuntimeId(id))
    return null
  }
  const clock = new FakeClock()
  const queue = new KeyedQueue({
    work: async () => {},
    clock,
    workers: 1,
    backoff: new Backoff(PRODUCTION_BACKOFF, () => 0),
  })
  const adoption = new Adoption({
    queue,
    clock,
    table: { newest: () => null, alive: () => [] },
    backends: { get: () => ({ inventory: { find } }) },
    takeUp: {},
  } as never)
  const outcomes = await adoption.act(SCOPE, [A, B, ...Array<string>(998).fill(A)], 'adopt')
  assert.deepEqual(asked.sort(), [A, B])
  assert.equal(outcomes.length, 1_000)
  assert.deepEqual(outcomes[1], { id: B, done: false, code: 'RUNTIME_NOT_FOUND' })
  assert.deepEqual(outcomes[999], { id: A, done: false, code: 'RUNTIME_NOT_FOUND' })
})
