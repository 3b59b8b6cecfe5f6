import { isLabelKey, isLabelValue } from './labels.ts'
import type { Reading } from './quantity.ts'

export const OPERATORS = ['In', 'NotIn', 'Exists', 'DoesNotExist', 'Gt', 'Lt'] as const
export type Operator = (typeof OPERATORS)[number]

/** As asked for on the wire; operator in any case. */
export interface SchedulingConstraintRequest {
  type: string
  key: string
  operator: string
  values?: readonly string[] | undefined
}

/** A rule every node must meet on which the workload may run. Several rules are joined by AND. */
export interface SchedulingConstraint {
  readonly type: 'node'
  readonly key: string
  readonly operator: Operator
  readonly values: readonly string[]
}

/** Short names people use for the labels every node has. */
const ALIASES: Readonly<Record<string, string>> = { hostname: 'kubernetes.io/hostname' }

/**
 * The canonical constraint: full key, operator as Kubernetes writes it, values once each. What cannot be understood
 * is a fault and never dropped: a typo must not remove a placement rule.
 */
export function readConstraint(request: SchedulingConstraintRequest): Reading<SchedulingConstraint> {
  if (request.type.trim().toLowerCase() !== 'node') return { fault: 'the type must be node' }
  const asked = request.key.trim()
  const key = Object.hasOwn(ALIASES, asked) ? (ALIASES[asked] ?? asked) : asked
  if (!isLabelKey(key)) return { fault: 'the key must be the name of a node label, such as kubernetes.io/hostname' }
  const operator = OPERATORS.find(known => known.toLowerCase() === request.operator.trim().toLowerCase())
  if (!operator) return { fault: `the operator must be one of ${OPERATORS.join(', ')}` }
  const values = [...new Set((request.values ?? []).map(value => value.trim()))]
  return readValues(operator, values, { type: 'node', key, operator, values })
}

function readValues(
  operator: Operator,
  values: readonly string[],
  constraint: SchedulingConstraint,
): Reading<SchedulingConstraint> {
  switch (operator) {
    case 'Exists':
    case 'DoesNotExist':
      return { value: { ...constraint, values: [] } }
    case 'Gt':
    case 'Lt':
      if (values.length === 1 && /^-?\d{1,18}$/.test(values[0] ?? '')) return { value: constraint }
      return { fault: `${operator} needs exactly one value, a whole number` }
    default:
      if (values.length === 0) return { fault: `${operator} needs at least one value` }
      if (values.every(isLabelValue)) return { value: constraint }
      return { fault: 'a value must be a label value: at most 63 letters, digits, "-", "_" or "."' }
  }
}
