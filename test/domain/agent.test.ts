import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'
import fc from 'fast-check'
import {
  type AgentKey,
  agentDns,
  agentEnv,
  agentKey,
  agentLabels,
  agentName,
  agentResourceFaults,
  identifierFault,
  SERVICE_TYPES,
} from '../../src/domain/agent.ts'
import { isLabelValue } from '../../src/domain/labels.ts'
import { isDnsLabel } from '../../src/domain/workload-name.ts'
import { refusalOf } from '../helpers/refusals.ts'

const sha256Hex = (text: string): string => createHash('sha256').update(text).digest('hex')
const hash8 = (text: string): string => sha256Hex(text).slice(0, 8)
const project = (identifier: string): AgentKey => ({ serviceType: 'rcoder', identifier })
const user = (identifier: string): AgentKey => ({ serviceType: 'computer-agent-runner', identifier })
const name = (key: AgentKey): string => agentName(key, sha256Hex)

test('O1, O2: the plain names of the seed; userId wins', () => {
  assert.equal(name(agentKey({ projectId: 'p1' }) ?? user('')), 'rcoder-agent-p1')
  assert.equal(name(agentKey({ userId: 'u1' }) ?? project('')), 'computer-agent-runner-u1')
  assert.equal(name(agentKey({ projectId: 'p1', userId: 'u1' }) ?? project('')), 'computer-agent-runner-u1')
})

test('O3: neither, or only blanks, is no key', () => {
  assert.equal(agentKey({}), undefined)
  assert.equal(agentKey({ projectId: ' ', userId: '' }), undefined)
})

test('O4: what is no legal name is a slug and a hash, and identifiers that clean alike stay apart', () => {
  assert.equal(name(project('a-b')), 'rcoder-agent-a-b')
  assert.equal(name(project('a_b')), `rcoder-agent-a-b-${hash8('a_b')}`)
  assert.equal(name(user('User_1')), `computer-agent-runner-user-1-${hash8('User_1')}`)
  assert.equal(name(project('日本')), `rcoder-agent-runtime-${hash8('日本')}`)
  const long = name(project('x'.repeat(200)))
  assert.equal(long.length, 63)
  assert.ok(long.endsWith(`-${hash8('x'.repeat(200))}`))
})

test('O4: an identifier that looks hashed is hashed itself, so it never meets the name of another', () => {
  const forged = `a-b-${hash8('a_b')}`
  assert.equal(name(project(forged)), `rcoder-agent-${forged}-${hash8(forged)}`)
  assert.equal(name(project('deadbeef')), 'rcoder-agent-deadbeef')
  assert.notEqual(name(project(hash8('日本'))), name(project('日本')))
})

test('O4, F-35: every identifier gives a legal name of at most 63, and two identifiers give two', () => {
  const wild = fc.string({
    unit: fc.constantFrom('a', 'b', '-', '_', 'A', '.', '0', 'é', ' '),
    minLength: 1,
    maxLength: 8,
  })
  const identifiers = fc.oneof(wild, fc.string({ unit: 'grapheme', minLength: 1, maxLength: 256 }))
  fc.assert(
    fc.property(identifiers, identifiers, fc.constantFrom(...SERVICE_TYPES), (a, b, serviceType) => {
      const [left, right] = [a, b].map(identifier => name({ serviceType, identifier }))
      assert.ok(isDnsLabel(left ?? ''), `${a} → ${left}`)
      assert.equal(left === right, a === b)
      assert.notEqual(name(project(a)), name(user(a)))
    }),
    { numRuns: 3000 },
  )
})

test('O5: labels are legal whatever the identifier, and tell the kind of identifier', () => {
  assert.deepEqual(agentLabels(project('p1')), { service_type: 'rcoder', project_id: 'p1' })
  assert.deepEqual(agentLabels(user('User 1!')), { service_type: 'computer-agent-runner', user_id: 'user-1' })
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme', maxLength: 256 }), identifier => {
      assert.ok(Object.values(agentLabels(project(identifier))).every(isLabelValue))
    }),
  )
})

test('O5: the environment names what was given', () => {
  assert.deepEqual(agentEnv('rcoder', { projectId: 'p1' }), { PROJECT_ID: 'p1', SERVICE_TYPE: 'rcoder' })
  assert.deepEqual(agentEnv('computer-agent-runner', { projectId: 'p1', userId: 'u1' }), {
    PROJECT_ID: 'p1',
    USER_ID: 'u1',
    SERVICE_TYPE: 'computer-agent-runner',
  })
})

test('O7: resources within 0.1–64 cores and 64 MiB–256 GiB', () => {
  for (const resources of [
    {},
    { cpu: 0, memory: 0 },
    { cpu: 1.5, memory: '1Gi' },
    { cpu: 0.1, memory: '64Mi' },
    { cpu: '64', memory: '256Gi' },
  ]) {
    assert.deepEqual(agentResourceFaults(resources), [])
  }
  for (const cpu of [0.099, 64.001, -1, 'x']) {
    assert.deepEqual(
      agentResourceFaults({ cpu }).map(fault => fault.path),
      ['/resources/cpu'],
    )
  }
  for (const memory of ['63Mi', '257Gi', '512m', -1]) {
    assert.deepEqual(
      agentResourceFaults({ memory }).map(fault => fault.path),
      ['/resources/memory'],
    )
  }
  assert.equal(agentResourceFaults({ cpu: 65, memory: 1 }).length, 2)
})

test('P1, P2, A9: the DNS name of an agent', () => {
  const dns = (key: AgentKey, namespace: string, clusterDomain: string) =>
    agentDns(key, { namespace, clusterDomain, sha256Hex })
  assert.equal(dns(project('p1'), 'default', 'cluster.local'), 'rcoder-agent-p1.default.svc.cluster.local')
  assert.equal(dns(user('u1'), 'ai', 'corp.local'), 'computer-agent-runner-u1.ai.svc.corp.local')
})

test('P3: it is a function of the identifier alone', () => {
  const options = { namespace: 'default', clusterDomain: 'cluster.local', sha256Hex }
  assert.equal(agentDns(project('a_b'), options), agentDns(project('a_b'), options))
})

test('P6: blank, control characters and over 256 are DNS_RESOLUTION_ERROR', () => {
  for (const identifier of ['', '  ', 'a\nb', 'a\0', '\x7f', '\ud800', 'x'.repeat(257)]) {
    const options = { namespace: 'default', clusterDomain: 'cluster.local', sha256Hex }
    assert.equal(refusalOf('DNS_RESOLUTION_ERROR', () => agentDns(project(identifier), options)).status, 422)
    assert.notEqual(identifierFault(identifier), null)
  }
  assert.equal(identifierFault('x'.repeat(256)), null)
})
