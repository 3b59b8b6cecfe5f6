import type { CreateRequest } from '../domain/workload-spec.ts'
import type { LogQuery, RuntimeApi, RuntimeListPage, RuntimeListQuery, WaitQuery } from './api.ts'
import type { Backends } from './backends.ts'
import type { LogService } from './log-service.ts'
import type { RuntimeReader } from './runtime-reader.ts'
import type { RuntimeVerbs } from './runtime-verbs.ts'
import type { InspectedRuntime, RuntimeView } from './runtime-view.ts'
import type { Scope } from './scope.ts'

export interface RuntimesOptions {
  readonly verbs: RuntimeVerbs
  readonly reader: RuntimeReader
  readonly logService: LogService
  readonly backends: Backends
}

/** The runtimes as http uses them: verbs that answer with the fresh resource, and reads. */
export class Runtimes implements RuntimeApi {
  readonly #options: RuntimesOptions

  constructor(options: RuntimesOptions) {
    this.#options = options
  }

  async create(scope: Scope, request: CreateRequest, idempotencyKey: string | null): Promise<RuntimeView> {
    return this.#options.reader.view(await this.#options.verbs.create(scope, request, idempotencyKey))
  }

  render(scope: Scope, request: CreateRequest): readonly unknown[] {
    const spec = this.#options.verbs.check(scope, request)
    return this.#options.backends.get(spec.runtime).render(spec, spec)
  }

  async start(scope: Scope, id: string): Promise<RuntimeView> {
    return this.#options.reader.view(await this.#options.verbs.verb(scope, id, 'start'))
  }

  async stop(scope: Scope, id: string): Promise<RuntimeView> {
    return this.#options.reader.view(await this.#options.verbs.verb(scope, id, 'stop'))
  }

  async remove(scope: Scope, id: string): Promise<RuntimeView> {
    return this.#options.reader.view(await this.#options.verbs.verb(scope, id, 'delete'))
  }

  async inspect(scope: Scope, id: string): Promise<InspectedRuntime> {
    return await this.#options.reader.inspect(scope, id)
  }

  list(scope: Scope, query: RuntimeListQuery): RuntimeListPage {
    return this.#options.reader.list(scope, query)
  }

  async wait(scope: Scope, id: string, query: WaitQuery): Promise<{ reached: boolean; runtime: RuntimeView }> {
    return await this.#options.reader.wait(scope, id, query)
  }

  async logs(scope: Scope, id: string, query: LogQuery) {
    return await this.#options.logService.read(scope, id, query)
  }

  monitored(scope: Scope): readonly string[] {
    return this.#options.reader.monitored(scope)
  }
}
