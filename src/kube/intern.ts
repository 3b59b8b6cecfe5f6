/** JSON.parse makes every string anew; what repeats over many objects is kept once. Bounded: when full it starts over. */
const MOST = 20_000
const LONGEST = 200
let known = new Map<string, string>()
let objects = new Map<string, object>()

/** The same text, as the one string that is shared by all who have it. */
export function intern<T extends string | undefined>(text: T): T {
  if (text === undefined || text === null || text.length > LONGEST) return text
  const found = known.get(text)
  if (found !== undefined) return found as T
  if (known.size >= MOST) known = new Map()
  known.set(text, text)
  return text
}

/** The one object for this key; `key` must say all that is in it. Whoever gets it must not change it. */
export function shared<T extends object>(key: string, make: () => T): T {
  const found = objects.get(key)
  if (found !== undefined) return found as T
  const made = make()
  if (objects.size >= MOST) objects = new Map()
  objects.set(key, made)
  return made
}

/** Labels with shared values, in place (the object was decoded for us alone); those that repeat the name share its string. */
export function internLabels(
  labels: Record<string, string> | undefined,
  name: string,
): Record<string, string> | undefined {
  for (const key in labels) {
    const value = labels[key] as string
    labels[key] = value === name ? name : intern(value)
  }
  return labels
}

/** `text`, as the string `previous` where that says the same: it lives already. */
export const same = <T extends string | undefined>(text: T, previous: T | undefined): T =>
  text === previous ? (previous as T) : text

/** Whether both are there, as long as each other, and equal one by one. */
export function areSame<A, B>(
  a: readonly A[] | undefined,
  b: readonly B[] | undefined,
  isEqual: (a: A, b: B) => boolean,
): boolean {
  if (!a || !b || a.length !== b.length) return false
  for (let n = 0; n < a.length; n += 1) if (!isEqual(a[n] as A, b[n] as B)) return false
  return true
}
