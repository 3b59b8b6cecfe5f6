const SUFFIXES: Record<string, number> = {
  n: 1e-9,
  u: 1e-6,
  m: 1e-3,
  '': 1,
  k: 1e3,
  M: 1e6,
  G: 1e9,
  T: 1e12,
  P: 1e15,
  E: 1e18,
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
  Ti: 2 ** 40,
  Pi: 2 ** 50,
  Ei: 2 ** 60,
}

const QUANTITY = /^([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)([numkMGTPE]|[KMGTPE]i)?$/

/** The value of a Kubernetes quantity (`500m`, `1Gi`, 2), or undefined when it is none. */
export function parseQuantity(value: unknown): number | undefined {
  const match = QUANTITY.exec(String(value))
  if (!match) return undefined
  return Number(match[1]) * SUFFIXES[match[2] ?? '']!
}
