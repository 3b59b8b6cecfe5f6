import type { IncomingMessage } from 'node:http'
import { RESOURCES, type Resource } from './resources.ts'
import { noSuchPath, StatusError } from './status-error.ts'

/** Largest request body taken (a real API server takes 3 MiB). */
const BODY_LIMIT = 3 * 1024 * 1024

export type Verb = 'get' | 'list' | 'watch' | 'create' | 'update' | 'patch' | 'delete' | 'deletecollection' | 'other'

/** What a request asks for, as RBAC sees it. `resource` is undefined for paths outside the table (`/version`, `/readyz` …). */
export interface RequestFacts {
  method: string
  path: string
  query: string
  userAgent: string
  verb: Verb
  resource: string | undefined
  subresource: string | undefined
  namespace: string | undefined
  name: string | undefined
}

/** Reads method and URL into facts. Throws 404 for a path below /api or /apis that names no known resource. */
export function factsOf(request: IncomingMessage): RequestFacts {
  const url = request.url ?? '/'
  const cut = url.indexOf('?')
  const path = cut < 0 ? url : url.slice(0, cut)
  const query = cut < 0 ? '' : url.slice(cut + 1)
  const method = request.method ?? 'GET'
  const target = targetOf(path)
  const watch = /(^|&)watch=(1|true)(&|$)/.test(query)
  return {
    method,
    path,
    query,
    userAgent: request.headers['user-agent'] ?? '',
    verb: verbOf(method, target?.name, watch),
    resource: target?.resource.plural,
    subresource: target?.subresource,
    namespace: target?.namespace,
    name: target?.name,
  }
}

interface Target {
  resource: Resource
  namespace: string | undefined
  name: string | undefined
  subresource: string | undefined
}

function targetOf(path: string): Target | undefined {
  const parts = path.split('/').slice(1).map(decode)
  let rest: string[]
  let group: string
  if (parts[0] === 'api' && parts[1] === 'v1') {
    group = ''
    rest = parts.slice(2)
  } else if (parts[0] === 'apis' && parts.length > 3) {
    group = parts[1]!
    if (parts[2] !== 'v1') throw noSuchPath()
    rest = parts.slice(3)
  } else return undefined
  if (rest.length === 0 || rest[0] === '') return undefined
  let namespace: string | undefined
  if (rest[0] === 'namespaces' && rest.length > 2 && !['status', 'finalize'].includes(rest[2]!)) {
    namespace = rest[1]
    rest = rest.slice(2)
  }
  const resource = RESOURCES.get(rest[0]!)
  if (!resource || resource.group !== group || rest.length > 3) throw noSuchPath()
  const [, name, subresource] = rest
  if (subresource !== undefined && !resource.subresources.includes(subresource)) throw noSuchPath()
  if (name !== undefined && resource.namespaced && namespace === undefined) throw noSuchPath()
  return { resource, namespace, name: name === '' ? undefined : name, subresource }
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    throw noSuchPath()
  }
}

function verbOf(method: string, name: string | undefined, watch: boolean): Verb {
  switch (method) {
    case 'GET':
    case 'HEAD':
      return watch ? 'watch' : name === undefined ? 'list' : 'get'
    case 'POST':
      return 'create'
    case 'PUT':
      return 'update'
    case 'PATCH':
      return 'patch'
    case 'DELETE':
      return name === undefined ? 'deletecollection' : 'delete'
    default:
      return 'other'
  }
}

/** The JSON body, or undefined when there is none. Throws 400 for broken JSON, 413 beyond 3 MiB. */
export async function readJson(request: IncomingMessage): Promise<unknown> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of request) {
    size += chunk.length
    if (size > BODY_LIMIT) {
      throw new StatusError(413, 'RequestEntityTooLarge', `Request entity too large: limit is ${BODY_LIMIT}`, {})
    }
    chunks.push(chunk)
  }
  if (size === 0) return undefined
  try {
    return JSON.parse(Buffer.concat(chunks).toString('utf8'))
  } catch (error) {
    throw new StatusError(400, 'BadRequest', `error decoding request body: ${(error as Error).message}`, {})
  }
}
