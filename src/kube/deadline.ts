import type { Readable } from 'node:stream'

/** What bounds a call with all its attempts. */
export interface Attempt {
  readonly signal: AbortSignal
  readonly until: number
  readonly extend: (ms: number) => void
}

/** Runs `work` with a signal that fires at the deadline or with the caller's; after `endWith` only with the caller's, until the body ends. */
export async function withDeadline<T>(
  until: number,
  outer: AbortSignal | undefined,
  work: (attempt: Attempt, endWith: (body: Readable) => void) => Promise<T>,
): Promise<T> {
  const controller = new AbortController()
  const abort = (): void => controller.abort()
  const release = (): void => outer?.removeEventListener('abort', abort)
  let timer = setTimeout(abort, Math.max(0, until - Date.now()))
  const extend = (ms: number): void => {
    clearTimeout(timer)
    timer = setTimeout(abort, ms)
  }
  if (outer?.aborted) abort()
  outer?.addEventListener('abort', abort)
  let streaming = false
  const endWith = (body: Readable): void => {
    streaming = true
    body.once('close', release)
  }
  try {
    return await work({ signal: controller.signal, until, extend }, endWith)
  } finally {
    clearTimeout(timer)
    if (!streaming) release()
  }
}
