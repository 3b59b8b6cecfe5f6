import assert from 'node:assert/strict'
import { test } from 'node:test'
import { deployment, sandboxFor, until } from './client.ts'

test('5,000 Deployments with the instant kubelet become ready, list in pages, watch in order', async t => {
  const client = await sandboxFor(t, { kubelet: 'instant', controllers: true })
  const { registry, store } = client.sandbox
  const begin = Date.now()
  for (let n = 0; n < 5000; n++) registry.create('deployments', 'default', deployment(`w-${n}`, ['x']))
  await until(
    'all are ready',
    () => {
      const { length } = store.list('deployments', 'default').filter(({ status }) => status.readyReplicas === 1)
      return length === 5000
    },
    60_000,
  )
  t.diagnostic(`5,000 ready in ${Date.now() - begin} ms, ${store.version} versions`)
  const listed = Date.now()
  let seen = 0
  let token = ''
  do {
    const page = (await client.get(`/apis/apps/v1/deployments?limit=500${token && `&continue=${token}`}`)).body
    seen += page.items.length
    token = page.metadata.continue ?? ''
  } while (token)
  t.diagnostic(`10 pages in ${Date.now() - listed} ms`)
  assert.equal(seen, 5000)
})
