/**
 * One text for one JSON value, whatever the order of its keys: equal values give equal texts. Array order counts.
 * Members that are undefined are left out, as JSON does.
 */
export function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(item => canonicalJson(item === undefined ? null : item)).join(',')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null'
  const members = Object.entries(value)
    .filter(([, member]) => member !== undefined)
    .sort(([a], [b]) => compareText(a, b))
    .map(([key, member]) => `${JSON.stringify(key)}:${canonicalJson(member)}`)
  return `{${members.join(',')}}`
}

/** Order by UTF-16 code unit: the same on every machine, unlike the locale's. */
export const compareText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)
