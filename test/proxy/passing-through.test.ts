// @module-tag slow: starts two servers and a proxy
/** What the documented configurations of nginx, HAProxy and Caddy let through, and what they do not. */
import { readFileSync } from 'node:fs';
import { get, type IncomingMessage, type RequestOptions } from 'node:http';
import { pino } from 'pino';
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { createServer } from '../../src/api/server/server.ts';
import { readStream, until } from '../api/live/live-server.ts';
import { buildProgram } from '../cli/program.ts';
import { openTestStore } from '../database.ts';
import { makeMessage, makeSnapshot } from '../fixtures.ts';
import { startTwoServers } from './lanescan-servers.ts';
import { isInstalled, type ProxyName, startProxy } from './proxies.ts';

beforeAll(buildProgram);

async function startBehind(name: ProxyName) {
  const store = await openTestStore();
  onTestFinished(() => store.close());
  await store.apply([makeSnapshot(makeMessage({ number: 1 }))]);
  const servers = await startTwoServers(store.url);
  const proxy = await startProxy(name, [servers[0].port, servers[1].port]);
  return { store, servers, proxy };
}

/** Sends the path as it stands. */
function ask(port: number, path: string, options: RequestOptions = {}): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const request = get({ host: '127.0.0.1', port, path, agent: false, ...options }, (answer) => {
      answer.on('error', reject);
      answer.on('end', () => resolve(answer));
      answer.resume();
    });
    request.on('error', reject);
  });
}

describe.each(['nginx', 'haproxy', 'caddy'] as const)('%s', (name) => {
  test.skipIf(!isInstalled(name))(
    'passes on what Lanescan answers, and keeps /metrics to itself',
    async () => {
      const { store, servers, proxy } = await startBehind(name);

      // Every spelling under which Lanescan itself answers with its metrics.
      for (const path of [
        '/metrics',
        '//metrics',
        '/metrics/',
        '/%6detrics',
        '/metri%63s//',
        '/metrics?a=1',
      ]) {
        expect((await ask(proxy.port, path)).statusCode, path).toBe(403);
      }
      for (const path of ['//metrics', '/metrics/', '/%6detrics']) {
        expect((await ask(Number(servers[0].port), path)).statusCode, path).toBe(200);
      }

      // The longest URL and header that Lanescan reads: the rejection of the value is its own.
      const long = await ask(proxy.port, `/v2/messages?cursor=${'A'.repeat(27_900)}`);
      expect(long.statusCode).toBe(400);
      expect(long.headers['x-request-id']).toBeDefined();
      const wide = await ask(proxy.port, '/v2/messages', { headers: { 'X-Filler': 'a'.repeat(50_000) } });
      expect(wide.statusCode).toBe(200);

      // A client may claim any address; Lanescan believes the one that the proxy saw.
      const claimed = { localAddress: '127.0.0.2', headers: { 'X-Forwarded-For': '203.0.113.9' } };
      const { headers } = await ask(proxy.port, '/v2/messages?limit=1', claimed);
      const line = () =>
        servers
          .flatMap((server) => server.log().split('\n'))
          .find((entry) => entry.includes(`${headers['x-request-id']}`));
      await until(() => line() !== undefined);
      expect(JSON.parse(line() ?? '')).toMatchObject({ client: '127.0.0.2' });

      // An event arrives while the stream stays open and nothing follows that would fill a buffer.
      const reader = await readStream(`${proxy.url}/v2/messages/stream`);
      const ended = reader.ended.then(() => 'ended');
      for (const number of [2, 3]) {
        await store.apply([makeSnapshot(makeMessage({ number }))]);
        await until(() => reader.hasReached(number));
      }
      expect(await Promise.race([ended, Promise.resolve('open')])).toBe('open');
      expect(reader.positions).toEqual([2, 3]);
    },
  );
});

test('nginx closes an idle connection before Lanescan does', async () => {
  const store = await openTestStore();
  onTestFinished(() => store.close());
  const app = createServer({ store, version: '0.0.0-test', log: pino({ level: 'silent' }) });
  onTestFinished(() => app.close());
  const file = readFileSync(new URL('../../docs/operations/nginx.conf', import.meta.url), 'utf8');
  const seconds = Number(/upstream lanescan \{[^}]*\n\s+keepalive_timeout (\d+)s;/.exec(file)?.[1]);
  expect(seconds).toBeGreaterThan(0);
  expect(app.server.keepAliveTimeout).toBeGreaterThan((seconds + 5) * 1000);
});
