import type { Life } from '../domain/life.ts'
import { RuntimeError } from '../errors.ts'
import type { KeyClaim, RuntimeTable } from './ports.ts'

/**
 * Idempotency-Key of creates, per token, kept 24 h in the database. While the first is under way the others with the
 * same key wait for it; a refused create frees the key, so the next one tries anew.
 */
export class IdempotencyKeys {
  readonly #table: Pick<RuntimeTable, 'key' | 'byLife'>
  readonly #underWay = new Map<string, { hash: string; done: Promise<Life> }>()

  constructor(table: Pick<RuntimeTable, 'key' | 'byLife'>) {
    this.#table = table
  }

  /** Runs `create` once for a key and gives its row to every repeat. Throws IDEMPOTENCY_KEY_REUSED for another body. */
  async once(claim: KeyClaim | null, create: () => Promise<Life>): Promise<Life> {
    if (claim === null) return await create()
    const slot = `${claim.token}\n${claim.key}`
    for (;;) {
      const running = this.#underWay.get(slot)
      if (running === undefined) break
      requireSame(claim, running.hash)
      const repeated = await running.done.then(
        life => life,
        () => null,
      )
      if (repeated !== null) return this.#table.byLife(repeated.life) ?? repeated
    }
    const known = this.#table.key(claim.token, claim.key)
    if (known !== null) {
      requireSame(claim, known.hash)
      const life = this.#table.byLife(known.life)
      if (life !== null) return life
    }
    const done = create()
    this.#underWay.set(slot, { hash: claim.hash, done })
    try {
      return await done
    } finally {
      this.#underWay.delete(slot)
    }
  }
}

function requireSame(claim: KeyClaim, hash: string): void {
  if (claim.hash === hash) return
  throw new RuntimeError(
    'IDEMPOTENCY_KEY_REUSED',
    'cannot create: this Idempotency-Key was used with another body; use a new key, or send the same body',
    { errors: [{ path: 'Idempotency-Key', message: 'a key not used with another body in the last 24 hours' }] },
  )
}
