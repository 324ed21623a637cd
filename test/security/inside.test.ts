// @module-tag slow: waits until every configured URL has failed
/**
 * What the inside looks like stays inside: hosts, ports, paths and keys of everything that is configured, all of it failing,
 * and every path of the HTTP surface searched for them.
 */
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { problemKinds, problemSentences } from '../../src/domain/networks/indexing-problem.ts';
import { findNetwork, networks } from '../../src/domain/networks/networks.ts';
import type { Store } from '../../src/store/store.ts';
import { buildProgram, freshFolder, type Running, start } from '../cli/program.ts';
import { openTestStore } from '../database.ts';
import { makeMessage, makeSnapshot } from '../fixtures.ts';

/** Each place has its own host and port, so that a leak names where it came from. `.invalid` never resolves. */
const planted = {
  rpc: { host: 'planted-rpc.invalid', port: '54321' },
  verifier: { host: 'planted-verifier.invalid', port: '54322' },
  hook: { host: 'planted-hook.invalid', port: '54323' },
  replica: { host: 'planted-replica.invalid', port: '54324' },
  mirror: { host: 'planted-mirror.invalid', port: '54325' },
  closed: { host: '127.0.0.1', port: '54326' },
} as const;
const PATH = 'planted-path';
const KEY = 'planted-key';
const urlOf = ({ host, port }: { readonly host: string; readonly port: string }) =>
  `http://planted-user:planted-password@${host}:${port}/${PATH}?key=${KEY}`;
const hosts = Object.values(planted)
  .map(({ host }) => host)
  .filter((host) => host !== '127.0.0.1');
const ports = Object.values(planted).map(({ port }) => port);
const keys = [PATH, KEY, 'planted-user', 'planted-password', 'planted-db'];

const NETWORK = 'ethereum-testnet-sepolia';
/** Whose problems an older version stored, without a kind. */
const OLD = 'ethereum-mainnet';
const message = makeMessage({ number: 1 });

let store: Store & { readonly url: string };
let server: Running;
let url: string;

beforeAll(async () => {
  await buildProgram();
  store = await openTestStore();
  await store.apply([makeSnapshot(message)]);
  await store.mirror.heartbeat(`${urlOf(planted.mirror).replace(/planted-user:planted-password@/, '')}`);
  const config = path.join(freshFolder(), 'lanescan.yaml');
  writeFileSync(
    config,
    JSON.stringify({
      networks: [
        {
          network: NETWORK,
          rpc: [urlOf(planted.rpc), urlOf(planted.closed)],
          routers: ['0x0BF3dE8c5D3e8A2B34D2BEeB17ABfCeBaf363A59'],
          verifierResults: urlOf(planted.verifier),
        },
      ],
      webhooks: [
        {
          name: 'ops',
          url: `http://${planted.hook.host}:${planted.hook.port}/${PATH}?key=${KEY}`,
          // biome-ignore lint/suspicious/noTemplateCurlyInString: that is how the file has it
          secret: '${OPS}',
          allowPrivate: true,
        },
      ],
    }),
  );
  server = start(['serve', '--index', '--port', '0', '--config', config], {
    env: {
      DATABASE_URL: store.url,
      DATABASE_REPLICA_URL: `postgresql://planted-user:planted-password@${planted.replica.host}:${planted.replica.port}/planted-db`,
      OPS: `whsec_${Buffer.from('x'.repeat(32)).toString('base64')}`,
    },
  });
  [, url = ''] = await server.untilSaid(/listens on (http:\/\/127\.0\.0\.1:\d+)/);
  // Facts of every status, for the webhook and the stream to fail with.
  await store.webhooks.rewind('ops', '0');
  const old = networks.find(({ name }) => name === OLD);
  await store.index.reportProgress(old?.selector ?? '', null, {
    kind: 'of another version' as 'unknown',
    text: `${planted.rpc.host}:${planted.rpc.port}: eth_chainId: no connection to ${urlOf(planted.rpc)}`,
  });
}, 120_000);
afterAll(async () => {
  server.child.kill('SIGTERM');
  await server.outcome;
  await store.close();
});

test('every failure is known to the operator, and no path shows where it is', async () => {
  // Until everything has failed: in the log, and in the database.
  for (const said of [planted.rpc.host, '127.0.0.1:54326', `ENOTFOUND ${planted.hook.host}`])
    await vi.waitFor(
      async () => {
        expect(server.said().stderr).toContain(said);
      },
      { timeout: 150_000, interval: 500 },
    );
  await vi.waitFor(
    async () =>
      expect(await (await fetch(`${url}/metrics`)).text()).toContain('lanescan_replica_used{replica="1"} 0'),
    { timeout: 120_000, interval: 200 },
  );
  await vi.waitFor(
    async () => {
      const progress = await store.networkProgress();
      const { problem } = progress.find(({ selector }) => selector === findNetwork(NETWORK)?.selector) ?? {};
      expect(problem).toMatch(/planted-rpc|54326/);
    },
    { timeout: 120_000, interval: 200 },
  );

  const { paths } = (await (await fetch(`${url}/openapi.json`)).json()) as { paths: Record<string, object> };
  const lane = `sourceChainSelector=${message.sourceNetworkInfo.chainSelector}&destChainSelector=${message.destNetworkInfo.chainSelector}`;
  const documented = Object.keys(paths).map((at) => at.replace(/\{\w+\}/g, message.messageId));
  expect(documented.length).toBeGreaterThan(10);
  const others = [
    '/',
    '/network',
    '/nothing',
    '/docs',
    `/v2/lanes/latency?${lane}`,
    '/v2/networks?indexed=true',
    '/v2/messages?sender=x',
    '/v2/messages?cursor=x',
    `/v2/messages/0x${'ab'.repeat(32)}`,
    `/v2/messages/${message.messageId}?waitFor=SUCCESS&timeout=1`,
  ];
  for (const at of new Set([...documented, ...others])) {
    const answer = await fetch(`${url}${at}`, { signal: AbortSignal.timeout(60_000) });
    const text = `${JSON.stringify([...answer.headers])} ${at.includes('stream') ? await beginningOf(answer) : await answer.text()}`;
    const hidden = at === '/metrics' ? keys : [...keys, ...hosts, ...ports];
    expect({ at, shown: hidden.filter((trace) => text.includes(trace)) }).toEqual({ at, shown: [] });
  }
}, 600_000);

test('visitors see the kind of each problem, also of one that another version stored', async () => {
  const { data } = (await (await fetch(`${url}/v2/networks?indexed=true`)).json()) as {
    data: readonly { name: string; indexing: { problem: string; problemKind: string } }[];
  };
  const problems = Object.fromEntries(data.map(({ name, indexing }) => [name, indexing]));
  expect(problems[NETWORK]).toMatchObject({
    problemKind: 'unreachable',
    problem: problemSentences.unreachable,
  });
  expect(problems[OLD]).toMatchObject({ problemKind: 'unknown', problem: problemSentences.unknown });
  expect(problemKinds).toHaveLength(new Set(Object.values(problemSentences)).size);
});

async function beginningOf(answer: Response): Promise<string> {
  const reader = answer.body?.getReader();
  const { value } = (await reader?.read()) ?? {};
  await reader?.cancel();
  return new TextDecoder().decode(value);
}
