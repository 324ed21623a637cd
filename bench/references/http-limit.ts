/**
 * What HTTP gives alone: the framework of the real server, no hooks, no log, and an answer that is there already.
 * `GET /fixed?bytes=32000` answers so many bytes.
 */
import fastify from 'fastify';
import { answerOrders } from '../child.ts';

const app = fastify({ logger: false });
const bodies = new Map<number, Buffer>();

app.get('/fixed', async (request, reply) => {
  const bytes = Number((request.query as { bytes?: string }).bytes);
  const body = bodies.get(bytes) ?? Buffer.alloc(bytes, 'x');
  bodies.set(bytes, body);
  return reply.header('Content-Type', 'application/json; charset=utf-8').send(body);
});

answerOrders<'listen', number>(async () => {
  await app.listen({ port: 0, host: '127.0.0.1' });
  const address = app.server.address();
  return typeof address === 'object' && address ? address.port : 0;
});
