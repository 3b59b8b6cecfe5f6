import type { LogBuffer, LogOptions } from './log-buffer.ts'
import { resourceOf } from './resources.ts'
import { badRequest, invalid } from './status-error.ts'
import type { KubeObject, Loose } from './types.ts'

/** Who has the output of containers: the instances of one container, oldest first, at most the newest two. */
export interface LogSource {
  instances(podUid: string, container: string): LogBuffer[]
}

const PULL_TEXTS: Record<string, string> = {
  ErrImagePull: "image can't be pulled",
  ImagePullBackOff: 'trying and failing to pull image',
}

/** The log a request asks for, or undefined for one without output yet. Throws 400 with the kubelet's own words. */
export function findLog(pod: KubeObject, query: URLSearchParams, source: LogSource): LogBuffer | undefined {
  const container = containerOf(pod, query.get('container') ?? '')
  if (!pod.spec?.nodeName) return undefined
  const { name, uid } = pod.metadata
  const status = (pod.status?.containerStatuses ?? []).find((entry: Loose) => entry.name === container)
  if (!status) throw badRequest(`container "${container}" in pod "${name}" is not available`)
  const { state, lastState } = status
  const instances = source.instances(uid, container)
  if (query.get('previous') === 'true') {
    if (!lastState?.terminated)
      throw badRequest(`previous terminated container "${container}" in pod "${name}" not found`)
    return state?.waiting ? instances.at(-1) : instances.at(-2)
  }
  if (state?.running || state?.terminated || lastState?.terminated) return instances.at(-1)
  const reason = state?.waiting?.reason
  if (reason === undefined)
    throw badRequest(`container "${container}" in pod "${name}" is waiting to start - no logs yet`)
  throw badRequest(`container "${container}" in pod "${name}" is waiting to start: ${PULL_TEXTS[reason] ?? reason}`)
}

function containerOf(pod: KubeObject, asked: string): string {
  const names: string[] = pod.spec.containers.map((container: Loose) => container.name)
  const { name, annotations } = pod.metadata
  if (asked !== '') {
    if (names.includes(asked)) return asked
    throw badRequest(`container ${asked} is not valid for pod ${name}`)
  }
  const preferred = annotations?.['kubectl.kubernetes.io/default-container']
  if (preferred !== undefined && names.includes(preferred)) return preferred
  if (names.length === 1) return names[0]!
  throw badRequest(`a container name must be specified for pod ${name}, choose one of: [${names.join(' ')}]`)
}

/** The options of a log request; throws 422 for numbers below zero and times that are none. */
export function logOptions(query: URLSearchParams, now: number): LogOptions {
  const options: LogOptions = {
    follow: query.get('follow') === 'true' || query.get('follow') === '1',
    timestamps: query.get('timestamps') === 'true',
  }
  const tailLines = wholeNumber(query, 'tailLines', 0)
  if (tailLines !== undefined) options.tailLines = tailLines
  const limitBytes = wholeNumber(query, 'limitBytes', 1)
  if (limitBytes !== undefined) options.limitBytes = limitBytes
  const sinceSeconds = wholeNumber(query, 'sinceSeconds', 1)
  if (sinceSeconds !== undefined) options.since = now - sinceSeconds * 1000
  const sinceTime = query.get('sinceTime')
  if (sinceTime !== null) {
    options.since = Date.parse(sinceTime)
    if (Number.isNaN(options.since))
      throw badRequest(
        `parsing time "${sinceTime}" as "2006-01-02T15:04:05Z07:00": cannot parse "${sinceTime}" as "2006"`,
      )
  }
  return options
}

function wholeNumber(query: URLSearchParams, name: string, least: number): number | undefined {
  const text = query.get(name)
  if (text === null || text === '') return undefined
  if (!/^-?\d+$/.test(text)) throw badRequest(`strconv.ParseInt: parsing "${text}": invalid syntax`)
  const value = Number(text)
  if (value >= least) return value
  const kind = { ...resourceOf('pods'), kind: 'PodLogOptions' }
  throw invalid(kind, '', [
    {
      reason: 'FieldValueInvalid',
      message: `Invalid value: ${value}: must be greater than ${least === 0 ? 'or equal to 0' : '0'}`,
      field: name,
    },
  ])
}
