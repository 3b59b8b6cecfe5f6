import assert from 'node:assert/strict'
import { test } from 'node:test'
import { productionProfile } from '../../src/kube/reflector-profile.ts'
import { FakeCollection, isList, isWatch } from './fake-collection.ts'
import { json, statusBody, transportTo, until, within } from './serve.ts'
import { watching } from './watching.ts'

const versionsOfWatches = (fake: FakeCollection): number[] =>
  fake.served.seen.filter(isWatch).map(({ query }) => Number(query.get('resourceVersion')))

const watchesBeforeSecondList = (fake: FakeCollection): number => fake.served.seen.findLastIndex(isList) - 1

for (const [name, status, body, backoffMaxMs] of [
  ['500', 500, statusBody(500, 'InternalError'), 750],
  ['503', 503, statusBody(503, 'ServiceUnavailable'), 40],
  ['a 502 page', 502, '<html>', 40],
] as const) {
  test(`F-1, B-5: a watch answered by ${name} once, then 5 times, is tried again from the same version`, async t => {
    const fake = await FakeCollection.start(t)
    fake.fail(isWatch, 1, (_seen, response) => json(response, status, body))
    const { informer, log, told } = watching(t, fake, { profile: { backoffMaxMs } })
    await until('the second watch', () => fake.count(isWatch) === 2)
    const [first, second] = fake.served.seen.filter(isWatch)
    assert.ok((second?.at ?? 0) - (first?.at ?? 0) <= 250, `${(second?.at ?? 0) - (first?.at ?? 0)} ms`)
    assert.match(informer.reason ?? log.warnings[0]?.reason ?? '', new RegExp(`answered ${status}`))
    fake.fail(isWatch, 5, (_seen, response) => json(response, status, body))
    fake.closeWatches('reset')
    fake.put('a')
    await until('the event', () => told.length === 1, 4000)
    assert.equal(fake.count(isList), 1)
    assert.equal(fake.count(isWatch), 8)
    assert.equal(log.warnings.length, 7) // six replies and the reset
    assert.deepEqual(log.errors, [])
  })
}

test('F-2, B-5, I9: a stream reset after each of 100 events gives 100 states in order, none twice, one list', async t => {
  const fake = await FakeCollection.start(t)
  fake.bookmarks = false
  fake.put('a', { spec: { replicas: 0 } })
  const { informer, changes } = watching(t, fake, { profile: { backoffBaseMs: 1, backoffMaxMs: 2 } })
  await informer.whenSynced()
  for (let n = 1; n <= 100; n += 1) {
    fake.put('a', { spec: { replicas: n } })
    await until(`state ${n}`, () => changes.length > n)
    fake.closeWatches('reset')
  }
  const states = changes.map(({ record }) => record.spec?.replicas)
  assert.deepEqual(
    states,
    Array.from({ length: 101 }, (_, n) => n),
  )
  assert.equal(fake.count(isList), 1)
})

test('F-3, B-1: a silent half-open stream is given up after the idle time; headers alone are no contact', async t => {
  const fake = await FakeCollection.start(t)
  const { informer, told } = watching(t, fake, { profile: { idleMs: 300 } })
  await until('a bookmark', () => versionsOfWatches(fake).length === 1 && fake.watches.size === 1)
  await new Promise(resolve => setTimeout(resolve, 60))
  fake.muted = true
  const watches = fake.count(isWatch)
  const mutedAt = Date.now()
  fake.put('a')
  await until('a new stream', () => fake.count(isWatch) > watches, 1500)
  assert.ok((informer.lastContact ?? 0) <= mutedAt + 20)
  assert.match(informer.reason ?? '', /silent/)
  fake.muted = false
  await until('the event', () => told.length === 1, 4000)
  assert.equal(informer.reason, null)
})

test('two silent watches in a row start over with a list; a server without bookmarks is given the whole watch', async t => {
  const fake = await FakeCollection.start(t)
  fake.bookmarks = false
  const { informer, told } = watching(t, fake, { profile: { watchMs: 1000, idleMs: 200, relistMs: 60_000 } })
  await informer.whenSynced()
  fake.hidden = true
  fake.put('a')
  const started = Date.now()
  await until('the relist', () => fake.count(isList) === 2, 4000)
  assert.equal(watchesBeforeSecondList(fake), 2)
  assert.ok(Date.now() - started > 1500)
  await until('the hidden object', () => told.length === 1)
})

test('F-4, B-6: a server that ends each watch at once sees at most 8 in the first minute', async t => {
  const fake = await FakeCollection.start(t)
  let now = 0
  const times: number[] = []
  fake.fail(isWatch, 1000, (_seen, response) => {
    times.push(now)
    response.writeHead(200).end()
  })
  const clock = {
    now: () => now,
    random: () => 0,
    pause: async (ms: number) => {
      now += ms
      await new Promise(resolve => setTimeout(resolve, 1))
    },
  }
  watching(t, fake, { clock, profile: { ...productionProfile(), callDeadlineMs: 500 } })
  await until('a minute', () => now > 60_000)
  const early = times.filter(time => time <= 60_000)
  assert.ok(early.length <= 8, `${early.length} watches`)
  assert.equal(fake.count(isList), 1)
})

test('B-15: the back-off doubles from 0.8 to 30 s, is spread over as much again, and starts over after 2 healthy minutes', async t => {
  for (const random of [0, 0.5]) {
    const fake = await FakeCollection.start(t)
    let now = 0
    const pauses: number[] = []
    fake.fail(isWatch, 100, (_seen, response) => {
      if (pauses.length === 8) now += 121_000 // the ninth watch lives that long
      response.destroy()
    })
    const clock = {
      now: () => now,
      random: () => random,
      pause: async (ms: number) => {
        now += ms
        pauses.push(ms)
        await new Promise(resolve => setTimeout(resolve, 1))
      },
    }
    const { informer } = watching(t, fake, { clock, profile: { ...productionProfile(), relistMs: 1e9 } })
    await until('nine pauses', () => pauses.length >= 9)
    await informer.stop()
    const expected = [800, 1600, 3200, 6400, 12_800, 25_600, 30_000, 30_000, 800].map(ms => ms * (1 + random))
    assert.deepEqual(pauses.slice(0, 9), expected)
  }
})

test('a timed list that fails does not cost the watch', async t => {
  const fake = await FakeCollection.start(t)
  const { informer, told } = watching(t, fake, { profile: { relistMs: 100, backoffMaxMs: 300 } })
  await informer.whenSynced()
  fake.fail(isList, 1000, (_seen, response) => json(response, 500, statusBody(500, 'InternalError')))
  await until('a list failed', () => fake.count(isList) === 2)
  await until('the watch', () => fake.watches.size === 1)
  fake.put('a')
  await until('the event', () => told.length === 1)
  assert.equal(informer.size, 1)
})

test('B-8: a balancer that properly ends idle watches costs no growing delay', async t => {
  const fake = await FakeCollection.start(t)
  const ends: number[] = []
  fake.fail(isWatch, 10, (_seen, response) => {
    response.writeHead(200).flushHeaders()
    setTimeout(() => {
      ends.push(Date.now())
      response.end()
    }, 70)
  })
  watching(t, fake)
  await until('11 watches', () => fake.count(isWatch) === 11)
  const opened = fake.served.seen.filter(isWatch).map(({ at }) => at)
  for (const [n, end] of ends.entries()) assert.ok((opened[n + 1] ?? 0) - end < 400, `gap ${n}`)
  assert.equal(fake.count(isList), 1)
})

test('F-6, B-7: bookmarks carry a quiet collection over a compaction without a list', async t => {
  const fake = await FakeCollection.start(t)
  fake.put('a')
  const { informer, told } = watching(t, fake)
  await informer.whenSynced()
  fake.pass(10_000)
  await new Promise(resolve => setTimeout(resolve, 60))
  fake.compact()
  fake.closeWatches('reset')
  await until('the next watch', () => fake.count(isWatch) === 2)
  fake.put('b')
  await until('the event', () => told.length === 1)
  assert.equal(fake.count(isList), 1)
  assert.equal(fake.count(isWatch), 2)
  assert.ok((versionsOfWatches(fake)[1] ?? 0) >= 10_000)
})

for (const [name, expire] of [
  ['in the stream', () => {}],
  [
    'as HTTP status',
    (fake: FakeCollection) => fake.fail(isWatch, 1, (_s, response) => json(response, 410, statusBody(410, 'Expired'))),
  ],
] as const) {
  test(`F-7, B-16, I9: after a 410 ${name} the list yields exactly what the watch did not show`, async t => {
    const fake = await FakeCollection.start(t)
    for (const one of ['kept', 'changed', 'gone']) fake.put(one)
    const { informer, told, changes } = watching(t, fake)
    await informer.whenSynced()
    fake.hidden = true
    fake.put('added')
    fake.put('changed', { spec: { replicas: 3 } })
    fake.remove('gone')
    fake.compact()
    expire(fake)
    fake.bookmarks = false
    fake.closeWatches('reset')
    await until('three differences', () => told.length >= 3)
    await until('the next watch', () => fake.watches.size === 1)
    assert.deepEqual(told.toSorted(), ['+added uid-4', '+changed uid-2', '-gone uid-3'])
    assert.ok(changes.slice(-3).every(({ source }) => source === 'relist'))
    assert.equal(fake.count(isList), 2)
  })
}

test('B-3, B-13: an event that was lost on the way is made up for by the timed list', async t => {
  const fake = await FakeCollection.start(t)
  fake.put('a', { spec: { replicas: 0 } })
  const { informer } = watching(t, fake, { profile: { relistMs: 300 } })
  await informer.whenSynced()
  fake.hidden = true
  fake.put('a', { spec: { replicas: 1 } })
  fake.hidden = false
  await until('the repair', () => informer.get('ai', 'a')?.spec?.replicas === 1)
  assert.equal(fake.watches.size <= 1, true)
})

test('what was overwritten before it was seen arrives in its last state', async t => {
  const fake = await FakeCollection.start(t)
  fake.put('a', { spec: { replicas: 0 } })
  const { informer } = watching(t, fake, { profile: { idleMs: 200 } })
  await informer.whenSynced()
  fake.muted = true
  for (const replicas of [1, 0, 2]) fake.put('a', { spec: { replicas } })
  fake.muted = false
  fake.closeWatches()
  await until('the last state', () => informer.get('ai', 'a')?.spec?.replicas === 2)
})

const GARBAGE: [name: string, text: string][] = [
  ['a broken line', '{"type":"MODIF\n'],
  ['no JSON', 'upstream connect error\n'],
  [
    'an unknown type',
    '{"type":"RENAMED","object":{"kind":"Deployment","metadata":{"name":"a","uid":"u","resourceVersion":"900"}}}\n',
  ],
  ['no metadata', '{"type":"MODIFIED","object":{"kind":"Deployment"}}\n'],
  ['no version', '{"type":"MODIFIED","object":{"kind":"Deployment","metadata":{"name":"a","uid":"u"}}}\n'],
  [
    'another kind',
    '{"type":"ADDED","object":{"kind":"Secret","metadata":{"name":"a","uid":"u","resourceVersion":"900"}}}\n',
  ],
  ['null', 'null\n'],
  ['a line of 9 MiB', 'x'.repeat(9 * 1024 * 1024)],
]
for (const [name, text] of GARBAGE) {
  test(`F-11, B-13: ${name} in a watch drops the stream, which resumes from the last good version`, async t => {
    const fake = await FakeCollection.start(t)
    fake.bookmarks = false
    const { informer, told } = watching(t, fake)
    await until('the watch', () => fake.watches.size === 1)
    fake.put('a')
    await until('the first event', () => told.length === 1)
    const good = fake.version
    fake.say(text)
    await until('the next watch', () => fake.count(isWatch) === 2)
    assert.equal(versionsOfWatches(fake)[1], good)
    assert.equal(informer.counters.badLines, 1)
    fake.put('b')
    await until('the second event', () => told.length === 2)
    assert.equal(fake.count(isList), 1)
    assert.deepEqual([...informer.list()].map(({ metadata }) => metadata.name).toSorted(), ['a', 'b'])
  })
}

test('F-11: three unreadable streams in a row start over with a list', async t => {
  const fake = await FakeCollection.start(t)
  fake.fail(isWatch, 3, (_seen, response) => void response.writeHead(200).write('?\n'))
  const { informer } = watching(t, fake)
  await until('the second list', () => fake.count(isList) === 2)
  assert.equal(watchesBeforeSecondList(fake), 3)
  assert.equal(informer.counters.badLines, 3)
})

test('F-13, B-6: started twice it is one; stopped while listing, waiting or watching it is none', async t => {
  const fake = await FakeCollection.start(t)
  const transport = transportTo(t, fake.served.url)
  fake.fail(isList, 1, () => {})
  const { informer, changes } = watching(t, fake, { transport })
  informer.start()
  await until('the list', () => fake.count(isList) === 1)
  const stopIn = async (what: string): Promise<void> => {
    await within(100, informer.stop())
    const seen = fake.served.seen.length
    await until(`no watch after stop in ${what}`, () => fake.watches.size === 0, 500)
    const told = changes.length
    fake.put('a')
    await new Promise(resolve => setTimeout(resolve, 60))
    assert.equal(fake.served.seen.length, seen, what)
    assert.equal(changes.length, told, what)
  }
  await stopIn('list')
  fake.fail(isList, 1, (_seen, response) => json(response, 403, statusBody(403, 'Forbidden')))
  informer.start()
  await until('the refusal', () => informer.reason !== null)
  await stopIn('back-off')
  informer.start()
  informer.start()
  await informer.whenSynced()
  await until('the watch', () => fake.watches.size === 1)
  assert.equal(fake.count(isWatch), 1)
  await stopIn('watch')
  informer.start()
  await until('the watch goes on', () => fake.watches.size === 1)
  await informer.stop()
  await transport.close()
  await until('no sockets', () => fake.served.sockets.size === 0, 500)
})

test('F-14: a list that is never answered is given up at the deadline and tried again', async t => {
  const fake = await FakeCollection.start(t)
  fake.put('a')
  fake.fail(isList, 2, () => {})
  const { informer, log } = watching(t, fake, { profile: { callDeadlineMs: 150 } })
  await informer.whenSynced()
  const at = fake.served.seen.filter(isList).map(seen => seen.at)
  assert.equal(at.length, 3)
  assert.ok((at[1] ?? 0) - (at[0] ?? 0) < 500)
  assert.equal(log.warnings[0]?.reason, 'the cluster did not answer')
  assert.equal(informer.size, 1)
})

test('F-14: a watch whose headers never come is given up at the deadline', async t => {
  const fake = await FakeCollection.start(t)
  fake.fail(isWatch, 1, () => {})
  watching(t, fake, { profile: { callDeadlineMs: 150 } })
  await until('the second watch', () => fake.count(isWatch) === 2, 1000)
  assert.equal(fake.count(isList), 1)
})

for (const [name, headers, details] of [
  ['a header', { 'retry-after': '1' }, undefined],
  ['the details', {}, { retryAfterSeconds: 1 }],
] as const) {
  test(`F-15, B-14: 429 with Retry-After in ${name} is waited out, without a list`, async t => {
    const fake = await FakeCollection.start(t)
    const body = statusBody(429, 'TooManyRequests', 'slow down', details)
    fake.fail(isWatch, 1, (_seen, response) => json(response, 429, body, headers))
    watching(t, fake)
    await until('the second watch', () => fake.count(isWatch) === 2)
    const [first, second] = fake.served.seen.filter(isWatch)
    assert.ok((second?.at ?? 0) - (first?.at ?? 0) >= 990)
    assert.equal(fake.count(isList), 1)
  })
}

test('a right taken away is named, tried for again, and changes nothing that is known', async t => {
  const fake = await FakeCollection.start(t)
  fake.put('a')
  const { informer, told } = watching(t, fake, { profile: { backoffMaxMs: 100 } })
  await informer.whenSynced()
  fake.fail(isWatch, 2, (_seen, response) => json(response, 403, statusBody(403, 'Forbidden', 'User "x" at 10.0.0.1')))
  fake.closeWatches('reset')
  await until('the reason', () => informer.reason === 'the cluster answered 403 Forbidden to the watch')
  assert.equal(informer.size, 1)
  fake.put('b')
  await until('the event', () => told.length === 1)
  assert.equal(informer.reason, null)
})

test('B-16: a list whose page is Expired starts over from its first page', async t => {
  const fake = await FakeCollection.start(t)
  for (const name of ['a', 'b', 'c', 'd', 'e']) fake.put(name)
  const second = ({ query }: { query: URLSearchParams }): boolean => query.get('continue') === '2'
  const body = { ...statusBody(410, 'Expired'), metadata: { continue: 'inconsistent' } }
  fake.fail(second, 1, (_seen, response) => json(response, 410, body))
  const { informer, changes } = watching(t, fake, { profile: { pageSize: 2 } })
  await informer.whenSynced()
  const tokens = fake.served.seen.filter(isList).map(({ query }) => query.get('continue'))
  assert.deepEqual(tokens, [null, '2', null, '2', '4'])
  assert.deepEqual(changes.map(({ record }) => record.metadata.name).toSorted(), ['a', 'b', 'c', 'd', 'e'])
})

test('B-16: a watch whose version the server does not have yet (504 ResourceVersionTooLarge) starts over with a list', async t => {
  const fake = await FakeCollection.start(t)
  const details = { causes: [{ reason: 'ResourceVersionTooLarge', message: 'Too large resource version' }] }
  fake.fail(isWatch, 1, (_seen, response) => json(response, 504, statusBody(504, 'Timeout', 'too large', details)))
  watching(t, fake)
  await until('the second list', () => fake.count(isList) === 2)
})

test('an ERROR event other than 410 keeps the version', async t => {
  const fake = await FakeCollection.start(t)
  fake.bookmarks = false
  watching(t, fake)
  await until('the watch', () => fake.watches.size === 1)
  fake.say(`${JSON.stringify({ type: 'ERROR', object: statusBody(500, 'InternalError') })}\n`)
  await until('the next watch', () => fake.count(isWatch) === 2)
  assert.equal(fake.count(isList), 1)
})

test('an etcd restored from a backup is believed only when three lists say so', async t => {
  const fake = await FakeCollection.start(t)
  fake.put('a', { spec: { replicas: 1 } })
  fake.put('lost')
  const { informer, log, told } = watching(t, fake)
  await informer.whenSynced()
  fake.objects.delete('lost')
  fake.objects.set('a', { ...(fake.objects.get('a') as NonNullable<unknown>), spec: { replicas: 0 } } as never)
  fake.travelBack(50)
  fake.fail(isWatch, 1, (_seen, response) => json(response, 410, statusBody(410, 'Expired')))
  fake.bookmarks = false
  fake.closeWatches('reset')
  await until('a second older list', () => fake.count(isList) === 3)
  assert.equal(informer.size, 2)
  assert.deepEqual(told, [])
  await until('it is believed', () => told.length === 2)
  assert.ok(fake.count(isList) >= 4)
  assert.equal(informer.get('ai', 'a')?.spec?.replicas, 0)
  assert.equal(informer.get('ai', 'lost'), undefined)
  assert.ok(log.warnings.some(({ message }) => message.startsWith('rv-rewind')))
})

test('B-9: sockets do not grow with reconnects', async t => {
  const fake = await FakeCollection.start(t)
  fake.fail(isWatch, 300, (seen, response) => {
    if (seen.at % 2) response.writeHead(200).end()
    else response.destroy()
  })
  watching(t, fake, { profile: { backoffBaseMs: 0, shortWatchMs: 0, reconnectJitterMs: 0 } })
  await until('301 watches', () => fake.count(isWatch) > 300, 10_000)
  assert.ok(fake.served.sockets.size <= 3, `${fake.served.sockets.size} sockets`)
})

test('B-15: 5,000 objects come in pages of 500, each as a turn of its own', async t => {
  const fake = await FakeCollection.start(t)
  for (let n = 0; n < 5000; n += 1) fake.put(`w-${n}`)
  const { informer } = watching(t, fake)
  await informer.whenSynced()
  assert.equal(informer.size, 5000)
  const lists = fake.served.seen.filter(isList)
  assert.equal(lists.length, 10)
  assert.ok(lists.every(({ query }) => query.get('limit') === '500' && !query.has('resourceVersion')))
})

test('a watch asks for bookmarks, for its time, and by the selector', async t => {
  const fake = await FakeCollection.start(t)
  watching(t, fake)
  await until('the watch', () => fake.count(isWatch) === 1)
  const query = Object.fromEntries(fake.served.seen.find(isWatch)?.query ?? [])
  const { timeoutSeconds, ...rest } = query
  assert.deepEqual(rest, {
    watch: 'true',
    labelSelector: 'gobrave-workload',
    resourceVersion: '100',
    allowWatchBookmarks: 'true',
  })
  assert.equal(timeoutSeconds, '2')
})
