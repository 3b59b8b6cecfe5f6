import type { Outcome, Plan } from '../domain/decision.ts'
import type { Life } from '../domain/life.ts'
import { plan as planOf, settle } from '../domain/lifecycle.ts'
import type { Observation } from '../domain/observation.ts'
import { formatRuntimeId } from '../domain/runtime-id.ts'
import { isRuntimeError, RuntimeError } from '../errors.ts'
import type { Clock, Workloads, Written } from './ports.ts'
import type { Recorder } from './recorder.ts'

export interface EffectsOptions {
  readonly recorder: Recorder
  readonly clock: Clock
  readonly workloadsOf: (life: Life) => Workloads
}

/** A verb over an unanswered create finishes that first: one round each, and one to spare. */
const ROUNDS = 3

/** Carries the verb in hand of a row to the cluster: read, plan, write, result (lifecycle.md §2). */
export class Effects {
  readonly #options: EffectsOptions

  constructor(options: EffectsOptions) {
    this.#options = options
  }

  /**
   * Resolves with the row after the result was recorded. Throws the RuntimeError of a refusal (the intent was then
   * withdrawn as §2.2 says) or of a missing answer (the verb stays in hand). Only inside the key's turn.
   */
  async carryOut(life: Life): Promise<Life> {
    let current = life
    for (let round = 0; round < ROUNDS; round++) {
      const { life: next, due } = await this.#carryOutOnce(current)
      if (!due) return next
      current = next
    }
    return current
  }

  async #carryOutOnce(life: Life): Promise<{ life: Life; due: boolean }> {
    const attempt: Attempt = { writing: false }
    try {
      return await this.#settle(life, await this.#attempt(life, attempt))
    } catch (error) {
      if (!isRuntimeError(error) || error.code === 'STORAGE_UNAVAILABLE') throw error
      await this.#settle(life, outcomeOf(error, attempt))
      throw named(error, life)
    }
  }

  async #attempt(life: Life, attempt: Attempt): Promise<Outcome> {
    const workloads = this.#options.workloadsOf(life)
    if (isFirstCreate(life)) {
      // A name that is taken collides in the write itself; a read before it would only be a slower way to lose a race.
      attempt.writing = true
      const active = life.open
      const written = await workloads.make(life, active)
      return { type: 'done', plan: { write: 'make', active }, seen: null, written }
    }
    let seen = await workloads.look(life, 'object')
    let plan = planOf(life, seen)
    while (plan.write === 'look') {
      seen = await workloads.look(life, plan.depth)
      plan = planOf(life, seen)
    }
    if (plan.write === 'refuse') {
      attempt.refusedByPlan = true
      throw new RuntimeError(plan.code, plan.message)
    }
    attempt.writing = plan.write !== 'none'
    return { type: 'done', plan, seen, written: await write(workloads, life, plan, seen) }
  }

  async #settle(life: Life, outcome: Outcome): Promise<{ life: Life; due: boolean }> {
    const decision = settle(life, outcome, { now: this.#options.clock.now() })
    return { life: await this.#options.recorder.record(life, decision), due: decision.effect }
  }
}

interface Attempt {
  /** The write was begun: what fails from here on concerns the write itself. */
  writing: boolean
  /** Our own reading of the cluster forbids it for good (a finished Job, a foreign object). */
  refusedByPlan?: boolean
}

const isFirstCreate = (life: Life): boolean => life.verb?.verb === 'create' && !life.verb.tried && life.uid === null

async function write(workloads: Workloads, life: Life, plan: Plan, seen: Observation): Promise<Written | null> {
  switch (plan.write) {
    case 'make':
      return await workloads.make(life, plan.active)
    case 'remove':
      return await workloads.remove(life)
    case 'up':
      return seen.type === 'seen' ? await workloads.up(life, seen) : null
    case 'down':
      return seen.type === 'seen' ? await workloads.down(life, seen) : null
    default:
      return null
  }
}

function outcomeOf(error: RuntimeError, attempt: Attempt): Outcome {
  if (error.leftBehind) return { type: 'halfMade' }
  // 504 always means that the verb goes on (wire.md §7), also when it was the read before the write that hung.
  if (!error.notDone || error.code === 'BACKEND_TIMEOUT') return { type: 'noAnswer' }
  const final = attempt.refusedByPlan === true || (attempt.writing && (error.status === 409 || error.status === 422))
  return { type: 'refused', final }
}

/** What the caller is told: of which runtime, and of a missing answer what becomes of the verb rather than which call it was. */
function named(error: RuntimeError, life: Life): RuntimeError {
  const { code, errors, reason, retryAfterSeconds, extra, notDone } = error
  const goesOn = code === 'BACKEND_TIMEOUT' && life.verb !== null
  if (error.runtimeId !== null && !goesOn) return error
  const runtimeId = formatRuntimeId(life.id)
  const unanswered = `cannot tell whether the ${life.verb?.verb} of ${runtimeId} was done: the cluster did not answer in time; it goes on, and is finished once the cluster answers`
  return new RuntimeError(code, goesOn ? unanswered : error.message, {
    cause: goesOn ? error : error.cause,
    errors,
    extra,
    notDone,
    runtimeId,
    ...(reason === null ? {} : { reason }),
    ...(retryAfterSeconds === null ? {} : { retryAfterSeconds }),
  })
}
