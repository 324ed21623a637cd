/**
 * What HTTP gives alone: the framework of the real server, no hooks, no log, and an answer that is there already, in as
 * many processes as the real server has. `GET /fixed?bytes=32000` answers so many bytes.
 */
import cluster from 'node:cluster';
import { once } from 'node:events';
import fastify from 'fastify';
import { answerOrders } from '../child.ts';

async function listen(): Promise<number> {
  const app = fastify({ logger: false });
  const bodies = new Map<number, Buffer>();
  app.get('/fixed', async (request, reply) => {
    const bytes = Number((request.query as { bytes?: string }).bytes);
    const body = bodies.get(bytes) ?? Buffer.alloc(bytes, 'x');
    bodies.set(bytes, body);
    return reply.header('Content-Type', 'application/json; charset=utf-8').send(body);
  });
  await app.listen({ port: 0, host: '127.0.0.1' });
  const address = app.server.address();
  return typeof address === 'object' && address ? address.port : 0;
}

if (cluster.isWorker) await listen();
else {
  answerOrders<{ processes: number }, number>(async ({ processes }) => {
    if (processes === 1) return listen();
    const ports = await Promise.all(
      Array.from({ length: processes }, async () => {
        const [{ port }] = await once(cluster.fork(), 'listening');
        return port as number;
      }),
    );
    return ports[0] ?? 0;
  });
}
