/**
 * What HTTP gives alone: an answer that is there already, `GET /fixed?bytes=32000`, in as many processes as the real server
 * has. By the framework of the real server with nothing else; or, with a database, by the real server itself with all that
 * it does for every request (headers, limits, metrics, a line in the log), but with nothing to look up.
 */
import cluster from 'node:cluster';
import { once } from 'node:events';
import { setFlagsFromString } from 'node:v8';
import fastify, { type FastifyInstance } from 'fastify';
import { createServer } from '../../src/api/server/server.ts';
import { HEAP_GROWTH_FLAG } from '../../src/cli/commands/serve-command.ts';
import { createLog } from '../../src/cli/output/log.ts';
import { openStore } from '../../src/store/store.ts';
import { answerOrders } from '../child.ts';

export interface HttpLimitOrder {
  readonly processes: number;
  /** Of the real server; absent: the framework alone. */
  readonly databaseUrl?: string;
}

const URL_VARIABLE = 'BENCH_DATABASE_URL';

async function listen(databaseUrl: string | undefined): Promise<number> {
  const app = databaseUrl === undefined ? fastify({ logger: false }) : await realServer(databaseUrl);
  const bodies = new Map<number, Buffer>();
  app.get('/fixed', async (request, reply) => {
    const [, bytes] = /bytes=(\d+)/.exec(request.url) ?? [];
    const size = Number(bytes);
    const body = bodies.get(size) ?? Buffer.alloc(size, 'x');
    bodies.set(size, body);
    return reply.header('Content-Type', 'application/json; charset=utf-8').send(body);
  });
  await app.listen({ port: 0, host: '127.0.0.1' });
  const address = app.server.address();
  return typeof address === 'object' && address ? address.port : 0;
}

async function realServer(url: string): Promise<FastifyInstance> {
  setFlagsFromString(HEAP_GROWTH_FLAG);
  const store = await openStore({ place: { url } });
  return createServer({ store, version: 'bench', log: createLog('info', process.stderr, process.env, true) });
}

if (cluster.isWorker) await listen(process.env[URL_VARIABLE]);
else {
  answerOrders<HttpLimitOrder, number>(async ({ processes, databaseUrl }) => {
    if (processes === 1) return listen(databaseUrl);
    const environment = databaseUrl === undefined ? {} : { [URL_VARIABLE]: databaseUrl };
    const ports = await Promise.all(
      Array.from({ length: processes }, async () => {
        const [{ port }] = await once(cluster.fork(environment), 'listening');
        return port as number;
      }),
    );
    return ports[0] ?? 0;
  });
}
