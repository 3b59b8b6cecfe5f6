import type { KubeObject, Loose } from './types.ts'

/** Deep copy of plain JSON. */
export function clone<T>(value: T): T {
  if (value === null || typeof value !== 'object') return value
  if (Array.isArray(value)) return value.map(clone) as T
  const copy: Record<string, unknown> = {}
  for (const key in value) copy[key] = clone(value[key])
  return copy as T
}

/** Deep equality of plain JSON; a key that is undefined counts as absent. */
export function equal(a: Loose, b: Loose): boolean {
  if (a === b) return true
  if (a === null || b === null || typeof a !== 'object' || typeof b !== 'object') return false
  if (Array.isArray(a) !== Array.isArray(b)) return false
  if (Array.isArray(a)) return a.length === b.length && a.every((item, index) => equal(item, b[index]))
  for (const key in a) if (a[key] !== undefined && !equal(a[key], b[key])) return false
  for (const key in b) if (b[key] !== undefined && a[key] === undefined) return false
  return true
}

const METADATA_ORDER = [
  'name',
  'generateName',
  'namespace',
  'uid',
  'resourceVersion',
  'generation',
  'creationTimestamp',
  'deletionTimestamp',
  'deletionGracePeriodSeconds',
  'labels',
  'annotations',
  'ownerReferences',
  'finalizers',
  'managedFields',
]

/** The object with the keys of its metadata in the order an API server writes them; empty maps and lists are left out. */
export function ordered(object: KubeObject): KubeObject {
  const metadata: Record<string, unknown> = {}
  const given = object.metadata as unknown as Record<string, Loose>
  for (const key of METADATA_ORDER) {
    const value = given[key]
    if (value === undefined || value === null || value === '') continue
    if (typeof value === 'object' && Object.keys(value).length === 0) continue
    metadata[key] = value
  }
  const { metadata: _metadata, ...rest } = object
  return { metadata: metadata as unknown as KubeObject['metadata'], ...rest }
}

const texts = new WeakMap<object, string>()

/** JSON text of a stored object, made once; sound because stored objects never change. */
export function textOf(object: object): string {
  let text = texts.get(object)
  if (text === undefined) {
    text = JSON.stringify(object)
    texts.set(object, text)
  }
  return text
}

/** RFC 3339 in whole seconds, as the API server writes times. */
export function timestamp(milliseconds: number): string {
  return `${new Date(milliseconds).toISOString().slice(0, 19)}Z`
}
