import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { testProfile } from '../../src/kube/reflector-profile.ts'
import { startSandbox, TEST_TIMING } from '../../src/sandbox/index.ts'
import { type Daemon, kubeconfigFile, poll, startDaemon } from '../helpers/daemon.ts'

const watches = { verb: 'watch' } as const

/** In a file of its own: what the process holds is counted. */
test('F-13: stopped at any moment, no socket and no timer is left', async t => {
  const sandbox = await startSandbox({ kubelet: 'instant', timing: TEST_TIMING })
  t.after(() => sandbox.close())
  const kubeconfig = kubeconfigFile(t, sandbox.kubeconfig())
  const ours = /^(TCP|Connect|TLS|Timeout|FS|GetAddrInfo)/
  const held = () =>
    process
      .getActiveResourcesInfo()
      .filter(kind => ours.test(kind))
      .sort()
  const before = held()
  const moments: [string, (daemon: Daemon) => Promise<unknown>][] = [
    ['at once', async () => {}],
    ['watching', daemon => daemon.ready()],
    [
      'while a list is not answered',
      async () => {
        sandbox.faults.fail({ verb: 'list' }, { hang: true })
        sandbox.faults.compact()
        sandbox.faults.closeStreams('reset')
        await sleep(50)
      },
    ],
    [
      'between two tries',
      async daemon => {
        await daemon.ready()
        sandbox.faults.fail(watches, { status: 503 })
        sandbox.faults.closeStreams('reset')
        await sleep(100)
      },
    ],
  ]
  for (const [moment, reach] of moments) {
    const daemon = await startDaemon(t, { kubeconfig, profile: testProfile })
    await reach(daemon)
    await daemon.stop()
    sandbox.faults.clear()
    const left = await poll(held, now => now.join() === before.join(), 5).catch(held)
    assert.deepEqual(left, before, moment)
    // What was on its way when it stopped has arrived by now; nothing follows it.
    const requests = sandbox.faults.journal.length
    await sleep(100)
    assert.equal(sandbox.faults.journal.length, requests)
    await assert.rejects(fetch(`${daemon.url}/livez`))
  }
})
