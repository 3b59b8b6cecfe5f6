import { contractSuite } from '../contract/suite.ts'
import { connect } from './connect.ts'

const image = process.env.RUNTIMED_CLUSTER_IMAGE ?? 'registry.local/busybox:1'

contractSuite('contract on a real Kubernetes', async scope => {
  const api = await connect()
  scope.after(() => api.close())
  return {
    kubeconfig: process.env.KUBECONFIG ?? '',
    api,
    image,
    hungry: { image, entrypoint: ['/bin/sh', '-c', 'sleep 1; exec tail /dev/zero'], memory: '20Mi' },
    badImage: 'registry.invalid/none:1',
    podStartSeconds: 9,
    restricted: async () => ({
      kubeconfig: `${process.env.KUBECONFIG}.runtimed`,
      namespaces: ['runtimed-test', 'default'],
    }),
  }
})
