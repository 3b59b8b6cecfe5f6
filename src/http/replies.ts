import type * as z from 'zod'
import { PROBLEM_TYPE } from './problem.ts'
import { Problem } from './schemas.ts'

/** One reply of the document: always one media type (openapi.md R9). */
export const ok = (schema: z.ZodType, description: string, type = 'application/json') => ({
  description,
  content: { [type]: { schema } },
})

/** Name in `components/responses` and description of each status a problem can have. */
export const PROBLEMS: Readonly<Record<number, readonly [name: string, description: string]>> = {
  400: ['InvalidProblem', 'The request is malformed'],
  401: ['UnauthenticatedProblem', 'No valid token'],
  403: ['ForbiddenProblem', 'Not allowed for this caller'],
  404: ['NotFoundProblem', 'Nothing of this name'],
  409: ['ConflictProblem', 'Not possible as things stand'],
  410: ['GoneProblem', 'The cursor has expired'],
  413: ['TooLargeProblem', 'The body is too large'],
  414: ['UrlTooLongProblem', 'The URL is too long'],
  415: ['MediaTypeProblem', 'The body is not JSON'],
  422: ['RefusedProblem', 'Against policy, or refused by the cluster'],
  429: ['TooManyProblem', 'Too many requests; see Retry-After'],
  431: ['HeadersTooLargeProblem', 'The headers are too large'],
  500: ['InternalProblem', 'The daemon failed'],
  501: ['NotImplementedProblem', 'Not built yet'],
  502: ['BackendProblem', 'The cluster or Engine answered with an error'],
  503: ['UnavailableProblem', 'Not available for now; see Retry-After'],
  504: ['TimeoutProblem', 'No answer in time; what was asked may still be done'],
}

/** Statuses of every route: the request itself is wrong. */
const UNREADABLE = [400, 414, 431] as const
/** Statuses any guarded route can answer besides. */
const GUARDED = [401, 403, 429, 500, 503] as const
/** Statuses of routes that take a body. */
export const BODY = [413, 415] as const
/** Statuses of routes that ask the cluster. */
export const CLUSTER = [502, 504] as const

/** The problems an operation can answer: these, and those that every guarded one can. */
export const problems = (...statuses: readonly number[]) => openProblems(...GUARDED, ...statuses)

/** The problems of an operation that nobody is kept from: these, and those that every one can answer. */
export const openProblems = (...statuses: readonly number[]) =>
  Object.fromEntries(
    [...new Set([...UNREADABLE, ...statuses])]
      .sort()
      .map(status => [status, ok(Problem, PROBLEMS[status]?.[1] ?? '', PROBLEM_TYPE)]),
  )

export const LOCATION = { Location: { type: 'string', description: 'Path of the runtime.' } }
