import { readFile } from 'node:fs/promises'
import { type ExecCredential, runExecPlugin } from './exec-credential.ts'
import type { ClusterAccess, PemSource } from './kube-config.ts'

/** TLS material in PEM; equal `id`s mean equal content. */
export interface TlsMaterial {
  readonly id: string
  readonly ca: string | null
  readonly cert: string | null
  readonly key: string | null
}

/** What one request is sent with. `version` names it to `refuse`. */
export interface Credential {
  readonly version: number
  readonly headers: Readonly<Record<string, string | string[]>>
  readonly tls: TlsMaterial
}

export interface CredentialOptions {
  /** How long what was read from files counts, ms. client-go and the rotation of bound tokens allow 60 s. */
  readonly rereadMs?: number
  readonly execTimeoutMs?: number
  readonly now?: () => number
}

/** A plugin's credential is renewed this long before it expires. */
const EXPIRY_MARGIN_MS = 30_000

/**
 * The credential to use now. Files are read again at most every `rereadMs` and after a refusal; a plugin runs once for all
 * who wait and is asked again shortly before its answer expires or when that was refused.
 * A file that cannot be read again leaves what was read before in force.
 */
export class Credentials {
  readonly #access: ClusterAccess
  readonly #rereadMs: number
  readonly #execTimeoutMs: number
  readonly #now: () => number
  #current: Credential | null = null
  #goodUntil = 0
  #loading: Promise<Credential> | null = null
  #exec: ExecCredential | null = null

  constructor(access: ClusterAccess, options: CredentialOptions = {}) {
    this.#access = access
    this.#rereadMs = options.rereadMs ?? 60_000
    this.#execTimeoutMs = options.execTimeoutMs ?? 10_000
    this.#now = options.now ?? Date.now
  }

  /** Throws an error without secrets when there is none and none can be had. */
  async get(): Promise<Credential> {
    if (this.#current && this.#now() < this.#goodUntil) return this.#current
    this.#loading ??= this.#load().finally(() => {
      this.#loading = null
    })
    return await this.#loading
  }

  /** The cluster refused this one: the next `get` reads it anew. Late refusals of an older one change nothing. */
  refuse(version: number): void {
    if (this.#current?.version !== version) return
    this.#goodUntil = 0
    this.#exec = null
  }

  async #load(): Promise<Credential> {
    try {
      const fresh = await this.#read()
      const same = this.#current && sameCredential(this.#current, fresh)
      this.#current = same ? this.#current : fresh
      this.#goodUntil = Math.min(this.#now() + this.#rereadMs, (this.#exec?.expiresAt ?? Infinity) - EXPIRY_MARGIN_MS)
      return this.#current as Credential
    } catch (error) {
      if (!this.#current) throw error
      this.#goodUntil = this.#now() + Math.min(1000, this.#rereadMs)
      return this.#current
    }
  }

  async #read(): Promise<Credential> {
    const exec = await this.#plugin()
    const [ca, cert, key, authorization] = await Promise.all([
      content(this.#access.ca),
      exec?.cert ?? content(this.#access.cert),
      exec?.key ?? content(this.#access.key),
      this.#authorization(exec),
    ])
    const headers: Record<string, string | string[]> = authorization ? { authorization } : {}
    if (this.#access.impersonate) {
      headers['impersonate-user'] = this.#access.impersonate.user
      if (this.#access.impersonate.groups.length > 0)
        headers['impersonate-group'] = [...this.#access.impersonate.groups]
    }
    const tls = { id: `${ca}\0${cert}\0${key}`, ca, cert, key }
    return { version: (this.#current?.version ?? 0) + 1, headers, tls }
  }

  async #plugin(): Promise<ExecCredential | null> {
    if (this.#access.credential.kind !== 'exec') return null
    const expired = this.#exec && (this.#exec.expiresAt ?? Infinity) - EXPIRY_MARGIN_MS <= this.#now()
    if (!this.#exec || expired) {
      this.#exec = await runExecPlugin(this.#access.credential.plugin, this.#execTimeoutMs)
    }
    return this.#exec
  }

  async #authorization(exec: ExecCredential | null): Promise<string | null> {
    const source = this.#access.credential
    switch (source.kind) {
      case 'none':
        return null
      case 'token':
        return `Bearer ${source.token}`
      case 'tokenFile':
        return `Bearer ${(await readFile(source.file, 'utf8')).trim()}`
      case 'basic':
        return `Basic ${Buffer.from(`${source.username}:${source.password}`).toString('base64')}`
      case 'exec':
        return exec?.token ? `Bearer ${exec.token}` : null
    }
  }
}

const content = async (source: PemSource | null): Promise<string | null> => {
  if (!source) return null
  return 'pem' in source ? source.pem : await readFile(source.file, 'utf8')
}

const sameCredential = (a: Credential, b: Credential): boolean =>
  a.tls.id === b.tls.id && a.headers.authorization === b.headers.authorization
