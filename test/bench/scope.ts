import type { Scope } from '../helpers/daemon.ts'

/** Runs `work` and then ends what it started, last first, whatever happens. */
export async function scoped<T>(work: (t: Scope) => Promise<T>): Promise<T> {
  const ends: Array<() => Promise<void> | void> = []
  try {
    return await work({ after: end => void ends.push(end) })
  } finally {
    for (const end of ends.reverse()) await end()
  }
}
