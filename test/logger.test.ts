import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createLogger, MAX_LINE_BYTES } from '../src/logger.ts'

/** Runs the work with a logger and returns its lines as written. */
function linesOf(work: (log: ReturnType<typeof createLogger>) => void, level = 'trace'): string[] {
  const lines: string[] = []
  work(createLogger(level, { write: line => void lines.push(line) }))
  return lines
}
const entryOf = (work: (log: ReturnType<typeof createLogger>) => void) => JSON.parse(linesOf(work)[0] ?? '')

test('U5: one JSON object a line, with level by name and time in RFC 3339', () => {
  const lines = linesOf(log => log.info({ runtimeId: 'k8s-a|job|b' }, 'created\nit'))
  assert.equal(lines.length, 1)
  assert.match(lines[0] ?? '', /^\{[^\n]*\}\n$/)
  const { time, ...rest } = JSON.parse(lines[0] ?? '')
  assert.match(time, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
  assert.deepEqual(rest, { level: 'info', runtimeId: 'k8s-a|job|b', msg: 'created\nit' })
})

test('U5: lower levels are left out', () => {
  assert.equal(linesOf(log => log.debug('x'), 'info').length, 0)
  assert.equal(linesOf(log => log.error('x'), 'silent').length, 0)
})

test('U4: tokens, headers and environment values never get into a log', () => {
  const secret = 'hunter2-secret'
  const text = linesOf(log => {
    log.info({ token: secret, authorization: secret, password: secret })
    log.info({ headers: { authorization: `Bearer ${secret}`, cookie: secret } })
    log.info({ req: { id: 1, method: 'GET', url: '/', headers: { authorization: `Bearer ${secret}` } } })
    log.info({ env: { A: secret }, spec: { env: { A: secret } }, life: { spec: { env: { A: secret } } } })
    log.warn({ err: Object.assign(new Error('refused'), { headers: { authorization: secret }, body: secret }) })
    log.warn(`upstream said: authorization: bearer ${secret}`)
    log.warn({ err: new Error(`sent "Authorization: Bearer ${secret}"`) })
  }).join('')
  assert.ok(!text.includes(secret), text)
  assert.equal(text.split('\n').length, 8)
})

test('U5: errors keep code, status, message and causes, not the reply they carry', () => {
  const cause = Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' })
  const error = Object.assign(new Error('HTTP-Code: 403\nMessage: x\nBody: {}\nHeaders: {"audit-id":"a"}', { cause }), {
    code: 403,
    headers: { 'audit-id': 'a' },
  })
  const { err } = entryOf(log => log.error({ err: error }, 'call failed'))
  assert.deepEqual(
    { ...err, stack: undefined, cause: undefined },
    {
      type: 'Error',
      message: 'HTTP-Code: 403\nMessage: x\nBody: {}',
      code: 403,
      stack: undefined,
      cause: undefined,
    },
  )
  assert.match(err.stack, /^\s+at .*logger\.test\.ts/)
  assert.deepEqual(
    { ...err.cause, stack: undefined },
    { type: 'Error', message: cause.message, code: 'ECONNREFUSED', stack: undefined },
  )
})

test('U5: whatever is thrown can be logged', () => {
  const looped: { self?: unknown } = {}
  looped.self = looped
  for (const thrown of ['text', 5, null, undefined, Symbol('s'), 10n, looped, Object.create(null)]) {
    assert.ok(linesOf(log => log.error({ err: thrown, cause: thrown }, 'x')).length === 1)
  }
  const endless = new Error('a')
  endless.cause = endless
  assert.equal(entryOf(log => log.error({ err: endless })).err.cause.cause.message, 'a')
})

test('U5: no line is longer than 16 KiB, and each is still one object', () => {
  const long = 'é"\\'.repeat(20_000)
  const big: [string, (log: ReturnType<typeof createLogger>) => void][] = [
    ['message', log => log.info(long)],
    ['member', log => log.info({ body: { deep: [long, long] } }, 'x')],
    [
      'many members',
      log => log.info(Object.fromEntries(Array.from({ length: 5000 }, (_, key) => [`k${key}`, 'v'])), 'x'),
    ],
    ['long list', log => log.info({ items: Array.from({ length: 50_000 }, (_, item) => item) }, 'x')],
    ['error', log => log.error({ err: new Error(long, { cause: new Error(long) }) })],
  ]
  for (const [what, work] of big) {
    const [line = ''] = linesOf(work)
    assert.ok(Buffer.byteLength(line) <= MAX_LINE_BYTES, `${what}: ${Buffer.byteLength(line)}`)
    const entry = JSON.parse(line)
    assert.ok(entry.level && entry.time, what)
    if (what !== 'error') assert.equal(entry.truncated, true, what)
  }
  const fits = 'x'.repeat(MAX_LINE_BYTES - 200)
  assert.equal(entryOf(log => log.info(fits)).msg, fits)
})
