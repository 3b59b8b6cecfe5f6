/** Paths here are POSIX texts: nothing is looked up, so symbolic links are the node's affair. */

// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const CONTROL = /[\u0000-\u001f\u007f]/

export const hasControlCharacter = (text: string): boolean => CONTROL.test(text)

/** The absolute path with `.`, `..` and doubled slashes resolved; null when it is not absolute or has control characters. */
export function resolvePath(path: string): string | null {
  if (!path.startsWith('/') || hasControlCharacter(path)) return null
  const parts: string[] = []
  for (const part of path.split('/')) {
    if (part === '..') parts.pop()
    else if (part !== '' && part !== '.') parts.push(part)
  }
  return `/${parts.join('/')}`
}

/** Whether a resolved path is a resolved root or lies below one; `/data-evil` is not below `/data`. */
export const isBelow = (path: string, roots: readonly string[]): boolean =>
  roots.some(root => path === root || path.startsWith(root === '/' ? '/' : `${root}/`))
