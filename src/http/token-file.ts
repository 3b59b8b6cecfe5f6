import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import * as z from 'zod'
import { RuntimeError } from '../errors.ts'

/** One entry of TOKENS_FILE. Only the digest of a token is kept in memory. */
export interface Token {
  readonly name: string
  readonly digest: Buffer
  readonly namespaces: readonly string[] | '*'
  readonly write: boolean
}

export const digestOf = (token: string): Buffer => createHash('sha256').update(token).digest()

const Entry = z
  .strictObject({
    name: z.string().min(1).max(253),
    token: z.string().min(1).max(4096).optional(),
    sha256: z
      .string()
      .regex(/^[0-9a-fA-F]{64}$/, 'sha256 is 64 hex digits')
      .optional(),
    namespaces: z.array(z.string().min(1)).min(1),
    access: z.enum(['read', 'write']),
  })
  .refine(({ token, sha256 }) => (token === undefined) !== (sha256 === undefined), 'give either token or sha256')

const File = z.array(Entry).min(1, 'an empty list would lock everyone out')

const unreadable = (why: string, cause?: unknown): RuntimeError =>
  new RuntimeError('CONFIGURATION_ERROR', `cannot read TOKENS_FILE: ${why}`, { cause })

/** Reads TOKENS_FILE. Throws CONFIGURATION_ERROR, as `parseTokens` does. */
export function readTokens(file: string): readonly Token[] {
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    throw unreadable(`${file} ${code === 'ENOENT' ? 'does not exist' : `cannot be opened (${code})`}`, error)
  }
  return parseTokens(text)
}

/** Reads the text of TOKENS_FILE (wire.md §2). Throws CONFIGURATION_ERROR, which names the fault and never repeats a token. */
export function parseTokens(text: string): readonly Token[] {
  const read = File.safeParse(parseJson(text))
  if (!read.success) {
    const faults = read.error.issues.map(issue => `${issue.path.join('.') || 'the file'}: ${issue.message}`)
    throw unreadable(faults.join('; '))
  }
  const tokens = read.data.map(entry => ({
    name: entry.name,
    digest: entry.token === undefined ? Buffer.from(entry.sha256 ?? '', 'hex') : digestOf(entry.token),
    namespaces: entry.namespaces.includes('*') ? ('*' as const) : entry.namespaces,
    write: entry.access === 'write',
  }))
  refuseTwins(tokens)
  return tokens
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // The parser's own message quotes the text around the fault, and so perhaps a token.
    throw unreadable('it is not JSON')
  }
}

/** Two entries may share a name while a token is being replaced; one token with two sets of rights has no meaning. */
function refuseTwins(tokens: readonly Token[]): void {
  const digests = new Set(tokens.map(token => token.digest.toString('hex')))
  if (digests.size < tokens.length) throw unreadable('two entries have the same token')
}
