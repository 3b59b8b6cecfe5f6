/** Longest message of an error that is logged: a cluster may answer with megabytes. */
const MAX_MESSAGE = 1_000
const MAX_FRAMES = 8
const MAX_DEPTH = 3

/** What looks like a credential, whoever wrote it. Order matters: blocks before the words inside them. */
const SECRETS: readonly RegExp[] = [
  /-----BEGIN [A-Z0-9 ]+-----[\s\S]*?(?:-----END [A-Z0-9 ]+-----|$)/g,
  /\beyJ[A-Za-z0-9_-]{6,}(?:\.[A-Za-z0-9_-]+){0,2}/g,
  /\b(?:Bearer|Basic)\s+[A-Za-z0-9._~+/=-]+/gi,
  /\b(?:[a-z0-9_-]*(?:token|secret|password|passwd|api[-_]?key|authorization))["']?\s*[=:]\s*["']?[^\s"',;&]+/gi,
  // Credentials inside a URL.
  /\/\/[^\s/@:]+:[^\s/@]+@/g,
]

/** The text without what looks like a credential, cut to a length a log line can bear. */
export function redact(text: string): string {
  const cut = text.length > 8 * MAX_MESSAGE ? text.slice(0, 8 * MAX_MESSAGE) : text
  const clean = SECRETS.reduce((rest, secret) => rest.replace(secret, '[redacted]'), cut)
  return clean.length > MAX_MESSAGE ? `${clean.slice(0, MAX_MESSAGE)}…` : clean
}

export interface DescribedError {
  readonly name: string
  readonly code?: string
  readonly message: string
  readonly stack?: readonly string[]
  readonly cause?: DescribedError
}

/** An error as the log shows it: bounded, redacted, with its causes and where it was thrown. */
export function describeError(error: unknown, depth = 0): DescribedError {
  if (!(error instanceof Error)) return { name: typeof error, message: redact(String(error)) }
  const code = 'code' in error && typeof error.code === 'string' ? { code: error.code } : {}
  const frames = (error.stack ?? '').split('\n').filter(line => /^\s+at /.test(line))
  return {
    name: error.name,
    ...code,
    message: redact(error.message),
    stack: frames.slice(0, MAX_FRAMES).map(frame => redact(frame.trim())),
    ...(error.cause === undefined || depth >= MAX_DEPTH ? {} : { cause: describeError(error.cause, depth + 1) }),
  }
}
