import type { FastifySchemaCompiler } from 'fastify'
import type * as z from 'zod'
import { type FieldError, RuntimeError } from '../errors.ts'

/** A body of 256 KiB can hold thousands of faults; nobody reads more than these. */
const MAX_ERRORS = 50
const MAX_NAME = 253
/** Values, nested ones too, of the largest body that anybody would write; reading more would hold the loop (F-47). */
const MAX_VALUES = 10_000

const PARTS: Readonly<Record<string, string>> = {
  body: 'the body',
  querystring: 'the query',
  params: 'the path',
  headers: 'the headers',
}

/** Zod as Fastify's validator: what is not in the schema is refused, nothing is coerced, every fault is named. */
export const validatorCompiler: FastifySchemaCompiler<z.ZodType> = ({ schema, httpPart = 'body' }) => {
  return data => {
    if (httpPart === 'body' && !hasAtMost(MAX_VALUES, data)) return { error: tooMany() }
    const read = schema.safeParse(data)
    if (read.success) return { value: read.data }
    const errors = read.error.issues.flatMap(issue => faultsOf(issue, httpPart)).slice(0, MAX_ERRORS)
    const where = errors.map(({ path, message }) => (path === '' ? message : `${path}: ${message}`))
    const shown = where.slice(0, 3).join('; ') + (where.length > 3 ? '; …' : '')
    return { error: new RuntimeError('REQUEST_INVALID', `cannot read ${PARTS[httpPart]}: ${shown}`, { errors }) }
  }
}

/** Counts no further than needed. */
function hasAtMost(limit: number, data: unknown): boolean {
  const waiting: unknown[] = [data]
  for (let count = 0; waiting.length > 0; count++) {
    if (count + waiting.length > limit) return false
    const value = waiting.pop()
    if (typeof value !== 'object' || value === null) continue
    const inner: unknown[] = Array.isArray(value) ? value : Object.values(value)
    if (inner.length > limit) return false
    for (const one of inner) waiting.push(one)
  }
  return true
}

const tooMany = (): RuntimeError =>
  new RuntimeError('REQUEST_INVALID', `cannot read the body: it has more than ${MAX_VALUES} values`, {
    errors: [{ path: '', message: `at most ${MAX_VALUES} values, nested ones counted` }],
  })

function faultsOf(issue: z.core.$ZodIssue, part: string): FieldError[] {
  if (issue.code === 'unrecognized_keys') {
    return issue.keys.map(key => ({ path: pathOf([...issue.path, key], part), message: 'is not known here' }))
  }
  return [{ path: pathOf(issue.path, part), message: messageOf(issue) }]
}

/** JSON pointer (RFC 6901) into a body, else the plain name of the parameter or header. */
function pathOf(path: readonly PropertyKey[], part: string): string {
  const names = path.map(name => String(name).slice(0, MAX_NAME))
  if (part !== 'body') return names[0] ?? ''
  return names.map(name => `/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`).join('')
}

/** Zod's own text says "Invalid input" of a union; the branches' texts say what would be accepted. */
function messageOf(issue: z.core.$ZodIssue): string {
  if (issue.code !== 'invalid_union' || issue.errors.length === 0) return issue.message
  return [...new Set(issue.errors.flatMap(branch => branch.map(inner => inner.message)))].slice(0, 4).join(', or ')
}
