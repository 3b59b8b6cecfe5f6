const NUMBER = /^\d+$/

/**
 * Whether `a` is surely an older resourceVersion than `b`: both whole numbers of one resource, and smaller (KEP-5504).
 * False when they cannot be compared.
 */
export function isOlderVersion(a: string, b: string): boolean {
  if (!NUMBER.test(a) || !NUMBER.test(b)) return false
  return a.length === b.length ? a < b : a.length < b.length
}
