import type { Life } from '../domain/life.ts'
import type { Seen } from '../domain/observation.ts'
import { formatRuntimeId } from '../domain/runtime-id.ts'
import { RuntimeError } from '../errors.ts'
import type { Written } from '../service/ports.ts'
import type { KubeClient } from './client.ts'
import { isKubeStatus } from './errors.ts'
import type { Job, Scale } from './objects.ts'
import { writtenBy } from './written.ts'

/** A write that meets another's is decided again on what is there now, this often. */
const TRIES = 5

/**
 * Scales a Deployment to 1 or 0, unsuspends or suspends a Job; each write names the version it was decided on.
 * null = this object is gone. Throws KUBERNETES_ERROR when others write at each try.
 */
export async function setActive(client: KubeClient, life: Life, seen: Seen, active: boolean): Promise<Written | null> {
  switch (life.id.kind) {
    case 'deployment':
      return await setReplicas(client, life, seen, active ? 1 : 0)
    case 'job':
      return await setSuspend(client, life, seen, !active)
    case 'pod':
      throw new RuntimeError('INTERNAL_ERROR', `cannot start or stop ${formatRuntimeId(life.id)} in place: it is a Pod`)
  }
}

async function setReplicas(client: KubeClient, { id }: Life, seen: Seen, replicas: number): Promise<Written | null> {
  const { namespace, name } = id
  let resourceVersion = seen.version
  return await retried(
    async () => scaled(await client.patchScale(namespace, name, { replicas, resourceVersion }), seen),
    async () => {
      const now = await client.readScale(namespace, name)
      if (now.metadata?.uid !== seen.uid) return 'gone'
      resourceVersion = now.metadata.resourceVersion ?? ''
      const there = now.spec?.replicas ?? 0
      return (replicas === 0 ? there === 0 : there > 0) ? scaled(now, seen) : 'again'
    },
  )
}

async function setSuspend(client: KubeClient, { id }: Life, seen: Seen, suspend: boolean): Promise<Written | null> {
  const { namespace, name } = id
  let resourceVersion = seen.version
  return await retried(
    async () => {
      const patch = { metadata: { uid: seen.uid, resourceVersion }, spec: { suspend } }
      return writtenBy(await client.patch('Job', namespace, name, patch))
    },
    async () => {
      const now: Job = await client.get('Job', namespace, name)
      if (now.metadata?.uid !== seen.uid) return 'gone'
      resourceVersion = now.metadata.resourceVersion ?? ''
      return (now.spec?.suspend ?? false) === suspend ? writtenBy(now) : 'again'
    },
  )
}

async function retried(write: () => Promise<Written>, reread: () => Promise<Written | 'gone' | 'again'>) {
  for (let n = 1; ; n++) {
    try {
      return await write()
    } catch (error) {
      if (isKubeStatus(error, 404)) return null
      if (!isKubeStatus(error, 409) || n === TRIES) throw error
    }
    try {
      const now = await reread()
      if (now === 'gone') return null
      if (now !== 'again') return now
    } catch (error) {
      if (isKubeStatus(error, 404)) return null
      throw error
    }
  }
}

/** A Scale has no generation; its version is its Deployment's (KEP-5504). */
const scaled = ({ metadata }: Scale, seen: Seen): Written => ({
  uid: metadata?.uid ?? seen.uid,
  version: metadata?.resourceVersion ?? seen.version,
  generation: null,
})
