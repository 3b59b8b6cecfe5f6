import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { decodeEvent, decodeList, LineSplitter, withoutUnread } from '../../src/kube/decode.ts'
import { isOlderVersion } from '../../src/kube/versions.ts'

const managed = [
  { manager: 'kubectl', fieldsV1: { 'f:spec': { 'f:replicas': {} }, 'f:metadata': {}, 'k:{"name":"a"}': {} } },
]

test('managedFields are cut out of objects and of lists in the order of the API server', () => {
  const object = (name: string) => ({
    metadata: { name, managedFields: managed },
    spec: { template: { metadata: {} } },
  })
  assert.equal(
    withoutUnread(Buffer.from(JSON.stringify(object('a')))),
    '{"metadata":{"name":"a"},"spec":{"template":{"metadata":{}}}}',
  )
  const list = {
    metadata: { resourceVersion: '7', continue: 'x' },
    items: [object('a'), { metadata: { managedFields: managed }, spec: {} }],
  }
  const decoded = decodeList(Buffer.from(JSON.stringify(list)))
  assert.deepEqual(
    { ...decoded, items: [...decoded.items] },
    {
      version: '7',
      token: 'x',
      items: [
        { metadata: { name: 'a' }, spec: { template: { metadata: {} } } },
        { metadata: {}, spec: {} },
      ],
    },
  )
})

test('an object that only speaks of managedFields loses nothing', () => {
  const object = {
    metadata: { name: 'a', annotations: { x: '"managedFields":[ ]},"spec":' } },
    spec: { a: ['"managedFields":['] },
  }
  assert.deepEqual(JSON.parse(withoutUnread(Buffer.from(JSON.stringify(object))) ?? JSON.stringify(object)), object)
})

test('env and what a pod says of its way up are cut out, where they stand as the API server has them', () => {
  const spec = (env: object[], then: object) => ({
    containers: [{ name: 'a', image: 'i', env, ...then }, { name: 'b' }],
  })
  const way = [
    { type: 'PodReadyToStartContainers', status: 'True' },
    { type: 'Initialized', status: 'True' },
  ]
  const ready = { type: 'Ready', status: 'True', message: '{"type":"Initialized",},{"type":"' }
  const env = [
    { name: 'X', value: '}],"resources":' },
    { name: 'Y', valueFrom: { fieldRef: { fieldPath: 'p' } } },
  ]
  const plain = [{ name: 'X', value: '"' }, { name: 'Y' }]
  const left = (object: object): unknown => {
    const text = JSON.stringify(object)
    return JSON.parse(withoutUnread(Buffer.from(text)) ?? text)
  }
  const of = (some: object[]) => ({ status: { conditions: some } })
  const { containers } = spec([], {})
  assert.deepEqual(left(spec(plain, { resources: {} })), {
    containers: [{ name: 'a', image: 'i', resources: {} }, containers[1]],
  })
  for (const whole of [
    spec(plain, { ports: [{ name: 'p' }] }),
    spec(plain, {}),
    spec(env, { resources: {} }),
    of(way.slice(1)),
    of([
      { ...way[0], message: '},{"type":"' },
      { ...way[1], reason: {} },
    ]),
    of([ready, ...way]),
  ]) {
    assert.deepEqual(left(whole), whole)
  }
  assert.deepEqual(left(of([...way, ready])), of([ready]))
  assert.deepEqual(left(of(way)), of(way.slice(1)))
})

/** Objects with their keys in any order, texts that look like ours included. */
const text = fc.oneof(
  fc.string({ maxLength: 8 }),
  fc.constantFrom('"managedFields":[', ']},"spec":', '\\"managedFields\\":['),
)
const metadata = fc
  .tuple(fc.record({ name: text, labels: fc.dictionary(text, text, { maxKeys: 2 }) }), fc.boolean(), fc.boolean())
  .map(([rest, has, first]) =>
    !has ? rest : first ? { managedFields: managed, ...rest } : { ...rest, managedFields: managed },
  )
const object = fc
  .tuple(metadata, fc.dictionary(text, text, { maxKeys: 2 }), fc.constantFrom('msx', 'smx', 'mxs', 'xsm'))
  .map(([meta, spec, order]) =>
    Object.fromEntries(
      [...order].map(key => (key === 'm' ? ['metadata', meta] : key === 's' ? ['spec', spec] : ['status', {}])),
    ),
  )

const stripped = (value: unknown): unknown =>
  JSON.parse(JSON.stringify(value), (key, inner) => (key === 'managedFields' ? undefined : inner))

test('whatever the order of keys, a list keeps all but managedFields', () => {
  fc.assert(
    fc.property(fc.array(object, { maxLength: 5 }), items => {
      const { items: decoded } = decodeList(Buffer.from(JSON.stringify({ metadata: {}, items })))
      assert.deepEqual(stripped([...decoded].slice(-items.length || undefined)), stripped(items))
    }),
    { numRuns: 500 },
  )
})

test('what is no list and no event is refused', () => {
  for (const text of ['null', '[]', '{}', '{"metadata":{},"items":3}', '<html>', '']) {
    assert.throws(() => [...decodeList(Buffer.from(text)).items], text)
  }
  for (const text of ['null', '{}', '{"type":"ADDED"}', '{"type":"ADDED","object":null}', '3']) {
    assert.throws(() => decodeEvent(Buffer.from(text)), text)
  }
  assert.deepEqual([...decodeList(Buffer.from('{"metadata":{},"items":null}')).items], [])
})

test('lines come whole however their bytes are cut', () => {
  const lines = fc.array(fc.string({ unit: 'binary', maxLength: 12 }).map(line => line.replaceAll('\n', '·')))
  fc.assert(
    fc.property(lines, fc.array(fc.nat(40), { maxLength: 30 }), (all, cuts) => {
      const bytes = Buffer.from(all.map(line => `${line}\n`).join(''))
      const splitter = new LineSplitter(1000)
      const seen: string[] = []
      let from = 0
      for (const size of [...cuts, bytes.length]) {
        splitter.push(bytes.subarray(from, from + size), line => seen.push(line.toString('utf8')))
        from = Math.min(bytes.length, from + size)
      }
      assert.deepEqual(
        seen,
        all.map(line => Buffer.from(line).toString('utf8')),
      )
    }),
    { numRuns: 300 },
  )
})

test('F-11: a line over the limit is refused before it is kept', () => {
  const splitter = new LineSplitter(10)
  splitter.push(Buffer.from('0123456789\n01234'), () => {})
  assert.throws(() => splitter.push(Buffer.from('567890'), () => {}), RangeError)
  assert.throws(() => new LineSplitter(10).push(Buffer.from('0123456789a\n'), () => {}), RangeError)
})

test('versions are compared as whole numbers of any size, and not at all otherwise', () => {
  fc.assert(
    fc.property(fc.bigInt({ min: 0n, max: 2n ** 70n }), fc.bigInt({ min: 0n, max: 2n ** 70n }), (a, b) => {
      assert.equal(isOlderVersion(String(a), String(b)), a < b)
    }),
  )
  for (const [a, b] of [
    ['', '5'],
    ['x', '5'],
    ['5', 'y'],
    ['-1', '5'],
    ['1.5', '5'],
  ] as const) {
    assert.equal(isOlderVersion(a, b), false)
  }
})
