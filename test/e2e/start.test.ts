import assert from 'node:assert/strict'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { startSandbox, TEST_TIMING } from '../../src/sandbox/index.ts'
import { kubeconfigFile, poll, spawnDaemon, spawnMain, startDaemon, temporaryFolder } from '../helpers/daemon.ts'
import { startProxy } from '../helpers/tcp-proxy.ts'

describe('start', { concurrency: 3 }, () => {
  test('A6: with the cluster unreachable it starts, says so, and recovers by itself', async t => {
    const sandbox = await startSandbox({ timing: TEST_TIMING })
    t.after(() => sandbox.close())
    const proxy = await startProxy(t, sandbox.port)
    const kubeconfig = kubeconfigFile(t, sandbox.kubeconfig().replaceAll(String(sandbox.port), String(proxy.port)))
    await proxy.refuse()
    const daemon = await startDaemon(t, { kubeconfig, profile: 'test' })
    assert.equal((await daemon.api('GET', '/livez')).status, 200)
    const ready = await daemon.api('GET', '/readyz')
    assert.equal(ready.status, 503)
    const check = ready.body.checks.find((found: { name: string }) => found.name.includes('k8s'))
    assert.equal(check.ok, false)
    await poll(
      () => daemon.api('GET', '/readyz'),
      ({ body }) => /cannot be reached/.test(JSON.stringify(body.checks)),
    )
    const refused = await daemon.api('POST', '/v1/runtimes', { image: 'busybox', name: 'web' })
    assert.deepEqual([refused.status, refused.body.code], [503, 'BACKEND_UNAVAILABLE'])
    await proxy.restore()
    await daemon.ready(10)
    const made = await daemon.api('POST', '/v1/runtimes', { image: 'busybox', name: 'web' })
    assert.equal(made.status, 201)
    await daemon.waitFor(made.body.id, runtime => runtime?.state === 'running')
    assert.deepEqual(daemon.fatal, [])
  })

  test('A6: STRICT_START ends with 1 in bounded time and says which runtime', async t => {
    const sandbox = await startSandbox()
    await sandbox.close()
    const env = { KUBECONFIG: kubeconfigFile(t, sandbox.kubeconfig()), STRICT_START: 'true', KUBE_TIMEOUT_SECONDS: '1' }
    const child = spawnMain(t, { ...env, DATABASE_PATH: join(temporaryFolder(t), 'runtimed.db') })
    assert.equal(await child.ended, 1)
    assert.match(child.output(), /runtime \\"k8s\\" cannot be reached.*STRICT_START/)
    assert.doesNotMatch(child.output(), /the disk/)
  })

  test('A13: what keeps it from starting is told in one line that says what to change, without a stack', async t => {
    const sandbox = await startSandbox()
    t.after(() => sandbox.close())
    const folder = temporaryFolder(t)
    const env = { KUBECONFIG: kubeconfigFile(t, sandbox.kubeconfig()), DATABASE_PATH: join(folder, 'runtimed.db') }
    const bad = join(folder, 'tokens.json')
    writeFileSync(bad, '[{"name":"ci","token":"s3cret"}]')
    const said: readonly [Record<string, string>, RegExp][] = [
      [
        { TOKENS_FILE: join(folder, 'none.json') },
        /^runtimed: cannot read TOKENS_FILE: .*none\.json does not exist\n$/,
      ],
      [{ TOKENS_FILE: bad }, /^runtimed: cannot read TOKENS_FILE: 0\.namespaces: [^\n]*\n$/],
      [{ PORT: String(sandbox.port) }, /^runtimed: cannot listen on 127\.0\.0\.1 port \d+: .* set another PORT\n$/],
      [
        { HOST: '203.0.113.7', ALLOW_ANONYMOUS: 'true' },
        /^runtimed: cannot listen on 203\.0\.113\.7 .* set another HOST\n$/,
      ],
    ]
    for (const [wrong, line] of said) {
      const child = spawnMain(t, { ...env, ...wrong })
      assert.equal(await child.ended, 1)
      assert.match(child.output(), line)
      assert.doesNotMatch(child.output(), /s3cret/)
    }
  })

  test('F-26, U3: SIGTERM while the cluster cannot be reached ends it with 0', async t => {
    const sandbox = await startSandbox()
    await sandbox.close()
    const child = await spawnDaemon(t, { kubeconfig: kubeconfigFile(t, sandbox.kubeconfig()) })
    const { body } = await child.api('POST', '/v1/runtimes', { image: 'busybox', name: 'web' })
    assert.equal(body.code, 'BACKEND_UNAVAILABLE')
    const told = await poll(
      () => linesOf(child.output()).find(line => line.requestId === body.requestId && line.failure),
      line => line !== undefined,
    )
    assert.deepEqual(
      [told.failure.code, told.failure.message],
      [body.code, body.detail],
      'U5: an object, not a text of one',
    )
    const start = performance.now()
    child.process.kill('SIGTERM')
    assert.equal(await child.ended, 0, child.output())
    assert.ok(performance.now() - start < 10_000)
  })

  test('A8: the file that KUBECONFIG names; without it the one below HOME', async t => {
    const sandbox = await startSandbox({ timing: TEST_TIMING })
    t.after(() => sandbox.close())
    const home = temporaryFolder(t)
    mkdirSync(join(home, '.kube'))
    writeFileSync(join(home, '.kube', 'config'), sandbox.kubeconfig())
    const child = await spawnDaemon(t, { kubeconfig: '', env: { HOME: home } })
    await child.ready()
    const named = spawnMain(t, { HOME: home, KUBECONFIG: '/no/such/file', DATABASE_PATH: join(home, 'other.db') })
    assert.equal(await named.ended, 1)
    assert.match(named.output(), /\/no\/such\/file/)
  })

  test('A8: in a cluster without its token it fails loudly, whatever lies below HOME', async t => {
    const home = temporaryFolder(t)
    mkdirSync(join(home, '.kube'))
    const sandbox = await startSandbox()
    t.after(() => sandbox.close())
    writeFileSync(join(home, '.kube', 'config'), sandbox.kubeconfig())
    const inCluster = { KUBERNETES_SERVICE_HOST: '127.0.0.1', KUBERNETES_SERVICE_PORT: '1' }
    const child = spawnMain(t, { ...inCluster, HOME: home, DATABASE_PATH: join(home, 'runtimed.db') })
    assert.equal(await child.ended, 1)
    assert.match(child.output(), /serviceaccount/)
  })

  test('F-27, K10: a second daemon on one database refuses at once and says who holds it', async t => {
    const sandbox = await startSandbox()
    t.after(() => sandbox.close())
    const kubeconfig = kubeconfigFile(t, sandbox.kubeconfig())
    const first = await spawnDaemon(t, { kubeconfig })
    const second = spawnMain(t, { KUBECONFIG: kubeconfig, DATABASE_PATH: first.database })
    assert.equal(await second.ended, 1)
    assert.match(second.output(), new RegExp(`${first.process.pid}`))
    assert.equal((await first.api('GET', '/livez')).status, 200)
  })

  test('A12: a thousand workloads, one watch a kind', async t => {
    const sandbox = await startSandbox({ controllers: false, kubelet: 'none' })
    t.after(() => sandbox.close())
    for (let n = 0; n < 1000; n++) {
      const labels = { 'gobrave-workload': `web-${n}`, 'runtimed.dev/kind': 'deployment' }
      const template = { metadata: { labels }, spec: { containers: [{ name: 'main', image: 'a' }] } }
      const spec = { replicas: 0, selector: { matchLabels: labels }, template }
      sandbox.registry.create('deployments', 'default', { metadata: { name: `web-${n}`, labels }, spec })
    }
    const daemon = await startDaemon(t, { kubeconfig: kubeconfigFile(t, sandbox.kubeconfig()) })
    await daemon.ready()
    // Ready means that the lists are in; the last watch may still be on its way.
    const watched = await poll(
      () => sandbox.faults.requests({ verb: 'watch' }).map(({ resource }) => resource),
      resources => resources.length >= 3,
    )
    assert.deepEqual(watched.sort(), ['deployments', 'jobs', 'pods'])
    const { body } = await daemon.api('GET', '/v1/adoption')
    assert.equal(body.orphaned.length, 1000)
    assert.ok(sandbox.faults.requests({ verb: 'get' }).every(({ resource }) => resource === undefined))
  })
})

/** Whole lines only: the last one may still be on its way. */
const linesOf = (output: string) =>
  output
    .split('\n')
    .slice(0, -1)
    .map(line => JSON.parse(line))
