import { RuntimeError } from '../errors.ts'

/** What a caller may see and do: the namespaces of its token within those of the daemon, and read or write. */
export interface Scope {
  /** Token name, null for anonymous. Keys of Idempotency-Key are kept per token. */
  readonly token: string | null
  readonly namespaces: readonly string[] | '*'
  readonly write: boolean
}

export const allows = (scope: Scope, namespace: string): boolean =>
  scope.namespaces === '*' || scope.namespaces.includes(namespace)

/** Throws NAMESPACE_NOT_ALLOWED, before anything is looked up. */
export function requireNamespace(scope: Scope, namespace: string): void {
  if (allows(scope, namespace)) return
  throw new RuntimeError(
    'NAMESPACE_NOT_ALLOWED',
    `cannot use namespace "${namespace}": it is not among the daemon's NAMESPACES or not among those of this token`,
  )
}

/** The namespaces of a token within those the daemon watches. */
export function intersect(token: readonly string[] | '*', daemon: readonly string[] | '*'): readonly string[] | '*' {
  if (token === '*') return daemon
  if (daemon === '*') return token
  return daemon.filter(namespace => token.includes(namespace))
}
