import assert from 'node:assert/strict'
import { test } from 'node:test'
import { failureHint } from '../../src/domain/failure-hint.ts'
import { newLife } from '../../src/domain/lifecycle.ts'
import { specOf } from '../helpers/specs.ts'

const life = newLife({ spec: specOf({ kind: 'job' }), nonce: 'n', now: 0, lastEventAt: 0 })

const cases: Array<[string, Partial<typeof life>, string, RegExp | null]> = [
  [
    'memory is named though the Job says BackoffLimitExceeded',
    { warned: ['oom'], exitCode: 137 },
    'BackoffLimitExceeded',
    /raise "memory"/,
  ],
  ['what troubled it until then knows best', { hint: 'See the image.' }, 'StartTimeout', /^See the image\.$/],
  ['a start time-out without a known cause', {}, 'StartTimeout', /startTimeoutSeconds/],
  ['an exit code sends to the logs', { exitCode: 3 }, 'BackoffLimitExceeded', /exit code 3: see its logs/],
  ['nothing is known', {}, 'BackoffLimitExceeded', null],
]
for (const [name, patch, reason, expected] of cases) {
  test(`J13, M4: hint of a failure: ${name}`, () => {
    const hint = failureHint({ ...life, ...patch }, reason)
    if (expected === null) assert.equal(hint, null)
    else assert.match(hint ?? '', expected)
  })
}
