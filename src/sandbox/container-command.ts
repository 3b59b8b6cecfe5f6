import { existsSync } from 'node:fs'
import type { KubeObject, Loose } from './types.ts'

/** Environment of the process: the container's own, plus PATH and HOSTNAME; nothing else of ours. */
export function environmentOf(pod: KubeObject, container: Loose): Record<string, string> {
  const env: Record<string, string> = {
    PATH: process.env.PATH ?? '/usr/local/bin:/usr/bin:/bin',
    HOSTNAME: pod.metadata.name,
  }
  for (const { name, value, valueFrom } of container.env ?? []) {
    env[name] = valueFrom?.fieldRef ? fieldOf(pod, valueFrom.fieldRef.fieldPath) : expand(String(value ?? ''), env)
  }
  return env
}

/** What is run: command then args, with `$(NAME)` replaced as Kubernetes does it. */
export function argumentsOf(container: Loose, env: Record<string, string>): string[] {
  return [...(container.command ?? []), ...(container.args ?? [])].map(argument => expand(String(argument), env))
}

/** The container's workingDir if this machine has it, else the fallback. */
export function directoryOf(container: Loose, fallback: string): string {
  return container.workingDir && existsSync(container.workingDir) ? container.workingDir : fallback
}

function expand(text: string, env: Record<string, string>): string {
  return text.replace(/\$\$|\$\(([A-Za-z_.-][\w.-]*)\)/g, (whole, name?: string) =>
    name === undefined ? '$' : (env[name] ?? whole),
  )
}

function fieldOf(pod: KubeObject, path: string): string {
  const fields: Record<string, unknown> = {
    'metadata.name': pod.metadata.name,
    'metadata.namespace': pod.metadata.namespace,
    'metadata.uid': pod.metadata.uid,
    'spec.nodeName': pod.spec.nodeName,
    'status.podIP': '127.0.0.1',
    'status.hostIP': '127.0.0.1',
  }
  return String(fields[path] ?? '')
}
