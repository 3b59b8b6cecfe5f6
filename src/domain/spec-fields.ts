import { compareText } from './canonical-json.ts'
import { hasControlCharacter, isBelow, resolvePath } from './host-path.ts'
import { isDnsSubdomain, isLabelKey, isLabelValue, isReservedLabel } from './labels.ts'
import type { RuntimeName } from './runtime-id.ts'
import { pointer, quote, type SpecFaults } from './spec-faults.ts'
import type { CreateRequest, VolumeMount } from './workload-spec.ts'

/** Kubernetes' highest uid, gid and count: int32. */
export const MAX_INT32 = 2_147_483_647

/** Kubernetes 1.34's rule for environment names: printable ASCII but `=`. Older clusters may refuse more; they say so. */
const ENV_NAME = /^[ -<>-~]+$/

const sorted = (record: Readonly<Record<string, string>>): Record<string, string> =>
  Object.fromEntries(Object.entries(record).sort(([a], [b]) => compareText(a, b)))

/** Sorted by key. Values are never repeated in a message: they may be secrets. */
export function readEnv(faults: SpecFaults, env: CreateRequest['env'] = {}): Record<string, string> {
  for (const [key, value] of Object.entries(env)) {
    const path = pointer('env', key)
    if (!ENV_NAME.test(key)) faults.malformed(path, 'a variable name is printable ASCII without "="')
    if (value.includes('\0')) faults.malformed(path, 'the value must not contain NUL')
  }
  return sorted(env)
}

export function readLabels(faults: SpecFaults, labels: CreateRequest['labels'] = {}): Record<string, string> {
  for (const [key, value] of Object.entries(labels)) {
    const path = pointer('labels', key)
    if (isReservedLabel(key)) {
      faults.malformed(path, 'is reserved: app, gobrave-workload and all below runtimed.dev/ are set by runtimed')
    } else if (!isLabelKey(key)) {
      faults.malformed(path, 'a label name is [prefix/]name: at most 63 letters, digits, "-", "_" or "."')
    }
    if (!isLabelValue(value)) {
      faults.malformed(
        path,
        'a label value has at most 63 letters, digits, "-", "_" or "." and begins and ends with one of the first two',
      )
    }
  }
  return sorted(labels)
}

/** An empty list counts as absent: the image's own. */
export function readWords(faults: SpecFaults, path: string, words: readonly string[] = []): readonly string[] {
  words.forEach((word, index) => {
    if (word.includes('\0')) faults.malformed(pointer(path, index), 'must not contain NUL')
  })
  return [...words]
}

export function readWorkdir(faults: SpecFaults, text: string): string | null {
  const workdir = text.trim()
  if (hasControlCharacter(workdir)) faults.malformed('/workdir', 'must not contain control characters')
  return workdir === '' ? null : workdir
}

const id = (text: string): number | undefined => {
  const number = /^\d{1,10}$/.test(text) ? Number(text) : Number.NaN
  return number <= MAX_INT32 ? number : undefined
}

const DOCKER_USER = /^[A-Za-z0-9_][-A-Za-z0-9_.]*(?::[A-Za-z0-9_][-A-Za-z0-9_.]*)?$/

/** `uid` or `uid:gid` in plain decimal; what a cluster cannot map is refused, never dropped. Docker takes names too. */
export function readUser(faults: SpecFaults, user: string, runtime: RuntimeName): string | null {
  if (user.trim() === '') return null
  const parts = user.trim().split(':')
  const ids = parts.map(id)
  const numeric = parts.length <= 2 && ids.every(part => part !== undefined)
  if (!numeric && !(runtime === 'docker' && /[A-Za-z_]/.test(user) && DOCKER_USER.test(user.trim()))) {
    const names = runtime === 'docker' ? 'or names' : 'names have no meaning on Kubernetes'
    faults.refused('/user', `${quote(user)} must be uid or uid:gid in decimal, from 0 to ${MAX_INT32}; ${names}`)
    return null
  }
  return numeric ? ids.join(':') : user.trim()
}

/** As the seed: what is no usable group (0 and below) is left out, each once. */
export function readGroups(faults: SpecFaults, groups: readonly number[] = []): number[] {
  groups.forEach((group, index) => {
    if (Number.isInteger(group) && group <= MAX_INT32) return
    faults.malformed(pointer('supplementalGroups', index), `must be a whole number of at most ${MAX_INT32}`)
  })
  return [...new Set(groups)].filter(group => group > 0)
}

export function readPullSecrets(faults: SpecFaults, secrets: readonly string[] = []): string[] {
  secrets.forEach((secret, index) => {
    if (isDnsSubdomain(secret)) return
    faults.malformed(pointer('imagePullSecrets', index), 'must be the name of a Secret: a-z, 0-9, "-" and "."')
  })
  return [...new Set(secrets)]
}

export function readVolumes(
  faults: SpecFaults,
  volumes: NonNullable<CreateRequest['volumes']>,
  roots: readonly string[],
): VolumeMount[] {
  const targets = new Set<string>()
  return volumes.map((volume, index) => {
    const source = readSource(faults, pointer('volumes', index, 'source'), { source: volume.source, roots })
    const target = readTarget(faults, pointer('volumes', index, 'target'), { target: volume.target, targets })
    const mode = (volume.mode ?? '').trim().toLowerCase() || 'rw'
    if (mode !== 'ro' && mode !== 'rw') faults.malformed(pointer('volumes', index, 'mode'), 'must be ro or rw')
    return { source, target, mode: mode === 'ro' ? 'ro' : 'rw' }
  })
}

function readSource(
  faults: SpecFaults,
  path: string,
  { source, roots }: { source: string; roots: readonly string[] },
): string {
  const resolved = resolvePath(source)
  if (resolved === null) {
    faults.malformed(path, 'must be an absolute path on the node without control characters')
    return source
  }
  if (!isBelow(resolved, roots)) {
    const list = roots.length === 0 ? 'which is empty' : 'which lists what is allowed'
    faults.refused(path, `${quote(resolved)} is not below a folder of HOST_PATH_ROOTS, ${list}`)
  }
  return resolved
}

function readTarget(
  faults: SpecFaults,
  path: string,
  { target, targets }: { target: string; targets: Set<string> },
): string {
  const resolved = resolvePath(target)
  if (resolved === null || resolved.includes(':')) {
    faults.malformed(path, 'must be an absolute path in the container without ":" and control characters')
    return target
  }
  if (isBelow(resolved, ['/proc']) || resolved === '/') {
    faults.malformed(path, 'nothing can be mounted over / or /proc; choose another folder')
  }
  if (targets.has(resolved)) faults.malformed(path, `${quote(resolved)} is the target of an earlier volume`)
  targets.add(resolved)
  return resolved
}

/** A whole number within bounds, or null when absent. */
export function readCount(
  faults: SpecFaults,
  path: string,
  { value, max = MAX_INT32 }: { value: number | undefined; max?: number },
): number | null {
  if (value === undefined) return null
  if (Number.isInteger(value) && value >= 0 && value <= max) return value
  faults.malformed(path, `must be a whole number from 0 to ${max}`)
  return null
}
