import type { Loose } from './types.ts'

/** Why an image cannot be had, in the runtime's words; undefined when it can. Only registry hosts ending in `.invalid` fail. */
export function pullFailure(container: Loose): { reason: string; message: string } | undefined {
  const image = String(container.image)
  const host = image.split('/')[0]!.split(':')[0]!
  if (!image.includes('/') || !host.endsWith('.invalid')) return undefined
  if (container.imagePullPolicy === 'Never') {
    return {
      reason: 'ErrImageNeverPull',
      message: `Container image "${image}" is not present with pull policy of Never`,
    }
  }
  const path = image.slice(image.indexOf('/') + 1)
  const [, repository, tag] = /^(.*?)(?::([^/:@]+)|@(.+))?$/.exec(path) as unknown as [
    string,
    string,
    string | undefined,
  ]
  const url = `https://${image.split('/')[0]}/v2/${repository}/manifests/${tag ?? 'latest'}`
  return {
    reason: 'ErrImagePull',
    message: `failed to pull and unpack image "${image}": failed to resolve reference "${image}": failed to do request: Head "${url}": dial tcp: lookup ${host}: no such host`,
  }
}
