/** A kubeconfig for the sandbox, as JSON (which every YAML reader takes). */
export function kubeconfigText(url: string, token: string | undefined): string {
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'sandbox',
    clusters: [{ name: 'sandbox', cluster: { server: url, 'insecure-skip-tls-verify': true } }],
    users: [{ name: 'sandbox', user: token === undefined ? {} : { token } }],
    contexts: [{ name: 'sandbox', context: { cluster: 'sandbox', user: 'sandbox', namespace: 'default' } }],
  }
  return `${JSON.stringify(config, null, 2)}\n`
}
