import type { AddressInfo } from 'node:net'
import Fastify from 'fastify'
import { answer } from './child.ts'

/** The same web framework with nothing behind it: answers these bytes to every path. */
const [, , body = ''] = process.argv
const app = Fastify()
app.get('/*', (_request, reply) => reply.type('application/json; charset=utf-8').send(body))
await app.listen({ host: '127.0.0.1', port: 0 })

answer({ url: () => `http://127.0.0.1:${(app.server.address() as AddressInfo).port}` })
