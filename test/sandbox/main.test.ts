import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { DEPLOYMENTS, deployment, STUBBORN, until } from './client.ts'

const MAIN = new URL('../../src/sandbox/main.ts', import.meta.url).pathname

test('the sandbox alone: writes a kubeconfig, serves, ends at SIGTERM with every process it started', async t => {
  const folder = mkdtempSync(join(tmpdir(), 'sandbox-main-'))
  const file = join(folder, 'kubeconfig')
  const child = spawn(process.execPath, [MAIN, '--port', '0', '--kubeconfig', file, '--namespace', 'team'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  t.after(() => {
    child.kill('SIGKILL')
    rmSync(folder, { recursive: true })
  })
  await until('the kubeconfig', () => existsSync(file) && readFileSync(file, 'utf8').length > 0)
  const { server } = JSON.parse(readFileSync(file, 'utf8')).clusters[0].cluster
  assert.equal((await fetch(`${server}/api/v1/namespaces/team`)).status, 200)
  const body = JSON.stringify(deployment('web', ['sh', '-c', `echo $$$$; ${STUBBORN[2]}`]))
  await fetch(server + DEPLOYMENTS, { method: 'POST', body, headers: { 'content-type': 'application/json' } })
  const pid = await until('the pid', async () => {
    const { items } = (await (await fetch(`${server}/api/v1/namespaces/default/pods`)).json()) as {
      items: { metadata: { name: string } }[]
    }
    const reply = items[0] && (await fetch(`${server}/api/v1/namespaces/default/pods/${items[0].metadata.name}/log`))
    return reply?.status === 200 ? Number((await reply.text()).split('\n')[0]) || undefined : undefined
  })
  assert.ok(existsSync(`/proc/${pid}`))
  child.kill('SIGTERM')
  const [code] = await once(child, 'exit')
  assert.equal(code, 0)
  assert.ok(!existsSync(file), 'the kubeconfig is removed')
  await until(
    'the process is gone',
    () => !existsSync(`/proc/${pid}`) || /^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8')),
  )
})

test('--help states the rules of the failures it plays; a bad port is refused', () => {
  const help = spawnSync(process.execPath, [MAIN, '--help'], { encoding: 'utf8' })
  assert.equal(help.status, 0)
  for (const rule of ['.invalid', 'sandbox/oom', '64 cores', 'StartError', 'CrashLoopBackOff', 'ErrImagePull'])
    assert.ok(help.stdout.includes(rule), rule)
  const bad = spawnSync(process.execPath, [MAIN, '--port', 'x'], { encoding: 'utf8' })
  assert.equal(bad.status, 1)
  assert.match(bad.stderr, /^cannot use port x/)
})
