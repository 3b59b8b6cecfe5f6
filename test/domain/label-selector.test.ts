import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { parseLabelSelector } from '../../src/domain/label-selector.ts'
import { isRuntimeError } from '../../src/errors.ts'
import { refusalOf } from '../helpers/refusals.ts'

const p1 = { project_id: 'p1', tier: 'web', cores: '4', empty: '' }

const matching: [selector: string, matches: boolean][] = [
  ['', true],
  ['  ', true],
  ['project_id=p1', true],
  ['project_id==p1', true],
  [' project_id = p1 ', true],
  ['project_id=p2', false],
  ['project_id!=p2', true],
  ['project_id!=p1', false],
  ['absent!=p1', true],
  ['absent=p1', false],
  ['tier in (web, db)', true],
  ['tier in (db)', false],
  ['tier notin (db,cache)', true],
  ['tier notin (web)', false],
  ['absent notin (web)', true],
  ['tier', true],
  ['absent', false],
  ['!absent', true],
  ['!tier', false],
  ['tier in (web),!absent,project_id=p1', true],
  ['tier in (web),!absent,project_id=p2', false],
  ['empty=', true],
  ['empty=,tier', true],
  ['tier=', false],
  ['tier in (web,)', true],
  ['cores>3', true],
  ['cores>4', false],
  ['cores < 5', true],
  ['tier>1', false],
  ['in in (x)', false],
  ['constructor', false],
  ['!toString', true],
  ['example.com/team notin (a)', true],
]
for (const [selector, matches] of matching) {
  test(`Q1: ${JSON.stringify(selector)} ${matches ? 'selects' : 'leaves out'} it`, () => {
    assert.equal(parseLabelSelector(selector).matches(p1), matches)
  })
}

test('Q2, B-76: bad syntax is 400 SELECTOR_INVALID', () => {
  const bad = [
    ',',
    'a,',
    ',a',
    'a=b,',
    '=',
    '=b',
    '!',
    '!!a',
    'a=b=c',
    'a b',
    'a in',
    'a in x',
    'a in (',
    'a in (x',
    'a in ()',
    'a notin ()',
    'a in (x) b',
    'a ! b',
    'a => b',
    'a>',
    'a>x',
    'a>-1',
    '(a)',
    'a=(b)',
    'a=b c',
    '-a',
    'a/b/c',
    'Ex.com/a',
    '/a',
    'a/',
    `${'k'.repeat(64)}`,
    `a=${'v'.repeat(64)}`,
    'a=-b',
    '!a=b',
  ]
  for (const text of bad) {
    assert.equal(refusalOf('SELECTOR_INVALID', () => parseLabelSelector(text)).status, 400, text)
  }
})

test('B-76: what no label value can be is refused, not silently unmatched', () => {
  for (const value of ['50%', 'a+b', '%2C', 'é', '日本', 'a;b', '"a"']) {
    assert.match(
      refusalOf('SELECTOR_INVALID', () => parseLabelSelector(`a=${value}`)).message,
      /is no label value/,
      value,
    )
  }
  assert.match(refusalOf('SELECTOR_INVALID', () => parseLabelSelector('a=b=c')).message, /"," is missing/)
})

test('Q1: = and !=, in and notin are each other’s opposite; a set is the OR of its values', () => {
  const key = fc.constantFrom('a', 'b', 'x.io/c', 'in')
  const value = fc.constantFrom('', '1', 'x', 'notin')
  const labels = fc.dictionary(key, value, { maxKeys: 4 })
  fc.assert(
    fc.property(key, fc.array(value, { minLength: 1, maxLength: 4 }), labels, (name, values, given) => {
      fc.pre(values.join('') !== '')
      const says = (selector: string) => parseLabelSelector(selector).matches(given)
      assert.notEqual(says(`${name}=${values[0]}`), says(`${name} != ${values[0]}`))
      assert.notEqual(says(`${name} in (${values})`), says(`${name} notin (${values})`))
      assert.equal(
        says(`${name} in (${values})`),
        values.some(one => says(`${name}=${one}`)),
      )
      assert.notEqual(says(name), says(`!${name}`))
    }),
    { numRuns: 1000 },
  )
})

test('Q2: any text is read or refused, in time that grows with its length only', () => {
  const piece = fc.constantFrom('a', 'in', ' notin ', '(', ')', ',', '=', '!', '==', '!=', ' ', '<', '\t', 'é', '\0')
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 20 }), pieces => {
      try {
        parseLabelSelector(pieces.join('')).matches(p1)
      } catch (error) {
        if (!isRuntimeError(error, 'SELECTOR_INVALID')) throw error
      }
    }),
    { numRuns: 5000 },
  )
  refusalOf('SELECTOR_INVALID', () => parseLabelSelector(`${' '.repeat(100_000)}(`))
})
