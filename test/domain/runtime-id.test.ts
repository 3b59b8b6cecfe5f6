import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { formatRuntimeId, KINDS, parseRuntimeId, RUNTIME_NAMES, toRuntimeName } from '../../src/domain/runtime-id.ts'
import { isRuntimeError } from '../../src/errors.ts'
import { labels } from '../helpers/arbitraries.ts'

const ids = fc.record({
  runtime: fc.constantFrom(...RUNTIME_NAMES),
  namespace: labels(63),
  kind: fc.constantFrom(...KINDS),
  name: labels(60),
})

const refused = (text: string) =>
  assert.throws(
    () => parseRuntimeId(text),
    error => {
      assert.ok(isRuntimeError(error, 'RUNTIME_ID_INVALID'))
      assert.equal(error.status, 400)
      assert.match(error.message, /^cannot read the runtime ID: .*<runtime>-<namespace>\|<kind>\|<name>/)
      return true
    },
    text,
  )

test('B1, B2, B3: the IDs of the seed read and write, "-" in the namespace too', () => {
  assert.deepEqual(parseRuntimeId('k8s-default|deployment|web-api'), {
    runtime: 'k8s',
    namespace: 'default',
    kind: 'deployment',
    name: 'web-api',
  })
  assert.equal(
    formatRuntimeId({ runtime: 'k3s', namespace: 'ai', kind: 'job', name: 'batch-import-001' }),
    'k3s-ai|job|batch-import-001',
  )
  assert.equal(parseRuntimeId('k8s-my-team-a|pod|rcoder-agent-p1').namespace, 'my-team-a')
  assert.equal(parseRuntimeId('docker-default|job|hello').runtime, 'docker')
})

test('B4, B5, B8: anything but a strict ID is 400 RUNTIME_ID_INVALID', () => {
  const bad = [
    '',
    ' ',
    '|',
    '||',
    '|||',
    'default|deployment|web',
    'nomad-default|deployment|web',
    '-default|deployment|web',
    'k8sdefault|deployment|web',
    'k8s-|deployment|web',
    'k8s|deployment|web',
    'k8s-a|deployment',
    'k8s-a|deployment|',
    'k8s-a||web',
    'k8s-a|deployment|web|x',
    'k8s-a|deployment|web|',
    'k8s-A|deployment|web',
    'K8S-a|deployment|web',
    'k8s-a|deployment|Web',
    'k8s-a|deployment|a/b',
    'k8s-a|deployment|a.b',
    'k8s-..|deployment|web',
    'k8s-a|deployment|..',
    'k8s-a|deployment|.',
    'k8s-a|deployment|%2F',
    'k8s-a%7Cdeployment%7Cweb',
    'k8s-a|deployment|web\n',
    '\nk8s-a|deployment|web',
    'k8s-a|deployment|we\nb',
    'k8s-a|deployment|-web',
    'k8s-a|deployment|web-',
    'k8s--a|deployment|web',
    'k8s-a|deployment|wéb',
    'k8s-a|deployment|web\0',
    'k8s-a|deployment|w eb',
    `k8s-a|deployment|${'x'.repeat(64)}`,
    'x'.repeat(300),
    ' '.repeat(5000),
    'k8s-a|deployment|x/../../namespaces/kube-system/secrets?a=',
  ]
  for (const text of bad) refused(text)
})

test('B6: blanks around the ID and its parts are trimmed', () => {
  const id = parseRuntimeId('  k8s-default | deployment\t| web-api ')
  assert.equal(formatRuntimeId(id), 'k8s-default|deployment|web-api')
})

test('B7: another kind is refused, and the message names the legal ones', () => {
  for (const kind of ['Deployment', 'cronjob', 'DEPLOYMENT', 'pods']) {
    assert.throws(() => parseRuntimeId(`k8s-a|${kind}|web`), /deployment, job, pod/)
  }
})

test('B8, F-49: the longest legal ID is 142 characters, one more is refused', () => {
  const longest = `k8s-${'n'.repeat(63)}|deployment|${'w'.repeat(63)}`
  assert.equal(longest.length, 142)
  assert.equal(formatRuntimeId(parseRuntimeId(longest)), longest)
  refused(`docker-${'n'.repeat(63)}|deployment|${'w'.repeat(61)}`)
  refused(`k8s-${'n'.repeat(64)}|deployment|${'w'.repeat(62)}`)
})

test('B11: format undoes parse, parse undoes format', () => {
  fc.assert(
    fc.property(ids, id => {
      assert.deepEqual(parseRuntimeId(formatRuntimeId(id)), { ...id })
    }),
    { numRuns: 2000 },
  )
})

test('F-49: whatever is accepted is nothing but labels, so no part can leave its place in a path', () => {
  const piece = fc.constantFrom(
    'k8s-',
    'k3s-',
    'a',
    '|',
    '-',
    '/',
    '.',
    '..',
    '%2F',
    '?',
    '#',
    '\n',
    ' ',
    'job',
    'pod',
    'deployment',
    'é',
    '\0',
    'Z',
  )
  const texts = fc.oneof(
    fc.array(piece, { maxLength: 12 }).map(parts => parts.join('')),
    fc.string({ maxLength: 160, unit: 'binary' }),
    ids
      .chain(id => fc.tuple(fc.constant(formatRuntimeId(id)), fc.nat(140), piece))
      .map(([text, at, extra]) => text.slice(0, at) + extra + text.slice(at)),
  )
  let accepted = 0
  fc.assert(
    fc.property(texts, text => {
      try {
        const id = parseRuntimeId(text)
        accepted += 1
        assert.match(formatRuntimeId(id), /^(k8s|k3s|docker)-[-a-z0-9]{1,63}\|(deployment|job|pod)\|[-a-z0-9]{1,63}$/)
        assert.equal(formatRuntimeId(id).replace(/[ \t]/g, ''), text.replace(/[ \t]/g, ''))
      } catch (error) {
        if (!isRuntimeError(error, 'RUNTIME_ID_INVALID')) throw error
      }
    }),
    { numRuns: 20_000 },
  )
  assert.ok(accepted > 100, `only ${accepted} were accepted: the property proves little`)
})

test('A1: what people call a runtime', () => {
  assert.equal(toRuntimeName(' Kubernetes '), 'k8s')
  assert.equal(toRuntimeName('K3S'), 'k3s')
  assert.equal(toRuntimeName('nomad'), undefined)
})
