import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { DeploymentRecord } from '../../src/kube/trim.ts'
import { TRIM } from '../../src/kube/trim.ts'
import { FakeCollection, isList, isWatch } from './fake-collection.ts'
import { json, statusBody, until } from './serve.ts'
import { watching } from './watching.ts'

const names = (records: Iterable<DeploymentRecord>): string[] =>
  [...records].map(({ metadata }) => metadata.name).toSorted()

test('I1: nothing is told before the first list is complete; then each object once, then it has synced', async t => {
  const fake = await FakeCollection.start(t)
  for (const name of ['a', 'b', 'c']) fake.put(name)
  const second = ({ query }: { query: URLSearchParams }): boolean => query.get('continue') === '2'
  fake.fail(second, 1, (_seen, response) => json(response, 500, statusBody(500, 'InternalError')))
  const { informer, changes } = watching(t, fake, { profile: { pageSize: 2 } })
  await until('the failed page', () => informer.reason !== null)
  fake.remove('a') // listed once, gone before the list was complete: it never was
  assert.equal(informer.hasSynced, false)
  assert.equal(changes.length, 0)
  assert.equal(await informer.whenSynced(), true)
  assert.deepEqual(
    changes.map(({ type, source, record, previous }) => [type, source, record.metadata.name, previous]),
    [
      ['applied', 'list', 'b', null],
      ['applied', 'list', 'c', null],
    ],
  )
  assert.equal(informer.hasSynced, true)
  assert.ok((informer.lastContact ?? 0) > Date.now() - 1000)
})

test('I1: who waits for a cluster that is not there can leave', async t => {
  const fake = await FakeCollection.start(t)
  fake.fail(isList, 1000, (_seen, response) => void response.destroy())
  const { informer } = watching(t, fake)
  assert.equal(await informer.whenSynced(AbortSignal.timeout(50)), false)
  await until('the reason', () => informer.reason === 'the cluster did not answer')
  assert.equal(informer.lastContact, null)
})

test('F-9, B-11, I11: another uid under the same name is the old one deleted and a new one, however it was learnt', async t => {
  const fake = await FakeCollection.start(t)
  fake.put('a')
  const { informer, changes, told } = watching(t, fake)
  await informer.whenSynced()
  fake.hidden = true
  fake.remove('a')
  fake.put('a')
  fake.hidden = false
  fake.put('a', { spec: { replicas: 2 } })
  await until('both by the watch', () => told.length === 2)
  assert.deepEqual(told, ['-a uid-1', '+a uid-2'])
  fake.hidden = true
  fake.remove('a')
  fake.put('a')
  fake.compact()
  fake.bookmarks = false
  fake.closeWatches()
  await until('both by the list', () => told.length === 4)
  assert.deepEqual(told.slice(2), ['-a uid-2', '+a uid-3'])
  assert.equal(changes.at(-1)?.previous, null)
  assert.equal(changes.at(-2)?.record.spec?.replicas, 2)
  assert.equal(informer.size, 1)
})

test('B-11: a deletion told late does not take the object that came after it', async t => {
  const fake = await FakeCollection.start(t)
  const old = fake.put('a')
  fake.remove('a')
  fake.put('a')
  const { informer, told } = watching(t, fake)
  await until('the watch', () => fake.watches.size === 1)
  fake.say(`${JSON.stringify({ type: 'DELETED', object: old })}\n`)
  fake.put('b')
  await until('the next event', () => told.length === 1)
  assert.equal(informer.get('ai', 'a')?.metadata.uid, 'uid-2')
})

test('of one uid nothing older than what is known is taken, and the same version is told once', async t => {
  const fake = await FakeCollection.start(t)
  fake.version = 998
  const older = fake.put('a', { spec: { replicas: 0 } })
  const newer = fake.put('a', { spec: { replicas: 1 } })
  assert.deepEqual(
    [older, newer].map(({ metadata }) => metadata.resourceVersion),
    ['999', '1000'],
  )
  const { informer, told } = watching(t, fake)
  await until('the watch', () => fake.watches.size === 1)
  for (const object of [older, newer]) fake.say(`${JSON.stringify({ type: 'MODIFIED', object })}\n`)
  fake.put('b')
  await until('the next event', () => told.length > 0)
  assert.deepEqual(told, ['+b uid-2'])
  assert.equal(informer.get('ai', 'a')?.spec?.replicas, 1)
  assert.equal(informer.counters.stale, 1)
})

test('K8: a list that shows nothing new tells nothing', async t => {
  const fake = await FakeCollection.start(t)
  for (const name of ['a', 'b']) fake.put(name)
  const { informer, told } = watching(t, fake, { profile: { relistMs: 30 } })
  await until('five lists', () => informer.counters.lists >= 5)
  assert.deepEqual(told, [])
})

test('the tombstone of a watch carries the state at the deletion', async t => {
  const fake = await FakeCollection.start(t)
  fake.put('a', { spec: { replicas: 1 } })
  const { informer, changes } = watching(t, fake)
  await informer.whenSynced()
  const last = fake.objects.get('a')
  fake.objects.set('a', { ...last, spec: { replicas: 0 } } as never)
  fake.remove('a')
  await until('the tombstone', () => changes.at(-1)?.type === 'deleted')
  const { record, previous, source } = changes.at(-1) ?? {}
  assert.equal(source, 'watch')
  assert.equal(record?.spec?.replicas, 0)
  assert.equal(previous?.spec?.replicas, 1)
  assert.equal(record?.metadata.resourceVersion, String(fake.version))
})

test('B-12: a handler that throws, or an object that cannot be read, harms nobody else', async t => {
  const fake = await FakeCollection.start(t)
  const transform = (object: Parameters<typeof TRIM.Deployment>[0]): DeploymentRecord => {
    if (object.metadata?.name === 'unreadable') throw new Error('no status')
    return TRIM.Deployment(object)
  }
  const { informer, told, log } = watching(t, fake, { transform })
  informer.onChange(({ record }) => {
    if (record.metadata.name === 'poison') throw new Error('poison')
  })
  informer.onChange(async ({ record }) => {
    if (record.metadata.name === 'b') throw new Error('poison, later')
  })
  const seenAfter: string[] = []
  const leave = informer.onChange(({ record }) => void seenAfter.push(record.metadata.name))
  await informer.whenSynced()
  await until('the watch', () => fake.watches.size === 1)
  for (const name of ['a', 'poison', 'unreadable', 'b']) fake.put(name)
  await until('the last', () => told.length === 3)
  assert.deepEqual(seenAfter, ['a', 'poison', 'b'])
  assert.deepEqual(
    log.errors.map(({ message }) => message),
    ['a handler of changes failed', 'an object of the cluster could not be read', 'a handler of changes failed'],
  )
  assert.equal(informer.counters.handlerErrors, 3)
  assert.equal(fake.count(isWatch), 1)
  leave()
  fake.put('c')
  await until('the next', () => told.length === 4)
  assert.equal(seenAfter.length, 3)
})

test('records are found by label and owner, and no longer once that changed', async t => {
  const fake = await FakeCollection.start(t)
  const indexes = { workload: ({ metadata }: DeploymentRecord) => metadata.labels?.['gobrave-workload'] }
  const label = (name: string, workload: string): void => {
    const { metadata } = fake.put(name)
    metadata.labels = { 'gobrave-workload': workload }
    fake.put(name)
  }
  label('a', 'x')
  label('b', 'x')
  fake.put('c')
  const { informer, told } = watching(t, fake, { indexes })
  await informer.whenSynced()
  assert.deepEqual(names(informer.byIndex('workload', 'x')), ['a', 'b'])
  label('b', 'y')
  fake.remove('a')
  await until('the changes', () => told.length >= 2 && informer.size === 2)
  assert.deepEqual(names(informer.byIndex('workload', 'x')), [])
  assert.deepEqual(names(informer.byIndex('workload', 'y')), ['b'])
  assert.throws(() => informer.byIndex('other', 'x'))
})

/** One step of a cluster and of what goes wrong with the way to it. */
const steps = fc.array(
  fc.oneof(
    { weight: 6, arbitrary: fc.record({ do: fc.constant('put' as const), name: fc.constantFrom('a', 'b', 'c') }) },
    { weight: 3, arbitrary: fc.record({ do: fc.constant('remove' as const), name: fc.constantFrom('a', 'b', 'c') }) },
    {
      weight: 4,
      arbitrary: fc.record({
        do: fc.constantFrom('end' as const, 'reset' as const, 'compact' as const, 'garbage' as const, 'fail' as const),
        name: fc.constant(''),
      }),
    },
    {
      weight: 2,
      arbitrary: fc.record({ do: fc.constantFrom('hide' as const, 'wait' as const), name: fc.constant('') }),
    },
  ),
  { minLength: 5, maxLength: 40 },
)

function disturb(fake: FakeCollection, step: { do: string; name: string }): void {
  if (step.do === 'put') fake.put(step.name)
  if (step.do === 'remove' && fake.objects.has(step.name)) fake.remove(step.name)
  if (step.do === 'end') fake.closeWatches()
  if (step.do === 'reset') fake.closeWatches('reset')
  if (step.do === 'compact') fake.compact()
  if (step.do === 'garbage') fake.say('{"type":"MOD\n')
  if (step.do === 'hide') fake.hidden = !fake.hidden
  if (step.do === 'fail')
    fake.fail(
      () => true,
      1,
      (_seen, response) => void response.destroy(),
    )
}

test('I9: whatever breaks, in the end the cache is the cluster, and no uid is heard of after its deletion', async t => {
  const run = async (script: { do: string; name: string }[]): Promise<void> => {
    const fake = await FakeCollection.start(t)
    const profile = { backoffBaseMs: 1, backoffMaxMs: 5, reconnectJitterMs: 1, shortWatchMs: 1, relistMs: 150 }
    const { informer, told, changes } = watching(t, fake, { profile })
    for (const step of script) {
      disturb(fake, step)
      if (step.do === 'wait') await new Promise(resolve => setTimeout(resolve, 8))
    }
    fake.hidden = false
    const truth = (): string =>
      JSON.stringify(
        [...fake.objects.values()].map(({ metadata }) => [metadata.uid, metadata.resourceVersion]).toSorted(),
      )
    const cached = (): string =>
      JSON.stringify([...informer.list()].map(({ metadata }) => [metadata.uid, metadata.resourceVersion]).toSorted())
    await until('it is the same', () => truth() === cached(), 4000)
    const over = new Set<string>()
    for (const line of told) {
      const uid = line.split(' ')[1] ?? ''
      assert.equal(over.has(uid), false, `${line} after its deletion: ${told.join(', ')}`)
      if (line.startsWith('-')) over.add(uid)
    }
    const alive = new Set<string>()
    for (const { type, record } of changes) {
      if (type === 'applied') alive.add(record.metadata.uid)
      else alive.delete(record.metadata.uid)
    }
    assert.deepEqual(alive, new Set([...informer.list()].map(({ metadata }) => metadata.uid)))
    await informer.stop()
    await fake.served.close()
  }
  await fc.assert(fc.asyncProperty(steps, run), { numRuns: 25 })
})
