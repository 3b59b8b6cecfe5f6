import type { Written } from '../service/ports.ts'
import type { WorkloadObject } from './kinds.ts'

/** What the answer of a write says; an answer without these is no object of the API. */
export const writtenBy = ({ metadata }: WorkloadObject): Written => ({
  uid: metadata?.uid ?? '',
  version: metadata?.resourceVersion ?? '0',
  generation: metadata?.generation ?? null,
})
