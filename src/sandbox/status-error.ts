import { qualified, qualifiedKind, type Resource } from './resources.ts'
import type { Loose } from './types.ts'

export interface Cause {
  reason: string
  message: string
  field?: string
}

interface Details {
  name?: string
  group?: string
  kind?: string
  uid?: string
  causes?: Cause[]
  retryAfterSeconds?: number
}

/** An error reply of the API: its `body` is the `Status` object a real API server of 1.36 sends. */
export class StatusError extends Error {
  readonly code: number
  readonly reason: string
  readonly details: Details | undefined
  /** continue token of an expired list */
  continueToken: string | undefined

  constructor(code: number, reason: string, message: string, details?: Details) {
    super(message)
    this.name = 'StatusError'
    this.code = code
    this.reason = reason
    this.details = details
  }

  get body(): Record<string, Loose> {
    return {
      kind: 'Status',
      apiVersion: 'v1',
      metadata: this.continueToken === undefined ? {} : { continue: this.continueToken },
      status: 'Failure',
      message: this.message,
      reason: this.reason,
      ...(this.details ? { details: this.details } : {}),
      code: this.code,
    }
  }
}

const detailsOf = (resource: Resource, name?: string): Details => ({
  ...(name ? { name } : {}),
  ...(resource.group ? { group: resource.group } : {}),
  kind: resource.plural,
})

export const notFound = (resource: Resource, name: string): StatusError =>
  new StatusError(404, 'NotFound', `${qualified(resource)} "${name}" not found`, detailsOf(resource, name))

export const noSuchPath = (): StatusError =>
  new StatusError(404, 'NotFound', 'the server could not find the requested resource', {})

export const alreadyExists = (resource: Resource, name: string, deleting: boolean): StatusError =>
  new StatusError(
    409,
    'AlreadyExists',
    `${deleting ? 'object is being deleted: ' : ''}${qualified(resource)} "${name}" already exists`,
    detailsOf(resource, name),
  )

export const conflict = (resource: Resource, name: string): StatusError =>
  new StatusError(
    409,
    'Conflict',
    `Operation cannot be fulfilled on ${qualified(resource)} "${name}": the object has been modified; please apply your changes to the latest version and try again`,
    detailsOf(resource, name),
  )

/** A precondition (uid or resourceVersion) of a DELETE that does not hold. */
export function preconditionFailed(resource: Resource, name: string, text: string): StatusError {
  return new StatusError(
    409,
    'Conflict',
    `Operation cannot be fulfilled on ${qualifiedKind(resource)} "${name}": ${text}`,
    { name, ...(resource.group ? { group: resource.group } : {}), kind: resource.kind },
  )
}

export const badRequest = (message: string): StatusError => new StatusError(400, 'BadRequest', message)

export const unauthorized = (): StatusError => new StatusError(401, 'Unauthorized', 'Unauthorized')

export const forbidden = (resource: Resource, name: string | undefined, text: string, causes?: Cause[]): StatusError =>
  new StatusError(403, 'Forbidden', `${qualified(resource)}${name ? ` "${name}"` : ''} is forbidden: ${text}`, {
    ...detailsOf(resource, name),
    ...(causes ? { causes } : {}),
  })

/** 422 with one cause per fault. The message joins several in brackets, as the API server does. */
export function invalid(resource: Resource, name: string, causes: Cause[]): StatusError {
  const texts = causes.map(cause => `${cause.field}: ${cause.message}`)
  const text = texts.length === 1 ? texts[0] : `[${texts.join(', ')}]`
  return new StatusError(422, 'Invalid', `${qualifiedKind(resource)} "${name}" is invalid: ${text}`, {
    name,
    ...(resource.group ? { group: resource.group } : {}),
    kind: resource.kind,
    causes,
  })
}

export const methodNotAllowed = (): StatusError =>
  new StatusError(405, 'MethodNotAllowed', 'the server does not allow this method on the requested resource', {})

export const unsupportedMedia = (accepted: string[]): StatusError =>
  new StatusError(
    415,
    'UnsupportedMediaType',
    `the body of the request was in an unknown format - accepted media types include: ${accepted.join(', ')}`,
    {},
  )

export const expired = (asked: number | string, oldest: number): StatusError =>
  new StatusError(410, 'Expired', `too old resource version: ${asked} (${oldest})`)

export const tooLargeVersion = (asked: number, current: number): StatusError =>
  new StatusError(504, 'Timeout', `Too large resource version: ${asked}, current: ${current}`, {
    causes: [{ reason: 'ResourceVersionTooLarge', message: 'Too large resource version' }],
    retryAfterSeconds: 1,
  })
