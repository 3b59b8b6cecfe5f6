import { createHash } from 'node:crypto'
import { findCondition } from './conditions.ts'
import {
  type ControllerContext,
  controlledBy,
  controlledObjects,
  controllerOf,
  isDeleting,
  type Stop,
} from './controller.ts'
import { encodeSuffix } from './defaults.ts'
import {
  type Bounds,
  boundsOf,
  countStatus,
  isComplete,
  rolloutStatus,
  setDeploymentCondition,
  sum,
  untilDeadline,
} from './deployment-status.ts'
import { clone, equal } from './json.ts'
import { KeyedLoop, keyOfObject, splitKey } from './keyed-loop.ts'
import { matchesSelector } from './selectors.ts'
import { StatusError } from './status-error.ts'
import type { KubeObject, Loose } from './types.ts'

const PREFIX = 'deployment.kubernetes.io'
const HASH = 'pod-template-hash'

/** The Deployment controller: ReplicaSets per template, rolling updates, scaling, status in the order of the real one. */
export function startDeploymentController(context: ControllerContext): Stop {
  const loop = new KeyedLoop({
    lagMs: context.timing.controllerLagMs,
    retryMaxMs: context.timing.controllerRetryMaxMs,
    faults: context.faults,
    reconcile: key => new DeploymentSync(context, key).run(),
  })
  const unsubscribe = context.registry.store.subscribe(({ resource, object, type }) => {
    if (resource === 'deployments' && type !== 'DELETED') loop.add(keyOfObject(object))
    if (resource !== 'replicasets') return
    const owner = controllerOf(object)
    if (owner?.kind === 'Deployment') loop.add(`${object.metadata.namespace}/${owner.name}`)
  })
  return () => {
    unsubscribe()
    loop.close()
  }
}

/** One look at one Deployment; makes at most one step, whose consequences bring it back. */
class DeploymentSync {
  readonly #context: ControllerContext
  readonly #namespace: string
  readonly #name: string

  constructor(context: ControllerContext, key: string) {
    this.#context = context
    ;[this.#namespace, this.#name] = splitKey(key)
  }

  run(): number | undefined {
    const deployment = this.#context.registry.store.get('deployments', this.#namespace, this.#name)
    if (!deployment) return undefined
    const sets = isDeleting(deployment) ? this.#owned(deployment) : this.#claim(deployment)
    const newSet = sets.find(set => sameTemplate(set, deployment))
    const old = sets.filter(set => set !== newSet)
    if (isDeleting(deployment)) this.#writeStatus(deployment, countStatus(deployment, sets, newSet))
    else if (isScaling(deployment, sets)) {
      this.#scale(deployment, newSet, old)
      this.#writeStatus(deployment, countStatus(deployment, sets, newSet))
    } else if (!newSet) this.#replaceTemplate(deployment, sets)
    else if (!this.#noteRevision(deployment, newSet, sets)) return this.#rollOut(deployment, sets, newSet)
    return undefined
  }

  #rollOut(deployment: KubeObject, sets: KubeObject[], newSet: KubeObject): number | undefined {
    const old = sets.filter(set => set !== newSet)
    const moved = this.#scaleUp(deployment, sets, newSet) || this.#scaleDown(deployment, newSet, old)
    if (!moved && isComplete(deployment, deployment.status ?? {})) this.#forgetOld(deployment, old)
    const now = Date.now()
    this.#writeStatus(deployment, rolloutStatus(deployment, sets, newSet, now))
    const current = this.#context.registry.store.get('deployments', this.#namespace, this.#name)
    return current ? untilDeadline(current, now) : undefined
  }

  #owned(deployment: KubeObject): KubeObject[] {
    return controlledObjects(this.#context, deployment, 'replicasets')
  }

  /** ReplicaSets of this Deployment; those without an owner that match are adopted. */
  #claim(deployment: KubeObject): KubeObject[] {
    const { registry } = this.#context
    for (const set of registry.store.orphans('replicasets', this.#namespace)) {
      if (isDeleting(set) || !matchesSelector(deployment.spec.selector, set.metadata.labels)) continue
      registry.update('replicasets', this.#namespace, set.metadata.name, draft => {
        draft.metadata.ownerReferences = [controlledBy('deployments', deployment)]
      })
    }
    return this.#owned(deployment)
  }

  #replaceTemplate(deployment: KubeObject, sets: KubeObject[]): void {
    const busy = sets.filter(
      set => set.spec.replicas > 0 || (set.status?.replicas ?? 0) > 0 || (set.status?.terminatingReplicas ?? 0) > 0,
    )
    if (deployment.spec.strategy?.type === 'Recreate' && busy.length > 0) {
      for (const set of busy) this.#resize(deployment, set, 0)
      this.#writeStatus(deployment, countStatus(deployment, sets, undefined))
    } else this.#createSet(deployment, sets)
  }

  #createSet(deployment: KubeObject, sets: KubeObject[]): void {
    const { registry } = this.#context
    const draft = newReplicaSet(deployment, sets, boundsOf(deployment))
    try {
      registry.create('replicasets', this.#namespace, draft)
    } catch (error) {
      if (!(error instanceof StatusError) || error.reason !== 'AlreadyExists') throw error
      this.#collide(deployment)
      return
    }
    const { name, annotations } = draft.metadata
    registry.updateStatus('deployments', this.#namespace, this.#name, next => {
      next.metadata.annotations = {
        ...next.metadata.annotations,
        [`${PREFIX}/revision`]: annotations[`${PREFIX}/revision`],
      }
      const condition = {
        type: 'Progressing',
        status: 'True',
        reason: 'NewReplicaSetCreated',
        message: `Created new replica set "${name}"`,
      }
      next.status = { ...next.status, conditions: setDeploymentCondition(next.status?.conditions, condition) }
    })
  }

  /** Another owner's ReplicaSet has the name: the next hash will differ. */
  #collide(deployment: KubeObject): void {
    this.#context.registry.updateStatus('deployments', this.#namespace, this.#name, next => {
      next.status = { ...next.status, collisionCount: (deployment.status?.collisionCount ?? 0) + 1 }
    })
  }

  /** A template that was used before gets a new revision; an adopted one its first condition. True when something was written. */
  #noteRevision(deployment: KubeObject, newSet: KubeObject, sets: KubeObject[]): boolean {
    const { registry } = this.#context
    const newest = String(
      Math.max(...sets.map(revisionOf)) +
        (sets.some(set => set !== newSet && revisionOf(set) >= revisionOf(newSet)) ? 1 : 0),
    )
    if (String(revisionOf(newSet)) !== newest) {
      registry.update('replicasets', this.#namespace, newSet.metadata.name, draft => {
        draft.metadata.annotations = { ...draft.metadata.annotations, [`${PREFIX}/revision`]: newest }
      })
    }
    const unknown = findCondition(deployment.status?.conditions, 'Progressing') === undefined
    if (deployment.metadata.annotations?.[`${PREFIX}/revision`] === newest && !unknown) return false
    registry.updateStatus('deployments', this.#namespace, this.#name, next => {
      next.metadata.annotations = { ...next.metadata.annotations, [`${PREFIX}/revision`]: newest }
      if (!unknown) return
      const condition = {
        type: 'Progressing',
        status: 'True',
        reason: 'FoundNewReplicaSet',
        message: `Found new replica set "${newSet.metadata.name}"`,
      }
      next.status = { ...next.status, conditions: setDeploymentCondition(next.status?.conditions, condition) }
    })
    return true
  }

  #scale(deployment: KubeObject, newSet: KubeObject | undefined, old: KubeObject[]): void {
    const { replicas } = deployment.spec
    const active = [...(newSet ? [newSet] : []), ...old].filter(set => set.spec.replicas > 0)
    if (replicas === 0) for (const set of active) this.#resize(deployment, set, 0)
    else if (active.length === 1) this.#resize(deployment, active[0]!, replicas)
    else {
      const room = replicas + boundsOf(deployment).maxSurge - sum(old, set => set.spec.replicas)
      for (const set of active) this.#resize(deployment, set, set === newSet ? Math.max(0, room) : set.spec.replicas)
    }
  }

  #scaleUp(deployment: KubeObject, sets: KubeObject[], newSet: KubeObject): boolean {
    const { replicas } = deployment.spec
    const own = newSet.spec.replicas
    if (own === replicas) return false
    if (own > replicas) return this.#resize(deployment, newSet, replicas)
    const target = sizeOfNew(
      deployment,
      sum(sets, set => set.spec.replicas),
      own,
      boundsOf(deployment),
    )
    return target > own && this.#resize(deployment, newSet, target)
  }

  #scaleDown(deployment: KubeObject, newSet: KubeObject, old: KubeObject[]): boolean {
    const active = old.filter(set => set.spec.replicas > 0)
    if (active.length === 0) return false
    const least = deployment.spec.replicas - boundsOf(deployment).maxUnavailable
    const all = [newSet, ...old]
    const newMissing = newSet.spec.replicas - (newSet.status?.availableReplicas ?? 0)
    let room = sum(all, set => set.spec.replicas) - least - newMissing
    let moved = false
    for (const set of active) {
      const unhealthy = Math.max(0, set.spec.replicas - (set.status?.availableReplicas ?? 0))
      const spare = Math.max(0, sum(all, other => other.status?.availableReplicas) - least)
      const fewer = Math.min(room, set.spec.replicas, unhealthy > 0 ? unhealthy : spare)
      if (fewer <= 0) continue
      moved = this.#resize(deployment, set, set.spec.replicas - fewer) || moved
      room -= fewer
    }
    return moved
  }

  #resize(deployment: KubeObject, set: KubeObject, replicas: number): boolean {
    const before = set.metadata.resourceVersion
    const after = this.#context.registry.update('replicasets', this.#namespace, set.metadata.name, draft => {
      draft.spec.replicas = replicas
      draft.metadata.annotations = { ...draft.metadata.annotations, ...sizeAnnotations(deployment) }
    })
    return after.metadata.resourceVersion !== before
  }

  #forgetOld(deployment: KubeObject, old: KubeObject[]): void {
    const empty = old.filter(set => set.spec.replicas === 0 && !set.status?.replicas && !isDeleting(set))
    const surplus = empty.length - (deployment.spec.revisionHistoryLimit ?? 10)
    const oldest = empty.sort((a, b) => revisionOf(a) - revisionOf(b)).slice(0, Math.max(0, surplus))
    for (const set of oldest) this.#context.registry.delete('replicasets', this.#namespace, set.metadata.name)
  }

  #writeStatus(deployment: KubeObject, status: Loose): void {
    if (equal(deployment.status, status)) return
    this.#context.registry.updateStatus('deployments', this.#namespace, this.#name, draft => {
      draft.status = status
    })
  }
}

const revisionOf = (set: KubeObject): number => Number(set.metadata.annotations?.[`${PREFIX}/revision`] ?? 0)

function sizeAnnotations(deployment: KubeObject): Record<string, string> {
  const { replicas } = deployment.spec
  return {
    [`${PREFIX}/desired-replicas`]: String(replicas),
    [`${PREFIX}/max-replicas`]: String(replicas + boundsOf(deployment).maxSurge),
  }
}

/** An active ReplicaSet was sized for another number of replicas. */
function isScaling(deployment: KubeObject, sets: KubeObject[]): boolean {
  const wanted = String(deployment.spec.replicas)
  return sets.some(set => set.spec.replicas > 0 && set.metadata.annotations?.[`${PREFIX}/desired-replicas`] !== wanted)
}

function sizeOfNew(deployment: KubeObject, current: number, own: number, bounds: Bounds): number {
  const { replicas, strategy } = deployment.spec
  if (strategy?.type === 'Recreate') return replicas
  const room = replicas + bounds.maxSurge - current
  return room <= 0 ? own : own + Math.min(room, replicas - own)
}

function sameTemplate(set: KubeObject, deployment: KubeObject): boolean {
  const template = clone(set.spec.template)
  delete template.metadata?.labels?.[HASH]
  return equal(template, deployment.spec.template)
}

function newReplicaSet(deployment: KubeObject, sets: KubeObject[], bounds: Bounds): Loose {
  const template = clone(deployment.spec.template)
  const seed = `${JSON.stringify(template)}${deployment.status?.collisionCount ?? ''}`
  const hash = encodeSuffix(createHash('sha1').update(seed).digest().readUInt32BE(0))
  template.metadata = { ...template.metadata, labels: { ...template.metadata?.labels, [HASH]: hash } }
  const { selector } = deployment.spec
  return {
    metadata: {
      name: `${deployment.metadata.name}-${hash}`,
      labels: template.metadata.labels,
      annotations: {
        ...deployment.metadata.annotations,
        ...sizeAnnotations(deployment),
        [`${PREFIX}/revision`]: String(Math.max(0, ...sets.map(revisionOf)) + 1),
      },
      ownerReferences: [controlledBy('deployments', deployment)],
    },
    spec: {
      replicas: sizeOfNew(
        deployment,
        sum(sets, set => set.spec.replicas),
        0,
        bounds,
      ),
      selector: { ...selector, matchLabels: { ...selector.matchLabels, [HASH]: hash } },
      template,
    },
  }
}
