import type { FastifyInstance } from 'fastify'

/** The methods each known path has, for 405 with `Allow`. */
export interface KnownPaths {
  /** Methods of the path, sorted; empty for one that is not known. */
  methodsOf(url: string): readonly string[]
}

/** Notes every route registered after this call. */
export function knownPaths(app: FastifyInstance): KnownPaths {
  const known = new Map<string, { matches: RegExp; methods: Set<string> }>()
  app.addHook('onRoute', ({ url, method }) => {
    const entry = known.get(url) ?? { matches: patternOf(url), methods: new Set() }
    for (const name of [method].flat()) entry.methods.add(name)
    known.set(url, entry)
  })
  return {
    methodsOf(url) {
      const [path = ''] = url.split('?', 1)
      const methods = [...known.values()]
        .filter(({ matches }) => matches.test(path))
        .flatMap(entry => [...entry.methods])
      return [...new Set(methods)].sort()
    },
  }
}

function patternOf(url: string): RegExp {
  const segments = url.split('/').map(segment => {
    if (segment.startsWith(':')) return '[^/]+'
    return segment === '*' ? '.*' : segment.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
  })
  return new RegExp(`^${segments.join('/')}$`)
}
