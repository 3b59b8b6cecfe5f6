import { LABEL_INSTANCE, LABEL_RUNTIME, LABEL_WORKLOAD } from '../domain/labels.ts'
import type { Life } from '../domain/life.ts'
import { formatRuntimeId, type RuntimeId } from '../domain/runtime-id.ts'
import type { WorkloadSpec } from '../domain/workload-spec.ts'
import { RuntimeError } from '../errors.ts'
import type { Written } from '../service/ports.ts'
import { type BuildOptions, buildWorkload, withNonce } from './build-workload.ts'
import type { KubeClient } from './client.ts'
import { isKubeStatus, KubeStatusError } from './errors.ts'
import { isOwnWorkload, kubeKindOf, nonceOf, type WorkloadObject } from './kinds.ts'
import { OwnServices } from './own-services.ts'
import { writtenBy } from './written.ts'

const TRIES = 3

/** Makes the workload of a life, then its Service, so that a repeat after a lost answer makes nothing twice (lifecycle.md §2.2–§2.4). */
export class Maker {
  readonly #client: KubeClient
  readonly #build: BuildOptions
  readonly #services: OwnServices

  constructor(client: KubeClient, build: BuildOptions) {
    this.#client = client
    this.#build = build
    this.#services = new OwnServices(client, build)
  }

  async make(life: Life, active: boolean): Promise<Written> {
    if (life.spec === null) {
      throw new RuntimeError('INTERNAL_ERROR', 'cannot create a workload that was taken up: its spec is not known')
    }
    const spec: WorkloadSpec = { ...life.spec, start: active }
    const written = writtenBy(await this.#workload(spec, life))
    try {
      await this.#services.ensure(spec, written.uid)
    } catch (error) {
      throw await this.#undo(life, written.uid, error)
    }
    return written
  }

  async #workload(spec: WorkloadSpec, life: Life): Promise<WorkloadObject> {
    const kind = kubeKindOf(spec)
    const object = withNonce(buildWorkload(spec, this.#build), life.nonce) as WorkloadObject
    for (let n = 1; ; n++) {
      try {
        return await this.#client.create(kind, spec.namespace, object as never)
      } catch (error) {
        if (!(error instanceof KubeStatusError)) throw error
        const found = await this.#afterRefusal(spec, error)
        if (found !== null && nonceOf(found) === life.nonce) return found
        if (!isKubeStatus(error, 409, 'AlreadyExists')) throw error
        if (found !== null) throw this.#taken(found, spec)
        if (n === TRIES) throw busy(spec)
      }
    }
  }

  /** What is under the name after an error reply; an earlier attempt of the same call may have made it. */
  async #afterRefusal(id: RuntimeId, refusal: KubeStatusError): Promise<WorkloadObject | null> {
    try {
      return await this.#client.get(kubeKindOf(id), id.namespace, id.name)
    } catch (error) {
      if (isKubeStatus(error, 404)) return null
      if (refusal.kube.code < 500 && refusal.kube.reason !== 'AlreadyExists') return null
      const why = 'the cluster failed and then did not say whether it was done'
      const details = { cause: refusal, notDone: false, runtimeId: formatRuntimeId(id) }
      throw new RuntimeError('BACKEND_TIMEOUT', `cannot create ${formatRuntimeId(id)} for now: ${why}`, details)
    }
  }

  #taken(found: WorkloadObject, id: RuntimeId): RuntimeError {
    if (found.metadata?.deletionTimestamp) return busy(id)
    const runtimeId = formatRuntimeId(id)
    const { labels = {} } = found.metadata ?? {}
    const instance = labels[LABEL_INSTANCE] ?? this.#build.instance
    const runtime = labels[LABEL_RUNTIME] ?? id.runtime
    const labelled = labels[LABEL_WORKLOAD] !== undefined && (id.kind !== 'pod' || isOwnWorkload(found.metadata))
    if (labelled && instance === this.#build.instance && runtime === id.runtime) {
      const then = 'take it up by POST /v1/adoption, delete it, or choose another name'
      return new RuntimeError('RUNTIME_EXISTS', `cannot create ${runtimeId}: the cluster has it already; ${then}`, {
        runtimeId,
      })
    }
    const whose = labelled ? `belongs to instance "${instance}" of runtime "${runtime}"` : 'is not ours'
    const message = `cannot create ${runtimeId}: a ${kubeKindOf(id)} of this name ${whose}; choose another name`
    return new RuntimeError('FOREIGN_WORKLOAD', message, { runtimeId })
  }

  /** After a refused Service: takes the workload back and answers what the caller is to be told. */
  async #undo(life: Life, uid: string, error: unknown): Promise<unknown> {
    if (!(error instanceof RuntimeError) || !error.notDone || isRepeatedLater(life, error)) return error
    const { id } = life
    try {
      await this.#client.delete(kubeKindOf(id), id.namespace, id.name, { propagation: 'Foreground', uid })
      return error
    } catch (failure) {
      return isKubeStatus(failure, 404) || isKubeStatus(failure, 409, 'Conflict') ? error : leftBehind(error)
    }
  }
}

/** A create in hand is given up only for a final refusal (§2.3); what is made stays for the repeat. */
const isRepeatedLater = (life: Life, error: RuntimeError): boolean =>
  life.verb?.tried === true && error.status !== 409 && error.status !== 422

function busy(id: RuntimeId): RuntimeError {
  const runtimeId = formatRuntimeId(id)
  const message = `cannot create ${runtimeId}: an object of this name is being deleted; repeat once it is gone`
  return new RuntimeError('RUNTIME_BUSY', message, { runtimeId })
}

function leftBehind(error: RuntimeError): RuntimeError {
  const { code, message, cause, errors, reason, retryAfterSeconds, extra } = error
  return new RuntimeError(code, message, {
    cause,
    errors,
    extra,
    leftBehind: true,
    ...(reason === null ? {} : { reason }),
    ...(retryAfterSeconds === null ? {} : { retryAfterSeconds }),
  })
}
