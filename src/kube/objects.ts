import type {
  CoreV1Event,
  V1Deployment,
  V1Job,
  V1ObjectMeta,
  V1Pod,
  V1ReplicaSet,
  V1Scale,
  V1Service,
} from '@kubernetes/client-node'
import { RuntimeError } from '../errors.ts'

/**
 * The object as it is on the wire. The generated models say `Date` where JSON has RFC 3339 text; nobody here runs the
 * generated (de)serialiser, which costs more than JSON.parse and drops fields newer than itself.
 */
export type Wire<T> = T extends Date
  ? string
  : T extends readonly (infer Item)[]
    ? Wire<Item>[]
    : T extends object
      ? { [Key in keyof T]: Wire<T[Key]> }
      : T

export type ObjectMeta = Wire<V1ObjectMeta>
export type Deployment = Wire<V1Deployment>
export type Job = Wire<V1Job>
export type Pod = Wire<V1Pod>
export type Service = Wire<V1Service>
export type ReplicaSet = Wire<V1ReplicaSet>
export type ClusterEvent = Wire<CoreV1Event>
export type Scale = Wire<V1Scale>

/** The kinds we call, and their objects. */
export interface KubeObjects {
  Deployment: Deployment
  Job: Job
  Pod: Pod
  Service: Service
  ReplicaSet: ReplicaSet
  Event: ClusterEvent
}
export type KubeKind = keyof KubeObjects

interface Resource {
  readonly api: string
  readonly plural: string
}

export const RESOURCES: Readonly<Record<KubeKind, Resource>> = {
  Deployment: { api: '/apis/apps/v1', plural: 'deployments' },
  Job: { api: '/apis/batch/v1', plural: 'jobs' },
  Pod: { api: '/api/v1', plural: 'pods' },
  Service: { api: '/api/v1', plural: 'services' },
  ReplicaSet: { api: '/apis/apps/v1', plural: 'replicasets' },
  Event: { api: '/api/v1', plural: 'events' },
}

/** RFC 1123 subdomain: labels joined by single dots, so never `.`, `..`, empty, or anything with a slash or a percent sign. */
const SUBDOMAIN = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/

/**
 * One path segment out of a namespace or object name. Names are checked before any path is built: URL parsers resolve
 * dots however they are escaped, so `..` would address the parent and an empty name the whole collection.
 * Throws RUNTIME_ID_INVALID.
 */
export function segment(name: string): string {
  if (typeof name !== 'string' || name.length > 253 || !SUBDOMAIN.test(name)) {
    throw new RuntimeError(
      'RUNTIME_ID_INVALID',
      'cannot use this name in a call to the cluster: it is no RFC 1123 name; use lower-case letters, digits and hyphens',
    )
  }
  return encodeURIComponent(name)
}

/** Path of a collection; namespace null = all namespaces. */
export function collectionPath(kind: KubeKind, namespace: string | null): string {
  const { api, plural } = RESOURCES[kind]
  return namespace === null ? `${api}/${plural}` : `${api}/namespaces/${segment(namespace)}/${plural}`
}

/** Path of one object, or of one of its subresources. */
export function objectPath(kind: KubeKind, namespace: string, name: string, subresource?: 'scale' | 'log'): string {
  const path = `${collectionPath(kind, namespace)}/${segment(name)}`
  return subresource === undefined ? path : `${path}/${subresource}`
}
