import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { Arrivals } from './arrivals.ts'
import { answer } from './child.ts'
import { now } from './figures.ts'

/** Readers of the event stream over plain sockets, run as a child: an HTTP client for each would be what is measured. */
const NEEDLE = '"runtimeId":"k8s-default|deployment|web-'
const LONGEST_NUMBER = 12

const open = new Set<Socket>()
const never = new Set<Socket>()
let arrivals = new Arrivals()

/** Notes each event in the text that came; what may be the beginning of one is carried over. */
function reader(): (chunk: Buffer) => void {
  let carried = ''
  return chunk => {
    const at = now()
    const text = carried + chunk.toString('latin1')
    let done = 0
    for (let found = text.indexOf(NEEDLE); found >= 0; found = text.indexOf(NEEDLE, done)) {
      const end = text.indexOf('"', found + NEEDLE.length)
      if (end < 0) break
      arrivals.note(Number(text.slice(found + NEEDLE.length, end)), at)
      done = end
    }
    carried = text.slice(Math.max(done, text.length - NEEDLE.length - LONGEST_NUMBER))
  }
}

async function join(url: string): Promise<Socket> {
  const { hostname, port, host } = new URL(url)
  const socket = connect(Number(port), hostname)
  socket.on('error', () => {})
  socket.write(`GET /v1/events/stream?after=now HTTP/1.1\r\nhost: ${host}\r\naccept: text/event-stream\r\n\r\n`)
  const [head] = (await once(socket, 'data')) as [Buffer]
  if (!head.toString('latin1').startsWith('HTTP/1.1 200')) throw new Error(`refused: ${head.toString('latin1')}`)
  return socket
}

answer({
  async read({ url, readers }: { url: string; readers: number }) {
    for (let n = 0; n < readers; n += 1) {
      const socket = await join(url)
      socket.on('data', reader())
      open.add(socket)
      socket.once('close', () => open.delete(socket))
    }
  },
  /** Readers that ask and then never take a byte. */
  async neverRead({ url, readers }: { url: string; readers: number }) {
    for (let n = 0; n < readers; n += 1) {
      const socket = await join(url)
      socket.pause()
      never.add(socket)
    }
  },
  count: () => arrivals.count,
  open: () => open.size,
  forget() {
    arrivals = new Arrivals()
  },
  delays: (made: { from: number; times: number[] }) => arrivals.delays(made),
  leave() {
    for (const socket of [...open, ...never]) socket.destroy()
  },
})
