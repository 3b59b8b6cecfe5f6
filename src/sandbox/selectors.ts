import type { Resource } from './resources.ts'
import { badRequest } from './status-error.ts'
import type { KubeObject, Loose } from './types.ts'

export type Predicate = (object: KubeObject) => boolean

const NAME = /^([a-z0-9]([-a-z0-9.]*[a-z0-9])?\/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$/
const VALUE = /^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$/

interface Requirement {
  key: string
  operator: 'In' | 'NotIn' | 'Exists' | 'DoesNotExist' | 'Gt' | 'Lt'
  values: string[]
}

/** Parses `a=b,c!=d,e in (f,g),!h`; throws 400 with the words of the API server's parser. */
export function parseLabelSelector(text: string): Predicate | undefined {
  if (text.trim() === '') return undefined
  const requirements = splitOutsideBrackets(text).map(parseRequirement)
  return object => requirements.every(requirement => holds(requirement, object.metadata.labels ?? {}))
}

/** Does a `matchLabels`/`matchExpressions` selector of a spec hold for these labels? An absent selector selects nothing. */
export function matchesSelector(selector: Loose, labels: Record<string, string> | undefined): boolean {
  if (!selector) return false
  const own = labels ?? {}
  for (const [key, value] of Object.entries(selector.matchLabels ?? {})) if (own[key] !== value) return false
  return matchesExpressions(selector.matchExpressions, own)
}

/** All expressions hold; `operator` as in node affinity and label selectors. */
export function matchesExpressions(expressions: Loose[] | undefined, labels: Record<string, string>): boolean {
  return (expressions ?? []).every(expression => holds({ ...expression, values: expression.values ?? [] }, labels))
}

/** The text of a selector, as `status.selector` of a scale shows it. */
export function selectorText(selector: Loose): string {
  const labels = Object.entries(selector?.matchLabels ?? {}).map(([key, value]) => `${key}=${value}`)
  return labels.sort().join(',')
}

/** Parses `metadata.name=x,status.phase!=Running`; throws 400 on a field that resource cannot be selected by. */
export function parseFieldSelector(text: string, resource: Resource): Predicate | undefined {
  if (text.trim() === '') return undefined
  const allowed = new Set(['metadata.name', 'metadata.namespace', ...resource.fields])
  const terms = text.split(',').map(term => {
    const match = /^([^=!]+)(==|=|!=)(.*)$/.exec(term.trim())
    if (!match) throw badRequest(`invalid selector: '${text}'; can't understand '${term}'`)
    const [, path, operator, value] = match as unknown as [string, string, string, string]
    if (!allowed.has(path)) {
      throw badRequest(
        `Unable to find "${resource.group ? `${resource.group}/` : ''}${resource.version}, Resource=${resource.plural}" that match label selector "", field selector "${text}": field label not supported: ${path}`,
      )
    }
    return { path: path.split('.'), negate: operator === '!=', value }
  })
  return object => terms.every(term => (String(at(object, term.path) ?? '') === term.value) !== term.negate)
}

function at(object: Loose, path: string[]): Loose {
  return path.reduce((value, key) => value?.[key], object)
}

function splitOutsideBrackets(text: string): string[] {
  return text.split(/,(?![^(]*\))/)
}

function parseRequirement(text: string): Requirement {
  const term = text.trim()
  const set = /^(\S+)\s+(in|notin)\s*\(([^)]*)\)$/.exec(term)
  if (set) {
    const values = set[3]!.split(',').map(value => checkedValue(value.trim()))
    return { key: checkedName(set[1]!), operator: set[2] === 'in' ? 'In' : 'NotIn', values }
  }
  const bare = /^(!?)\s*([^=!<>\s]+)$/.exec(term)
  if (bare) return { key: checkedName(bare[2]!), operator: bare[1] ? 'DoesNotExist' : 'Exists', values: [] }
  const pair = /^([^=!<>\s]+)\s*(==|=|!=|>|<)\s*(.*)$/.exec(term)
  if (!pair) throw badRequest(`unable to parse requirement: found '${term}', expected: identifier`)
  const [, key, operator, value] = pair as unknown as [string, string, string, string]
  if (/^[=!<>]/.test(value)) throw badRequest(`unable to parse requirement: found '${value[0]}', expected: identifier`)
  const names = { '=': 'In', '==': 'In', '!=': 'NotIn', '>': 'Gt', '<': 'Lt' } as const
  return { key: checkedName(key), operator: names[operator as keyof typeof names], values: [checkedValue(value)] }
}

function checkedName(name: string): string {
  if (NAME.test(name)) return name
  throw badRequest(
    `unable to parse requirement: <nil>: Invalid value: "${name}": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')`,
  )
}

function checkedValue(value: string): string {
  if (VALUE.test(value) && value.length <= 63) return value
  throw badRequest(
    `unable to parse requirement: values[0][key]: Invalid value: "${value}": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')`,
  )
}

function holds({ key, operator, values }: Requirement, labels: Record<string, string>): boolean {
  const value = labels[key]
  switch (operator) {
    case 'In':
      return value !== undefined && values.includes(value)
    case 'NotIn':
      return value === undefined || !values.includes(value)
    case 'Exists':
      return value !== undefined
    case 'DoesNotExist':
      return value === undefined
    case 'Gt':
      return value !== undefined && Number(value) > Number(values[0])
    case 'Lt':
      return value !== undefined && Number(value) < Number(values[0])
    default:
      return false
  }
}
