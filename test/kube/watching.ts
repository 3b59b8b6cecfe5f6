import type { TestContext } from 'node:test'
import { type Change, Informer, type InformerOptions } from '../../src/kube/informer.ts'
import type { Log } from '../../src/kube/reflector-options.ts'
import { type ReflectorProfile, testProfile } from '../../src/kube/reflector-profile.ts'
import { type DeploymentRecord, TRIM } from '../../src/kube/trim.ts'
import type { FakeCollection } from './fake-collection.ts'
import { transportTo } from './serve.ts'

/** A log that the test can read. */
export class Lines implements Log {
  readonly info = (_fields: object, message: string): void => void this.infos.push(message)
  readonly warn = (fields: object, message: string): void => void this.warnings.push({ ...fields, message })
  readonly error = (fields: object, message: string): void => void this.errors.push({ ...fields, message })
  readonly infos: string[] = []
  readonly warnings: { message: string; reason?: string }[] = []
  readonly errors: { message: string }[] = []
}

export interface Watching {
  readonly informer: Informer<'Deployment'>
  readonly log: Lines
  readonly changes: Change<DeploymentRecord>[]
  /** `+name uid-1` and `-name uid-1`, in order, without those of the first list. */
  readonly told: string[]
}

type Options = { profile?: Partial<ReflectorProfile> } & Partial<Omit<InformerOptions<'Deployment'>, 'profile'>>

/** An informer on the fake collection, started, and stopped with the test; the test profile with a longer deadline. */
export function watching(t: TestContext, fake: FakeCollection, options: Options = {}): Watching {
  const log = new Lines()
  const profile = { ...testProfile, callDeadlineMs: 5000, ...options.profile }
  const transport = options.transport ?? transportTo(t, fake.served.url, { deadlineMs: profile.callDeadlineMs })
  const informer = new Informer<'Deployment'>({
    kind: 'Deployment',
    namespace: 'ai',
    labelSelector: 'gobrave-workload',
    transform: TRIM.Deployment,
    log,
    ...options,
    transport,
    profile,
  })
  const changes: Change<DeploymentRecord>[] = []
  const told: string[] = []
  informer.onChange(change => {
    changes.push(change)
    const { name, uid } = change.record.metadata
    if (change.source !== 'list') told.push(`${change.type === 'applied' ? '+' : '-'}${name} ${uid}`)
  })
  t.after(() => informer.stop())
  informer.start()
  return { informer, log, changes, told }
}
