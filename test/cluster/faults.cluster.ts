import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { type Connection, connect, poll } from './connect.ts'
import { apiReady, expireHistory, onOwnCluster, restartApiServer, signal, withoutPackets } from './faults.ts'

let api: Connection
const configMaps = '/api/v1/namespaces/runtimed-test/configmaps'

before(async () => {
  api = await connect()
})
after(() => api.close())

/** What became of a request within a second. */
async function fate(): Promise<string> {
  const answer = api.send('GET', '/readyz').then(
    ({ status }) => `status ${status}`,
    error => `failed ${error.code}`,
  )
  return Promise.race([answer, new Promise<string>(resolve => setTimeout(resolve, 1000, 'silence'))])
}

test('faults: a stopped API server is silent, and answers again when continued', onOwnCluster, async () => {
  await signal('apiserver', 'STOP')
  assert.equal(await fate(), 'silence')
  await signal('apiserver', 'CONT')
  await apiReady()
})

test('faults: without packets the API server is silent, and answers again afterwards', onOwnCluster, async () => {
  assert.equal(await withoutPackets(fate), 'silence')
  await apiReady()
})

test('faults: a restarted API server has lost nothing', onOwnCluster, async () => {
  const made = await api.send('POST', configMaps, { metadata: { name: `kept-${process.pid}` } })
  await restartApiServer()
  const read = await api.send('GET', `${configMaps}/kept-${process.pid}`)
  assert.equal(read.body.metadata.uid, made.body.metadata.uid)
})

test('faults: a read at a version from before the expiry is 410 Gone', onOwnCluster, async () => {
  const atVersion = (version: string) =>
    api.send('GET', `${configMaps}?resourceVersionMatch=Exact&resourceVersion=${version}`)
  const old = (await api.send('GET', configMaps)).body.metadata.resourceVersion
  assert.equal((await atVersion(old)).status, 200)
  const { body } = await api.send('POST', configMaps, { metadata: { name: `newer-${process.pid}` } })
  await expireHistory()
  const gone = await atVersion(old)
  assert.equal(gone.status, 410)
  assert.equal(gone.body.reason, 'Expired')
  await poll(
    () => api.send('GET', `${configMaps}/newer-${process.pid}`),
    answer => answer.body.metadata?.uid === body.metadata.uid,
  )
})
