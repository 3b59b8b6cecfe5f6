import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ERROR_CATALOGUE, type ErrorCode, RuntimeError } from '../../src/errors.ts'
import { problemOf, toRuntimeError } from '../../src/http/problem.ts'
import { describeError, redact } from '../../src/http/redact.ts'
import { startServer } from '../helpers/http-server.ts'
import { faultsOf, operationsOf, readDocument } from '../helpers/openapi.ts'

const ID = 'k8s-default|job|a'

/** What must never be seen by a caller, nor in the log. */
const CANARIES = [
  'eyJhbGciOiJSUzI1NiIsImtpZCI6ImNhbmFyeSJ9.eyJpc3MiOiJjYW5hcnkifQ.c2lnbmF0dXJl',
  'bearer-canary-0123456789',
  'password-canary',
  'MIICANARYKEYMATERIAL',
  'user-canary:pw-canary',
]
const CAUSE = new Error(
  [
    `request failed: Authorization: Bearer ${CANARIES[1]}`,
    `token=${CANARIES[0]}`,
    `{"password":"${CANARIES[2]}"}`,
    `-----BEGIN RSA PRIVATE KEY-----\n${CANARIES[3]}\n-----END RSA PRIVATE KEY-----`,
    `connect ECONNREFUSED https://${CANARIES[4]}@10.11.12.13:6443`,
    '\u001b[31mred\u001b[0m',
    'x'.repeat(1024 * 1024),
  ].join('\n'),
)
/** What no caller may see, though the log may. */
const INNER = ['10.11.12.13', 'ECONNREFUSED', 'PRIVATE KEY', process.cwd(), 'at ', '.ts:']

const FAILURES: ReadonlyArray<[what: string, error: unknown, status: number]> = [
  ['an unknown error', CAUSE, 500],
  ['an unknown error with a status of its own', Object.assign(new Error(CAUSE.message), { statusCode: 418 }), 500],
  ['a text', CAUSE.message, 500],
  ['nothing', undefined, 500],
  [
    'our error with a cause',
    new RuntimeError('KUBERNETES_ERROR', 'cannot create: the cluster refused', { cause: CAUSE }),
    502,
  ],
  [
    'our error whose cause has a cause',
    new RuntimeError('BACKEND_UNAVAILABLE', 'cannot reach the cluster', {
      cause: new Error('outer', { cause: CAUSE }),
    }),
    503,
  ],
]
for (const [what, error, status] of FAILURES) {
  test(`F-51: ${what} leaves nothing of its cause in the reply, no secret in the log, and short lines of JSON`, async t => {
    const server = await startServer(t)
    server.services.add(ID)
    const failing = async () => {
      throw error
    }
    server.services.runtimes.inspect = failing
    server.services.runtimes.logs = failing
    for (const path of ['', '/logs']) {
      const reply = await fetch(`${server.url}/v1/runtimes/${encodeURIComponent(ID)}${path}`)
      const body = await reply.text()
      assert.equal(reply.status, status)
      assert.deepEqual(faultsOf(readDocument(), { $ref: '#/components/schemas/Problem' }, JSON.parse(body)), [])
      for (const secret of [...CANARIES, ...INNER]) assert.ok(!body.includes(secret), `the reply shows ${secret}`)
    }
    const logged = server.lines.join('')
    for (const secret of CANARIES) assert.ok(!logged.includes(secret), `the log shows ${secret}`)
    for (const line of logged.split('\n').filter(line => line !== '')) {
      assert.ok(line.length <= 16 * 1024, `a line of ${line.length}`)
      assert.equal(typeof JSON.parse(line), 'object')
    }
    const level = status === 500 ? 50 : 40
    assert.ok(
      server.lines.some(line => JSON.parse(line).level === level),
      'the cause is not logged',
    )
  })
}

test('U5, F-51: the log has one line a request, with path, status and code, and neither query nor header', async t => {
  const server = await startServer(t)
  await fetch(`${server.url}/v1/runtimes?labelSelector=secret-query`, { headers: { 'x-secret': 'secret-header' } })
  await fetch(`${server.url}/v1/runtimes/x%0Ainjected/logs?container=secret-query`)
  const lines = server.lines.map(line => JSON.parse(line)).filter(line => line.msg === 'request')
  assert.equal(lines.length, 2)
  assert.partialDeepStrictEqual(lines[0], { method: 'GET', path: '/v1/runtimes', status: 200 })
  assert.partialDeepStrictEqual(lines[1], {
    path: '/v1/runtimes/x%0Ainjected/logs',
    status: 400,
    code: 'RUNTIME_ID_INVALID',
  })
  assert.ok(!server.lines.join('').includes('secret'))
  for (const line of server.lines) assert.equal(line.trimEnd().split('\n').length, 1)
})

test('U5: metrics count requests by method, route pattern and status', async t => {
  const server = await startServer(t)
  await fetch(`${server.url}/v1/runtimes/x`)
  await fetch(`${server.url}/nothing/like/it`)
  const reply = await fetch(`${server.url}/metrics`)
  assert.match(reply.headers.get('content-type') ?? '', /^text\/plain/)
  const text = await reply.text()
  const counted = 'runtimed_http_request_duration_seconds_count'
  assert.match(text, new RegExp(`${counted}{method="GET",route="/v1/runtimes/:id",status="400"} 1`))
  assert.match(text, new RegExp(`${counted}{method="GET",route="unknown",status="404"} 1`))
})

test('S1, S3: each code of the catalogue is a problem of its status that fits the document', () => {
  for (const [code, status] of Object.entries(ERROR_CATALOGUE)) {
    const problem = problemOf(new RuntimeError(code as ErrorCode, 'cannot do it'), 'r1')
    assert.equal(problem.status, status)
    assert.deepEqual(faultsOf(readDocument(), { $ref: '#/components/schemas/Problem' }, problem), [])
  }
})

test('S1, U2: catalogue and document name the same codes, and each status of the catalogue is documented or told', () => {
  const doc = readDocument()
  const described: string = doc.components.schemas.Problem.properties.code.description
  const named = [...described.matchAll(/`([A-Z_]+)`/g)].map(match => match[1])
  assert.deepEqual(named, Object.keys(ERROR_CATALOGUE))
  const documented = new Set(operationsOf(doc).flatMap(({ spec }) => Object.keys(spec.responses).map(Number)))
  const told = new Set([...doc.info.description.matchAll(/\b4\d\d\b/g)].map(match => Number(match[0])))
  for (const [code, status] of Object.entries(ERROR_CATALOGUE)) {
    assert.ok(documented.has(status) || told.has(status), `${code} ${status}`)
  }
})

test('S3: a client’s fault is never 500, whatever the framework calls it', () => {
  const framework = (statusCode: number) => Object.assign(new Error('secret'), { code: 'FST_ERR_X', statusCode })
  for (const status of [400, 404, 405, 408, 413, 414, 415, 417, 431]) {
    const error = toRuntimeError(framework(status))
    assert.ok(error.status >= 400 && error.status < 500)
    assert.ok(!error.message.includes('secret'))
  }
  assert.equal(toRuntimeError(framework(500)).code, 'INTERNAL_ERROR')
  assert.equal(toRuntimeError(Object.assign(new Error('x'), { statusCode: 404 })).code, 'INTERNAL_ERROR')
})

const REDACTED: ReadonlyArray<[text: string, expected: string]> = [
  ['Bearer abc.def', '[redacted]'],
  ['got Authorization: Basic dXNlcjpwdw== here', 'got [redacted] here'],
  ['?token=abc&x=1', '?[redacted]&x=1'],
  ['api_key: abc', '[redacted]'],
  ['https://u:p@host/x', 'https:[redacted]host/x'],
  ['nothing to hide', 'nothing to hide'],
  ['y'.repeat(1_001), `${'y'.repeat(1_000)}…`],
]
for (const [text, expected] of REDACTED) {
  test(`F-51: redact(${JSON.stringify(text.slice(0, 40))})`, () => {
    const got = redact(text)
    if (text.includes('Basic')) assert.ok(!got.includes('dXNlcjpwdw=='), got)
    else assert.equal(got, expected)
  })
}

test('F-51: an error is described with its causes, bounded', () => {
  let error = new Error('innermost')
  for (let at = 0; at < 10; at += 1) error = new Error(`level ${at}`, { cause: error })
  let depth = 0
  for (let node = describeError(error) as { cause?: never } | undefined; node; node = node.cause) depth += 1
  assert.equal(depth, 4)
})
