import * as z from 'zod'
import { EVENT_TYPES } from '../domain/event.ts'
import { STATES } from '../domain/life.ts'
import { KINDS } from '../domain/runtime-id.ts'
import { ERROR_CATALOGUE } from '../errors.ts'
import { int32, int64, time } from './schema-parts.ts'

/**
 * What replies look like. Plain objects: open in the document, so that a field can be added without breaking a client;
 * the serialiser leaves out what is not named here. Every field is there, null when there is nothing to say.
 */
const text = () => z.string()
const list = (known: readonly string[]) => known.map(word => `\`${word}\``).join(' ')

export const RuntimeIdText = z.string().meta({
  id: 'RuntimeId',
  description: '`<runtime>-<namespace>|<kind>|<name>`; in a URL percent-encoded, though a raw `|` works too',
  pattern: `^(k8s|k3s|docker)-[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?\\|(${KINDS.join('|')})\\|[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`,
  maxLength: 142,
  example: 'k8s-default|deployment|web-api',
})

export const RuntimeKind = z.enum(KINDS).meta({ id: 'RuntimeKind' })
export const RuntimeState = z.enum(STATES).meta({
  id: 'RuntimeState',
  description: 'Closed: a state that is none of the others is `unknown`.',
})
export const EventTypeName = z.enum(EVENT_TYPES).meta({ id: 'EventType' })

export const Replicas = z
  .object({ desired: int32(), current: int32(), ready: int32() })
  .meta({ id: 'Replicas', description: 'Of a Job: parallelism (0 when suspended or ended), active, ready.' })

const runtimeFields = {
  id: RuntimeIdText,
  runtime: text().describe('Name of the configured runtime: `k8s`, `k3s` or `docker`.'),
  namespace: text(),
  kind: RuntimeKind,
  name: text(),
  uid: text().nullable().describe('Identity of the workload; one uid is one life.'),
  run: int32().describe('The newest run, 0 = never started.'),
  state: RuntimeState,
  ready: z.boolean().describe('Whether it is up now; `state` says whether it was up in this run.'),
  monitored: z.boolean(),
  reason: text().nullable().describe("The cluster's own CamelCase word, or one of ours such as `StoppedByRequest`."),
  message: text().nullable(),
  hint: text().nullable().describe('One sentence on what to do.'),
  exitCode: int32().nullable(),
  restarts: int32(),
  replicas: Replicas,
  image: text().nullable(),
  labels: z.record(z.string(), z.string()).describe("The user's labels."),
  address: text().nullable().describe("DNS name of the Service, else the pod's IP."),
  podName: text().nullable(),
  podIp: text().nullable(),
  nodeName: text().nullable(),
  createdAt: time(),
  startedAt: time().nullable(),
  endedAt: time().nullable(),
  observedAt: time().nullable(),
  stale: z.boolean().describe('What is shown may be old: the cluster has not been heard of for a while.'),
}

export const Runtime = z.object(runtimeFields).meta({ id: 'Runtime' })

export const RuntimeEventReply = z
  .object({
    id: text().describe('`<epoch>-<seq>`, a cursor to resume after.'),
    seq: int64().describe('Rises by at least 1 over the whole feed.'),
    type: text().describe(`Known now: ${list(EVENT_TYPES)}.`),
    runtimeId: RuntimeIdText,
    uid: text().nullable(),
    run: int32(),
    reason: text().nullable(),
    message: text().nullable(),
    exitCode: int32().nullable(),
    time: time(),
  })
  .meta({ id: 'RuntimeEvent' })

const VolumeReply = z.object({ source: text(), target: text(), mode: text() }).meta({ id: 'AcceptedVolume' })
const ConstraintReply = z
  .object({ type: text(), key: text(), operator: text(), values: z.array(text()) })
  .meta({ id: 'AcceptedConstraint' })

export const AcceptedSpec = z
  .object({
    runtime: text(),
    namespace: text(),
    kind: RuntimeKind,
    name: text(),
    image: text(),
    entrypoint: z.array(text()),
    command: z.array(text()),
    workdir: text().nullable(),
    env: z.record(z.string(), z.string()),
    cpu: text().nullable(),
    memory: int64().nullable().describe('Bytes.'),
    user: text().nullable(),
    supplementalGroups: z.array(int64()),
    volumes: z.array(VolumeReply),
    port: int32().nullable(),
    exposeService: z.boolean(),
    schedulingConstraints: z.array(ConstraintReply),
    labels: z.record(z.string(), z.string()),
    imagePullPolicy: text(),
    imagePullSecrets: z.array(text()),
    backoffLimit: int32().nullable(),
    startTimeoutSeconds: int32(),
    terminationGracePeriodSeconds: int64().nullable(),
    jobStop: text().nullable(),
    start: z.boolean(),
  })
  .meta({ id: 'AcceptedSpec', description: 'What was asked for, with units canonical and gaps filled.' })

export const InspectedRuntime = z
  .object({
    ...runtimeFields,
    spec: AcceptedSpec.nullable().describe('As accepted; null for a workload that was taken up.'),
    events: z.array(RuntimeEventReply).describe('The newest 20, newest first.'),
  })
  .meta({ id: 'InspectedRuntime' })

export const RuntimeList = z
  .object({ items: z.array(Runtime), nextCursor: text().nullable() })
  .meta({ id: 'RuntimeList' })

export const Rendered = z.object({ objects: z.array(z.record(z.string(), z.unknown())) }).meta({ id: 'Rendered' })

export const Waited = z.object({ reached: z.boolean(), runtime: Runtime }).meta({ id: 'Waited' })

export const EventList = z
  .object({
    items: z.array(RuntimeEventReply),
    cursor: text().describe('The last event looked at, matching or not: pass it as `after`.'),
  })
  .meta({ id: 'EventList' })

const InformerReply = z
  .object({
    kind: text(),
    namespace: text().nullable().describe('null = all'),
    synced: z.boolean(),
    objects: int32(),
    lastContactSeconds: z.number().nullable().meta({ format: 'double' }),
  })
  .meta({ id: 'Informer' })

export const BackendList = z
  .object({
    items: z.array(
      z
        .object({
          name: text(),
          type: text().describe('`kubernetes` or `docker`.'),
          default: z.boolean(),
          healthy: z.boolean(),
          reason: text().nullable(),
          version: text().nullable(),
          informers: z.array(InformerReply),
        })
        .meta({ id: 'Backend' }),
    ),
  })
  .meta({ id: 'BackendList' })

export const MonitoredList = z.object({ items: z.array(RuntimeIdText), total: int32() }).meta({ id: 'MonitoredList' })

export const AdoptionReportReply = z
  .object({
    at: time(),
    adopted: z.array(RuntimeIdText),
    vanished: z.array(RuntimeIdText),
    foreign: z.array(RuntimeIdText),
    orphaned: z.array(RuntimeIdText),
  })
  .meta({ id: 'AdoptionReport' })

export const AdoptionResult = z
  .object({
    items: z.array(
      z.object({ id: text(), done: z.boolean(), code: text().nullable() }).meta({ id: 'AdoptionOutcome' }),
    ),
  })
  .meta({ id: 'AdoptionResult' })

export const Preflighted = z.object({ accepted: z.boolean(), imagePullPolicy: text() }).meta({ id: 'Preflighted' })

export const HealthReport = z
  .object({
    status: text().describe('`ok`, `degraded` or `unavailable`.'),
    checks: z.array(z.object({ name: text(), ok: z.boolean(), reason: text().nullable() }).meta({ id: 'HealthCheck' })),
  })
  .meta({ id: 'HealthReport' })

export const Problem = z
  .object({
    type: text(),
    title: text(),
    status: int32(),
    code: text().describe(`Stable. Known now: ${list(Object.keys(ERROR_CATALOGUE))}.`),
    detail: text(),
    errors: z.array(
      z
        .object({
          path: text().describe('JSON pointer into the body, or the name of a header or query parameter.'),
          message: text(),
        })
        .meta({ id: 'FieldError' }),
    ),
    requestId: text(),
    runtimeId: text().nullable(),
    reason: text().nullable().describe("The cluster's own word."),
    oldest: text().nullable().optional().describe('Of CURSOR_EXPIRED alone: the oldest event kept.'),
    newest: text().nullable().optional().describe('Of CURSOR_EXPIRED alone: the newest event.'),
  })
  .meta({ id: 'Problem', description: 'RFC 9457' })
