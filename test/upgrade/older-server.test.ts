/** A server that keeps running while a newer release upgrades the database. */
import { expect, test } from 'vitest';
import { openStore } from '../../src/store/store.ts';
import { expectError, type SearchBody, serveStore } from '../api/running-server.ts';
import { createTestDatabase } from '../database.ts';
import { makeMessage, makeSnapshot } from '../fixtures.ts';
import { connectTo } from '../postgres.ts';
import { markUpgraded } from './other-schemas.ts';

test('answers while its tables have their form, then 503 in words, and is not ready any more', async () => {
  const database = await createTestDatabase();
  const logLines: string[] = [];
  const store = await openStore({ place: { url: database.url }, writeLog: (line) => logLines.push(line) });
  await store.apply([makeSnapshot(makeMessage())]);
  const server = await serveStore({ ...store, url: database.url });
  const admin = await connectTo(database.url);
  try {
    const next = await markUpgraded(admin);
    const before = await server.ask('/v2/messages');
    expect(before.json<SearchBody>().data).toHaveLength(1);
    expect((await server.ask('/readyz')).status).toBe(200);

    await admin.query(
      'alter table message rename column record to body; update store set position = position',
    );
    for (const path of ['/v2/messages?limit=7', `/v2/messages/${makeMessage().messageId}`, '/readyz']) {
      const body = expectError(await server.ask(path), 503, 'SERVICE_UNAVAILABLE');
      expect(body.message).toMatch(
        /^The database was upgraded to a newer release\. This server has to be restarted/,
      );
    }
    expect(
      logLines.filter((line) => line.includes(`(schema ${next}; this program knows ${next - 1})`)),
    ).toHaveLength(1);
    expect(server.log.join('\n')).not.toMatch(/ at .*\.ts:\d+/);
  } finally {
    await admin.end();
    await server.close();
    await database.drop();
  }
});
