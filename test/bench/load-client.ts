import { connect, type Socket } from 'node:net'
import { answer } from './child.ts'
import { now, spread } from './figures.ts'

/** A load of GET requests over kept-alive sockets, one in hand each, run as a child. */
interface Load {
  readonly url: string
  readonly paths: readonly string[]
  readonly connections: number
  readonly seconds: number
}

interface Counted {
  readonly took: number[]
  /** Replies that were not 200. */
  failed: number
}

const END_OF_HEAD = '\r\n\r\n'

/** Length of the reply at the head of the text, null while it is not all there. */
function replyLength(text: string): number | null {
  const head = text.indexOf(END_OF_HEAD)
  if (head < 0) return null
  const length = Number(/content-length: (\d+)/i.exec(text.slice(0, head))?.[1])
  const whole = head + END_OF_HEAD.length + length
  return text.length >= whole ? whole : null
}

function drive(socket: Socket, next: () => string | null, counted: Counted): Promise<void> {
  return new Promise((resolve, reject) => {
    let text = ''
    let sent = 0
    const ask = (): void => {
      const request = next()
      if (request === null) return void socket.end(resolve)
      sent = now()
      socket.write(request)
    }
    socket.on('error', reject)
    socket.on('data', chunk => {
      text += chunk.toString('latin1')
      const length = replyLength(text)
      if (length === null) return
      counted.took.push(now() - sent)
      if (!text.startsWith('HTTP/1.1 200')) counted.failed += 1
      text = text.slice(length)
      ask()
    })
    socket.once('connect', ask)
  })
}

answer({
  async run({ url, paths, connections, seconds }: Load) {
    const { hostname, port, host } = new URL(url)
    const requests = paths.map(path => `GET ${path} HTTP/1.1\r\nhost: ${host}\r\n\r\n`)
    const counted: Counted = { took: [], failed: 0 }
    const started = now()
    let n = 0
    const next = (): string | null =>
      now() - started > seconds * 1000 ? null : (requests[n++ % requests.length] as string)
    const sockets = Array.from({ length: connections }, () => connect(Number(port), hostname))
    await Promise.all(sockets.map(socket => drive(socket, next, counted)))
    return { seconds: (now() - started) / 1000, failed: counted.failed, ...spread(counted.took) }
  },
})
