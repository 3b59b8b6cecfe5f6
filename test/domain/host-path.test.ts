import assert from 'node:assert/strict'
import { posix } from 'node:path'
import { test } from 'node:test'
import fc from 'fast-check'
import { isBelow, resolvePath } from '../../src/domain/host-path.ts'
import { isRuntimeError } from '../../src/errors.ts'
import { pathsOf, refusalOf } from '../helpers/refusals.ts'
import { specOf } from '../helpers/specs.ts'

const volume = (source: string, target = '/srv') => ({ volumes: [{ source, target }] })

const resolved: [path: string, absolute: string | null][] = [
  ['/', '/'],
  ['//data', '/data'],
  ['/data/', '/data'],
  ['/data/./a//b/', '/data/a/b'],
  ['/data/../etc', '/etc'],
  ['/../../etc', '/etc'],
  ['/data/...', '/data/...'],
  ['data', null],
  ['./data', null],
  ['', null],
  [' /data', null],
  ['/data\0/x', null],
  ['/data\n', null],
]
for (const [path, absolute] of resolved) {
  test(`D6, F-57: ${JSON.stringify(path)} resolves to ${absolute}`, () => assert.equal(resolvePath(path), absolute))
}

test('D5: below an allowed root, resolved; the root itself too', () => {
  assert.deepEqual(specOf(volume('//data/x/../web/')).volumes, [{ source: '/data/web', target: '/srv', mode: 'rw' }])
  assert.equal(specOf(volume('/data')).volumes[0]?.source, '/data')
  assert.equal(specOf(volume('/any'), { policy: { hostPathRoots: ['/'] } }).volumes[0]?.source, '/any')
})

test('D6, B-75, F-57: outside the roots is 422, and the message names the setting', () => {
  for (const source of [
    '/',
    '/etc',
    '/var/run/docker.sock',
    '/data/../etc',
    '/data-evil',
    '/datax',
    '//data/../..',
    '/dat',
  ]) {
    const error = refusalOf('SPEC_REFUSED', () => specOf(volume(source)))
    assert.match(error.message, /HOST_PATH_ROOTS/)
    assert.deepEqual(pathsOf(error), ['/volumes/0/source'])
  }
})

test('D6: relative or blank is 400', () => {
  for (const source of ['', ' ', 'data', './data', '../data', 'data/web', '/data\0']) {
    assert.deepEqual(pathsOf(refusalOf('REQUEST_INVALID', () => specOf(volume(source)))), ['/volumes/0/source'], source)
  }
})

test('F-57: without roots every host path is 422', () => {
  for (const source of ['/', '/data', '/data/web']) {
    const error = refusalOf('SPEC_REFUSED', () => specOf(volume(source), { policy: { hostPathRoots: [] } }))
    assert.match(error.message, /HOST_PATH_ROOTS, which is empty/)
  }
})

test('D6, F-57: targets are absolute, not / or /proc, without a colon, each once however it is written', () => {
  for (const target of ['', ' ', 'srv', '/', '/proc', '/proc/self', '/srv/../proc', '/a:b', '/a\0']) {
    assert.deepEqual(pathsOf(refusalOf('REQUEST_INVALID', () => specOf(volume('/data', target)))), [
      '/volumes/0/target',
    ])
  }
  const twice = {
    volumes: [
      { source: '/data/a', target: '/srv' },
      { source: '/data/b', target: '/x/../srv/' },
    ],
  }
  assert.deepEqual(pathsOf(refusalOf('REQUEST_INVALID', () => specOf(twice))), ['/volumes/1/target'])
  assert.equal(specOf(volume('/data', '/process')).volumes[0]?.target, '/process')
})

test('F-57: of 100,000 paths none that is accepted resolves outside the roots', () => {
  const roots = ['/data', '/srv/share']
  const piece = fc.constantFrom(
    '/',
    '//',
    '..',
    '.',
    'data',
    'srv',
    'share',
    '-evil',
    'etc',
    '/data',
    '/srv/share/',
    '…',
    ' ',
    '\\',
    '%2e%2e',
    '\n',
  )
  const paths = fc.array(piece, { maxLength: 8, size: 'max' }).map(pieces => pieces.join(''))
  const seen = { below: 0, outside: 0 }
  fc.assert(
    fc.property(paths, path => {
      const mine = resolvePath(path)
      const below = mine !== null && isBelow(mine, roots)
      const truth = posix.normalize(path).replace(/(.)\/$/, '$1')
      const inside = path.startsWith('/') && roots.some(root => truth === root || truth.startsWith(`${root}/`))
      if (below && !inside) assert.fail(`${JSON.stringify(path)} was taken for ${mine}`)
      if (mine !== null) assert.equal(mine, truth)
      seen[below ? 'below' : 'outside'] += 1
    }),
    { numRuns: 100_000 },
  )
  assert.ok(seen.below > 1000 && seen.outside > 1000, JSON.stringify(seen))
})

test('F-57: create accepts a path exactly when it is below a root', () => {
  const paths = fc
    .array(fc.constantFrom('/', '..', 'data', 'etc', '-evil', '/data/'), { maxLength: 6 })
    .map(pieces => `/${pieces.join('')}`)
  fc.assert(
    fc.property(paths, path => {
      const below = isBelow(resolvePath(path) ?? '', ['/data'])
      try {
        assert.equal(specOf(volume(path)).volumes[0]?.source, resolvePath(path))
        assert.ok(below)
      } catch (error) {
        if (!isRuntimeError(error, 'SPEC_REFUSED')) throw error
        assert.ok(!below)
      }
    }),
    { numRuns: 2000 },
  )
})
