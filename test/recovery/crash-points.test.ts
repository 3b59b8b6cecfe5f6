import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { type Sandbox, startSandbox, TEST_TIMING } from '../../src/sandbox/index.ts'
import { type ChildDaemon, kubeconfigFile, poll, spawnDaemon, temporaryFolder } from '../helpers/daemon.ts'
import { type Digest, Ledger } from './digest.ts'

/**
 * The daemon as a process of its own on a real database is killed by SIGKILL at each write that a verb makes: before the
 * cluster carries it out, after that but before its answer, and after the answer. All verbs meet their crash point in
 * the same life of the process: the cluster holds each of them there until the last has come.
 */

type Act = 'create' | 'start' | 'stop' | 'delete'

interface Subject {
  readonly name: string
  readonly kind: 'deployment' | 'job'
  readonly spec?: object
  /** The verb that the crash meets; the subject is made ready for it first. */
  readonly act: Act
  /** The crash comes at the second of its two writes; otherwise at the first of one or two. */
  readonly second?: true
  readonly writes?: 2
}

const SERVICE = { port: 8080, exposeService: true }

/** Those that crash at their second write come first. */
const SUBJECTS: readonly Subject[] = [
  { name: 'create-service', kind: 'deployment', spec: SERVICE, act: 'create', writes: 2, second: true },
  { name: 'delete-both', kind: 'deployment', spec: SERVICE, act: 'delete', writes: 2, second: true },
  { name: 'create-d', kind: 'deployment', act: 'create' },
  { name: 'create-d-at-0', kind: 'deployment', spec: { start: false }, act: 'create' },
  { name: 'create-d-service', kind: 'deployment', spec: SERVICE, act: 'create', writes: 2 },
  { name: 'create-j', kind: 'job', act: 'create' },
  { name: 'create-j-at-0', kind: 'job', spec: { start: false }, act: 'create' },
  { name: 'start-d', kind: 'deployment', spec: { start: false }, act: 'start' },
  { name: 'start-j', kind: 'job', spec: { start: false }, act: 'start' },
  { name: 'stop-d', kind: 'deployment', act: 'stop' },
  { name: 'stop-j', kind: 'job', act: 'stop' },
  { name: 'stop-j-suspend', kind: 'job', spec: { jobStop: 'suspend' }, act: 'stop' },
  { name: 'delete-d', kind: 'deployment', act: 'delete' },
  { name: 'delete-d-service', kind: 'deployment', spec: SERVICE, act: 'delete', writes: 2 },
  { name: 'delete-j', kind: 'job', act: 'delete' },
]
const SECOND = SUBJECTS.filter(({ second }) => second)
const FIRST = SUBJECTS.filter(({ second }) => !second)

const idOf = ({ kind, name }: Subject): string => `k8s-default|${kind}|${name}`

const MOMENTS = ['before it is carried out', 'before its answer', 'after its answer'] as const
type Moment = (typeof MOMENTS)[number]

interface Stage {
  readonly sandbox: Sandbox
  readonly ledger: Ledger
  daemon: ChildDaemon
  /** Starts the daemon on the database it had; resolves when it listens. */
  restart(): Promise<void>
}

async function stageOf(t: TestContext): Promise<Stage> {
  const sandbox = await startSandbox({ kubelet: 'instant', timing: TEST_TIMING })
  t.after(() => sandbox.close())
  const kubeconfig = kubeconfigFile(t, sandbox.kubeconfig())
  const env = { DATABASE_PATH: `${temporaryFolder(t)}/runtimed.db` }
  const spawn = () => spawnDaemon(t, { kubeconfig, env })
  const stage: Stage = {
    sandbox,
    ledger: new Ledger(sandbox),
    daemon: await spawn(),
    async restart() {
      stage.daemon = await spawn()
    },
  }
  await stage.daemon.ready()
  return stage
}

const specOf = ({ name, kind, spec }: Subject) => ({ name, kind, image: 'busybox', ...spec })
const keyOf = ({ name }: Subject) => ({ 'idempotency-key': name })

function send({ daemon }: Stage, subject: Subject) {
  const { act } = subject
  if (act === 'create') return daemon.api('POST', '/v1/runtimes', specOf(subject), keyOf(subject))
  if (act === 'delete') return daemon.api('DELETE', daemon.path(idOf(subject)))
  return daemon.api('POST', daemon.path(idOf(subject), `/${act}`))
}

/** Brings the subjects to where their verb is to be sent. */
async function prepare({ daemon }: Stage): Promise<void> {
  for (const subject of SUBJECTS.filter(({ act }) => act !== 'create')) {
    const { status, body } = await daemon.api('POST', '/v1/runtimes', specOf(subject))
    assert.equal(status, 201, JSON.stringify(body))
  }
  for (const subject of SUBJECTS.filter(({ act }) => act !== 'create')) {
    const settled = subject.act === 'start' ? 'created' : 'running'
    await daemon.waitFor(idOf(subject), runtime => runtime?.state === settled)
  }
}

/** Resolves the calls that come until the count is full, all at once. */
function barrier(count: number) {
  const { promise, resolve } = Promise.withResolvers<void>()
  let come = 0
  const arrive = (): Promise<void> => {
    if (++come === count) resolve()
    return promise
  }
  return { arrive, full: promise }
}

/** Sends the verbs and kills the daemon when each has come to the given moment of its write. */
async function crash(stage: Stage, moment: Moment): Promise<void> {
  const { faults } = stage.sandbox
  const held = barrier(SUBJECTS.length)
  const passed = holdWrites(stage, moment, held.arrive)
  const replies = SECOND.map(subject => send(stage, subject).catch(() => null))
  await passed
  replies.push(...FIRST.map(subject => send(stage, subject).catch(() => null)))
  await held.full
  if (moment === 'after its answer') await stage.daemon.ended
  else await stage.daemon.kill()
  await Promise.all(replies)
  faults.clear()
}

/** The first writes of SECOND pass, together; all writes after that are held. Resolves when the first have come. */
function holdWrites(stage: Stage, moment: Moment, arrive: () => Promise<void>): Promise<void> {
  const { faults } = stage.sandbox
  const firsts = barrier(SECOND.length)
  for (let n = 1; n <= SECOND.length; n++) faults.onWrite(n, 'before', firsts.arrive)
  if (moment === 'before it is carried out') {
    hangWrites(stage, SECOND.length, arrive)
    return firsts.full
  }
  const answered = barrier(SUBJECTS.length)
  for (let n = SECOND.length + 1; n <= SECOND.length + SUBJECTS.length; n++) {
    faults.onWrite(n, 'before', () => (moment === 'after its answer' ? arrive() : never(arrive)))
    faults.onWrite(n, 'after', () => void answered.arrive())
  }
  if (moment === 'after its answer') void answered.full.then(() => stage.daemon.process.kill('SIGKILL'))
  return firsts.full
}

/** Writes after the first `pass` are not carried out and never answered. */
function hangWrites({ sandbox }: Stage, pass: number, arrive: () => Promise<void>): void {
  let writes = 0
  sandbox.faults.fail(
    ({ method }) => {
      if (method === 'GET' || ++writes <= pass) return false
      void arrive()
      return true
    },
    { hang: true },
  )
}

const never = async (arrive: () => Promise<void>): Promise<void> => {
  void arrive()
  await new Promise(() => {})
}

/** Starts the daemon again and kills it once it has repeated every verb, before the answers. */
async function crashAgain(stage: Stage): Promise<void> {
  const held = barrier(SUBJECTS.length)
  for (let n = 1; n <= SUBJECTS.length; n++) stage.sandbox.faults.onWrite(n, 'before', () => never(held.arrive))
  await stage.restart()
  await held.full
  await stage.daemon.kill()
}

/** Settled: the digest is the expected one, or the time is up, whereupon it is compared. Then it must stay so. */
async function settlesTo(stage: Stage, expected: Digest): Promise<void> {
  const digest = () => stage.ledger.digest(stage.daemon)
  const same = (found: Digest): boolean => JSON.stringify(sorted(found)) === JSON.stringify(sorted(expected))
  await poll(digest, same, 10).catch(() => {})
  assert.deepEqual(await digest(), expected)
}

const sorted = (value: unknown): unknown => {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
  return Object.fromEntries(
    Object.entries(value)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([k, v]) => [k, sorted(v)]),
  )
}

/** The same verb once more, as a caller does who got no answer: the same thing, and nothing changes. */
async function repeat(stage: Stage): Promise<void> {
  for (const subject of SUBJECTS) {
    const { status, body } = await send(stage, subject)
    assert.equal(status, subject.act === 'create' ? 201 : 202, `${subject.name}: ${JSON.stringify(body)}`)
  }
}

/** The digest without any fault, on the way of which each verb is seen to make the writes it is said to make. */
async function faultFree(t: TestContext): Promise<Digest> {
  const stage = await stageOf(t)
  await prepare(stage)
  const { journal } = stage.sandbox.faults
  const before = journal.length
  await repeat(stage)
  const settled: Record<Act, string[]> = {
    create: ['running', 'created'],
    start: ['running'],
    stop: ['stopped'],
    delete: ['gone'],
  }
  for (const subject of SUBJECTS) {
    await stage.daemon.waitFor(idOf(subject), runtime => settled[subject.act].includes(runtime?.state ?? 'gone'))
  }
  const written = journal.slice(before).filter(({ method }) => method !== 'GET')
  assert.equal(
    written.length,
    SUBJECTS.reduce((sum, { writes = 1 }) => sum + writes, 0),
  )
  return await stage.ledger.digest(stage.daemon)
}

test('F-18, F-19, C12, K5, K10, B-65, B-110: killed at any write of any verb, the end is as without', async t => {
  const expected = await faultFree(t)
  const run = async (t: TestContext, moment: Moment, again = false): Promise<void> => {
    const stage = await stageOf(t)
    await prepare(stage)
    await crash(stage, moment)
    if (again) await crashAgain(stage)
    await stage.restart()
    await stage.daemon.ready()
    await settlesTo(stage, expected)
    await repeat(stage)
    await settlesTo(stage, expected)
  }
  await Promise.all([
    t.test('a write is not carried out', t => run(t, 'before it is carried out')),
    t.test('a write is carried out, its answer does not come', t => run(t, 'before its answer')),
  ])
  await Promise.all([
    t.test('a write is answered', t => run(t, 'after its answer')),
    t.test('and once more while the verbs are repeated', t => run(t, 'before it is carried out', true)),
  ])
})
