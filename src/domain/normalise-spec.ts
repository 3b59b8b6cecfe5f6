import { imageFault, readPullPolicy } from './image.ts'
import { podSecurityFaults } from './pod-security.ts'
import { readCpu, readMemory } from './quantity.ts'
import { formatRuntimeId, type Kind, MAX_RUNTIME_ID_LENGTH, type RuntimeId, toRuntimeName } from './runtime-id.ts'
import { readConstraint, type SchedulingConstraint } from './scheduling.ts'
import { pointer, quote, SpecFaults } from './spec-faults.ts'
import {
  readCount,
  readEnv,
  readGroups,
  readLabels,
  readPullSecrets,
  readUser,
  readVolumes,
  readWords,
  readWorkdir,
} from './spec-fields.ts'
import { isDnsLabel, nameFault, serviceNameFault } from './workload-name.ts'
import type { CreateRequest, JobStop, SpecDefaults, SpecPolicy, WorkloadSpec } from './workload-spec.ts'

const MAX_PORT = 65_535
/** Without a start time-out an agent container would be waited for without end (wire.md §2). */
const AGENT_START_TIMEOUT_SECONDS = 120

const isBlank = (text: string | undefined): text is undefined | '' => text === undefined || text.trim() === ''

/**
 * Accepts a create request: fills gaps, makes units and spellings canonical, and checks all that a JSON schema cannot say.
 * Pure: the cluster is not asked, and whether the namespace is allowed is the caller's question.
 * Every fault is reported at once: REQUEST_INVALID (400) if any is malformed, else IMAGE_REFUSED or SPEC_REFUSED (422),
 * which name the setting in the way.
 */
export function normaliseSpec(request: CreateRequest, defaults: SpecDefaults, policy: SpecPolicy): WorkloadSpec {
  const faults = new SpecFaults()
  const id = readId(faults, request, { defaults, policy })
  if (id.runtime === 'docker') refuseOnDocker(faults, request)
  const port = readCount(faults, '/port', { value: request.port, max: MAX_PORT }) || null
  const spec: WorkloadSpec = {
    ...id,
    ...readContainer(faults, request),
    user: readUser(faults, request.user ?? '', id.runtime),
    volumes: readVolumes(faults, request.volumes ?? [], policy.hostPathRoots),
    port,
    exposeService: request.exposeService === true && id.kind !== 'job' && port !== null,
    schedulingConstraints: readConstraints(faults, request.schedulingConstraints),
    labels: readLabels(faults, request.labels),
    annotations: { ...defaults.annotations },
    imagePullSecrets: readPullSecrets(faults, request.imagePullSecrets),
    ...readTimes(faults, request, { kind: id.kind, defaults }),
    start: request.start ?? true,
  }
  const served = spec.exposeService && id.kind === 'deployment' && isDnsLabel(id.name)
  const serviceFault = served ? serviceNameFault(id.name) : null
  if (serviceFault) faults.malformed('/name', serviceFault)
  for (const fault of podSecurityFaults(spec, policy.podSecurity)) faults.refused(fault.path, fault.message)
  faults.throwIfAny('create the runtime')
  return spec
}

function readId(
  faults: SpecFaults,
  request: CreateRequest,
  { defaults, policy }: { defaults: SpecDefaults; policy: SpecPolicy },
): RuntimeId {
  const runtime = isBlank(request.runtime) ? defaults.runtime : toRuntimeName(request.runtime)
  if (runtime === undefined || !policy.runtimes.includes(runtime)) {
    faults.malformed(
      '/runtime',
      `${quote(request.runtime ?? defaults.runtime)} is not configured; configured: ${policy.runtimes.join(', ')}`,
    )
  }
  const namespace = isBlank(request.namespace) ? defaults.namespace : request.namespace
  if (!isDnsLabel(namespace)) faults.malformed('/namespace', 'must be a DNS label: 1 to 63 of a-z, 0-9 and "-"')
  const name = isBlank(request.name) ? defaults.name : request.name
  const fault = nameFault(name)
  if (fault) faults.malformed('/name', fault)
  const id = {
    runtime: runtime ?? defaults.runtime,
    namespace,
    kind: readKind(faults, request.kind, defaults.kind),
    name,
  }
  if (fault === null && formatRuntimeId(id).length > MAX_RUNTIME_ID_LENGTH) {
    faults.malformed(
      '/name',
      `together with the namespace it makes a runtime ID of more than ${MAX_RUNTIME_ID_LENGTH} characters`,
    )
  }
  return id
}

function readKind(faults: SpecFaults, kind: string | undefined, fallback: Kind): Kind {
  if (isBlank(kind)) return fallback
  if (kind === 'deployment' || kind === 'job') return kind
  faults.malformed('/kind', 'must be deployment or job')
  return fallback
}

function readContainer(faults: SpecFaults, request: CreateRequest) {
  const image = request.image.trim()
  const fault = imageFault(image)
  if (fault) faults.malformed('/image', fault)
  const pull = readPullPolicy(request.imagePullPolicy)
  if ('fault' in pull) {
    if (pull.refused) faults.refused('/imagePullPolicy', pull.fault, 'image')
    else faults.malformed('/imagePullPolicy', pull.fault)
  }
  return {
    image,
    imagePullPolicy: 'value' in pull ? pull.value : ('IfNotPresent' as const),
    entrypoint: readWords(faults, 'entrypoint', request.entrypoint),
    command: readWords(faults, 'command', request.command),
    workdir: readWorkdir(faults, request.workdir ?? ''),
    env: readEnv(faults, request.env),
    cpu: faults.take('/cpu', readCpu(request.cpu), null),
    memory: faults.take('/memory', readMemory(request.memory), null),
    supplementalGroups: readGroups(faults, request.supplementalGroups),
  }
}

function readConstraints(
  faults: SpecFaults,
  constraints: CreateRequest['schedulingConstraints'] = [],
): SchedulingConstraint[] {
  return constraints.flatMap((constraint, index) =>
    faults.take<SchedulingConstraint[]>(
      pointer('schedulingConstraints', index),
      mapReading(readConstraint(constraint)),
      [],
    ),
  )
}

const mapReading = <T>(reading: { value: T } | { fault: string }): { value: T[] } | { fault: string } =>
  'value' in reading ? { value: [reading.value] } : reading

function readTimes(
  faults: SpecFaults,
  request: CreateRequest,
  { kind, defaults }: { kind: Kind; defaults: SpecDefaults },
) {
  const backoffLimit = readCount(faults, '/backoffLimit', { value: request.backoffLimit }) ?? 0
  const jobStop = readJobStop(faults, request.jobStop, defaults.jobStop)
  const asked = readCount(faults, '/startTimeoutSeconds', { value: request.startTimeoutSeconds })
  const startTimeoutSeconds = asked ?? defaults.startTimeoutSeconds
  return {
    backoffLimit: kind === 'job' ? backoffLimit : null,
    jobStop: kind === 'job' ? jobStop : null,
    startTimeoutSeconds: kind === 'pod' ? startTimeoutSeconds || AGENT_START_TIMEOUT_SECONDS : startTimeoutSeconds,
    terminationGracePeriodSeconds: readCount(faults, '/terminationGracePeriodSeconds', {
      value: request.terminationGracePeriodSeconds,
    }),
  }
}

function readJobStop(faults: SpecFaults, text: string | undefined, fallback: JobStop): JobStop {
  if (text === undefined) return fallback
  if (text === 'delete' || text === 'suspend') return text
  faults.malformed('/jobStop', 'must be delete or suspend')
  return fallback
}

/** What one Engine cannot do is refused, never dropped (wire.md §3). */
function refuseOnDocker(faults: SpecFaults, request: CreateRequest): void {
  const refuse = (field: string) => faults.refused(`/${field}`, 'means nothing on the runtime docker; leave it out')
  if (request.exposeService) refuse('exposeService')
  if (request.schedulingConstraints?.length) refuse('schedulingConstraints')
  if (request.imagePullSecrets?.length) refuse('imagePullSecrets')
}
