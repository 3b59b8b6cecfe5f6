import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ConfigError, type Environment, isLoopback, loadConfig } from '../src/config.ts'

const faultsOf = (environment: Environment): readonly string[] => {
  try {
    loadConfig(environment)
  } catch (error) {
    assert.ok(error instanceof ConfigError, String(error))
    assert.match(error.message, /^cannot read the configuration:\n/)
    for (const fault of error.faults) assert.ok(error.message.includes(fault))
    return error.faults
  }
  throw new assert.AssertionError({ message: 'the configuration was accepted' })
}

test('A3, A7, A9: the defaults of the contract, frozen', () => {
  const config = loadConfig({})
  assert.deepEqual(config, {
    HOST: '127.0.0.1',
    PORT: 8080,
    ALLOW_ANONYMOUS: false,
    DATABASE_PATH: './data/runtimed.db',
    INSTANCE: 'default',
    RUNTIMES: ['k8s'],
    CONTAINER_RUNTIME: 'k8s',
    KUBECONFIG: null,
    K8S_CONTEXT: null,
    K3S_KUBECONFIG: null,
    K3S_CONTEXT: null,
    NAMESPACE: 'default',
    NAMESPACES: ['default'],
    CLUSTER_DOMAIN: 'cluster.local',
    TOKENS_FILE: null,
    HOST_PATH_ROOTS: [],
    IMAGE_PULL_SECRETS: [],
    SERVICE_ACCOUNT_NAME: null,
    POD_SECURITY: 'baseline',
    START_TIMEOUT_SECONDS: 0,
    JOB_STOP: 'delete',
    AGENT_IMAGE: null,
    AGENT_IMAGE_COMPUTER: null,
    AGENT_PORT: 50_051,
    POD_TTL_SECONDS: null,
    ADOPT_ORPHANS: false,
    EVENT_RETENTION_SECONDS: 604_800,
    EVENT_RETENTION_COUNT: 1_000_000,
    KUBE_TIMEOUT_SECONDS: 10,
    WATCH_TIMEOUT_SECONDS: 290,
    STRICT_START: false,
    LOG_LEVEL: 'info',
    DOCKER_HOST: 'unix:///var/run/docker.sock',
  })
  assert.ok(Object.isFrozen(config) && Object.isFrozen(config.RUNTIMES) && Object.isFrozen(config.NAMESPACES))
})

test('A13: empty is unset, as a chart that renders nothing leaves it', () => {
  const empty = Object.fromEntries(Object.keys(loadConfig({})).map(name => [name, '']))
  assert.deepEqual(loadConfig(empty), loadConfig({}))
})

/** Input beside what comes out of it. */
const accepted: [row: string, environment: Environment, part: Partial<ReturnType<typeof loadConfig>>][] = [
  ['A1', { RUNTIMES: ' K8S , k3s', K3S_KUBECONFIG: '/k' }, { RUNTIMES: ['k8s', 'k3s'], CONTAINER_RUNTIME: 'k8s' }],
  ['A1', { RUNTIMES: 'Kubernetes,k8s' }, { RUNTIMES: ['k8s'] }],
  ['A3', { CONTAINER_RUNTIME: 'kubernetes' }, { RUNTIMES: ['k8s'], CONTAINER_RUNTIME: 'k8s' }],
  ['A3', { CONTAINER_RUNTIME: 'K8s' }, { CONTAINER_RUNTIME: 'k8s' }],
  ['A3', { CONTAINER_RUNTIME: ' k3s ' }, { RUNTIMES: ['k3s'], CONTAINER_RUNTIME: 'k3s' }],
  ['A3', { CONTAINER_RUNTIME: 'docker' }, { RUNTIMES: ['docker'], CONTAINER_RUNTIME: 'docker' }],
  ['A3', { RUNTIMES: 'docker,k8s' }, { RUNTIMES: ['docker', 'k8s'], CONTAINER_RUNTIME: 'docker' }],
  ['A3', { RUNTIMES: 'docker,k8s', CONTAINER_RUNTIME: 'Kubernetes' }, { CONTAINER_RUNTIME: 'k8s' }],
  ['A7', { NAMESPACE: ' ', NAMESPACES: ' ' }, { NAMESPACE: 'default', NAMESPACES: ['default'] }],
  ['A7', { NAMESPACE: 'ai' }, { NAMESPACE: 'ai', NAMESPACES: ['ai'] }],
  ['A7', { NAMESPACES: 'a, b,,a' }, { NAMESPACE: 'a', NAMESPACES: ['a', 'b'] }],
  ['A7', { NAMESPACES: 'a,b', NAMESPACE: 'b' }, { NAMESPACE: 'b', NAMESPACES: ['a', 'b'] }],
  ['A7', { NAMESPACES: '*' }, { NAMESPACE: 'default', NAMESPACES: '*' }],
  ['A7', { NAMESPACES: '*', NAMESPACE: 'ai' }, { NAMESPACE: 'ai', NAMESPACES: '*' }],
  ['A9', { CLUSTER_DOMAIN: 'corp.local' }, { CLUSTER_DOMAIN: 'corp.local' }],
  [
    'A10',
    { IMAGE_PULL_SECRETS: 'a, b', SERVICE_ACCOUNT_NAME: 'worker' },
    { IMAGE_PULL_SECRETS: ['a', 'b'], SERVICE_ACCOUNT_NAME: 'worker' },
  ],
  ['F-57', { HOST_PATH_ROOTS: '/data/../srv/, //data' }, { HOST_PATH_ROOTS: ['/srv', '/data'] }],
  ['T5', { POD_TTL_SECONDS: '60' }, { POD_TTL_SECONDS: 60 }],
  ['O6', { AGENT_IMAGE: 'r/agent:1' }, { AGENT_IMAGE: 'r/agent:1', AGENT_IMAGE_COMPUTER: 'r/agent:1' }],
  ['O6', { AGENT_IMAGE: 'a', AGENT_IMAGE_COMPUTER: 'b' }, { AGENT_IMAGE_COMPUTER: 'b' }],
  ['U4', { HOST: '0.0.0.0', TOKENS_FILE: '/t.json' }, { HOST: '0.0.0.0' }],
  ['U4', { HOST: '::', ALLOW_ANONYMOUS: 'true' }, { ALLOW_ANONYMOUS: true }],
  ['U4', { HOST: 'localhost', PORT: '0' }, { PORT: 0 }],
]
for (const [row, environment, part] of accepted) {
  test(`${row}: ${JSON.stringify(environment)} is accepted`, () =>
    assert.partialDeepStrictEqual(loadConfig(environment), part))
}

/** Each is one fault, and its line begins with the name of the variable. */
const refused: [row: string, environment: Environment, fault: RegExp][] = [
  ['A2', { RUNTIMES: 'k8s,nomad' }, /^RUNTIMES must be one of k8s, k3s, docker/],
  ['A2', { RUNTIMES: '/k8s' }, /^RUNTIMES .*k8s, k3s, docker/],
  ['A2', { CONTAINER_RUNTIME: 'podman' }, /^CONTAINER_RUNTIME must be one of k8s, k3s, docker/],
  ['A3', { RUNTIMES: 'k8s', CONTAINER_RUNTIME: 'docker' }, /^CONTAINER_RUNTIME docker must be one of RUNTIMES: k8s/],
  ['A8', { RUNTIMES: 'k8s,k3s' }, /^K3S_KUBECONFIG must be set/],
  ['A7', { NAMESPACES: 'a,b', NAMESPACE: 'c' }, /^NAMESPACE c must be one of NAMESPACES: a, b/],
  ['A7', { NAMESPACES: '*,a' }, /^NAMESPACES must be \* alone/],
  ['A7', { NAMESPACES: 'Team' }, /^NAMESPACES must be DNS labels|^NAMESPACES must be a DNS label/],
  ['A7', { NAMESPACE: 'a.b' }, /^NAMESPACE must be a DNS label/],
  ['A9', { CLUSTER_DOMAIN: 'corp_local' }, /^CLUSTER_DOMAIN must be a DNS name/],
  ['A13', { PORT: '0x50' }, /^PORT must be a whole number/],
  ['A13', { PORT: ' 80' }, /^PORT/],
  ['A13', { PORT: ' ' }, /^PORT/],
  ['A13', { PORT: '8e1' }, /^PORT/],
  ['A13', { PORT: '65536' }, /^PORT .*65535/],
  ['A13', { PORT: 'tcp://10.0.0.1:80' }, /^PORT/],
  ['A13', { AGENT_PORT: '0' }, /^AGENT_PORT/],
  ['A13', { KUBE_TIMEOUT_SECONDS: '0' }, /^KUBE_TIMEOUT_SECONDS/],
  ['A13', { KUBE_TIMEOUT_SECONDS: '1.5' }, /^KUBE_TIMEOUT_SECONDS/],
  ['A13', { START_TIMEOUT_SECONDS: '-1' }, /^START_TIMEOUT_SECONDS/],
  ['A13', { POD_TTL_SECONDS: '0' }, /^POD_TTL_SECONDS/],
  ['A13', { STRICT_START: 'True' }, /^STRICT_START must be true or false/],
  ['A13', { ADOPT_ORPHANS: '1' }, /^ADOPT_ORPHANS must be true or false/],
  ['A13', { POD_SECURITY: 'privileged' }, /^POD_SECURITY must be one of baseline, restricted/],
  ['A13', { JOB_STOP: 'pause' }, /^JOB_STOP must be one of delete, suspend/],
  ['A13', { LOG_LEVEL: 'verbose' }, /^LOG_LEVEL must be one of/],
  ['A13', { INSTANCE: 'a b' }, /^INSTANCE must be a label value/],
  ['A13', { AGENT_IMAGE: 'Bad Image' }, /^AGENT_IMAGE must be an image reference/],
  ['A13', { IMAGE_PULL_SECRETS: 'A_b' }, /^IMAGE_PULL_SECRETS must be a DNS name/],
  ['F-57', { HOST_PATH_ROOTS: 'data' }, /^HOST_PATH_ROOTS must be an absolute path/],
  ['A13', { RUNTIMES: 'docker', DOCKER_HOST: '/var/run/docker.sock' }, /^DOCKER_HOST must be a URL/],
  ['U4', { HOST: '0.0.0.0' }, /^HOST 0\.0\.0\.0 is beyond loopback: set TOKENS_FILE, or ALLOW_ANONYMOUS=true/],
  ['U4', { HOST: '::' }, /^HOST :: is beyond loopback/],
  ['U4', { HOST: '127.0.0.1.evil.test' }, /^HOST .* is beyond loopback/],
]
for (const [row, environment, fault] of refused) {
  test(`${row}: ${JSON.stringify(environment)} stops the start`, () => {
    const faults = faultsOf(environment)
    assert.equal(faults.length, 1, faults.join('\n'))
    assert.match(faults[0] ?? '', fault)
  })
}

test('A13: several faults are reported at once, those between variables too', () => {
  const names = faultsOf({
    PORT: 'x',
    RUNTIMES: 'k8s,k3s',
    CONTAINER_RUNTIME: 'docker',
    NAMESPACES: 'a',
    NAMESPACE: 'b',
    POD_SECURITY: 'x',
    HOST: '0.0.0.0',
    STRICT_START: 'y',
  }).map(fault => fault.split(' ')[0])
  assert.deepEqual(names.sort(), [
    'CONTAINER_RUNTIME',
    'HOST',
    'K3S_KUBECONFIG',
    'NAMESPACE',
    'POD_SECURITY',
    'PORT',
    'STRICT_START',
  ])
})

test('A13: a variable that is faulty itself causes no second fault', () => {
  assert.equal(faultsOf({ RUNTIMES: 'nomad', CONTAINER_RUNTIME: 'docker' }).length, 1)
  assert.equal(faultsOf({ NAMESPACES: 'A_', NAMESPACE: 'b' }).length, 1)
})

test('U4: what counts as loopback', () => {
  for (const host of ['localhost', 'LOCALHOST', '127.0.0.1', '127.255.0.9', '::1', '[::1]'])
    assert.ok(isLoopback(host), host)
  for (const host of ['0.0.0.0', '::', '10.0.0.1', 'localhost.evil.test', '127.evil.test', '1127.0.0.1', ''])
    assert.ok(!isLoopback(host), host)
})

test('A2: any runtime name but the legal ones ends the start and lists them; never a silent fallback', () => {
  for (const name of ['RUNTIMES', 'CONTAINER_RUNTIME']) {
    for (const value of ['nomad', 'k8s-', 'kube', 'docker.io', 'K9S']) {
      assert.throws(
        () => loadConfig({ [name]: value }),
        /k8s, k3s, docker \(or kubernetes, which is k8s\)/,
        `${name}=${value}`,
      )
    }
  }
})
