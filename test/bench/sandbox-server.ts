import { startSandbox } from '../../src/sandbox/index.ts'
import { answer } from './child.ts'

/** The sandbox's control plane in a process of its own: controllers, and no node to run anything. */
const sandbox = await startSandbox({ kubelet: 'none' })

answer({ kubeconfig: () => sandbox.kubeconfig() })
