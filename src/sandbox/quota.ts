import type { ObjectStore } from './object-store.ts'
import { parseQuantity } from './quantity.ts'
import { qualified, type Resource } from './resources.ts'
import { forbidden } from './status-error.ts'
import type { KubeObject } from './types.ts'

const ended = (object: KubeObject): boolean => object.status?.phase === 'Succeeded' || object.status?.phase === 'Failed'

/** Throws 403 "exceeded quota" when one more object would pass a ResourceQuota's hard count (`pods`, `count/<resource>`). */
export function checkQuota(store: ObjectStore, resource: Resource, namespace: string, name: string): void {
  for (const quota of store.list('resourcequotas', namespace)) {
    for (const key of [resource.plural === 'pods' ? 'pods' : '', `count/${qualified(resource)}`]) {
      const hard = quota.spec?.hard?.[key]
      if (hard === undefined) continue
      const used = store.list(resource.plural, namespace).filter(object => key !== 'pods' || !ended(object)).length
      if (used + 1 <= (parseQuantity(hard) ?? 0)) continue
      const text = `exceeded quota: ${quota.metadata.name}, requested: ${key}=1, used: ${key}=${used}, limited: ${key}=${hard}`
      throw forbidden(resource, name, text)
    }
  }
}
