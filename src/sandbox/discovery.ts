import { apiVersionOf, RESOURCES } from './resources.ts'
import type { Loose } from './types.ts'

/** The version the sandbox plays. */
export const VERSION = {
  major: '1',
  minor: '36',
  gitVersion: 'v1.36.3+sandbox',
  gitCommit: '',
  gitTreeState: 'clean',
  buildDate: '2026-01-01T00:00:00Z',
  goVersion: 'none',
  compiler: 'none',
  platform: 'sandbox/process',
}

/** Answers of the paths that are about the API itself: version, health, discovery. Undefined for any other path. */
export function discover(path: string): Loose | undefined {
  if (path === '/version') return VERSION
  if (path === '/readyz' || path === '/livez' || path === '/healthz') return 'ok'
  if (path === '/api' || path === '/api/')
    return { kind: 'APIVersions', versions: ['v1'], serverAddressByClientCIDRs: [] }
  if (path === '/apis' || path === '/apis/') {
    const groups = [...new Set([...RESOURCES.values()].map(resource => resource.group))].filter(Boolean)
    return { kind: 'APIGroupList', apiVersion: 'v1', groups: groups.map(groupOf) }
  }
  const list = /^\/(?:api|apis\/([a-z0-9.]+))\/v1\/?$/.exec(path)
  if (list) return resourceList(list[1] ?? '')
  const group = /^\/apis\/([a-z0-9.]+)\/?$/.exec(path)
  return group ? { kind: 'APIGroup', apiVersion: 'v1', ...groupOf(group[1]!) } : undefined
}

function groupOf(name: string): Loose {
  const version = { groupVersion: `${name}/v1`, version: 'v1' }
  return { name, versions: [version], preferredVersion: version }
}

function resourceList(group: string): Loose | undefined {
  const found = [...RESOURCES.values()].filter(resource => resource.group === group)
  if (found.length === 0) return undefined
  const verbs = ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch']
  const resources = found.flatMap(({ plural, singular, namespaced, kind, shortNames, subresources }) => [
    { name: plural, singularName: singular, namespaced, kind, verbs, ...(shortNames.length ? { shortNames } : {}) },
    ...subresources.map(name => ({
      name: `${plural}/${name}`,
      singularName: '',
      namespaced,
      kind,
      verbs: ['get', 'patch', 'update'],
    })),
  ])
  return { kind: 'APIResourceList', apiVersion: 'v1', groupVersion: apiVersionOf(found[0]!), resources }
}
