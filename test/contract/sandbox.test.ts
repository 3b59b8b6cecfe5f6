import { setTimeout as sleep } from 'node:timers/promises'
import { startSandbox, TEST_TIMING } from '../../src/sandbox/index.ts'
import { connect } from '../cluster/connect.ts'
import { kubeconfigFile } from '../helpers/daemon.ts'
import { contractSuite } from './suite.ts'

contractSuite('contract on the sandbox', async scope => {
  const sandbox = await startSandbox({ timing: TEST_TIMING })
  scope.after(() => sandbox.close())
  const kubeconfig = kubeconfigFile(scope, sandbox.kubeconfig())
  const api = await connect(kubeconfig)
  scope.after(() => api.close())
  return {
    kubeconfig,
    api,
    image: 'busybox',
    hungry: { image: 'sandbox/oom', entrypoint: ['/bin/sh'], memory: '20Mi' },
    badImage: 'registry.invalid/none:1',
    podStartSeconds: 3,
    faults: sandbox.faults,
    async expireWatches() {
      sandbox.faults.muteStreams()
      await sleep(0)
      sandbox.faults.compact()
      sandbox.faults.closeStreams('reset')
    },
  }
})
