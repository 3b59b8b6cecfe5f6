import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { createStore } from '../../src/store/store.ts'
import { tempFolder, tempStore } from '../helpers/store.ts'
import { change, newEvent, newLife } from './lives.ts'
import { canTrace, startChild, tracing } from './process.ts'

const id = (n: number): string => `k8s-default|job|n${n}`

test('design §9: changes of one turn share a transaction, each stands or falls alone, in their order', async t => {
  const store = tempStore(t)
  const names = [0, 1, 1, 2, 0, 3]
  const settled = await Promise.allSettled(
    names.map(n => store.commit(change(newLife(id(n)), newEvent('ContainerStarted')))),
  )
  assert.deepEqual(
    settled.map(one => one.status),
    ['fulfilled', 'fulfilled', 'rejected', 'fulfilled', 'rejected', 'fulfilled'],
  )
  assert.deepEqual(
    store.read({ after: 0, limit: 10 }).map(event => [event.seq, event.runtimeId]),
    [0, 1, 2, 3].map(n => [n + 1, id(n)]),
  )
})

test('F-36: what breaks inside a change undoes all of that change', async t => {
  const store = tempStore(t)
  const rows = [
    { life: newLife(id(1)), events: [newEvent('ContainerStarted')] },
    { life: newLife(id(2)), events: [newEvent('ContainerStarted', { time: 'now' as unknown as number })] },
  ]
  await assert.rejects(store.commit({ rows, key: { token: 'a', key: 'b', hash: 'c' } }), { code: 'INTERNAL_ERROR' })
  assert.equal(store.newest(id(1)), null)
  assert.equal(store.key('a', 'b'), null)
  assert.deepEqual(store.bounds(), { oldest: null, newest: null, pruned: false })
})

test('F-17: a burst of 5,000 changes is acknowledged in steps that leave the loop its turns', async t => {
  const store = tempStore(t)
  let acknowledged = 0
  const atTurn: number[] = []
  let watching = true
  const turn = (): void => {
    atTurn.push(acknowledged)
    if (watching) setImmediate(turn)
  }
  setImmediate(turn)
  const changes = Array.from({ length: 5_000 }, (_, n) => change(newLife(id(n)), newEvent('ContainerStarted')))
  await Promise.all(changes.map(one => store.commit(one).then(() => acknowledged++)))
  watching = false
  assert.equal(store.bounds().newest, 5_000)
  const steps = atTurn.map((count, at) => count - (atTurn[at - 1] ?? 0))
  assert.ok(Math.max(...steps) <= 1_000, `${Math.max(...steps)} changes in one turn of the loop`)
  t.diagnostic(`at most ${Math.max(...steps)} a turn; last commit ${store.metrics().lastCommitMs.toFixed(1)} ms`)
})

test('F-26: close writes what is queued, folds in the log, and gives the file up', async t => {
  const store = tempStore(t)
  const pending = store.commit(change(newLife(id(1))))
  assert.ok(store.metrics().walBytes > 0)
  store.close()
  assert.equal((await pending).lives.length, 1)
  assert.equal(store.metrics().walBytes, 0)
  await assert.rejects(store.commit(change(newLife(id(2)))), { code: 'STORAGE_UNAVAILABLE' })
  assert.throws(() => store.newest(id(1)), { code: 'STORAGE_UNAVAILABLE' })
  assert.equal(store.writable().ok, false)
  const again = createStore(store.path)
  assert.ok(again.newest(id(1)))
  again.close()
})

if (canTrace) {
  test('F-41: each acknowledged commit was synced to the disk before its acknowledgement', async t => {
    const path = `${tempFolder(t)}/runtimed.db`
    const trace = tracing('-y', '-s', '40', '-e', 'trace=fsync,fdatasync,write', '-o', `${path}.trace`)
    const child = startChild(t, ['write', path, '20'], trace)
    assert.equal(await child.ended, 0, child.errors())
    let synced = false
    let batches = 0
    // A call that another thread's interrupts is shown in two halves; only the first names the file.
    const begun = new Set<string>()
    for (const line of readFileSync(`${path}.trace`, 'utf8').split('\n')) {
      const [pid = ''] = line.split(' ', 1)
      if (/f(data)?sync\(\d+<[^>]*-wal> <unfinished/.test(line)) begun.add(pid)
      const resumed = /<\.\.\. f(data)?sync resumed>\) *= 0/.test(line) && begun.delete(pid)
      if (resumed || /f(data)?sync\(\d+<[^>]*-wal>\) *= 0/.test(line)) synced = true
      if (!/write\(1<.*?>, "\d+ \d+-\d+-0\\n"/.test(line)) continue
      assert.ok(synced, 'an acknowledgement without a sync before it')
      synced = false
      batches++
    }
    assert.equal(batches, 20)
  })
}
