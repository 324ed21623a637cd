// @module-tag slow: a worker makes statements wait for seconds
/**
 * A session of the coordinator that waits for a worker looks as if it waited for its client. It is not taken for a connection
 * whose response was lost. Needs CITUS_URL.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, onTestFinished, test } from 'vitest';
import { openStore } from '../../src/store/store.ts';
import { createTestDatabase } from '../database.ts';
import { makeMessage, makeSnapshot } from '../fixtures.ts';
import { connectTo } from '../postgres.ts';
import { type ClusterNode, readShards, readWorkers, urlOnNode } from './faults.ts';

/** Longer than any silence that is suspect, with all probes. */
const WAIT_MS = 6_000;

describe.skipIf(process.env.CITUS_URL === undefined)('statements that wait for a worker', () => {
  test('are not given up', async () => {
    const database = await createTestDatabase();
    onTestFinished(() => database.drop());
    const logLines: string[] = [];
    const store = await openStore({ place: { url: database.url }, writeLog: (text) => logLines.push(text) });
    onTestFinished(() => store.close());
    const messages = Array.from({ length: 40 }, (_, number) => makeMessage({ number }));
    await store.apply(messages.slice(0, 20).map(makeSnapshot));

    const [worker] = await readWorkers(database.url);
    const names = (await readShards(database.url, 'message', worker as ClusterNode)).join(', ');
    const holder = await connectTo(urlOnNode(database.url, worker as ClusterNode));
    holder.on('error', () => undefined);
    onTestFinished(() => holder.end());
    await holder.query(
      `set citus.enable_manual_changes_to_shards = on; begin; lock table ${names} in access exclusive mode`,
    );
    const reading = store.search({ filters: {}, view: 'full', limit: 50, after: null });
    const writing = store.apply(messages.slice(20).map(makeSnapshot));
    await delay(WAIT_MS);
    await holder.query('rollback');

    expect((await reading).records.length).toBeGreaterThanOrEqual(20);
    expect(await writing).toMatchObject({ created: 20 });
    expect(logLines).toEqual([]);
  });
});
