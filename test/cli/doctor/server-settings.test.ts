/** A PostgreSQL server of one's own: settings that hurt are named, and just-in-time compilation is off for us. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { settingsFindings } from '../../../src/cli/doctor/database-findings.ts';
import { openStore } from '../../../src/store/store.ts';
import { type SystemServer, startSystemServer, systemPostgres } from '../../chaos/system-postgres.ts';
import { makeMessage, makeSnapshot } from '../../fixtures.ts';
import { lanescanOn } from '../program.ts';

describe.skipIf(systemPostgres === undefined)('a server of the system', () => {
  let server: SystemServer;
  beforeAll(async () => {
    server = await startSystemServer({ jit: 'on', jit_above_cost: 0, synchronous_commit: 'off' });
    const store = await openStore({ place: { url: server.url } });
    await store.close();
  });
  afterAll(() => server?.remove());

  test('compiles none of our statements, whatever its settings are', async () => {
    const store = await openStore({ place: { url: server.url } });
    try {
      expect((await store.serverSettings()).jit).toBe(false);
      await store.apply([makeSnapshot(makeMessage())]);
    } finally {
      await store.close();
    }
    // Others on the same server are as before.
    expect(await server.query('show jit')).toEqual([{ jit: 'on' }]);
  });

  test('doctor names what endangers the data, with a remedy', async () => {
    const { code, stdout } = await lanescanOn(server, 'doctor', '--port', '0');
    expect(stdout).toMatch(/^! Server settings: fsync off: .*\n {2}→ Set them to on/m);
    expect(stdout).toMatch(/^! Server settings: synchronous_commit is off: .*\n {2}→ Set it to on/m);
    expect(stdout).not.toMatch(/jit|work_mem|shared_buffers/);
    expect(code).toBe(0);
  });

  test('doctor sees what is set for the role and the database', async () => {
    await server.query(`alter role lanescan set statement_timeout = '5s'`);
    await server.query('alter role lanescan connection limit 12');
    await server.query(`alter database lanescan set default_transaction_read_only = on`);
    try {
      const { stdout } = await lanescanOn(server, 'doctor', '--port', '0');
      expect(stdout).toMatch(/^! Server settings: statement_timeout is 5000 ms for this role/m);
      expect(stdout).toMatch(/^! Server settings: default_transaction_read_only is on/m);
      expect(stdout).toMatch(/^! Server settings: at most 12 connections for this role, .* up to 24/m);
    } finally {
      await server.query('begin read write; alter role lanescan reset all; commit');
      await server.query(
        'begin read write; alter database lanescan reset default_transaction_read_only; alter role lanescan connection limit -1; commit',
      );
    }
  });
});

const healthy = {
  fsync: true,
  fullPageWrites: true,
  synchronousCommit: 'on',
  jit: false,
  isReadOnlyByDefault: false,
  sharedBuffersBytes: 128 * 1024 ** 2,
  workMemBytes: 4 * 1024 ** 2,
  randomPageCost: 4,
  statementTimeoutMs: 0,
  idleInTransactionTimeoutMs: 0,
  maxConnections: 97,
  databaseBytes: 10_000_000,
};

test.each([
  [{}, []],
  [{ fullPageWrites: false }, [/full_page_writes off/]],
  [{ databaseBytes: 8e9 }, [/shared_buffers is 128 MB for a database of 7629 MB/, /random_page_cost is 4/]],
  [{ workMemBytes: 64 * 1024 }, [/work_mem is 64 kB/]],
  [{ idleInTransactionTimeoutMs: 1_000 }, [/idle_in_transaction_session_timeout is 1000 ms/]],
])('settings that differ by %j', (difference, expected) => {
  const found = settingsFindings({ ...healthy, ...difference }, 21);
  if (expected.length === 0)
    expect(found).toEqual([{ severity: 'ok', what: 'Server settings: no problems' }]);
  else
    expect(found.map(({ what }) => what)).toEqual(expected.map((pattern) => expect.stringMatching(pattern)));
});
