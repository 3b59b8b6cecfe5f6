import type { Life } from '../domain/life.ts'
import type { Written } from '../service/ports.ts'
import type { KubeClient } from './client.ts'
import { isKubeStatus } from './errors.ts'
import { kubeKindOf, nonceOf } from './kinds.ts'
import type { OwnServices } from './own-services.ts'
import { writtenBy } from './written.ts'

/**
 * Its Service, then the workload, foreground, so that it ends after its pods; only this very uid. A life whose uid is not
 * known is found by its nonce. null = it is gone. A Service that cannot be removed leaves the workload as it is.
 */
export async function remove(client: KubeClient, services: OwnServices, life: Life): Promise<Written | null> {
  const uid = life.uid ?? (await uidByNonce(client, life))
  if (uid === null) return null
  const { id } = life
  await services.remove(id, uid)
  try {
    const left = await client.delete(kubeKindOf(id), id.namespace, id.name, { propagation: 'Foreground', uid })
    return left === null
      ? { uid, version: life.writtenVersion ?? life.seenVersion ?? '0', generation: null }
      : writtenBy(left)
  } catch (error) {
    if (isKubeStatus(error, 404) || isKubeStatus(error, 409)) return null
    throw error
  }
}

async function uidByNonce(client: KubeClient, { id, nonce }: Life): Promise<string | null> {
  try {
    const found = await client.get(kubeKindOf(id), id.namespace, id.name)
    return nonceOf(found) === nonce ? (found.metadata?.uid ?? null) : null
  } catch (error) {
    if (isKubeStatus(error, 404)) return null
    throw error
  }
}
