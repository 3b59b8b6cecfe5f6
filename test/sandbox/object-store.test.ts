import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { clone } from '../../src/sandbox/json.ts'
import { ObjectStore } from '../../src/sandbox/object-store.ts'
import type { KubeObject } from '../../src/sandbox/types.ts'

type Step = { name: string; act: 'put' | 'drop'; value: number }

const steps = fc.array(
  fc.record({ name: fc.constantFrom('a', 'b', 'c'), act: fc.constantFrom('put', 'put', 'drop'), value: fc.nat(3) }),
  { maxLength: 30 },
) as fc.Arbitrary<Step[]>

function apply(store: ObjectStore, { name, act, value }: Step): void {
  const current = store.get('pods', 'default', name)
  if (act === 'drop') {
    if (current) store.remove('pods', current)
  } else if (current) store.replace('pods', current, { ...clone(current), spec: { value } })
  else store.create('pods', { metadata: { name, namespace: 'default' } as KubeObject['metadata'], spec: { value } })
}

const shown = (objects: KubeObject[]): string[] =>
  objects.map(({ metadata, spec }) => `${metadata.name}=${spec.value}@${metadata.resourceVersion}`)

test('the list at any version not forgotten is what a LIST gave then, and restore brings it back', () => {
  fc.assert(
    fc.property(steps, fc.nat(30), (all, pick) => {
      const store = new ObjectStore()
      const past: { version: number; list: string[] }[] = []
      for (const step of all) {
        past.push({ version: store.version, list: shown(store.list('pods')) })
        apply(store, step)
      }
      for (const { version, list } of past) assert.deepEqual(shown(store.listAt(version, 'pods')), list)
      const goal = past[pick % Math.max(1, past.length)]
      if (!goal) return
      store.restore(goal.version)
      assert.equal(store.version, goal.version)
      assert.deepEqual(shown(store.list('pods')), goal.list)
    }),
    { numRuns: 200 },
  )
})

test('the changes since a version lead from the list then to the list now; versions only rise', () => {
  fc.assert(
    fc.property(steps, steps, (before, after) => {
      const store = new ObjectStore()
      for (const step of before) apply(store, step)
      const { version } = store
      const known = new Map(store.list('pods').map(object => [object.metadata.name, object]))
      for (const step of after) apply(store, step)
      let last = version
      for (const change of store.since(version)) {
        assert.ok(change.version > last)
        last = change.version
        if (change.type === 'DELETED') known.delete(change.object.metadata.name)
        else known.set(change.object.metadata.name, change.object)
      }
      const names = [...known.keys()].sort()
      assert.deepEqual(shown(names.map(name => known.get(name)!)), shown(store.list('pods')))
    }),
    { numRuns: 200 },
  )
})

test('writing the same again keeps the version and tells nobody', () => {
  const store = new ObjectStore()
  apply(store, { name: 'a', act: 'put', value: 1 })
  let told = 0
  store.subscribe(() => told++)
  const { version } = store
  apply(store, { name: 'a', act: 'put', value: 1 })
  assert.deepEqual([store.version, told], [version, 0])
})

test('a listener that writes is heard after the change it answers, by every listener in the same order', () => {
  const store = new ObjectStore()
  const heard: number[] = []
  store.subscribe(change => {
    if (change.object.spec.value < 3) apply(store, { name: 'a', act: 'put', value: change.object.spec.value + 1 })
  })
  store.subscribe(change => heard.push(change.object.spec.value))
  apply(store, { name: 'a', act: 'put', value: 0 })
  assert.deepEqual(heard, [0, 1, 2, 3])
})

test('the history is bounded: what fell out of it is 410, what is left is complete', () => {
  const store = new ObjectStore()
  store.historyLimit = 100
  for (let n = 0; n < 500; n++) apply(store, { name: 'a', act: 'put', value: n })
  assert.throws(() => store.since(1001), { code: 410, reason: 'Expired' })
  const rest = store.since(store.oldestVersion)
  assert.ok(rest.length <= 100)
  assert.equal(rest.length, store.version - store.oldestVersion)
})
