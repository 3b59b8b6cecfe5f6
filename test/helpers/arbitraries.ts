import fc from 'fast-check'

const INNER = 'abcdefghijklmnopqrstuvwxyz0123456789-'
const OUTER = 'abcdefghijklmnopqrstuvwxyz0123456789'

/** Every DNS label of at most that length can come out. */
export const labels = (maxLength: number): fc.Arbitrary<string> =>
  fc
    .tuple(
      fc.constantFrom(...OUTER),
      fc.string({ unit: fc.constantFrom(...INNER), maxLength: maxLength - 2 }),
      fc.constantFrom('', ...OUTER),
    )
    .map(([first, middle, last]) => (last === '' ? `${first}${middle}`.replace(/-+$/, '') : `${first}${middle}${last}`))
