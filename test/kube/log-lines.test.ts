import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { LogLines } from '../../src/kube/log-lines.ts'

interface Line {
  readonly stamp: string
  readonly data: Buffer
}

const START = Date.parse('2026-11-29T18:00:00Z')

/** What a kubelet sends: lines at or after `since`, whose granularity is a second, each with its timestamp. */
const sent = (lines: readonly Line[], since: string | null): Buffer =>
  Buffer.concat(
    lines
      .filter(({ stamp }) => since === null || Date.parse(stamp) >= Date.parse(since))
      .flatMap(({ stamp, data }) => [Buffer.from(`${stamp} `), data]),
  )

const stampOf = (nanos: number): string => {
  const ms = START + Math.floor(nanos / 1e6)
  return `${new Date(ms).toISOString().slice(0, 20)}${String(nanos % 1e9).padStart(9, '0')}Z`
}

const text = fc.oneof(
  fc.uint8Array({ maxLength: 60 }).map(bytes => Buffer.from(bytes.map(byte => (byte === 10 ? 13 : byte)))),
  fc
    .constantFrom('', ' ', 'x', '2026-11-29T18:00:00Z not the stamp', 'a'.repeat(500), '漢字\u{1f680}')
    .map(t => Buffer.from(t)),
)
const lines: fc.Arbitrary<Line[]> = fc
  .record({
    texts: fc.array(text, { maxLength: 30 }),
    steps: fc.array(fc.constantFrom(0, 1, 1000, 3e8, 9e8), { minLength: 30, maxLength: 30 }),
    open: fc.boolean(),
  })
  .map(({ texts, steps, open }) => {
    let nanos = 0
    return texts.map((data, index) => {
      nanos += steps[index] ?? 0
      const last = open && index === texts.length - 1 && data.length > 0
      return { stamp: stampOf(nanos), data: last ? data : Buffer.concat([data, Buffer.from('\n')]) }
    })
  })

/** Cut anywhere, in chunks of any size. */
function pass(reader: LogLines, bytes: Buffer, sizes: readonly number[]): Buffer {
  const out: Buffer[] = []
  for (let at = 0, n = 0; at < bytes.length; n++) {
    const size = sizes[n % sizes.length] ?? 1
    out.push(reader.push(bytes.subarray(at, at + size)))
    at += size
  }
  return Buffer.concat(out)
}

test('B-91, B-93, B-97, L7: however a follow is cut and chunked, every byte comes once and in order', () => {
  const cuts = fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 5 })
  const sizes = fc.array(fc.integer({ min: 1, max: 90 }), { minLength: 1, maxLength: 5 })
  fc.assert(
    fc.property(lines, cuts, sizes, fc.boolean(), (all, cutsAt, chunks, keep) => {
      const reader = new LogLines(keep)
      const got: Buffer[] = []
      for (const [n, cut] of [...cutsAt, 1].entries()) {
        if (n > 0) reader.resume()
        // each piece sees the log as far as it was written by then
        const written = all.slice(0, Math.ceil(all.length * Math.min(1, (n + 1) / (cutsAt.length + 1))))
        const bytes = sent(written, n > 0 ? reader.since : null)
        got.push(pass(reader, bytes.subarray(0, Math.round(bytes.length * cut)), chunks))
      }
      const wanted = keep ? sent(all, null) : Buffer.concat(all.map(({ data }) => data))
      assert.equal(Buffer.concat(got).toString('latin1'), wanted.toString('latin1'))
    }),
    { numRuns: 1000 },
  )
})

test('B-91: after rotation the log goes on with what is left, and nothing is glued to a line that was cut', () => {
  const reader = new LogLines(false)
  const first = reader.push(Buffer.from(`${stampOf(5)} whole\n${stampOf(7)} half a li`))
  reader.resume()
  const rest = reader.push(Buffer.from(`${stampOf(7e8)} next\n`))
  assert.equal(Buffer.concat([first, rest]).toString(), 'whole\nhalf a li\nnext\n')
})

test('B-93: the rest of a line that began before the second asked for is not passed on twice', () => {
  const reader = new LogLines(false)
  const first = reader.push(Buffer.from(`${stampOf(9e8)} begins and ends\n${stampOf(1.1e9)} b\n`))
  reader.resume()
  const rest = reader.push(Buffer.from(`and ends\n${stampOf(1.1e9)} b\n${stampOf(1.2e9)} c\n`))
  assert.equal(Buffer.concat([first, rest]).toString(), 'begins and ends\nb\nc\n')
})

test('F-54, L7: a line of any length passes at once, only a timestamp is held back', () => {
  const reader = new LogLines(false)
  assert.equal(reader.push(Buffer.from(stampOf(1))).length, 0)
  assert.equal(reader.push(Buffer.from(` ${'x'.repeat(10)}`)).toString(), 'x'.repeat(10))
  const chunk = Buffer.alloc(1 << 20, 0x78)
  for (let n = 0; n < 64; n++) assert.equal(reader.push(chunk).length, chunk.length)
})
