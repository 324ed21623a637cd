// @module-tag slow: kills indexers and waits until they are missed
/** An indexer that was killed: everybody who looks is told, and nobody that all is well. */
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import type { LogDetails, WriteLog } from '../../src/base/log.ts';
import { readSetting } from '../../src/base/settings.ts';
import { findNetwork } from '../../src/domain/networks/networks.ts';
import { startIndexer } from '../../src/ingest/engine/indexer.ts';
import { connectNetwork, networksSetting } from '../../src/ingest/families.ts';
import type { Store } from '../../src/store/store.ts';
import { type RunningServer, serveStore } from '../api/running-server.ts';
import { buildProgram, freshFolder, lanescan, type Running, start } from '../cli/program.ts';
import { openTestStore } from '../database.ts';
import { connectTo } from '../postgres.ts';
import { hurriedTiming } from './indexing.ts';
import { eventually } from './proxied-lab.ts';
import { toldOf } from './told-network.ts';

// Longer than any wait in it, however busy the machine is.
vi.setConfig({ testTimeout: 300_000 });

const NETWORK = 'ethereum-testnet-sepolia';
const { selector = '' } = findNetwork(NETWORK) ?? {};
const ROUTER = '0x0BF3dE8c5D3e8A2B34D2BEeB17ABfCeBaf363A59';
/** Nobody listens there. */
const AWAY = 'http://127.0.0.1:9/';
const DEAD_MINUTES = 19;

let store: Store & { readonly url: string };
let server: RunningServer;
let config: string;
let indexer: Running;

beforeAll(async () => {
  await buildProgram();
  store = await openTestStore();
  server = await serveStore(store);
  config = path.join(freshFolder(), 'lanescan.yaml');
  writeFileSync(config, `networks: [{ network: ${NETWORK}, rpc: ["${AWAY}"], routers: ["${ROUTER}"] }]\n`);
  indexer = start(['index', '--config', config], { env: { DATABASE_URL: store.url } });
});
afterAll(async () => {
  indexer.child.kill('SIGKILL');
  await server.close();
});

async function told() {
  const ready = await server.ask('/readyz');
  const { checks } = ready.json<{ checks: Record<string, string> }>();
  return { ready: { status: ready.status, checks }, ...(await toldOf(server, NETWORK)) };
}

/** As if so many minutes had passed since the indexer wrote for the last time. */
async function age(minutes: number): Promise<void> {
  const client = await connectTo(store.url);
  const back = `- interval '${minutes} min'`;
  await client.query(
    `update index_network set seen_at = seen_at ${back}, lease_until = lease_until ${back};
     update network_progress set updated_at = updated_at ${back}, head_at = head_at ${back}, indexed_at = indexed_at ${back}`,
  );
  await client.end();
}

test('while it lives, it is seen; killed, it is missed everywhere', async () => {
  await eventually(async () =>
    expect(await store.networkProgress()).toMatchObject([{ isLeased: true, problemKind: 'unreachable' }]),
  );
  // Blocks that it read in better times.
  const now = Date.now();
  const figures = { headBlock: 1_000, finalizedBlock: 900, indexedBlock: 1_000, headAt: now, indexedAt: now };
  await store.index.reportProgress(selector, figures, null);
  const expectReady = (ready: unknown, indexing: string) =>
    expect(ready).toMatchObject({
      status: 200,
      checks: { database: 'ok', indexing, mirror: 'not configured' },
    });
  await eventually(async () => {
    const { ready, indexing, metrics } = await told();
    expectReady(ready, 'behind');
    expect(indexing).toMatchObject({ isIndexed: true, health: 'failing' });
    expect(metrics.indexed).toBe(1);
  });

  indexer.child.kill('SIGKILL');
  await indexer.outcome;
  await age(DEAD_MINUTES);
  // A scrape may be answered with what was read a few seconds ago.
  await eventually(async () => {
    const { ready, indexing, metrics } = await told();
    expectReady(ready, 'stopped');
    expect(indexing).toMatchObject({ isIndexed: false, health: 'stopped' });
    const seenAt = Date.parse(String(indexing?.lastSeenAt));
    expect(Date.now() - seenAt).toBeGreaterThan(DEAD_MINUTES * 60_000 - 5_000);
    expect(metrics.indexed).toBe(0);
    for (const name of ['lag_seconds', 'seen_age_seconds', 'progress_age_seconds'])
      expect(metrics[name], name).toBeGreaterThanOrEqual(DEAD_MINUTES * 60);
  });

  const env = { DATABASE_URL: store.url };
  const doctor = await lanescan(['doctor', '--port', '0', '--config', config], { env });
  expect(doctor.code).toBe(1);
  expect(doctor.stdout).toMatch(
    new RegExp(
      `✗ Indexing of ${NETWORK} stopped ${DEAD_MINUTES} min ago: new messages and status changes are missing\n.*lanescan index`,
    ),
  );
  const audit = await lanescan(['audit', '--source', NETWORK], { env });
  expect(audit.code).toBe(3);
  expect(audit.stderr).toContain(
    `Indexing of ${NETWORK} stopped ${DEAD_MINUTES} min ago: messages sent since then are not checked.`,
  );
  const elsewhere = await lanescan(['audit', '--source', 'polygon-mainnet'], { env });
  expect(elsewhere.stderr).not.toContain('stopped');
});

describe('the log', () => {
  test('of `index` has JSON lines with time, level, component and network, like that of `serve`', async () => {
    const lines = indexer
      .said()
      .stderr.trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as Readonly<Record<string, unknown>>);
    expect(lines.length).toBeGreaterThan(0);
    for (const line of lines) {
      expect(line).toMatchObject({
        level: expect.any(Number),
        time: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/),
        component: expect.stringMatching(/^(index|store)$/),
        msg: expect.any(String),
      });
    }
    expect(lines).toContainEqual(
      expect.objectContaining({
        level: 40,
        component: 'index',
        network: NETWORK,
        msg: expect.stringMatching(/127\.0\.0\.1:9: .*set back/),
      }),
    );
  });

  test('has an outage of all endpoints as a warning at first, and as an error once it lasts', async () => {
    const logLines: (LogDetails & { readonly line: string })[] = [];
    const writeLog: WriteLog = (line, details) => logLines.push({ line, ...details });
    const stopping = new AbortController();
    const entry = { network: NETWORK, rpc: [AWAY], routers: [ROUTER] };
    const sources = readSetting(networksSetting, [entry], ['networks']);
    const other = await openTestStore();
    const running = startIndexer({
      sources,
      connect: connectNetwork,
      store: other,
      signal: stopping.signal,
      userAgent: 'lanescan-test',
      writeLog,
      timing: { ...hurriedTiming, escalateAfterMs: 200, endpoints: { firstPauseMs: 10, longestPauseMs: 20 } },
    });
    try {
      const words = /^Nothing could be read for .*; still retrying\. Last problem: 127\.0\.0\.1:9/;
      const line = expect.stringMatching(words);
      await eventually(() => expect(logLines).toContainEqual({ level: 'error', network: NETWORK, line }));
      expect(logLines[0]).toMatchObject({ level: 'warn', network: NETWORK });
      // Once, however long it lasts.
      expect(logLines.filter(({ level }) => level === 'error')).toHaveLength(1);
    } finally {
      stopping.abort();
      await running.ended;
      await other.close();
    }
  });
});
