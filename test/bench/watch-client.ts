import { Arrivals } from './arrivals.ts'
import { answer } from './child.ts'

/** A bare watch of Deployments, run as a child: what the daemon sees, without a daemon. */
const arrivals = new Arrivals()

function take(line: string): void {
  const { object } = JSON.parse(line) as { object: { metadata: { name: string } } }
  arrivals.note(Number(object.metadata.name.slice('web-'.length)))
}

async function follow(body: AsyncIterable<Uint8Array>): Promise<void> {
  const decoder = new TextDecoder()
  let carried = ''
  for await (const chunk of body) {
    const lines = (carried + decoder.decode(chunk, { stream: true })).split('\n')
    carried = lines.pop() ?? ''
    for (const line of lines) take(line)
  }
}

answer({
  async watch(url: string) {
    const { body } = await fetch(`${url}/apis/apps/v1/namespaces/default/deployments?watch=true`)
    if (body === null) throw new Error('a watch without a body')
    void follow(body)
  },
  delays: (made: { from: number; times: number[] }) => arrivals.delays(made),
})
