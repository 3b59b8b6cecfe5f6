import type { Life } from '../domain/life.ts'
import { intend, newLife, replaced } from '../domain/lifecycle.ts'
import { formatRuntimeId, parseRuntimeId, type RuntimeId } from '../domain/runtime-id.ts'
import {
  type CreateRequest,
  canonicalJson,
  normaliseSpec,
  type SpecPolicy,
  type WorkloadSpec,
} from '../domain/workload-spec.ts'
import { RuntimeError } from '../errors.ts'
import type { Backends } from './backends.ts'
import type { Effects } from './effects.ts'
import type { IdempotencyKeys } from './idempotency.ts'
import type { KeyedQueue } from './keyed-queue.ts'
import type { Clock, KeyClaim, RuntimeTable } from './ports.ts'
import type { Recorder } from './recorder.ts'
import { requireNamespace, type Scope } from './scope.ts'
import type { TakeUp } from './take-up.ts'

/** What the daemon's configuration puts into a request that leaves it open. */
export interface CreateDefaults {
  readonly namespace: string
  readonly startTimeoutSeconds: number
  readonly jobStop: 'delete' | 'suspend'
  readonly policy: SpecPolicy
}

export interface RuntimeVerbsOptions {
  readonly table: Pick<RuntimeTable, 'newest'>
  readonly backends: Backends
  readonly queue: KeyedQueue
  readonly effects: Effects
  readonly recorder: Recorder
  readonly keys: IdempotencyKeys
  readonly takeUp: TakeUp
  readonly clock: Clock
  readonly defaults: CreateDefaults
  readonly newNonce: () => string
  readonly newName: () => string
  readonly sha256: (text: string) => string
}

/**
 * create, start, stop, delete: intent first, effect second (lifecycle.md §2). The row is durable before the cluster is
 * touched, so a crash in between leaves work for the reconciler to finish and never a workload without a row.
 */
export class RuntimeVerbs {
  readonly #options: RuntimeVerbsOptions

  constructor(options: RuntimeVerbsOptions) {
    this.#options = options
  }

  /** All checks of a create; throws REQUEST_INVALID, SPEC_REFUSED, IMAGE_REFUSED, NAMESPACE_NOT_ALLOWED. */
  check(scope: Scope, request: CreateRequest): WorkloadSpec {
    const { defaults, backends, newName } = this.#options
    requireNamespace(scope, request.namespace?.trim() || defaults.namespace)
    return normaliseSpec(
      request,
      {
        runtime: backends.default.name,
        namespace: defaults.namespace,
        kind: 'deployment',
        name: newName(),
        startTimeoutSeconds: defaults.startTimeoutSeconds,
        jobStop: defaults.jobStop,
      },
      defaults.policy,
    )
  }

  async create(scope: Scope, request: CreateRequest, idempotencyKey: string | null): Promise<Life> {
    const spec = this.check(scope, request)
    const claim = this.#claimOf(scope, request, idempotencyKey)
    const key = formatRuntimeId(spec)
    return await this.#options.keys.once(claim, () =>
      this.#options.queue.run(key, () => this.#createInTurn(key, spec, claim)),
    )
  }

  async verb(scope: Scope, text: string, verb: 'start' | 'stop' | 'delete'): Promise<Life> {
    const id = parseRuntimeId(text)
    requireNamespace(scope, id.namespace)
    this.#options.backends.get(id.runtime)
    const key = formatRuntimeId(id)
    return await this.#options.queue.run(key, () => this.#verbInTurn(id, key, verb))
  }

  async #createInTurn(key: string, spec: WorkloadSpec, claim: KeyClaim | null): Promise<Life> {
    const { table, recorder, effects, queue, clock, newNonce } = this.#options
    const now = clock.now()
    const old = table.newest(key)
    const over = old === null || old.state === 'deleted' ? [] : [replacedBy(old, key, now)]
    const life = newLife({
      spec,
      nonce: newNonce(),
      now,
      lastEventAt: over[0]?.life.lastEventAt ?? old?.lastEventAt ?? 0,
    })
    const { lives } = await recorder.commit({
      rows: [...over, { life, events: [] }],
      ...(claim === null ? {} : { key: claim }),
    })
    const claimed = lives.at(-1) ?? life
    try {
      return await effects.carryOut(claimed)
    } finally {
      queue.add(key)
    }
  }

  async #verbInTurn(id: RuntimeId, key: string, verb: 'start' | 'stop' | 'delete'): Promise<Life> {
    const { table, backends, recorder, effects, queue, clock } = this.#options
    const known = table.newest(key)
    const life = known === null || known.state === 'deleted' ? await this.#takeUp(id, known, verb) : known
    if (life.state === 'deleted') return life
    if (life.foreign) throw labelGone(key)
    const cause = verb === 'stop' ? 'StoppedByRequest' : verb === 'delete' ? 'DeletedByRequest' : null
    const observation = backends.get(id.runtime).workloads.observe(life)
    const intended = intend(life, verb, { now: clock.now(), cause, observation })
    if (intended.type === 'refused') throw new RuntimeError(intended.code, intended.message, { runtimeId: key })
    if (intended.type === 'nothing') return life
    const { lives } = await recorder.commit({ rows: [{ life: intended.life, events: [] }] })
    try {
      return await effects.carryOut(lives[0] ?? intended.life)
    } finally {
      queue.add(key, true)
    }
  }

  /** §2.7: no row, or its newest life deleted: one live GET; what carries our label is taken up. */
  async #takeUp(id: RuntimeId, known: Life | null, verb: string): Promise<Life> {
    const taken = await this.#options.takeUp.take(id)
    if (taken !== null) return taken
    if (known !== null && verb === 'delete') return known
    throw notFound(formatRuntimeId(id), known)
  }

  #claimOf(scope: Scope, request: CreateRequest, key: string | null): KeyClaim | null {
    if (key === null) return null
    return { token: scope.token ?? '', key, hash: this.#options.sha256(canonicalJson(request)) }
  }
}

/** The row a create finds under its name: an ended Job or Pod whose object is gone makes room, anything else is a conflict. */
function replacedBy(old: Life, key: string, now: number) {
  const made = replaced(old, now)
  if (made !== null) return { life: made.life, events: made.events }
  if (old.state === 'deleting' || old.verb?.verb === 'delete') {
    throw new RuntimeError(
      'RUNTIME_BUSY',
      `cannot create ${key}: one of this name is being deleted; repeat once it is gone`,
      {
        runtimeId: key,
      },
    )
  }
  throw new RuntimeError(
    'RUNTIME_EXISTS',
    `cannot create ${key}: it exists already (${old.state}); delete it first, or choose another name`,
    { runtimeId: key },
  )
}

const labelGone = (key: string): RuntimeError =>
  new RuntimeError(
    'FOREIGN_WORKLOAD',
    `cannot touch ${key}: its label gobrave-workload was removed by others; put it back to have it managed again`,
    { runtimeId: key },
  )

/** 404 of an ID: there never was one, or its life is over; the detail then says when and why. */
export function notFound(key: string, known: Life | null): RuntimeError {
  if (known === null) {
    return new RuntimeError('RUNTIME_NOT_FOUND', `cannot find ${key}: there is no such runtime`, { runtimeId: key })
  }
  const when = known.deletedAt === null ? '' : ` at ${new Date(known.deletedAt).toISOString()}`
  const why = known.reason === null ? '' : ` (${known.reason})`
  return new RuntimeError(
    'RUNTIME_NOT_FOUND',
    `cannot find ${key}: it was deleted${when}${why}; its events are still there`,
    {
      runtimeId: key,
      ...(known.reason === null ? {} : { reason: known.reason }),
    },
  )
}
