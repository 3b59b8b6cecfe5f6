import { randomUUID } from 'node:crypto'
import type { TestContext } from 'node:test'
import type { Life } from '../../src/domain/life.ts'
import { newLife } from '../../src/domain/lifecycle.ts'
import { formatRuntimeId } from '../../src/domain/runtime-id.ts'
import type { CreateRequest } from '../../src/domain/workload-spec.ts'
import { createKubeBackend, type KubeBackendOptions } from '../../src/kube/backend.ts'
import { testProfile } from '../../src/kube/reflector-profile.ts'
import { type Sandbox, type SandboxOptions, startSandbox, TEST_TIMING } from '../../src/sandbox/index.ts'
import { systemClock } from '../../src/service/clock.ts'
import type { Backend, Written } from '../../src/service/ports.ts'
import { specOf } from '../helpers/specs.ts'
import { access } from './serve.ts'

/** Deadlines that a loaded machine keeps. */
const profile = { ...testProfile, callDeadlineMs: 3000, pageDeadlineMs: 5000, watchMs: 30_000, idleMs: 31_000 }
const silent = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} }

export interface Cluster {
  readonly sandbox: Sandbox
  readonly backend: Backend
  /** IDs told as changed, in order. */
  readonly changed: string[]
}

/** A sandbox, and a backend on it whose caches are in; both end with the test. */
export async function cluster(
  t: TestContext,
  sandboxOptions: SandboxOptions = {},
  backendOptions: Partial<KubeBackendOptions> = {},
): Promise<Cluster> {
  const sandbox = await startSandbox({ kubelet: 'instant', timing: TEST_TIMING, ...sandboxOptions })
  t.after(() => sandbox.close())
  const { backend, changed } = await backendOn(t, sandbox, backendOptions)
  return { sandbox, backend, changed }
}

export async function backendOn(t: TestContext, sandbox: Sandbox, options: Partial<KubeBackendOptions> = {}) {
  const backend = backendTo(t, sandbox.url, options)
  const changed: string[] = []
  backend.lifecycle.start(id => changed.push(formatRuntimeId(id)))
  await backend.lifecycle.synced(AbortSignal.timeout(5000))
  return { backend, changed }
}

/** Not started. */
export function backendTo(t: TestContext, url: string, options: Partial<KubeBackendOptions> = {}): Backend {
  const backend = createKubeBackend({
    name: 'k8s',
    connection: access(url),
    namespaces: ['default'],
    instance: 'default',
    clusterDomain: 'cluster.local',
    podSecurity: 'baseline',
    imagePullSecrets: [],
    serviceAccountName: null,
    profile,
    clock: systemClock,
    log: silent,
    ...options,
  })
  t.after(() => backend.lifecycle.stop())
  return backend
}

/** A claim as the services make it, before the cluster was asked. */
export const claim = (request: Partial<CreateRequest> = {}, kind?: 'pod'): Life => ({
  ...newLife({
    spec: specOf(request, kind === undefined ? {} : { defaults: { kind } }),
    nonce: randomUUID(),
    now: Date.now(),
    lastEventAt: 0,
  }),
  life: 1,
})

export const bound = (life: Life, written: Written): Life => ({
  ...life,
  uid: written.uid,
  writtenVersion: written.version,
  writtenGeneration: written.generation,
  verb: null,
})

/** Made, its uid bound. */
export async function made(backend: Backend, life: Life, active = true): Promise<Life> {
  return bound(life, await backend.workloads.make(life, active))
}

/** The first value that is not null, false or undefined; fails the test after `ms`. */
export async function eventually<T>(what: string, probe: () => T | Promise<T>, ms = 8000): Promise<NonNullable<T>> {
  for (const end = Date.now() + ms; ; ) {
    const value = await probe()
    if (value) return value
    if (Date.now() > end) throw new Error(`not within ${ms} ms: ${what}`)
    await new Promise(resolve => setTimeout(resolve, 10))
  }
}

/** The RuntimeError it fails with. */
export async function refusal(work: Promise<unknown>) {
  const error = await work.then(
    () => null,
    reason => reason,
  )
  if (error === null) throw new Error('it succeeded')
  if (error.name !== 'RuntimeError' && error.name !== 'KubeStatusError') throw error
  return error
}
