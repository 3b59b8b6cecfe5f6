import assert from 'node:assert/strict'
import { type ErrorCode, isRuntimeError, type RuntimeError } from '../../src/errors.ts'

/** Runs what must be refused with that code, and returns the error for a closer look. */
export function refusalOf(code: ErrorCode, work: () => unknown): RuntimeError {
  try {
    work()
  } catch (error) {
    assert.ok(isRuntimeError(error, code), `expected ${code}, got ${String(error)}`)
    assert.match(error.message, /^cannot /)
    return error
  }
  throw new assert.AssertionError({ message: `expected ${code}, nothing was thrown` })
}

/** Paths of the faults of a refusal. */
export const pathsOf = (error: RuntimeError): string[] => error.errors.map(fault => fault.path)
