import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LastSeenMemory } from '../../src/kube/last-seen.ts'
import type { PodRecord } from '../../src/kube/trim.ts'

const podOf = (name: string, workload: string): PodRecord =>
  ({
    metadata: {
      name,
      namespace: 'default',
      uid: name,
      resourceVersion: '1',
      labels: { app: workload, 'gobrave-workload': workload, 'runtimed.dev/kind': 'job' },
      ownerReferences: [{ kind: 'Job', name: workload, uid: workload, controller: true }],
    },
    spec: {},
    status: {},
  }) as unknown as PodRecord

const named = (name: string) => ({ namespace: 'default', kind: 'job', name })
const names = (pods: readonly PodRecord[]): unknown[] => pods.map(pod => pod.metadata.name)

test('B-44: a Job that makes pods without end leaves only its newest in memory', () => {
  const memory = new LastSeenMemory(() => 0, { owners: 10, podsOfOne: 3, ms: 1000 })
  for (let n = 0; n < 10_000; n++) memory.podGone(podOf(`batch-${n}`, 'batch'))
  assert.deepEqual(names(memory.podsGone(named('batch'))), ['batch-9997', 'batch-9998', 'batch-9999'])
})

test('B-44: what is gone is forgotten by number and by time, the oldest first', () => {
  let now = 0
  const memory = new LastSeenMemory(() => now, { owners: 2, podsOfOne: 3, ms: 1000 })
  for (const name of ['a', 'b', 'c']) memory.podGone(podOf(`${name}-1`, name))
  assert.deepEqual(names(memory.podsGone(named('a'))), [])
  assert.deepEqual(names(memory.podsGone(named('c'))), ['c-1'])
  now = 1001
  memory.podGone(podOf('d-1', 'd'))
  assert.deepEqual(names(memory.podsGone(named('c'))), [])
})
