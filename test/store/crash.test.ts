import assert from 'node:assert/strict'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import Database from 'better-sqlite3'
import { createStore } from '../../src/store/store.ts'
import { tempFolder } from '../helpers/store.ts'
import { startChild, until } from './process.ts'

const KILLS = 60
const AT_ONCE = 3

/** Starts a writer, kills it somewhen, and returns what it had acknowledged: cause by seq. */
async function killOneWriter(t: TestContext, path: string, during: 'start' | 'writing'): Promise<Map<number, string>> {
  const child = startChild(t, ['write', path])
  if (during === 'start') await new Promise(resolve => setTimeout(resolve, Math.random() * 300))
  else {
    const enough = 1 + Math.random() * 200
    await until(() => child.lines.length >= enough || child.process.exitCode !== null)
  }
  child.process.kill('SIGKILL')
  assert.equal(await child.ended, null, child.errors())
  return new Map(child.lines.map(line => [Number.parseInt(line, 10), line.replace(/^\d+ /, '')]))
}

test(`F-21, K10: ${KILLS} SIGKILLs at random moments: no acknowledged event is lost or renumbered`, async t => {
  const folder = tempFolder(t)
  let total = 0
  const one = async (name: number): Promise<void> => {
    const path = join(folder, `${name}.db`)
    const acknowledged = new Map<number, string>()
    for (let kill = 0; kill < KILLS / AT_ONCE; kill++) {
      const said = await killOneWriter(t, path, kill % 5 === 4 ? 'start' : 'writing')
      for (const [seq, cause] of said) {
        assert.ok(!acknowledged.has(seq), `seq ${seq} was given twice`)
        acknowledged.set(seq, cause)
      }
    }
    const store = createStore(path)
    const kept = new Map(store.read({ after: 0, limit: 1_000_000 }).map(event => [event.seq, event.cause]))
    const lost = [...acknowledged].filter(([seq, cause]) => kept.get(seq) !== cause)
    assert.deepEqual(lost, [])
    store.close()
    const raw = new Database(path, { readonly: true })
    assert.equal(raw.pragma('integrity_check', { simple: true }), 'ok')
    raw.close()
    total += acknowledged.size
  }
  await Promise.all(Array.from({ length: AT_ONCE }, (_, name) => one(name)))
  assert.ok(total > 1_000, `only ${total} acknowledgements`)
  t.diagnostic(`${total} acknowledged events over ${KILLS} kills, none lost`)
})
