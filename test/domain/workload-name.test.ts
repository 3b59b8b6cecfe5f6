import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import fc from 'fast-check'
import {
  generateName,
  isDnsLabel,
  nameFault,
  serviceDns,
  serviceName,
  serviceNameFault,
  suggestLabel,
} from '../../src/domain/workload-name.ts'
import { labels } from '../helpers/arbitraries.ts'

const offered = (fault: string | null): string => /such as "([^"]+)"$/.exec(fault ?? '')?.[1] ?? ''

const offers: [text: string, offer: string][] = [
  ['My App_v2!', 'my-app-v2'],
  ['-a', 'a'],
  ['a.b', 'a-b'],
  ['web-', 'web'],
  ['Web', 'web'],
  ['web_', 'web'],
  ['wéb', 'web'],
  ['v0.1', 'v0-1'],
  ['!!!', 'runtime'],
  ['日本', 'runtime'],
  ['x'.repeat(64), 'x'.repeat(63)],
  [`${'x'.repeat(62)}--y`, 'x'.repeat(62)],
  ['a'.repeat(253), 'a'.repeat(63)],
]
for (const [text, offer] of offers) {
  test(`C8, B-79, B-80: the name ${JSON.stringify(text.slice(0, 20))} is refused, ${offer.slice(0, 20)} offered`, () => {
    assert.equal(offered(nameFault(text)), offer)
  })
}

test('B-79: every label up to 63 characters is a name', () => {
  for (const length of [1, 52, 59, 60, 63]) assert.equal(nameFault('n'.repeat(length)), null)
})

test('C8: what is offered is always legal, for a Service too', () => {
  fc.assert(
    fc.property(fc.string({ maxLength: 300, unit: 'grapheme' }), labels(63), (text, label) => {
      assert.ok(isDnsLabel(suggestLabel(text)))
      assert.equal(suggestLabel(label).replaceAll('-', ''), label.replaceAll('-', ''))
      const fault = serviceNameFault(label)
      if (fault !== null) {
        assert.equal(serviceNameFault(offered(fault)), null)
        assert.ok(isDnsLabel(offered(fault)))
      }
    }),
    { numRuns: 2000 },
  )
})

test('C8: generated names are legal for a Service, and unique', () => {
  const names = new Set(Array.from({ length: 20_000 }, () => generateName(randomBytes(10))))
  assert.equal(names.size, 20_000)
  for (const name of names) assert.equal(nameFault(name) ?? serviceNameFault(name), null)
  assert.throws(() => generateName(randomBytes(9)), RangeError)
  assert.equal(generateName(new Uint8Array(10)), generateName(new Uint8Array(16)))
})

test('E3, B-79, B-80: a Service name fits and begins with a letter', () => {
  assert.equal(serviceNameFault('w'.repeat(59)), null)
  assert.match(serviceNameFault('w'.repeat(60)) ?? '', /at most 59/)
  assert.equal(offered(serviceNameFault('1web')), 's-1web')
})

test('E1, F-35: no two names share a Service name, and one is never a Service and a name at once for itself', () => {
  fc.assert(
    fc.property(labels(59), labels(59), (a, b) => {
      assert.equal(serviceName(a) === serviceName(b), a === b)
      assert.notEqual(serviceName(a), a)
    }),
    { numRuns: 2000 },
  )
})

test('A9, M1: the DNS name carries the cluster domain', () => {
  assert.equal(serviceDns('web-svc', 'ai', 'corp.local'), 'web-svc.ai.svc.corp.local')
})
