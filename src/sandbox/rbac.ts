import type { RequestFacts } from './request.ts'
import { resourceOf } from './resources.ts'
import { forbidden, type StatusError } from './status-error.ts'

/** A rule of a Role; `namespaces` absent = everywhere (a ClusterRole). `*` in a list stands for all. */
export interface PolicyRule {
  apiGroups: string[]
  resources: string[]
  verbs: string[]
  resourceNames?: string[]
  namespaces?: string[]
}

const has = (list: string[], value: string): boolean => list.includes('*') || list.includes(value)

/** May the request be made under these rules? Paths outside the resource table are always allowed, as `system:discovery` does. */
export function allows(rules: PolicyRule[], facts: RequestFacts): boolean {
  if (facts.resource === undefined) return true
  const { group } = resourceOf(facts.resource)
  const full = facts.subresource ? `${facts.resource}/${facts.subresource}` : facts.resource
  return rules.some(
    rule =>
      has(rule.apiGroups, group) &&
      has(rule.resources, full) &&
      has(rule.verbs, facts.verb) &&
      (rule.namespaces === undefined || (facts.namespace !== undefined && has(rule.namespaces, facts.namespace))) &&
      (rule.resourceNames === undefined || (facts.name !== undefined && rule.resourceNames.includes(facts.name))),
  )
}

/** The 403 a real API server's RBAC authorizer gives. */
export function denial(facts: RequestFacts, user: string): StatusError {
  const resource = resourceOf(facts.resource!)
  const full = facts.subresource ? `${facts.resource}/${facts.subresource}` : facts.resource
  const where = facts.namespace === undefined ? 'at the cluster scope' : `in the namespace "${facts.namespace}"`
  const text = `User "${user}" cannot ${facts.verb} resource "${full}" in API group "${resource.group}" ${where}`
  return forbidden(resource, facts.name, text)
}
