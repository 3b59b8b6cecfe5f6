const WHOLE = /^\d+$/

/**
 * Whether `version` is at least `than`: resourceVersions of one resource compare as whole numbers (KEP-5504). What is
 * no whole number (another kind of backend) is never taken for older.
 */
export function notOlder(version: string, than: string | null): boolean {
  if (than === null || version === than) return true
  if (!WHOLE.test(version) || !WHOLE.test(than)) return true
  return version.length === than.length ? version >= than : version.length > than.length
}

export const newer = (version: string, than: string | null): boolean => version !== than && notOlder(version, than)
