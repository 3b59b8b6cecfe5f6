import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { poll, type Scope, startDaemon } from '../helpers/daemon.ts'
import { adoptionCases } from './adoption.ts'
import { apiCases } from './api.ts'
import { deploymentCases } from './deployment.ts'
import { feedCases } from './feed.ts'
import { jobCases } from './job.ts'
import { logCases } from './logs.ts'
import { serviceCases } from './service.ts'
import { troubleCases } from './trouble.ts'
import { type Environment, type Register, type Stage, World } from './world.ts'

/** Cases at once: as many as one small node takes; each waits for the cluster most of the time. */
const CONCURRENCY = 12
const CASE_TIMEOUT_MS = 120_000

const subjects: Record<string, (register: Register) => void> = {
  Deployment: deploymentCases,
  Job: jobCases,
  trouble: troubleCases,
  Service: serviceCases,
  logs: logCases,
  feed: feedCases,
  adoption: adoptionCases,
  API: apiCases,
}

/**
 * The contract: what the daemon promises over HTTP, against any Kubernetes. The same cases run on the sandbox and on a real cluster;
 * where the two differ, the sandbox is wrong. `open` brings the environment up, within the suite's `before`.
 */
export function contractSuite(name: string, open: (scope: Scope) => Promise<Environment>): void {
  describe(name, { concurrency: CONCURRENCY }, () => {
    const ends: Array<() => Promise<void> | void> = []
    const scope: Scope = { after: end => void ends.unshift(end) }
    let stage: Stage

    before(async () => {
      stage = await raise(scope, await open(scope))
    })
    after(async () => {
      for (const end of ends) await end()
      const { lines, fatal } = stage.daemon
      assert.deepEqual([fatal, lines.filter(({ level }) => level === 'error' || level === 'fatal')], [[], []])
    })

    for (const [subject, register] of Object.entries(subjects)) {
      register((title, run, { needsFaults = false } = {}) => {
        test(`${title} [${subject}]`, { timeout: CASE_TIMEOUT_MS }, async t => {
          if (needsFaults && stage.environment.faults === undefined)
            return t.skip('a real cluster has no knobs for this')
          await run(new World(t, stage))
        })
      })
    }
  })
}

async function raise(scope: Scope, environment: Environment): Promise<Stage> {
  const { api, kubeconfig } = environment
  const namespace = `contract-${process.pid}`
  const made = await api.send('POST', '/api/v1/namespaces', { metadata: { name: namespace } })
  if (made.status !== 201) throw new Error(`cannot make the namespace ${namespace}: ${JSON.stringify(made.body)}`)
  scope.after(async () => {
    await api.send('DELETE', `/api/v1/namespaces/${namespace}`)
    await poll(
      () => api.send('GET', `/api/v1/namespaces/${namespace}`),
      ({ status }) => status === 404,
      60,
    )
  })
  const daemon = await startDaemon(scope, { kubeconfig, env: { NAMESPACE: namespace, NAMESPACES: '*' } })
  await daemon.ready()
  return { environment, daemon, namespace }
}
