import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { millicores, type QuantityInput, readCpu, readMemory } from '../../src/domain/quantity.ts'

const faultOf = (reading: { value: unknown } | { fault: string }): string => {
  assert.ok('fault' in reading, `accepted as ${JSON.stringify(reading)}`)
  return reading.fault
}

const cpus: [QuantityInput, string | null][] = [
  [0.5, '500m'],
  [2, '2'],
  ['500m', '500m'],
  ['2000m', '2'],
  ['1500m', '1500m'],
  [1.5, '1500m'],
  ['0.25', '250m'],
  [0.001, '1m'],
  [0.1 + 0.2, '300m'],
  ['1e3', '1000'],
  ['2k', '2000'],
  [10_000, '10000'],
  [0, null],
  ['0', null],
  ['0m', null],
  [-0, null],
  [null, null],
  [undefined, null],
]
for (const [input, value] of cpus) {
  test(`D3, D4: cpu ${JSON.stringify(input)} is ${value}`, () => assert.deepEqual(readCpu(input), { value }))
}

test('D4: a cpu that cannot be meant is refused and told what is accepted', () => {
  for (const input of [
    Number.NaN,
    Number.POSITIVE_INFINITY,
    1e-9,
    1e30,
    -1,
    '-500m',
    '',
    ' ',
    'two',
    '1 m',
    '500mi',
    '1e999',
    '0x10',
    '1'.repeat(50),
  ]) {
    assert.match(faultOf(readCpu(input)), /such as 0\.5, 2 or "500m"/, String(input))
  }
})

const memories: [QuantityInput, number | null][] = [
  [536_870_912, 536_870_912],
  ['536870912', 536_870_912],
  ['512Mi', 536_870_912],
  ['512M', 512_000_000],
  ['0.5Gi', 536_870_912],
  ['1.1Gi', 1_181_116_006],
  ['1e9', 1_000_000_000],
  ['2k', 2000],
  [1, 1],
  [0, null],
  ['0Mi', null],
  [null, null],
  [undefined, null],
]
for (const [input, value] of memories) {
  test(`D3, D4, B-83, B-84: memory ${JSON.stringify(input)} is ${value} bytes`, () =>
    assert.deepEqual(readMemory(input), { value }))
}

const refusedMemories: [QuantityInput, RegExp][] = [
  ['512m', /did you mean "512Mi"/],
  ['1 Gi', /did you mean "1Gi"/],
  ['2GB', /did you mean "2Gi"/],
  ['512mb', /did you mean "512Mi"/],
  [0.5, /a byte cannot be divided/],
  ['1000.5', /a byte cannot be divided/],
  ['1u', /fraction of a byte/],
  ['0.0001Ki', /not between 1 byte/],
  [-1, /whole number of bytes/],
  ['-1Gi', /whole number of bytes/],
  [Number.NaN, /whole number of bytes/],
  ['', /whole number of bytes/],
  ['lots', /whole number of bytes/],
  ['1E', /not between 1 byte and 8 PiB/],
  ['9Ei', /not between 1 byte and 8 PiB/],
  [1e30, /not between 1 byte and 8 PiB/],
]
for (const [input, hint] of refusedMemories) {
  test(`D4, B-83: memory ${JSON.stringify(input)} is refused with a hint`, () =>
    assert.match(faultOf(readMemory(input)), hint))
}

test('D4, B-84: what is accepted is whole and positive, and reading it again gives the same', () => {
  const inputs = fc.oneof(
    fc.double({ noNaN: false }),
    fc
      .tuple(fc.nat(5000), fc.nat(999), fc.constantFrom('', 'm', 'k', 'M', 'G', 'Ki', 'Mi', 'Gi', 'Ti', 'e3'))
      .map(([a, b, suffix]) => `${a}.${b}${suffix}`),
  )
  fc.assert(
    fc.property(inputs, input => {
      const cpu = readCpu(input)
      if ('value' in cpu && cpu.value !== null) {
        assert.match(cpu.value, /^[1-9]\d*m?$/)
        assert.ok(Number.isSafeInteger(millicores(cpu.value)) && millicores(cpu.value) > 0)
        assert.deepEqual(readCpu(cpu.value), cpu)
      }
      const memory = readMemory(input)
      if ('value' in memory && memory.value !== null) {
        assert.ok(Number.isSafeInteger(memory.value) && memory.value > 0)
        assert.deepEqual(readMemory(String(memory.value)), memory)
      }
    }),
    { numRuns: 3000 },
  )
})
