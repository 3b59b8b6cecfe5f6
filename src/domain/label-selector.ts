import { RuntimeError } from '../errors.ts'
import { isLabelKey, isLabelValue } from './labels.ts'

type Requirement =
  | { readonly key: string; readonly test: 'exists' | 'absent' }
  | { readonly key: string; readonly test: 'in' | 'notin'; readonly values: ReadonlySet<string> }
  | { readonly key: string; readonly test: 'gt' | 'lt'; readonly bound: bigint }

export interface LabelSelector {
  /** As Kubernetes: all requirements hold; `!=` and `notin` hold for what lacks the label as well. */
  matches(labels: Readonly<Record<string, string>>): boolean
}

const TOKEN = /[ \t\r\n]*(==|!=|[=!<>(),]|[^ \t\r\n=!<>(),]+)/y
const END = ''

function refuse(what: string): never {
  throw new RuntimeError(
    'SELECTOR_INVALID',
    `cannot read the label selector: ${what}; accepted are a=b, a==b, a!=b, a in (x,y), a notin (x), a, !a, a>1, a<1, joined by ","`,
  )
}

function tokenise(text: string): string[] {
  const tokens: string[] = []
  const end = text.trimEnd().length
  TOKEN.lastIndex = 0
  while (TOKEN.lastIndex < end) {
    const [, token] = TOKEN.exec(text) ?? refuse('it has a character that belongs nowhere')
    tokens.push(token ?? END)
  }
  return tokens
}

/** The text of a selector with its place in it. Reads one token at a time; past the end every token is END. */
class Tokens {
  #at = 0
  readonly #tokens: readonly string[]

  constructor(text: string) {
    this.#tokens = tokenise(text)
  }

  peek(): string {
    return this.#tokens[this.#at] ?? END
  }

  next(): string {
    const token = this.peek()
    this.#at += 1
    return token
  }

  /** Takes the token if it comes next. */
  take(token: string): boolean {
    if (this.peek() !== token) return false
    this.#at += 1
    return true
  }
}

/**
 * Reads Kubernetes' label selector syntax; blank selects everything. A key or value that no label can have is refused
 * as a fault rather than never matching. Throws SELECTOR_INVALID.
 */
export function parseLabelSelector(text: string): LabelSelector {
  const tokens = new Tokens(text)
  const requirements: Requirement[] = []
  if (tokens.peek() !== END) {
    do requirements.push(readRequirement(tokens))
    while (tokens.take(','))
  }
  if (tokens.peek() !== END) refuse(`"," is missing before ${JSON.stringify(tokens.peek().slice(0, 80))}`)
  return { matches: labels => requirements.every(requirement => holds(requirement, labels)) }
}

function readRequirement(tokens: Tokens): Requirement {
  if (tokens.take('!')) return { key: readKey(tokens), test: 'absent' }
  const key = readKey(tokens)
  if (tokens.peek() === END || tokens.peek() === ',') return { key, test: 'exists' }
  const operator = tokens.next()
  switch (operator) {
    case '=':
    case '==':
      return { key, test: 'in', values: new Set([readValue(tokens)]) }
    case '!=':
      return { key, test: 'notin', values: new Set([readValue(tokens)]) }
    case 'in':
    case 'notin':
      return { key, test: operator, values: readValues(tokens) }
    case '>':
      return { key, test: 'gt', bound: readBound(tokens) }
    case '<':
      return { key, test: 'lt', bound: readBound(tokens) }
    default:
      return refuse(`${JSON.stringify(operator.slice(0, 80))} is no operator`)
  }
}

function readKey(tokens: Tokens): string {
  const key = tokens.next()
  return isLabelKey(key) ? key : refuse(`${JSON.stringify(key.slice(0, 80))} is no label name`)
}

const isWord = (token: string): boolean => token !== END && !/^(?:==|!=|[=!<>(),])$/.test(token)

/** A value may be empty, as in `a=`. */
function readValue(tokens: Tokens): string {
  const value = isWord(tokens.peek()) ? tokens.next() : ''
  return isLabelValue(value) ? value : refuse(`${JSON.stringify(value.slice(0, 80))} is no label value`)
}

function readValues(tokens: Tokens): ReadonlySet<string> {
  if (!tokens.take('(')) refuse('"(" is missing after in or notin')
  if (tokens.peek() === ')') refuse('in and notin need at least one value')
  const values = new Set<string>()
  do values.add(readValue(tokens))
  while (tokens.take(','))
  if (!tokens.take(')')) refuse('")" is missing')
  return values
}

function readBound(tokens: Tokens): bigint {
  const value = readValue(tokens)
  return integer(value) ?? refuse('> and < need a whole number')
}

const integer = (text: string): bigint | undefined => (/^\d{1,18}$/.test(text) ? BigInt(text) : undefined)

function holds(requirement: Requirement, labels: Readonly<Record<string, string>>): boolean {
  const value = Object.hasOwn(labels, requirement.key) ? labels[requirement.key] : undefined
  switch (requirement.test) {
    case 'exists':
      return value !== undefined
    case 'absent':
      return value === undefined
    case 'in':
      return value !== undefined && requirement.values.has(value)
    case 'notin':
      return value === undefined || !requirement.values.has(value)
    case 'gt':
    case 'lt': {
      const number = value === undefined ? undefined : integer(value)
      if (number === undefined) return false
      return requirement.test === 'gt' ? number > requirement.bound : number < requirement.bound
    }
  }
}
