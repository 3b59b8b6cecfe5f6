import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { isRuntimeError } from '../../src/errors.ts'
import { loadKubeConfig } from '../../src/kube/kube-config.ts'

function folder(t: TestContext, files: Record<string, string>): string {
  const path = mkdtempSync(join(tmpdir(), 'runtimed-'))
  t.after(() => rmSync(path, { recursive: true }))
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(join(path, name, '..'), { recursive: true })
    writeFileSync(join(path, name), content)
  }
  return path
}

const refused = (told: RegExp) => (error: unknown) =>
  isRuntimeError(error, 'CONFIGURATION_ERROR') && told.test(error.message)

const KUBECONFIG = `
apiVersion: v1
kind: Config
current-context: dev
clusters:
- name: one
  cluster: { server: "https://one.example:6443/", certificate-authority: ca.crt, tls-server-name: api }
- name: plain
  cluster: { server: "http://127.0.0.1:8001" }
users:
- name: token
  user: { tokenFile: secrets/token, as: admin, as-groups: [a, b] }
- name: cert
  user: { client-certificate-data: ${btoa('CERT')}, client-key-data: ${btoa('KEY')} }
- name: plugin
  user:
    exec:
      apiVersion: client.authentication.k8s.io/v1
      command: bin/plugin
      args: [get, 1]
      env: [{ name: A, value: b }]
      provideClusterInfo: true
- name: old
  user: { auth-provider: { name: gcp } }
contexts:
- name: dev
  context: { cluster: one, user: token, namespace: ai }
- name: local
  context: { cluster: plain }
- name: cert
  context: { cluster: one, user: cert }
- name: plugin
  context: { cluster: one, user: plugin }
- name: old
  context: { cluster: one, user: old }
- name: hole
  context: { cluster: nowhere }
`

test('A8: a kubeconfig gives its current context, with paths from its own folder', t => {
  const home = folder(t, { config: KUBECONFIG })
  const access = loadKubeConfig({ file: join(home, 'config'), env: { KUBERNETES_SERVICE_HOST: 'ignored' } })
  assert.deepEqual(access, {
    server: 'https://one.example:6443',
    namespace: 'ai',
    ca: { file: join(home, 'ca.crt') },
    cert: null,
    key: null,
    skipVerify: false,
    serverName: 'api',
    credential: { kind: 'tokenFile', file: join(home, 'secrets/token') },
    impersonate: { user: 'admin', groups: ['a', 'b'] },
  })
})

test('A8, B-132: another context by name; http:// as it is; certificates and plugins', t => {
  const home = folder(t, { config: KUBECONFIG })
  const load = (context: string) => loadKubeConfig({ file: join(home, 'config'), context })
  assert.equal(load('local').server, 'http://127.0.0.1:8001')
  assert.deepEqual(load('local').credential, { kind: 'none' })
  assert.deepEqual([load('cert').cert, load('cert').key], [{ pem: 'CERT' }, { pem: 'KEY' }])
  const { credential } = load('plugin')
  assert.ok(credential.kind === 'exec')
  const { cluster, ...plugin } = credential.plugin
  assert.deepEqual(plugin, {
    command: join(home, 'bin/plugin'),
    args: ['get', '1'],
    env: { A: 'b' },
    apiVersion: 'client.authentication.k8s.io/v1',
  })
  assert.equal(cluster?.server, 'https://one.example:6443/')
})

test('A8: several files in the manner of KUBECONFIG, the first that names a thing wins', t => {
  const second = KUBECONFIG.replaceAll('one.example', 'two.example').replace('current-context: dev', '')
  const home = folder(t, { a: 'current-context: cert\n', b: KUBECONFIG, c: second })
  const file = ['a', 'b', 'c'].map(name => join(home, name)).join(delimiter)
  const access = loadKubeConfig({ file })
  assert.equal(access.server, 'https://one.example:6443')
  assert.deepEqual(access.cert, { pem: 'CERT' })
})

test('A8: what is wrong with a kubeconfig is said, without what is secret in it', t => {
  const home = folder(t, { config: KUBECONFIG, bad: 'clusters: [{ name: x, cluster: { token: s3cret } }]', no: '{' })
  const load = (name: string, context?: string) => () => loadKubeConfig({ file: join(home, name), context })
  assert.throws(load('config', 'nope'), refused(/no context "nope".*K8S_CONTEXT/))
  assert.throws(load('config', 'hole'), refused(/names a cluster that is not there/))
  assert.throws(load('config', 'old'), refused(/auth-provider/))
  assert.throws(load('missing'), refused(/cannot be read; check KUBECONFIG/))
  assert.throws(load('bad'), refused(/is not a kubeconfig \(at clusters\.0\.cluster\.server\)$/))
  assert.throws(load('no'), refused(/is not a kubeconfig$/))
})

test('A8: in a pod, the service account; without its files it fails loudly and looks nowhere else', t => {
  const home = folder(t, {
    'sa/token': 'T',
    'sa/ca.crt': 'CA',
    'sa/namespace': 'ai\n',
    'half/token': 'T',
    '.kube/config': KUBECONFIG,
  })
  const env = { KUBERNETES_SERVICE_HOST: 'fd00::1', KUBERNETES_SERVICE_PORT: '6443' }
  const access = loadKubeConfig({ env, home, serviceAccountFolder: join(home, 'sa') })
  assert.equal(access.server, 'https://[fd00::1]:6443')
  assert.equal(access.namespace, 'ai')
  assert.deepEqual(access.ca, { file: join(home, 'sa/ca.crt') })
  assert.deepEqual(access.credential, { kind: 'tokenFile', file: join(home, 'sa/token') })
  const half = () => loadKubeConfig({ env, home, serviceAccountFolder: join(home, 'half') })
  assert.throws(half, refused(/this is a pod but .*ca\.crt is missing/))
})

test('A8: neither file nor pod: ~/.kube/config, else it is said what to set', t => {
  const home = folder(t, { '.kube/config': KUBECONFIG })
  assert.equal(loadKubeConfig({ env: {}, home }).namespace, 'ai')
  assert.throws(() => loadKubeConfig({ env: {}, home: join(home, 'nobody') }), refused(/set KUBECONFIG$/))
})
