/** One measured number. `ratio` = value / baseline. */
export interface Figure {
  readonly name: string
  readonly value: number
  readonly unit: string
  /** What the figure is to be: at most or at least. Absent: told for information. */
  readonly target?: { readonly max: number } | { readonly min: number }
  /** The same work done as barely as can be, in the same run. */
  readonly baseline?: { readonly value: number; readonly of: string }
  /** What the ratio to the baseline is to be at most. */
  readonly maxRatio?: number
}

export interface BenchOptions {
  /** A tenth of the size or less, to try a bench out; the targets stay. */
  readonly small: boolean
  /** Against the API server of KUBECONFIG where a bench can. */
  readonly cluster: boolean
}

/** One subject. It leaves nothing running. */
export type Bench = (options: BenchOptions) => Promise<readonly Figure[]>

/** Milliseconds of the clock that all processes of this machine share. */
export const now = (): number => Number(process.hrtime.bigint()) / 1e6

/** p50, p99 and the largest of numbers in any order. NaN for none. */
export function spread(values: ArrayLike<number>): { p50: number; p99: number; max: number; count: number } {
  const sorted = Float64Array.from(values).sort()
  const at = (part: number): number =>
    sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? Number.NaN
  return { p50: at(0.5), p99: at(0.99), max: at(1), count: sorted.length }
}

/** null where there is nothing to hold. */
export function isMet({ value, target, baseline, maxRatio }: Figure): boolean | null {
  const checks: boolean[] = []
  if (target !== undefined) checks.push('max' in target ? value <= target.max : value >= target.min)
  if (maxRatio !== undefined && baseline !== undefined) checks.push(value / baseline.value <= maxRatio)
  return checks.length === 0 ? null : checks.every(Boolean)
}

const digits = (value: number): string => {
  if (!Number.isFinite(value)) return '–'
  if (Math.abs(value) >= 100) return Math.round(value).toLocaleString('en')
  return String(Number(value.toPrecision(3)))
}

function targetOf({ target, maxRatio, unit }: Figure): string {
  const parts: string[] = []
  if (target !== undefined)
    parts.push('max' in target ? `≤ ${digits(target.max)} ${unit}` : `≥ ${digits(target.min)} ${unit}`)
  if (maxRatio !== undefined) parts.push(`≤ ${maxRatio} ×`)
  return parts.join(', ')
}

const HEAD = ['figure', 'value', 'target', 'baseline', 'ratio', 'ok']

/** One aligned table; numbers stand to the right. */
export function table(figures: readonly Figure[]): string {
  const rows = figures.map(figure => {
    const { name, value, unit, baseline } = figure
    const met = isMet(figure)
    return [
      name,
      `${digits(value)} ${unit}`.trim(),
      targetOf(figure),
      baseline === undefined ? '' : `${digits(baseline.value)} ${unit} (${baseline.of})`,
      baseline === undefined ? '' : digits(value / baseline.value),
      met === null ? '' : met ? 'yes' : 'NO',
    ]
  })
  const widths = HEAD.map((head, column) => Math.max(head.length, ...rows.map(row => row[column]?.length ?? 0)))
  const line = (cells: readonly string[]): string =>
    cells
      .map((cell, column) =>
        column === 1 || column === 4 ? cell.padStart(widths[column] ?? 0) : cell.padEnd(widths[column] ?? 0),
      )
      .join('  ')
      .trimEnd()
  return [line(HEAD), line(widths.map(width => '-'.repeat(width))), ...rows.map(line)].join('\n')
}
