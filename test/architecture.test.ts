import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { test } from 'node:test'

const SRC = join(import.meta.dirname, '../src')

/** What a folder of src may import of ours: arrows point inward only; `app.ts` and the scripts beside it compose. */
const ALLOWED: Record<string, readonly string[]> = {
  domain: ['domain', 'errors.ts'],
  service: ['service', 'domain', 'errors.ts'],
  http: ['http', 'service', 'domain', 'errors.ts'],
  kube: ['kube', 'service', 'domain', 'errors.ts'],
  docker: ['docker', 'service', 'domain', 'errors.ts'],
  store: ['store', 'service', 'domain', 'errors.ts'],
  sandbox: ['sandbox', 'domain', 'errors.ts'],
  'errors.ts': [],
  'config.ts': ['domain', 'errors.ts'],
  'logger.ts': ['errors.ts'],
  'openapi.ts': ['http', 'service', 'domain', 'errors.ts', 'logger.ts'],
  'metrics.ts': ['service', 'domain'],
  'app.ts': ['metrics.ts', 'http', 'kube', 'store', 'service', 'domain', 'config.ts', 'logger.ts', 'errors.ts'],
  'main.ts': ['app.ts', 'config.ts', 'logger.ts', 'errors.ts'],
  'demo.ts': ['app.ts', 'config.ts', 'logger.ts', 'sandbox'],
}

const files = readdirSync(SRC, { recursive: true, encoding: 'utf8' }).filter(name => name.endsWith('.ts'))

const partOf = (path: string): string => path.split('/')[0] ?? path

function imports(file: string): string[] {
  const text = readFileSync(join(SRC, file), 'utf8')
  return [...text.matchAll(/(?:from|import)\s*\(?\s*'([^']+)'/g)].map(match => match[1] ?? '')
}

test('imports point inward: http, kube, store, sandbox → service → domain → errors', () => {
  const wrong: string[] = []
  for (const file of files) {
    const allowed = ALLOWED[partOf(file)]
    if (allowed === undefined) wrong.push(`${file}: its folder has no rule`)
    for (const specifier of imports(file).filter(text => text.startsWith('.') && !text.endsWith('/package.json'))) {
      const target = partOf(relative(SRC, join(SRC, dirname(file), specifier)))
      if (!allowed?.includes(target)) wrong.push(`${file} imports ${specifier}`)
    }
  }
  assert.deepEqual(wrong, [])
})

test('the domain is pure: no Node module, no clock, no randomness', () => {
  for (const file of files.filter(name => name.startsWith('domain/'))) {
    const text = readFileSync(join(SRC, file), 'utf8')
    assert.doesNotMatch(text, /from 'node:|Date\.now\(|new Date\(\)|Math\.random|setTimeout|process\./, file)
  }
})

test('no source file grows beyond what one subject needs', () => {
  const long = files
    .map(file => ({ file, lines: readFileSync(join(SRC, file), 'utf8').split('\n').length }))
    .filter(({ lines }) => lines > 320)
  assert.deepEqual(long, [])
})
