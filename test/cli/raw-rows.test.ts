/** `rawRows: false` reaches the database driver, and changes nothing of what is shown. */
import { expect, onTestFinished, test } from 'vitest';
import { openStore } from '../../src/store/store.ts';
import { startSystemServer, systemPostgres } from '../chaos/system-postgres.ts';
import { makeMessage, makeSnapshot } from '../fixtures.ts';
import { lanescan } from './program.ts';

test.skipIf(systemPostgres === undefined)(
  'LANESCAN_RAW_ROWS=false searches without internals of the driver (needs PostgreSQL of the operating system)',
  { tags: 'slow', timeout: 120_000 },
  async () => {
    const server = await startSystemServer();
    onTestFinished(() => server.remove());
    const store = await openStore({ place: { url: server.url } });
    const messages = Array.from({ length: 150 }, (_, number) => makeMessage({ number }));
    await store.apply(messages.map(makeSnapshot));
    await store.close();
    // Raw rows fetch a long page in parts; the driver cannot on a connection that pipelines.
    const fetches = () => server.statements(/execute fetch from/);
    const search = (env: Readonly<Record<string, string>>) =>
      lanescan(['search', '--limit', '1000', '--json'], { env: { DATABASE_URL: server.url, ...env } });

    const withRawRows = await search({});
    expect(withRawRows.code).toBe(0);
    const fetchesOfRawRows = fetches();
    expect(fetchesOfRawRows).toBeGreaterThan(0);
    const without = await search({ LANESCAN_RAW_ROWS: 'false' });
    expect(fetches()).toBe(fetchesOfRawRows);
    expect(without).toEqual(withRawRows);
    expect(without.stdout.trimEnd().split('\n').length).toBeGreaterThanOrEqual(150);
  },
);

test('it takes true or false', async () => {
  const { code, stderr } = await lanescan(['search'], { env: { LANESCAN_RAW_ROWS: 'off' } });
  expect(code).toBe(1);
  expect(stderr).toContain('LANESCAN_RAW_ROWS is "off". It takes true, or false');
});
