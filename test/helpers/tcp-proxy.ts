import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import type { Scope } from './daemon.ts'

/** A line to a server on this machine that can be cut in the ways real lines are. */
export interface TcpProxy {
  readonly port: number
  /** Open connections are reset and new ones refused. */
  refuse(): Promise<void>
  /** Nothing passes any more in either direction, and nobody is told; new connections are accepted and silent too. */
  silence(): void
  /** As at first. What was silenced stays silent for connections that are open. */
  restore(): Promise<void>
}

export async function startProxy(t: Scope, target: number): Promise<TcpProxy> {
  const sockets = new Set<Socket>()
  let silent = false
  let server: Server
  const track = (socket: Socket): Socket => {
    sockets.add(socket)
    return socket.on('close', () => sockets.delete(socket)).on('error', () => socket.destroy())
  }
  const pass = (from: Socket, to: Socket): void => {
    from.on('data', chunk => {
      if (silent || muted.has(from)) muted.add(from).add(to)
      else to.write(chunk)
    })
    from.on('close', () => to.destroy())
  }
  const muted = new Set<Socket>()
  const listen = async (port: number): Promise<number> => {
    server = createServer(client => {
      const upstream = track(connect(target, '127.0.0.1'))
      track(client)
      pass(client, upstream)
      pass(upstream, client)
    }).listen(port, '127.0.0.1')
    await once(server, 'listening')
    return (server.address() as AddressInfo).port
  }
  const refuse = async (): Promise<void> => {
    for (const socket of sockets) socket.destroy()
    if (!server.listening) return
    server.close()
    await once(server, 'close')
  }
  const port = await listen(0)
  t.after(refuse)
  return {
    port,
    refuse,
    silence() {
      silent = true
      for (const socket of sockets) muted.add(socket)
    },
    async restore() {
      silent = false
      if (!server.listening) await listen(port)
    },
  }
}
