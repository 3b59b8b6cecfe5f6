import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import type { Scope } from '../helpers/daemon.ts'

/** A line between daemon and cluster that can go dead. */
export interface Proxy {
  readonly port: number
  /** Nothing gets through any more, in neither direction, and nobody is told: connections stay, new ones are accepted and silent. */
  blackhole(): void
  /** Connections break and new ones are refused. */
  unplug(): Promise<void>
  /** New connections get through; those that were silent stay so. */
  restore(): Promise<void>
}

export async function startProxy(scope: Scope, target: number): Promise<Proxy> {
  const sockets = new Set<Socket>()
  let dead = false
  const server = createServer(client => {
    const upstream = connect(target, '127.0.0.1')
    for (const [from, to] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(from)
      let cut = dead
      from.on('data', chunk => {
        cut ||= dead
        if (!cut) to.write(chunk)
      })
      from.on('close', () => {
        sockets.delete(from)
        if (!cut) to.destroy()
      })
      from.on('error', () => from.destroy())
    }
  })
  const listen = async (port: number): Promise<void> => {
    server.listen(port, '127.0.0.1')
    await once(server, 'listening')
  }
  const unplug = async (): Promise<void> => {
    const closed = new Promise(resolve => server.close(resolve))
    for (const socket of sockets) socket.destroy()
    await closed
  }
  await listen(0)
  const { port } = server.address() as AddressInfo
  scope.after(async () => {
    if (server.listening) await unplug()
    for (const socket of sockets) socket.destroy()
  })
  return {
    port,
    blackhole: () => {
      dead = true
    },
    unplug,
    async restore() {
      dead = false
      if (!server.listening) await listen(port)
    },
  }
}
