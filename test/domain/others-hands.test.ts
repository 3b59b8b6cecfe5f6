import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Walk } from '../helpers/walk/walk.ts'

test('F-24, B-53, J13: a controller that scales up whenever we scale down is not fought: one write, one Warning', () => {
  const walk = new Walk({
    kind: 'deployment',
    startTimeoutSeconds: 60,
    verbs: 1,
    faults: 0,
    others: 50,
    conditions: 0,
    pods: 0,
  })
  const step = (label: string) => {
    const found = [...walk.world.othersMoves(), ...walk.userMoves()].find(move => move.label === label)
    assert.ok(found, label)
    walk.step(found)
  }
  step('USER create')
  for (let round = 0; round < 120; round++) {
    const fair = walk.fairMoves().filter(({ label }) => label !== 'pod ready')
    const next = fair[round % Math.max(1, fair.length)]
    if (next !== undefined) walk.step(next)
    if (walk.world.object !== null && !walk.world.isActive()) step('others: scale 1')
    if (walk.busy === null && walk.life?.verb === null && walk.life.startBy !== null) walk.passTime()
  }
  assert.deepEqual(walk.bad, [])
  assert.equal(walk.writes, 2, 'the create, and the scale of the start timer')
  const { life, events } = walk
  assert.deepEqual([life?.state, life?.run, life?.open, life?.verb, life?.startBy], ['creating', 1, true, null, null])
  assert.deepEqual(
    events.map(({ type, reason }) => `${type} ${reason}`),
    ['ContainerWarning ScaledByOthers'],
  )
})
