import { type FieldError, RuntimeError } from '../errors.ts'

export const PULL_POLICIES = ['IfNotPresent', 'Always'] as const
export type PullPolicy = (typeof PULL_POLICIES)[number]

const HOST =
  '(?:[A-Za-z0-9](?:[-A-Za-z0-9]*[A-Za-z0-9])?(?:\\.[A-Za-z0-9](?:[-A-Za-z0-9]*[A-Za-z0-9])?)*|\\[[0-9a-fA-F:]+\\])(?::[0-9]+)?'
const STEP = '[a-z0-9]+(?:(?:\\.|_|__|-+)[a-z0-9]+)*'
const TAG = ':[A-Za-z0-9_][-A-Za-z0-9_.]{0,127}'
const DIGEST = '@[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}'
/** The reference grammar of the distribution specification: what a kubelet would answer with InvalidImageName is refused here. */
export const IMAGE_REFERENCE = new RegExp(`^(?:${HOST}/)?${STEP}(?:/${STEP})*(?:${TAG})?(?:${DIGEST})?$`)
const MAX_REFERENCE = 512

/** Null, or why this is no image reference. No registry is asked. */
export function imageFault(image: string): string | null {
  if (image === '') return 'an image is required, such as "registry/web:1.2"'
  if (image.length <= MAX_REFERENCE && IMAGE_REFERENCE.test(image)) return null
  return 'is no image reference: [host[:port]/]path[:tag][@digest] with a path in lower case, such as "registry/web:1.2"'
}

export const NEVER_REFUSED =
  'imagePullPolicy Never is refused: the nodes that may run this need not have the image, and then it would never start; use IfNotPresent or Always'

export type PullPolicyReading = { readonly value: PullPolicy } | { readonly fault: string; readonly refused: boolean }

/** Any case, blank is IfNotPresent. `refused` tells what policy forbids (422) from what means nothing (400). */
export function readPullPolicy(text: string | null | undefined): PullPolicyReading {
  const asked = (text ?? '').trim().toLowerCase()
  if (asked === '') return { value: 'IfNotPresent' }
  if (asked === 'never') return { fault: NEVER_REFUSED, refused: true }
  const value = PULL_POLICIES.find(policy => policy.toLowerCase() === asked)
  return value ? { value } : { fault: `imagePullPolicy must be one of ${PULL_POLICIES.join(', ')}`, refused: false }
}

/**
 * The image check of create, alone: syntax and policy, no registry is asked. Throws REQUEST_INVALID or IMAGE_REFUSED.
 */
export function preflightImage(request: { image: string; imagePullPolicy?: string }): { imagePullPolicy: PullPolicy } {
  const errors: FieldError[] = []
  const fault = imageFault(request.image.trim())
  if (fault) errors.push({ path: '/image', message: fault })
  const policy = readPullPolicy(request.imagePullPolicy)
  if ('value' in policy && errors.length === 0) return { imagePullPolicy: policy.value }
  if ('fault' in policy) errors.push({ path: '/imagePullPolicy', message: policy.fault })
  const refused = errors.length === 1 && 'fault' in policy && policy.refused
  throw new RuntimeError(
    refused ? 'IMAGE_REFUSED' : 'REQUEST_INVALID',
    `cannot accept the image: ${errors.map(error => error.message).join('; ')}`,
    { errors },
  )
}
