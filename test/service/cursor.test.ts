import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isRuntimeError } from '../../src/errors.ts'
import { readCursor } from '../../src/service/cursor.ts'

const EPOCH = 'x7k2'
const kept = { oldest: 10, newest: 41, pruned: true }
const whole = { oldest: 1, newest: 41, pruned: false }
const empty = { oldest: null, newest: null, pruned: false }

const cases: Array<[string, string | undefined, Parameters<typeof readCursor>[2], number | string]> = [
  ['absent is the oldest kept', undefined, kept, 9],
  ['absent on an empty feed', undefined, empty, 0],
  ['0 before anything was pruned', '0', whole, 0],
  ['0 after something was pruned', '0', kept, 'CURSOR_EXPIRED'],
  ['one before the oldest kept is fine', '9', kept, 9],
  ['two before the oldest kept', '8', kept, 'CURSOR_EXPIRED'],
  ['the newest', '41', kept, 41],
  ['newer than the newest', '42', kept, 'CURSOR_EXPIRED'],
  ['an event id', 'x7k2-20', kept, 20],
  ['an event id of another epoch', 'aaaa-20', kept, 'CURSOR_EXPIRED'],
  ['a bare seq trusts the epoch', '20', kept, 20],
  ['now', 'now', kept, 41],
  ['all pruned, at the newest', '41', { oldest: null, newest: 41, pruned: true }, 41],
  ['all pruned, before the newest', '40', { oldest: null, newest: 41, pruned: true }, 'CURSOR_EXPIRED'],
  ['text', 'yesterday', kept, 'REQUEST_INVALID'],
  ['negative', '-1', kept, 'REQUEST_INVALID'],
  ['blank', '', kept, 'REQUEST_INVALID'],
]

for (const [name, text, bounds, expected] of cases) {
  test(`B-70: cursor: ${name}`, () => {
    if (typeof expected === 'number') assert.equal(readCursor(text, EPOCH, bounds), expected)
    else
      assert.throws(
        () => readCursor(text, EPOCH, bounds),
        error => isRuntimeError(error, expected as 'CURSOR_EXPIRED'),
      )
  })
}

test('B-70: an expired cursor says where the feed begins and ends, as event ids', () => {
  assert.throws(
    () => readCursor('aaaa-20', EPOCH, kept),
    error => isRuntimeError(error) && error.extra.oldest === 'x7k2-10' && error.extra.newest === 'x7k2-41',
  )
})
