/** A value that was read, or a sentence that says what would be accepted. */
export type Reading<T> = { readonly value: T } | { readonly fault: string }

export type QuantityInput = number | string | null | undefined

/** More than any machine has; a typo beyond it is refused instead of waiting for such a node for ever. */
const MAX_MILLICORES = 1_000_000_000n
const MAX_BYTES = BigInt(Number.MAX_SAFE_INTEGER)
/** Longest text looked at; keeps the exact arithmetic small. */
const MAX_TEXT = 40

const DECIMAL: Readonly<Record<string, number>> = { n: -9, u: -6, m: -3, '': 0, k: 3, M: 6, G: 9, T: 12, P: 15, E: 18 }
const BINARY: Readonly<Record<string, bigint>> = { Ki: 10n, Mi: 20n, Gi: 30n, Ti: 40n, Pi: 50n, Ei: 60n }
const QUANTITY = /^([+-]?)(\d+)(?:\.(\d*))?(?:([numkMGTPE]|[KMGTPE]i)|[eE]([+-]?\d{1,3}))?$/

interface Quantity {
  readonly negative: boolean
  /** The exact value is `over / under`. */
  readonly over: bigint
  readonly under: bigint
  readonly suffix: string
}

/** The grammar of Kubernetes' resource.Quantity, kept exact. */
function parseQuantity(text: string): Quantity | undefined {
  const [all, sign, whole = '', fraction = '', suffix = '', exponent = '0'] = QUANTITY.exec(text) ?? []
  if (all === undefined || text.length > MAX_TEXT) return undefined
  const ten = Number(exponent) + (DECIMAL[suffix] ?? 0) - fraction.length
  const digits = BigInt(whole + fraction) << (BINARY[suffix] ?? 0n)
  const over = ten > 0 ? digits * 10n ** BigInt(ten) : digits
  const under = ten < 0 ? 10n ** BigInt(-ten) : 1n
  return { negative: sign === '-' && digits !== 0n, over, under, suffix }
}

const rounded = (over: bigint, under: bigint): bigint => (2n * over + under) / (2n * under)

const CPU_ACCEPTED = 'cpu is a number of cores or a quantity from 1m to 1000000, such as 0.5, 2 or "500m"; 0 = no limit'

/** CPU as canonical text: whole cores (`2`) or millicores (`500m`), rounded to a millicore; null = no limit. */
export function readCpu(input: QuantityInput): Reading<string | null> {
  if (input === null || input === undefined) return { value: null }
  const quantity = parseQuantity(String(input))
  if (quantity === undefined || quantity.negative) return { fault: CPU_ACCEPTED }
  if (quantity.over === 0n) return { value: null }
  const exact = quantity.over * 1000n
  if (exact < quantity.under) return { fault: `less than a thousandth of a core: ${CPU_ACCEPTED}` }
  const millicores = rounded(exact, quantity.under)
  if (millicores > MAX_MILLICORES) return { fault: CPU_ACCEPTED }
  return { value: millicores % 1000n === 0n ? String(millicores / 1000n) : `${millicores}m` }
}

/** Millicores of a text that `readCpu` gave. */
export const millicores = (cpu: string): number => (cpu.endsWith('m') ? Number(cpu.slice(0, -1)) : Number(cpu) * 1000)

const MEMORY_ACCEPTED =
  'memory is a whole number of bytes or a quantity, such as 536870912, "512Mi" or "1.5Gi"; 0 = no limit'

/** Guesses what `512m`, `1 Gi` or `2GB` meant. */
function memoryHint(text: string): string {
  const [, digits, unit = ''] = /^\s*(\d+(?:\.\d+)?)\s*([kmgtp])i?b?\s*$/i.exec(text) ?? []
  return digits === undefined ? MEMORY_ACCEPTED : `did you mean "${digits}${unit.toUpperCase()}i"? ${MEMORY_ACCEPTED}`
}

/**
 * Memory in whole bytes, a fraction of a byte rounded to the nearest (`1.1Gi` is 1181116006); null = no limit.
 * A milli, micro or nano suffix is legal to Kubernetes and never what was meant: refused with a hint.
 */
export function readMemory(input: QuantityInput): Reading<number | null> {
  if (input === null || input === undefined) return { value: null }
  const text = String(input)
  const quantity = parseQuantity(text)
  if (quantity === undefined) return { fault: memoryHint(text) }
  if (['m', 'u', 'n'].includes(quantity.suffix)) {
    return { fault: `"${quantity.suffix}" means a fraction of a byte: ${memoryHint(text)}` }
  }
  if (quantity.negative) return { fault: MEMORY_ACCEPTED }
  if (quantity.over === 0n) return { value: null }
  if (quantity.suffix === '' && quantity.over % quantity.under !== 0n) {
    return { fault: `a byte cannot be divided: ${MEMORY_ACCEPTED}` }
  }
  const bytes = rounded(quantity.over, quantity.under)
  if (bytes < 1n || bytes > MAX_BYTES) return { fault: `not between 1 byte and 8 PiB: ${MEMORY_ACCEPTED}` }
  return { value: Number(bytes) }
}
