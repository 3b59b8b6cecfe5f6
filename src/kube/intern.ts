/** JSON.parse makes every string anew; what repeats over many objects is kept once. Bounded: when full it starts over. */
const MOST = 20_000
const LONGEST = 200
let known = new Map<string, string>()

/** The same text, as the one string that is shared by all who have it. */
export function intern<T extends string | undefined>(text: T): T {
  if (text === undefined || text === null || text.length > LONGEST) return text
  const shared = known.get(text)
  if (shared !== undefined) return shared as T
  if (known.size >= MOST) known = new Map()
  known.set(text, text)
  return text
}

/** Labels with shared values; the two that repeat the object's own name share its string. */
export function internLabels(
  labels: Readonly<Record<string, string>> | undefined,
  name: string,
): Record<string, string> | undefined {
  if (labels === undefined) return undefined
  const result: Record<string, string> = {}
  for (const key in labels) {
    const value = labels[key] as string
    result[key] = value === name ? name : intern(value)
  }
  return result
}
