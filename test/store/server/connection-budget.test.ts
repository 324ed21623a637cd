/** The connections of `serve --processes`: counted in one place, and rejected where the server cannot hold them. */
import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import pg from 'pg';
import { expect, onTestFinished, test } from 'vitest';
import { connectionsNeeded } from '../../../src/store/server/connection-budget.ts';
import { openEmbedded } from '../../../src/store/server/embedded.ts';
import { openStore } from '../../../src/store/store.ts';
import { createTestDatabase } from '../../database.ts';
import { connectForTest } from '../../postgres.ts';

async function maxConnections(config: pg.ClientConfig): Promise<number> {
  const client = new pg.Client(config);
  await client.connect();
  const { rows } = await client.query('show max_connections');
  await client.end();
  return Number(rows[0].max_connections);
}

test('a server that cannot hold them is told before anything starts, with a number of processes that it can', async () => {
  const database = await createTestDatabase();
  onTestFinished(() => database.drop());
  const max = await maxConnections({ connectionString: database.url });
  const refusal = await openStore({ place: { url: database.url }, startsProcesses: 64 }).catch(
    (error) => error,
  );
  expect(refusal.message).toMatch(
    new RegExp(
      `^64 processes may open ${connectionsNeeded(64)} database connections, .* max_connections is ${max}`,
    ),
  );
  const [, most] =
    /^Use --processes (\d+), or raise max_connections to \d+ or more/.exec(refusal.remedy) ?? [];
  expect(Number(most)).toBeGreaterThan(1);
  expect(connectionsNeeded(Number(most))).toBeLessThan(max);
  const store = await openStore({ place: { url: database.url }, startsProcesses: 2 });
  await store.close();
});

test('the limit of a role counts', async () => {
  const database = await createTestDatabase();
  onTestFinished(() => database.drop());
  const admin = await connectForTest(database.url);
  await admin.query(`alter database ${new URL(database.url).pathname.slice(1)} connection limit 30`);
  await expect(openStore({ place: { url: database.url }, startsProcesses: 2 })).rejects.toThrow(
    /has room for 30: .* at most 30 for this role and database/,
  );
});

test('an embedded server is started with room for all of them', { tags: 'slow' }, async () => {
  const dataFolder = await mkdtemp(path.join(os.tmpdir(), 'lanescan-budget-'));
  onTestFinished(() => rm(dataFolder, { recursive: true, force: true }));
  const store = await openStore({ place: { dataFolder }, startsProcesses: 64 });
  const member = await openEmbedded({ dataFolder });
  expect(await maxConnections(member.connection)).toBeGreaterThan(connectionsNeeded(64));
  await store.close();
  // One that somebody else has started keeps the number that it has.
  await member.leave();
  const small = await openEmbedded({ dataFolder });
  onTestFinished(() => small.leave());
  const refusal = await openStore({ place: { dataFolder }, startsProcesses: 64 }).catch((error) => error);
  expect(refusal.remedy).toMatch(/Another process has started this database with fewer connections/);
});
