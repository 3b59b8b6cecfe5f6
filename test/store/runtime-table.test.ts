import assert from 'node:assert/strict'
import { test } from 'node:test'
import { tempStore } from '../helpers/store.ts'
import { change, deletedLife, newLife } from './lives.ts'

const WEB = 'k8s-default|deployment|web'

test('C9: an ID has one row that is not deleted; a deleted one makes room for a new life', async t => {
  const store = tempStore(t)
  const { lives } = await store.commit(change(newLife(WEB)))
  const first = lives[0]!
  await assert.rejects(store.commit(change(newLife(WEB))), { code: 'RUNTIME_EXISTS', runtimeId: WEB })
  assert.deepEqual(store.newest(WEB), first)
  await store.commit({
    rows: [
      { life: deletedLife(first), events: [] },
      { life: newLife(WEB, { uid: 'u-2' }), events: [] },
    ],
  })
  const second = store.newest(WEB)!
  assert.equal(second.uid, 'u-2')
  assert.ok(second.life > first.life)
  assert.equal(store.byLife(first.life)?.state, 'deleted')
})
