import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { createStore, type SqliteStore, type StoreOptions } from '../../src/store/store.ts'

/** A folder of its own that goes with the test. */
export function tempFolder(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'runtimed-store-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** An empty store in a temporary folder, closed and removed after the test. */
export function tempStore(t: TestContext, options: StoreOptions = {}): SqliteStore & { readonly path: string } {
  const path = join(tempFolder(t), 'runtimed.db')
  const store = createStore(path, options)
  t.after(() => store.close())
  return Object.assign(store, { path })
}
