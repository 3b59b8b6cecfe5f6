import { connect, type Socket } from 'node:net'

export interface RawReply {
  readonly status: number
  readonly head: string
  readonly body: string
  /** The server closed the connection. */
  readonly closed: boolean
  readonly ms: number
}

/** Sends these bytes and reads what comes until the server closes, or the first reply is whole. */
export function raw(port: number, bytes: string | Buffer, { timeoutMs = 5_000 } = {}): Promise<RawReply> {
  return new Promise((resolve, reject) => {
    const began = performance.now()
    const socket = connect(port, '127.0.0.1')
    let text = ''
    const done = (closed: boolean): void => {
      clearTimeout(timer)
      socket.destroy()
      const [head = '', ...rest] = text.split('\r\n\r\n')
      const status = Number(/^HTTP\/1\.1 (\d{3})/.exec(head)?.[1] ?? 0)
      resolve({ status, head, body: rest.join('\r\n\r\n'), closed, ms: performance.now() - began })
    }
    const timer = setTimeout(() => done(false), timeoutMs)
    socket.on('connect', () => socket.write(bytes))
    socket.on('data', chunk => {
      text += chunk.toString('latin1')
      if (isWhole(text) && !/connection: close/i.test(text)) done(false)
    })
    socket.on('close', () => done(true))
    socket.on('error', error => (text === '' && !('code' in error) ? reject(error) : undefined))
  })
}

function isWhole(text: string): boolean {
  const end = text.indexOf('\r\n\r\n')
  const length = /content-length: (\d+)/i.exec(text)?.[1]
  return end !== -1 && length !== undefined && text.length - end - 4 >= Number(length)
}

/** A connected socket on which nothing is read until asked. */
export async function silentSocket(port: number): Promise<Socket> {
  const socket = connect(port, '127.0.0.1')
  socket.on('error', () => {})
  socket.pause()
  await new Promise<void>(resolve => socket.once('connect', () => resolve()))
  return socket
}

/** Polls until it holds; fails loudly otherwise. */
export async function eventually(what: string, holds: () => boolean, timeoutMs = 5_000): Promise<void> {
  const deadline = performance.now() + timeoutMs
  while (!holds()) {
    if (performance.now() > deadline) throw new Error(`not within ${timeoutMs} ms: ${what}`)
    await new Promise(resolve => setTimeout(resolve, 10))
  }
}
