import * as z from 'zod'
import { IMAGE_REFERENCE } from '../domain/image.ts'
import { anyCase, blankable, count, queryFlag, queryInt, repeatable } from './schema-parts.ts'
import { EventTypeName, RuntimeIdText, RuntimeKind, RuntimeState } from './schemas.ts'

/**
 * What requests may say. Strict: an unknown field is refused at any depth. JSON types and bounds are checked here;
 * what a JSON schema cannot say is the domain's business. No defaults: they are ours, and would freeze in old clients.
 */
const MAX_INT32 = 2_147_483_647

/**
 * Patterns for the document alone, plain enough for every generated client: the domain checks these texts, and says in
 * better words what is wrong.
 */
const BLANKS = '[ \\t\\n\\r]*'
const LABEL = '[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?'
const REFERENCE = IMAGE_REFERENCE.source.replaceAll('(?:', '(').slice(1, -1)
const Image = z.string().meta({ pattern: `^${BLANKS}${REFERENCE}${BLANKS}$` })
const labelOrBlank = () => z.string().meta({ pattern: `^(${BLANKS}|${LABEL})$` })

const Quantity = z
  .union([z.number().meta({ format: 'double' }), z.string()])
  .meta({ id: 'Quantity', description: 'A number, or a Kubernetes quantity such as `500m` or `1.5Gi`.' })

const VolumeMode = z.enum(['ro', 'rw']).meta({ id: 'VolumeMode' })
const VolumeRequest = z
  .strictObject({ source: z.string(), target: z.string(), mode: VolumeMode.optional().describe('Default: rw.') })
  .meta({ id: 'Volume' })

const ConstraintRequest = z
  .strictObject({
    type: z.string().describe('`node`'),
    key: z.string().describe('A node label; `hostname` stands for `kubernetes.io/hostname`.'),
    operator: z.string().describe('`In` `NotIn` `Exists` `DoesNotExist` `Gt` `Lt`, any case.'),
    values: z.array(z.string()).optional(),
  })
  .meta({ id: 'SchedulingConstraint' })

const CreatedKind = z.enum(['deployment', 'job']).meta({ id: 'CreatedKind' })
const JobStop = z.enum(['delete', 'suspend']).meta({ id: 'JobStop' })
const POLICIES = ['IfNotPresent', 'Always', 'Never'] as const
const PullPolicy = z.enum(POLICIES).meta({ id: 'PullPolicy', description: 'Any case. `Never` is refused.' })

const EXAMPLE = {
  name: 'web-api',
  image: 'registry.example/web:1.2',
  command: ['--port', '8080'],
  env: { MODE: 'prod' },
  cpu: 0.5,
  memory: '512Mi',
  port: 8080,
  exposeService: true,
  labels: { team: 'a' },
}

export const CreateBody = z
  .strictObject({
    runtime: z.string().optional().describe('Default: the default runtime.'),
    namespace: labelOrBlank().optional().describe('Default: NAMESPACE.'),
    kind: blankable(CreatedKind).describe('Default: deployment.'),
    name: labelOrBlank().optional().describe('A DNS label. Default: a generated one.'),
    image: Image,
    entrypoint: z.array(z.string()).optional().describe("Replaces the image's ENTRYPOINT."),
    command: z.array(z.string()).optional().describe("Replaces the image's CMD."),
    workdir: z.string().optional(),
    env: z.record(z.string(), z.string()).optional(),
    cpu: Quantity.optional().describe('Cores; limit and request. 0 = no limit.'),
    memory: Quantity.optional().describe('Bytes; limit and request. 0 = no limit.'),
    user: z.string().optional().describe('`uid` or `uid:gid`.'),
    supplementalGroups: z.array(z.int().min(-MAX_INT32).max(MAX_INT32).meta({ format: 'int32' })).optional(),
    volumes: z.array(VolumeRequest).optional(),
    port: count(0, 65_535).optional().describe('0 = none.'),
    exposeService: z.boolean().optional().describe('Default: false.'),
    schedulingConstraints: z.array(ConstraintRequest).optional().describe('Joined by AND.'),
    labels: z.record(z.string(), z.string()).optional(),
    imagePullPolicy: anyCase(POLICIES, PullPolicy).describe('Default: IfNotPresent.'),
    imagePullSecrets: z.array(z.string()).optional(),
    backoffLimit: count(0, MAX_INT32).optional().describe('Jobs only. Default: 0.'),
    startTimeoutSeconds: count(0, MAX_INT32).optional().describe('0 = none. Default: START_TIMEOUT_SECONDS.'),
    terminationGracePeriodSeconds: count(0, MAX_INT32).optional(),
    jobStop: JobStop.optional().describe('Jobs only. Default: JOB_STOP.'),
    start: z.boolean().optional().describe('Default: true.'),
  })
  .meta({ id: 'RuntimeSpec', example: EXAMPLE })

export const AdoptionBody = z
  .strictObject({
    ids: z.array(RuntimeIdText).min(1).max(1_000),
    action: z.enum(['adopt', 'remove']).meta({ id: 'AdoptionAction' }),
  })
  .meta({ id: 'AdoptionRequest' })

export const PreflightBody = z
  .strictObject({ image: Image, imagePullPolicy: anyCase(POLICIES, PullPolicy) })
  .meta({ id: 'Preflight' })

export const IdParams = z.object({ id: RuntimeIdText })

export const IdempotencyHeader = z.object({
  'idempotency-key': z
    .string()
    .regex(/^[!-~]{1,255}$/, 'must be 1 to 255 visible ASCII characters')
    .optional()
    .describe('Per token, kept 24 h: the same key and body give the same runtime again.'),
})

export const CreateQuery = z.strictObject({ dryRun: z.enum(['render']).meta({ id: 'DryRun' }).optional() })

const selector = () => z.string().min(1).max(4_096).optional().describe('As of Kubernetes: `a=b,c in (d,e),!f`.')
const Namespace = z
  .string()
  .regex(new RegExp(`^${LABEL}$`), 'must be a DNS label')
  .meta({ id: 'Namespace' })
const CURSOR = /^(now|[0-9]{1,15}|[a-z0-9]{1,32}-[0-9]{1,15})$/
const cursor = () => z.string().regex(CURSOR, 'must be an event id such as x7k2-41, a seq, or now')
const after = () =>
  cursor().optional().describe('Event id, seq (0 = before the first ever) or `now`. Default: the oldest kept.')

export const ListQuery = z.strictObject({
  runtime: z.string().min(1).max(20).optional(),
  namespace: Namespace.optional(),
  kind: RuntimeKind.optional(),
  state: repeatable(RuntimeState),
  labelSelector: selector(),
  limit: queryInt(1, 1_000).optional().describe('Default: 100.'),
  cursor: z
    .string()
    .regex(/^[!-~]{1,1024}$/, 'must be a nextCursor')
    .optional(),
})

export const WaitQuery = z.strictObject({
  for: z.enum(['running', 'ended', 'deleted']).meta({ id: 'WaitCondition' }),
  run: queryInt(0, MAX_INT32).optional().describe('Default: the newest.'),
  timeout: queryInt(0, 600).optional().describe('Seconds. Default: 60.'),
})

const since = z.union([
  z
    .string()
    .regex(/^[0-9]{1,9}$/)
    .transform(Number),
  z.iso.datetime({ offset: true }),
])

export const LogsQuery = z.strictObject({
  tail: queryInt(0, MAX_INT32).optional().describe('Lines. Default: 200.'),
  follow: queryFlag().optional().describe('Default: false.'),
  since: since.optional().meta({ type: 'string', description: 'Seconds back, or an RFC 3339 time.' }),
  timestamps: queryFlag().optional().describe('Default: false.'),
  container: z
    .string()
    .regex(new RegExp(`^${LABEL}$`), 'must be a DNS label')
    .optional()
    .describe('Default: main.'),
  previous: queryFlag().optional().describe('Of the container before its last restart. Default: false.'),
  limitBytes: queryInt(1, 64 * 1024 * 1024)
    .optional()
    .describe('Without follow. Default: 1048576.'),
})

const pageLimit = () => queryInt(1, 5_000).optional().describe('Default: 500.')

export const RuntimeEventsQuery = z.strictObject({ after: after(), limit: pageLimit() })

const filter = {
  after: after(),
  runtimeId: repeatable(RuntimeIdText),
  type: repeatable(EventTypeName),
  namespace: repeatable(Namespace),
  labelSelector: selector(),
}

export const EventsQuery = z.strictObject({ ...filter, limit: pageLimit() })
export const StreamQuery = z.strictObject(filter)

export const LastEventIdHeader = z.object({
  'last-event-id': z
    .string()
    .regex(/^(|now|[0-9]{1,15}|[a-z0-9]{1,32}-[0-9]{1,15})$/, 'must be an event id')
    .optional()
    .describe('Beats `after`.'),
})
