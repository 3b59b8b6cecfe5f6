import type { Life } from './life.ts'

/** Sentences for endings whose reason alone says what to do. */
const BY_REASON: Readonly<Record<string, string>> = {
  OOMKilled: 'It ran out of memory: raise "memory", or make it use less.',
  DeadlineExceeded: 'A deadline set on the workload itself passed: raise or remove activeDeadlineSeconds.',
  ProgressDeadlineExceeded: 'No pod became ready in time: see its Warning events, mend the cause, then start it again.',
  StartTimeout: 'It did not start in time: see its Warning events, mend the cause, or raise "startTimeoutSeconds".',
  Evicted: 'Its node was short of something or was drained: create it anew; ask for the memory and cpu that it needs.',
}

/**
 * One sentence on what to do about a run that failed. What troubled it until then knows best; else the reason, memory
 * before anything else; else the container's own exit code.
 */
export function failureHint({ hint, warned, exitCode }: Life, reason: string): string | null {
  if (warned.includes('oom')) return BY_REASON.OOMKilled ?? null
  if (hint !== null) return hint
  const known = BY_REASON[reason]
  if (known !== undefined) return known
  if (exitCode === null || exitCode === 0) return null
  return `Its container ended with exit code ${exitCode}: see its logs, mend it, then delete and create it anew.`
}
