import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { loadConfig } from '../src/config.ts'
import { EVENT_TYPES } from '../src/domain/event.ts'
import { STATES } from '../src/domain/life.ts'
import { ERROR_CATALOGUE } from '../src/errors.ts'

const root = join(import.meta.dirname, '..')
const readme = readFileSync(join(root, 'README.md'), 'utf8')

test('README names each error code once, with its status, and no other', () => {
  const listed = readme.slice(readme.indexOf('<details><summary>All codes'), readme.indexOf('</details>'))
  const found = new Map<string, number>()
  let status = 0
  for (const [, number, code] of listed.matchAll(/\b(\d{3})\b|`([A-Z_]+)`/g)) {
    if (number !== undefined) status = Number(number)
    else if (code !== undefined) found.set(code, status)
  }
  assert.deepEqual(Object.fromEntries(found), { ...ERROR_CATALOGUE })
})

test('README names each setting, state and event type', () => {
  const names = [...Object.keys(loadConfig({})), ...STATES, ...EVENT_TYPES]
  assert.deepEqual(
    names.filter(name => !readme.includes(name)),
    [],
  )
})

test('README names only npm scripts that are there', () => {
  const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  const named = [...readme.matchAll(/npm (?:run )?(?:-- )?(demo|test:[a-z]+|test|start|sandbox|bench|openapi)\b/g)].map(
    ([, name]) => name,
  )
  assert.ok(named.length > 3)
  assert.deepEqual(
    named.filter(name => scripts[name ?? ''] === undefined),
    [],
  )
})

test('README speaks of metrics by the names they have', () => {
  const source = ['src/metrics.ts', 'src/http/metrics.ts']
    .map(file => readFileSync(join(root, file), 'utf8'))
    .join('\n')
  const named = new Set([...readme.matchAll(/\b(runtimed_[a-z_]+)/g)].map(([, name]) => name ?? ''))
  assert.ok(named.size > 5)
  const unknown = [...named].filter(name => !source.includes(name) && !/^runtimed_informer_[a-z_]+_total$/.test(name))
  assert.deepEqual(unknown, [])
})
