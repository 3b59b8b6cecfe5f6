import fc from 'fast-check'
import type { CreateRequest } from '../../src/domain/workload-spec.ts'
import { labels } from './arbitraries.ts'

const word = fc.string({ unit: fc.constantFrom('a', 'Z', ' ', '"', '$', '(', ')', 'é', '\n', '0'), maxLength: 8 })
const labelKey = fc.constantFrom('team', 'x.io/tier', 'A_b', 'z')
const path = fc.constantFrom('/data/web', '/data', '/data/a/../b', '//data/c')

/** Requests that the default policy of test/helpers/specs.ts accepts, with every field used by some. */
export const createRequests = (): fc.Arbitrary<CreateRequest> =>
  fc.record(
    {
      namespace: labels(20),
      name: labels(50).map(name => `w${name}`),
      kind: fc.constantFrom('deployment', 'job', ''),
      image: fc.constantFrom('web', 'registry/web:1.2', `r.io:5000/a/b@sha256:${'0'.repeat(64)}`),
      entrypoint: fc.array(word, { maxLength: 3 }),
      command: fc.array(word, { maxLength: 3 }),
      workdir: fc.constantFrom('', ' /srv ', '/'),
      env: fc.dictionary(fc.constantFrom('B', 'A', 'LD_PRELOAD', 'a.b', '__proto__', '10', '9'), word, { maxKeys: 5 }),
      cpu: fc.constantFrom(0, 0.5, 2, '250m', '1.5'),
      memory: fc.constantFrom(0, 536_870_912, '512Mi', '1.1Gi'),
      user: fc.constantFrom('', '0', '1000', '1000:2000', '0:0', '00'),
      supplementalGroups: fc.array(fc.integer({ min: -1, max: 50 }), { maxLength: 3 }),
      volumes: fc
        .array(fc.record({ source: path, mode: fc.constantFrom('ro', 'rw') }), { maxLength: 2 })
        .map(volumes => volumes.map((volume, index) => ({ ...volume, target: `/mnt/${index}` }))),
      port: fc.constantFrom(0, 80, 65_535),
      exposeService: fc.boolean(),
      schedulingConstraints: fc.array(
        fc.record({
          type: fc.constant('node'),
          key: fc.constantFrom('hostname', 'disk'),
          operator: fc.constantFrom('in', 'NotIn', 'EXISTS'),
          values: fc.array(fc.constantFrom('ssd', 'hdd'), { minLength: 1, maxLength: 3 }),
        }),
        { maxLength: 2 },
      ),
      labels: fc.dictionary(labelKey, fc.constantFrom('', 'a', '1.2'), { maxKeys: 3 }),
      imagePullPolicy: fc.constantFrom('', 'always', 'IfNotPresent'),
      imagePullSecrets: fc.array(fc.constantFrom('regcred', 'other'), { maxLength: 2 }),
      backoffLimit: fc.nat(5),
      startTimeoutSeconds: fc.nat(300),
      terminationGracePeriodSeconds: fc.nat(60),
      jobStop: fc.constantFrom('delete', 'suspend'),
      start: fc.boolean(),
    },
    { requiredKeys: ['image', 'name'], noNullPrototype: true },
  )
