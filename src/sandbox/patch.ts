import { clone, equal } from './json.ts'
import { badRequest, StatusError, unsupportedMedia } from './status-error.ts'
import type { Loose } from './types.ts'

const JSON_PATCH = 'application/json-patch+json'
const MERGE_PATCH = 'application/merge-patch+json'
const STRATEGIC_PATCH = 'application/strategic-merge-patch+json'

const ACCEPTED = [
  JSON_PATCH,
  MERGE_PATCH,
  STRATEGIC_PATCH,
  'application/apply-patch+yaml',
  'application/apply-patch+cbor',
]

/** Lists that a strategic patch merges item by item, and the field that names an item. */
const MERGE_KEYS: Record<string, string> = {
  containers: 'name',
  initContainers: 'name',
  env: 'name',
  volumes: 'name',
  volumeMounts: 'mountPath',
  imagePullSecrets: 'name',
  ports: 'containerPort',
  conditions: 'type',
  ownerReferences: 'uid',
}

/**
 * The object after a patch of that content type. Throws 415 for another type (server-side apply is not played),
 * 400 for a body of the wrong shape, 422 for a JSON patch that does not fit.
 */
export function applyPatch(contentType: string, target: Loose, patch: Loose): Loose {
  const type = contentType.split(';')[0]!.trim().toLowerCase()
  if (type === JSON_PATCH) return applyJsonPatch(target, patch)
  if (type !== MERGE_PATCH && type !== STRATEGIC_PATCH) throw unsupportedMedia(ACCEPTED)
  if (patch === null || typeof patch !== 'object' || Array.isArray(patch)) {
    throw badRequest('error decoding patch: json: cannot unmarshal into Go value of type map[string]interface {}')
  }
  return type === MERGE_PATCH ? merge(target, patch) : strategic(target, patch, '')
}

function merge(target: Loose, patch: Loose): Loose {
  if (patch === null || typeof patch !== 'object' || Array.isArray(patch)) return clone(patch)
  const result = target !== null && typeof target === 'object' && !Array.isArray(target) ? { ...target } : {}
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete result[key]
    else result[key] = merge(result[key], value)
  }
  return result
}

function strategic(target: Loose, patch: Loose, field: string): Loose {
  if (Array.isArray(patch)) return strategicList(Array.isArray(target) ? target : [], patch, field)
  if (patch === null || typeof patch !== 'object') return clone(patch)
  if (patch.$patch === 'replace') return without(patch, '$patch')
  const result: Loose = target !== null && typeof target === 'object' && !Array.isArray(target) ? { ...target } : {}
  for (const [key, value] of Object.entries(patch)) {
    if (key.startsWith('$deleteFromPrimitiveList/')) {
      const list = key.slice('$deleteFromPrimitiveList/'.length)
      result[list] = (result[list] ?? []).filter((item: Loose) => !(value as Loose[]).includes(item))
    } else if (key.startsWith('$')) continue
    else if (value === null) delete result[key]
    else result[key] = strategic(result[key], value, key)
  }
  return result
}

function strategicList(target: Loose[], patch: Loose[], field: string): Loose[] {
  if (field === 'finalizers') return [...new Set([...target, ...patch])]
  const mergeKey = MERGE_KEYS[field]
  if (mergeKey === undefined) return clone(patch)
  if (patch.some(item => item?.$patch === 'replace')) return patch.filter(item => item?.$patch !== 'replace').map(clone)
  const result = [...target]
  for (const item of patch) {
    const index = result.findIndex(existing => existing?.[mergeKey] === item?.[mergeKey])
    if (item?.$patch === 'delete') {
      if (index >= 0) result.splice(index, 1)
    } else if (index >= 0) result[index] = strategic(result[index], item, '')
    else result.push(clone(item))
  }
  return result
}

function without(object: Loose, key: string): Loose {
  const { [key]: _dropped, ...rest } = object
  return clone(rest)
}

function applyJsonPatch(target: Loose, patch: Loose): Loose {
  if (!Array.isArray(patch))
    throw badRequest('error decoding patch: json: cannot unmarshal object into Go value of type jsonpatch.Patch')
  const root = { '': clone(target) }
  for (const operation of patch) applyOperation(root, operation)
  return root['']
}

function applyOperation(root: Loose, operation: Loose): void {
  const path = pointer(operation.path)
  switch (operation.op) {
    case 'add':
      put(root, path, clone(operation.value), true)
      break
    case 'replace':
      read(root, path)
      put(root, path, clone(operation.value), false)
      break
    case 'remove':
      drop(root, path)
      break
    case 'move': {
      const value = read(root, pointer(operation.from))
      drop(root, pointer(operation.from))
      put(root, path, value, true)
      break
    }
    case 'copy':
      put(root, path, clone(read(root, pointer(operation.from))), true)
      break
    case 'test':
      if (!equal(read(root, path), operation.value)) throw misfit(`testing path ${operation.path} value failed`)
      break
    default:
      throw misfit(`Unexpected kind: ${operation.op}`)
  }
}

const misfit = (text: string): StatusError =>
  new StatusError(422, 'Invalid', `the server rejected our request due to an error in our request: ${text}`, {})

function pointer(path: string): string[] {
  if (typeof path !== 'string') throw misfit('operation without path')
  return path.split('/').map(part => part.replaceAll('~1', '/').replaceAll('~0', '~'))
}

function parentOf(root: Loose, path: string[]): Loose {
  let parent = root
  for (const part of path.slice(0, -1)) {
    parent = parent?.[part]
    if (parent === null || typeof parent !== 'object') throw misfit(`doc is missing path: "${path.join('/')}"`)
  }
  return parent
}

function read(root: Loose, path: string[]): Loose {
  const value = parentOf(root, path)[path.at(-1)!]
  if (value === undefined) throw misfit(`doc is missing key: ${path.join('/')}`)
  return value
}

function put(root: Loose, path: string[], value: Loose, insert: boolean): void {
  const parent = parentOf(root, path)
  const key = path.at(-1)!
  if (!Array.isArray(parent)) parent[key] = value
  else if (key === '-') parent.push(value)
  else parent.splice(Number(key), insert ? 0 : 1, value)
}

function drop(root: Loose, path: string[]): void {
  read(root, path)
  const parent = parentOf(root, path)
  if (Array.isArray(parent)) parent.splice(Number(path.at(-1)), 1)
  else delete parent[path.at(-1)!]
}
