import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Client, condition, JOBS, type Json, job, PODS, POLITE, STUBBORN, sandboxFor, until } from './client.ts'

/** What a Job's status says, without times and uids: counters, then conditions in their order. */
function facts({ metadata, status }: Json): string {
  const { conditions = [], startTime, completionTime, uncountedTerminatedPods, ...counters } = status
  const marks = [
    metadata.deletionTimestamp ? 'deleting' : '',
    startTime ? 'started' : '',
    completionTime ? 'completed' : '',
    uncountedTerminatedPods ? `uncounted:${Object.keys(uncountedTerminatedPods)}` : '',
  ]
  const shown = conditions.map((entry: Json) => `${entry.type}=${entry.status}/${entry.reason}`)
  return [`g${metadata.generation}`, ...marks, JSON.stringify(counters), ...shown].filter(Boolean).join(' ')
}

function follow(client: Client, name = 'batch'): string[] {
  const seen: string[] = []
  client.sandbox.store.subscribe(({ resource, object }) => {
    if (resource !== 'jobs' || object.metadata.name !== name) return
    const now = facts(object)
    if (seen.at(-1) !== now) seen.push(now)
  })
  return seen
}

const stored = (client: Client): Json => client.sandbox.store.get('jobs', 'default', 'batch')
const running = (client: Client): Promise<unknown> => until('a ready pod', () => stored(client)?.status?.ready === 1)
const ends = (client: Client, type: string): Promise<Json> =>
  until(type, () => (condition(stored(client), type) ? stored(client) : undefined))

test('success: the facts of recording j-exit-0 in their order', async t => {
  const client = await sandboxFor(t)
  const seen = follow(client)
  await client.post(JOBS, job('batch', ['sh', '-c', 'echo hi; sleep 0.5; exit 0']))
  const done = await ends(client, 'Complete')
  assert.deepEqual(seen, [
    'g1 {}',
    'g1 started {"active":1,"terminating":0,"ready":0}',
    'g1 started {"active":1,"terminating":0,"ready":1}',
    'g1 started {"active":1,"terminating":0,"ready":0}',
    'g1 started uncounted:succeeded {"terminating":0,"ready":0} SuccessCriteriaMet=True/CompletionsReached',
    'g1 started completed {"succeeded":1,"terminating":0,"ready":0} SuccessCriteriaMet=True/CompletionsReached Complete=True/CompletionsReached',
  ])
  assert.deepEqual(Object.keys(done.status), [
    'conditions',
    'startTime',
    'completionTime',
    'succeeded',
    'terminating',
    'ready',
  ])
  const [pod] = client.sandbox.store.list('pods')
  assert.equal(pod!.metadata.finalizers, undefined, 'the tracking finalizer is off')
  assert.equal(pod!.metadata.labels!['batch.kubernetes.io/job-name'], 'batch')
  assert.equal(pod!.status.phase, 'Succeeded')
})

test('a Job has the defaults of the API server', async t => {
  const client = await sandboxFor(t, { controllers: false })
  const { spec, metadata } = (await client.post(JOBS, job('batch', ['true'], { backoffLimit: undefined }))).body
  assert.deepEqual(
    [
      spec.parallelism,
      spec.completions,
      spec.backoffLimit,
      spec.suspend,
      spec.completionMode,
      spec.podReplacementPolicy,
    ],
    [1, 1, 6, false, 'NonIndexed', 'TerminatingOrFailed'],
  )
  assert.deepEqual(spec.selector, { matchLabels: { 'batch.kubernetes.io/controller-uid': metadata.uid } })
})

test('failure without retries: FailureTarget, then Failed; the exit code is in the pod (recording j-exit-3)', async t => {
  const client = await sandboxFor(t)
  const seen = follow(client)
  await client.post(JOBS, job('batch', ['sh', '-c', 'exit 3']))
  await ends(client, 'Failed')
  assert.deepEqual(seen.slice(-2), [
    'g1 started uncounted:failed {"terminating":0,"ready":0} FailureTarget=True/BackoffLimitExceeded',
    'g1 started {"failed":1,"terminating":0,"ready":0} FailureTarget=True/BackoffLimitExceeded Failed=True/BackoffLimitExceeded',
  ])
  assert.equal(client.sandbox.store.list('pods')[0]!.status.containerStatuses[0].state.terminated.exitCode, 3)
})

test('retries: between two pods nothing is active and there is no verdict (recording j-retry-ok)', async t => {
  const client = await sandboxFor(t)
  const seen = follow(client)
  const once = 'mkdir "$MARK" 2>/dev/null && exit 1; exit 0'
  const mark = `/tmp/sandbox-test-${process.pid}-${Date.now()}`
  t.after(async () => (await import('node:fs')).rmSync(mark, { recursive: true, force: true }))
  await client.post(
    JOBS,
    job('batch', ['sh', '-c', once], { backoffLimit: 2 }, { env: [{ name: 'MARK', value: mark }] }),
  )
  const done = await ends(client, 'Complete')
  assert.equal(done.status.failed, 1)
  assert.equal(done.status.succeeded, 1)
  assert.ok(seen.includes('g1 started {"failed":1,"terminating":0,"ready":0}'))
  assert.equal(client.sandbox.store.count('pods'), 2)
})

test('made suspended: no pod, no startTime; released it runs (recording j-suspended-start)', async t => {
  const client = await sandboxFor(t)
  const seen = follow(client)
  await client.post(JOBS, job('batch', POLITE, { suspend: true }))
  await until('the condition', () => condition(stored(client), 'Suspended'))
  assert.deepEqual(seen, ['g1 {}', 'g1 {"terminating":0,"ready":0} Suspended=True/JobSuspended'])
  assert.equal(client.sandbox.store.count('pods'), 0)
  await client.patch(`${JOBS}/batch`, { spec: { suspend: false } })
  await running(client)
  assert.deepEqual(seen.slice(2, 4), [
    'g2 {"terminating":0,"ready":0} Suspended=True/JobSuspended',
    'g2 started {"active":1,"terminating":0,"ready":0} Suspended=False/JobResumed',
  ])
})

test('suspended while running: finalizer off first, nothing counted, startTime cleared (recording j-suspend-running)', async t => {
  const client = await sandboxFor(t)
  const seen = follow(client)
  await client.post(JOBS, job('batch', STUBBORN))
  await running(client)
  seen.length = 0
  await client.patch(`${JOBS}/batch`, { spec: { suspend: true } })
  const killed = await client.pod(pod => pod.status.containerStatuses?.[0].state.terminated, 'the end')
  assert.equal(killed.status.containerStatuses[0].state.terminated.exitCode, 137)
  await until('the pod is gone', () => client.sandbox.store.count('pods') === 0)
  await until('nothing terminates', () => stored(client).status.terminating === 0)
  assert.deepEqual(seen, [
    'g2 started {"active":1,"terminating":0,"ready":1}',
    'g2 {"terminating":1,"ready":0} Suspended=True/JobSuspended',
    'g2 {"terminating":0,"ready":0} Suspended=True/JobSuspended',
  ])
})

test('foreground delete while running: the Job waits for its pod, counts nothing, the tombstone lists the finalizer (j-delete-running)', async t => {
  const client = await sandboxFor(t)
  await client.post(JOBS, job('batch', POLITE))
  await running(client)
  const order: string[] = []
  client.sandbox.store.subscribe(({ resource, type, object }) => {
    if (type === 'DELETED' && resource !== 'events')
      order.push(`${resource} ${object.metadata.finalizers ?? ''}`.trim())
  })
  const seen = follow(client)
  const reply = await client.delete(`${JOBS}/batch`, { propagationPolicy: 'Foreground' })
  assert.deepEqual(reply.body.metadata.finalizers, ['foregroundDeletion'])
  assert.equal(reply.body.metadata.generation, 2)
  await until('all is gone', () => order.length === 2)
  assert.deepEqual(order, ['pods', 'jobs foregroundDeletion'])
  assert.ok(seen.every(line => !line.includes('failed') && !line.includes('succeeded')))
})

test('without propagationPolicy a DELETE of a Job orphans its pods, as batch/v1 does', async t => {
  const client = await sandboxFor(t)
  await client.post(JOBS, job('batch', POLITE))
  await running(client)
  await client.delete(`${JOBS}/batch`)
  await until('the Job is gone', () => client.sandbox.store.count('jobs') === 0)
  assert.equal(client.sandbox.store.list('pods')[0]!.metadata.ownerReferences, undefined)
})

test('background delete: the Job goes at once, its pod after it (recording j-delete-background)', async t => {
  const client = await sandboxFor(t)
  await client.post(JOBS, job('batch', POLITE))
  await running(client)
  const reply = await client.delete(`${JOBS}/batch`, { propagationPolicy: 'Background' })
  assert.equal(reply.body.status, 'Success')
  assert.equal((await client.get(`${JOBS}/batch`)).code, 404)
  await until('the pod is gone', () => client.sandbox.store.count('pods') === 0)
})

test('activeDeadlineSeconds: FailureTarget at once, Failed only when the pod is gone (recording j-deadline)', async t => {
  const client = await sandboxFor(t)
  const seen = follow(client)
  await client.post(JOBS, job('batch', STUBBORN, { activeDeadlineSeconds: 2 }))
  await ends(client, 'Failed')
  assert.deepEqual(seen.slice(-4), [
    'g1 started uncounted:failed {"terminating":1,"ready":0} FailureTarget=True/DeadlineExceeded',
    'g1 started {"failed":1,"terminating":1,"ready":0} FailureTarget=True/DeadlineExceeded',
    'g1 started {"failed":1,"terminating":0,"ready":0} FailureTarget=True/DeadlineExceeded',
    'g1 started {"failed":1,"terminating":0,"ready":0} FailureTarget=True/DeadlineExceeded Failed=True/DeadlineExceeded',
  ])
})

test('a pod deleted by hand counts as failed although it exits 0 (recording j-pod-deleted)', async t => {
  const client = await sandboxFor(t)
  await client.post(JOBS, job('batch', POLITE))
  await running(client)
  await client.delete(`${PODS}/${client.sandbox.store.list('pods')[0]!.metadata.name}`)
  const failed = await ends(client, 'Failed')
  assert.equal(failed.status.failed, 1)
  assert.equal(failed.status.succeeded, undefined)
})

test('ttlSecondsAfterFinished 0 removes the Job and its pod right after the end (recording j-ttl-0)', async t => {
  const client = await sandboxFor(t)
  const seen = follow(client)
  await client.post(JOBS, job('batch', ['true'], { ttlSecondsAfterFinished: 0 }))
  await until(
    'the Job is gone',
    () => client.sandbox.store.count('jobs') === 0 && client.sandbox.store.count('pods') === 0,
  )
  assert.ok(seen.some(line => line.includes('Complete=True') && !line.includes('deleting')))
})

test('StartError, ErrImagePull and OOMKilled of a Job', async t => {
  const client = await sandboxFor(t)
  await client.post(JOBS, job('batch', ['/nope']))
  await ends(client, 'Failed')
  const [pod] = client.sandbox.store.list('pods')
  assert.equal(pod!.status.containerStatuses[0].state.terminated.reason, 'StartError')
  assert.equal(pod!.status.containerStatuses[0].state.terminated.exitCode, 128)
  await client.post(JOBS, job('oom', ['x'], {}, { image: 'sandbox/oom:1' }))
  await until('the verdict', () => condition(client.sandbox.store.get('jobs', 'default', 'oom'), 'Failed'))
  const killed = client.sandbox.store.list('pods').find(({ metadata }) => metadata.name.startsWith('oom-'))
  assert.deepEqual(
    [
      killed!.status.containerStatuses[0].state.terminated.reason,
      killed!.status.containerStatuses[0].state.terminated.exitCode,
    ],
    ['OOMKilled', 137],
  )
  await client.post(JOBS, job('pull', ['x'], {}, { image: 'registry.invalid/none:1' }))
  const stuck = await client.pod(
    ({ metadata, status }) =>
      metadata.name.startsWith('pull-') && status.containerStatuses?.[0].state.waiting?.reason === 'ImagePullBackOff',
  )
  assert.equal(stuck.status.phase, 'Pending')
  await client.delete(`${JOBS}/pull`, { propagationPolicy: 'Foreground' })
  const lost = await client.pod(
    ({ metadata, status }) => metadata.name.startsWith('pull-') && status.containerStatuses[0].state.terminated,
    'its end',
  )
  assert.deepEqual(lost.status.containerStatuses[0].state.terminated, {
    exitCode: 137,
    reason: 'ContainerStatusUnknown',
    message: 'The container could not be located when the pod was terminated',
    startedAt: null,
    finishedAt: null,
  })
})

test('parallelism 2, completions 3: never more than two pods at once', async t => {
  const client = await sandboxFor(t)
  let most = 0
  client.sandbox.store.subscribe(({ resource, object }) => {
    if (resource === 'jobs') most = Math.max(most, object.status?.active ?? 0)
  })
  await client.post(JOBS, job('batch', ['sleep', '0.1'], { parallelism: 2, completions: 3 }))
  const done = await ends(client, 'Complete')
  assert.equal(done.status.succeeded, 3)
  assert.equal(most, 2)
})
