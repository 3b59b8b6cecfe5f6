import assert from 'node:assert/strict'
import { poll, type Register, told, waiting } from './world.ts'

export function feedCases(test: Register): void {
  test('J12, P1, P2, B-70: the feed is numbered, filtered, and read on from a cursor', async w => {
    const label = w.name('feed')
    const labels = { feed: label }
    const selector = `labelSelector=${encodeURIComponent(`feed=${label}`)}`
    const start = (await w.client.api('GET', '/v1/events?after=now')).body.cursor
    const jobs = await Promise.all([1, 2, 3].map(() => w.job('exit 0', { labels })))
    for (const { id } of jobs) await w.state(id, 'stopped')
    const page = async (query: string) => (await w.client.api('GET', `/v1/events?${query}`)).body
    const all = await page(`after=${start}&${selector}`)
    assert.equal(all.items.length, 6)
    const seqs = all.items.map((event: { seq: number }) => event.seq)
    assert.deepEqual(
      seqs,
      [...new Set(seqs)].sort((a, b) => Number(a) - Number(b)),
    )
    const first = await page(`after=${start}&${selector}&limit=2`)
    const rest = await page(`after=${first.cursor}&${selector}`)
    assert.deepEqual([...first.items, ...rest.items], all.items)
    const exits = await page(`after=${start}&${selector}&type=ContainerExited`)
    assert.deepEqual(
      exits.items,
      all.items.filter((event: { type: string }) => event.type === 'ContainerExited'),
    )
    const own = await page(`after=0&runtimeId=${encodeURIComponent(jobs[0]?.id)}`)
    assert.deepEqual(own.items.map(told), ['Started 1 -', 'Exited 1 - 0'])
    for (const event of all.items) {
      assert.match(event.time, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
      assert.match(event.id, new RegExp(`^[a-z0-9]+-${event.seq}$`))
    }
    const expired = await w.client.api('GET', '/v1/events?after=other-1')
    assert.deepEqual([expired.status, expired.body.code], [410, 'CURSOR_EXPIRED'])
  })

  test('H6, I7, B-70: a stream tells each event once, in order, and goes on after Last-Event-ID', async w => {
    const made = await w.deployment(waiting, { start: false })
    const query = `?runtimeId=${encodeURIComponent(made.id)}`
    const live = readStream(w.client.url, `${query}&after=now`)
    await w.accepted(made.id, 'start')
    await w.state(made.id, 'running')
    await w.end(made.id)
    const told = await poll(
      () => live.events,
      events => events.length === 2,
    )
    live.close()
    assert.deepEqual(
      told.map(event => [event.event, event.data.type]),
      [
        ['ContainerStarted', 'ContainerStarted'],
        ['ContainerDeleted', 'ContainerDeleted'],
      ],
    )
    assert.deepEqual(
      told.map(event => event.id),
      told.map(event => event.data.id),
    )
    const again = readStream(w.client.url, query, { 'last-event-id': told[0]?.id ?? '' })
    await poll(
      () => again.events,
      events => events.length > 0,
    )
    again.close()
    assert.deepEqual(again.events[0]?.data, told[1]?.data)
  })

  test('I2, I7, I8: what is not ours makes no event and no row', async w => {
    const name = w.name('plain')
    const labels = { app: name, 'gobrave-workload': 'nobody' }
    const containers = [{ name: 'main', image: w.stage.environment.image, command: ['/bin/sh', '-c', 'exit 1'] }]
    const pod = { metadata: { name, labels }, spec: { containers, restartPolicy: 'Never' } }
    assert.equal((await w.send('POST', w.at('pods'), pod)).status, 201)
    await poll(
      () => w.send('GET', w.at('pods', name)),
      ({ body }) => body.status?.phase === 'Failed',
    )
    const made = await w.job('exit 0')
    await w.state(made.id, 'stopped')
    const events = await w.client.events()
    assert.deepEqual(
      events.filter(event => event.runtimeId.includes(name) || event.runtimeId.endsWith('|nobody')),
      [],
    )
    await w.send('DELETE', w.at('pods', name))
  })
}

interface Told {
  id: string
  event: string
  // biome-ignore lint/suspicious/noExplicitAny: an event as the wire shows it
  data: any
}

/** Reads a server-sent stream in the background. */
function readStream(url: string, query: string, headers: Record<string, string> = {}) {
  const events: Told[] = []
  const leave = new AbortController()
  const read = async () => {
    const response = await fetch(`${url}/v1/events/stream${query}`, { headers, signal: leave.signal })
    let text = ''
    for await (const chunk of response.body ?? []) {
      text += new TextDecoder().decode(chunk)
      const blocks = text.split('\n\n')
      text = blocks.pop() ?? ''
      for (const block of blocks) {
        const fields = Object.fromEntries(block.split('\n').map(line => line.split(/: ?(.*)/s, 2)))
        if (fields.data) events.push({ id: fields.id ?? '', event: fields.event ?? '', data: JSON.parse(fields.data) })
      }
    }
  }
  read().catch(() => {})
  return { events, close: () => leave.abort() }
}
