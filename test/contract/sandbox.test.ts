import { type PolicyRule, startSandbox, TEST_TIMING } from '../../src/sandbox/index.ts'
import { connect } from '../cluster/connect.ts'
import { kubeconfigFile, type Scope } from '../helpers/daemon.ts'
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
    restricted,
    faults: sandbox.faults,
  }
})

/** A cluster of its own, where the role of the chart is enforced in two namespaces. */
async function restricted(scope: Scope) {
  const namespaces = ['default', 'second']
  const sandbox = await startSandbox({ timing: TEST_TIMING, namespaces })
  scope.after(() => sandbox.close())
  const rule = (group: string, resource: string, ...verbs: string[]): PolicyRule => ({
    ...{ apiGroups: [group], resources: [resource], verbs, namespaces },
  })
  const all = ['get', 'list', 'watch', 'create', 'delete', 'patch']
  sandbox.faults.enforceRole([
    ...[rule('apps', 'deployments', ...all), rule('batch', 'jobs', ...all), rule('', 'pods', ...all)],
    ...[rule('apps', 'deployments/scale', 'get', 'patch'), rule('apps', 'replicasets', 'get')],
    ...[rule('', 'pods/log', 'get'), rule('', 'services', 'get', 'create', 'delete'), rule('', 'events', 'list')],
  ])
  return { kubeconfig: kubeconfigFile(scope, sandbox.kubeconfig()), namespaces }
}
