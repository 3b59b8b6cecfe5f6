import * as z from 'zod'

/** A reply's integer. `int64` where it can outgrow 32 bits. */
export const int32 = () => z.int().meta({ format: 'int32' })
export const int64 = () => z.int().meta({ format: 'int64' })

/** A reply's time: RFC 3339 UTC with milliseconds. */
export const time = () => z.iso.datetime({ precision: 3 })

/** A request's whole number within bounds. */
export const count = (minimum: number, maximum: number) => z.int().min(minimum).max(maximum).meta({ format: 'int32' })

/** A query's whole number, written in plain digits: no sign, no exponent, no hexadecimal, never blank. */
export const queryInt = (minimum: number, maximum: number) =>
  z
    .string()
    .regex(/^[0-9]{1,10}$/, `must be a whole number from ${minimum} to ${maximum}`)
    .transform(Number)
    .pipe(z.int().min(minimum).max(maximum))
    .meta({ type: 'integer', format: 'int32', minimum, maximum })

export const queryFlag = () =>
  z.stringbool({ truthy: ['true', '1'], falsy: ['false', '0'], case: 'sensitive' }).meta({ type: 'boolean' })

/** A query parameter that may stand once or several times. */
export const repeatable = <T extends z.ZodType>(item: T) =>
  z.preprocess(
    value => (value === undefined || Array.isArray(value) ? value : [value]),
    z.array(item).min(1).max(100).optional(),
  )

/** A body's text in which a blank counts as absent (wire.md, first paragraph). */
export const blankable = <T extends z.ZodType>(inner: T) =>
  z.preprocess(value => (typeof value === 'string' && value.trim() === '' ? undefined : value), inner.optional())

/** A text of any case that stands for one of these words. */
export const anyCase = <T extends z.ZodType>(words: readonly string[], inner: T) =>
  blankable(
    z.preprocess(value => {
      if (typeof value !== 'string') return value
      return words.find(word => word.toLowerCase() === value.trim().toLowerCase()) ?? value
    }, inner),
  )

export const NoQuery = z.strictObject({})

/** A body that says nothing: none at all, or `{}`. */
export const NoBody = z.preprocess(value => value ?? undefined, z.strictObject({}).meta({ id: 'Nothing' }).optional())
