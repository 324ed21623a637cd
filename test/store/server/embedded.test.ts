// @module-tag slow: starts and stops PostgreSQL dozens of times
import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import * as fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import type { OperatorError } from '../../../src/base/operator-error.ts';
import { type EmbeddedDatabase, openEmbedded } from '../../../src/store/server/embedded.ts';
import { completeInstallation } from '../../../src/store/server/embedded-binaries.ts';
import { readRecord } from '../../../src/store/server/embedded-folder.ts';
import { operatorErrorOf } from '../../operator-error.ts';
import { serverPids } from './server-processes.ts';

const isRoot = process.geteuid?.() === 0;
const testAsRoot = test.skipIf(!isRoot);
if (!isRoot)
  process.stderr.write('Not root: tests about what root may do with an embedded PostgreSQL are skipped.\n');

const idOfNobody = (flag: string) => Number(execFileSync('id', [flag, 'nobody'], { encoding: 'utf8' }));
/** The plain user of these tests: `nobody` when they run as root, otherwise the user who runs them. */
const plainUser = isRoot ? { uid: idOfNobody('-u'), gid: idOfNobody('-g') } : undefined;

const checkout = fileURLToPath(new URL('../../../', import.meta.url));
/** Where the plain user finds this checkout: in a copy, where it lies in a folder of root alone, such as its home. */
let readableCheckout = checkout;

const opened: EmbeddedDatabase[] = [];
const folders: string[] = [];
const children: ChildProcess[] = [];
const template = temporaryFolder();

beforeAll(async () => {
  if (spawnSync('test', ['-r', path.join(checkout, 'package.json')], { ...plainUser }).status !== 0) {
    readableCheckout = fs.mkdtempSync(path.join(os.tmpdir(), 'embedded-test-checkout-'));
    for (const part of ['package.json', 'node_modules', 'src', 'test/store'])
      fs.cpSync(path.join(checkout, part), path.join(readableCheckout, part), { recursive: true });
    fs.chmodSync(readableCheckout, 0o755);
  }
  await (await openEmbedded({ dataFolder: path.join(template, 'data') })).leave();
});

afterEach(async () => {
  for (const child of children.splice(0)) child.kill('SIGKILL');
  await Promise.all(opened.splice(0).map((embedded) => embedded.leave().catch(() => {})));
  await Promise.all(folders.splice(0).map(removeWithServers));
});

afterAll(async () => {
  await removeWithServers(template);
  if (readableCheckout !== checkout) await removeWithServers(readableCheckout);
});

async function removeWithServers(folder: string): Promise<void> {
  // Not SIGKILL: a killed server leaves its System V shared memory behind.
  for (const pid of serverPids(folder)) process.kill(pid, 'SIGQUIT');
  while (serverPids(folder).length > 0) await delay(20);
  fs.rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
}

/** In memory where there is room: deleting a database from a disk takes longer than most of these tests. */
function temporaryFolder(): string {
  const memory = process.platform === 'linux' ? fs.statfsSync('/dev/shm') : { bavail: 0, bsize: 0 };
  const base = memory.bavail * memory.bsize > 2 * 1024 ** 3 ? '/dev/shm' : os.tmpdir();
  const folder = fs.realpathSync(fs.mkdtempSync(path.join(base, 'embedded-test-')));
  fs.chmodSync(folder, 0o755);
  return folder;
}

/** A folder that goes away after the test together with every server in it. */
function scratchFolder(): string {
  const folder = temporaryFolder();
  folders.push(folder);
  return folder;
}

/** A data folder in which the database exists already, for tests that are not about the first start. */
function usedFolder(): string {
  const folder = path.join(scratchFolder(), 'data');
  execFileSync('cp', ['-a', path.join(template, 'data'), folder]);
  return folder;
}

function postmasterPid(folder: string): number {
  return Number(fs.readFileSync(path.join(folder, 'postgres/postmaster.pid'), 'utf8').split('\n')[0]);
}

async function open(dataFolder: string): Promise<EmbeddedDatabase> {
  const embedded = await openEmbedded({ dataFolder });
  opened.push(embedded);
  return embedded;
}

async function connectTo({ connection }: EmbeddedDatabase): Promise<pg.Client> {
  const client = new pg.Client(connection);
  client.on('error', () => {});
  await client.connect();
  return client;
}

async function query(embedded: EmbeddedDatabase, sql: string): Promise<Record<string, unknown>[]> {
  const client = await connectTo(embedded);
  return (await client.query(sql).finally(() => client.end())).rows;
}

const expectAnswer = async (embedded: EmbeddedDatabase) =>
  expect(await query(embedded, 'select 1 as one')).toEqual([{ one: 1 }]);

async function rejection(dataFolder: string): Promise<OperatorError> {
  const error = await operatorErrorOf(() => openEmbedded({ dataFolder }));
  expect(`${error.message}${error.remedy}`).not.toContain('\n');
  return error;
}

/** Another process that opens the folder. */
function member(dataFolder: string, as?: { uid: number; gid: number }) {
  const script = path.join('test', 'store', 'server', 'embedded-member.ts');
  const child = spawn(process.execPath, ['--import', 'tsx', script, dataFolder], {
    cwd: as ? readableCheckout : checkout,
    stdio: ['pipe', 'pipe', 'inherit'],
    ...as,
  });
  children.push(child);
  const lines = createInterface({ input: child.stdout as NodeJS.ReadableStream })[Symbol.asyncIterator]();
  /** The next line it says. */
  const hear = async (): Promise<Record<string, unknown>> => {
    const { value, done } = await lines.next();
    if (done) throw new Error('the member ended without an answer');
    return JSON.parse(value);
  };
  /** Tells it something and hears the answer. */
  const tell = (line: string) => {
    child.stdin?.write(`${line}\n`);
    return hear();
  };
  return { child, hear, tell };
}

async function kill(child: ChildProcess): Promise<void> {
  const ended = once(child, 'exit');
  child.kill('SIGKILL');
  await ended;
}

describe('one process', () => {
  test('a first start creates the database, and a restart keeps its data', async () => {
    const folder = path.join(scratchFolder(), 'not/yet/there');
    const logLines: string[] = [];
    const first = await openEmbedded({ dataFolder: folder, writeLog: (line) => logLines.push(line) });
    expect(first.isStarter).toBe(true);
    // A slow machine also says that it waits.
    expect(logLines.filter((line) => !line.startsWith('Waiting for PostgreSQL'))).toEqual([
      `Starting PostgreSQL 18 in ${folder} (first start: creating it)`,
    ]);
    await query(first, 'create table kept as select 42 as answer');
    await Promise.all([first.leave(), first.leave()]);
    expect(serverPids(folder)).toEqual([]);
    expect(fs.readdirSync(folder).sort()).toEqual(['postgres', 'postgres.log']);

    const second = await open(folder);
    expect(second.isStarter).toBe(true);
    expect(await query(second, 'select answer from kept')).toEqual([{ answer: 42 }]);
  });

  test('the server opens no port, keeps what it acknowledged, and others cannot reach its socket', async () => {
    const embedded = await open(usedFolder());
    const durable = { fsync: 'on', full_page_writes: 'on', synchronous_commit: 'on', data_checksums: 'on' };
    const settings = { listen_addresses: '', ...durable };
    const shown = Object.keys(settings).map((name) => `current_setting('${name}') as ${name}`);
    expect(await query(embedded, `select ${shown.join(', ')}`)).toEqual([settings]);
    expect(fs.statSync(embedded.connection.host).mode & 0o777).toBe(0o700);
  });

  test('the server takes an eighth of the memory for its buffers, 16 MB to 1 GB', async () => {
    const embedded = await open(usedFolder());
    const [row] = await query(
      embedded,
      `select pg_size_bytes(current_setting('shared_buffers'))::int as bytes`,
    );
    const memory = Math.min(os.totalmem(), process.constrainedMemory() || Number.POSITIVE_INFINITY);
    const megabytes = Math.max(16, Math.min(1_024, Math.floor(memory / 8 / 1024 ** 2)));
    expect(row).toEqual({ bytes: megabytes * 1024 ** 2 });
  });

  test.each([
    ['16 MB is kept', 16 * 1024 ** 2, false],
    ['one byte more is put aside at the next start', 16 * 1024 ** 2 + 1, true],
  ])('a log of %s', async (_what, bytes, isPutAside) => {
    const folder = usedFolder();
    const log = path.join(folder, 'postgres.log');
    fs.truncateSync(log, bytes);
    await open(folder);
    expect(fs.existsSync(`${log}.1`) && fs.statSync(`${log}.1`).size === bytes).toBe(isPutAside);
    expect(fs.statSync(log).size < bytes).toBe(isPutAside);
  });

  test('a data folder may have spaces, quotes, commas and any letters in its name', async () => {
    const folder = path.join(scratchFolder(), `my "data", it's $HOME \`é\` 漢\\;%s `);
    const embedded = await open(folder);
    expect(embedded.connection.host.startsWith(folder)).toBe(true);
    await expectAnswer(embedded);
  });

  test('a data folder may have a path that is too long for a socket, also through a symbolic link', async () => {
    const scratch = scratchFolder();
    const folder = path.join(scratch, 'a'.repeat(120), 'b'.repeat(120));
    const embedded = await open(folder);
    folders.push(embedded.connection.host);
    await expectAnswer(embedded);
    fs.symlinkSync(folder, path.join(scratch, 'short'));
    const joined = await open(path.join(scratch, 'short'));
    expect(joined).toMatchObject({ isStarter: false, connection: embedded.connection, dataFolder: folder });
  });

  test('an abort during the first start leaves neither a server nor half a database', async () => {
    const folder = scratchFolder();
    for (const patience of [0, 300, 900, 1000]) {
      const opening = openEmbedded({ dataFolder: folder, signal: AbortSignal.timeout(patience) });
      // The longest may be long enough on a fast machine.
      const outcome = await opening.catch((error: Error) => error);
      if (outcome instanceof Error) expect(outcome.name).toBe('TimeoutError');
      else await outcome.leave();
      expect(serverPids(folder)).toEqual([]);
    }
    await expectAnswer(await open(folder));
    expect(fs.readdirSync(folder).filter((name) => name.includes('new'))).toEqual([]);
  });

  test('what a first start that was killed left behind goes away', async () => {
    const folder = usedFolder();
    const [old, young] = ['postgres.new-old', 'postgres.new-young'].map((name) => path.join(folder, name));
    for (const draft of [old, young]) fs.mkdirSync(`${draft}/base`, { recursive: true });
    fs.utimesSync(old ?? '', 0, 0);
    await (await open(folder)).leave();
    expect(fs.readdirSync(folder).sort()).toEqual(['postgres', 'postgres.log', 'postgres.new-young']);
  });

  test('leaving works after the server is lost', async () => {
    const folder = usedFolder();
    const embedded = await open(folder);
    process.kill(postmasterPid(folder), 'SIGKILL');
    await delay(100);
    await embedded.leave();
    expect((await open(folder)).isStarter).toBe(true);
  });

  test('libraries and permissions that a blocked install script left out are made up for', async () => {
    const folder = scratchFolder();
    fs.mkdirSync(path.join(folder, 'native/lib'), { recursive: true });
    const links = [{ source: 'native/lib/libpq.so.5.18', target: 'native/lib/libpq.so.5' }];
    fs.writeFileSync(path.join(folder, 'native/pg-symlinks.json'), JSON.stringify(links));
    fs.writeFileSync(path.join(folder, 'native/lib/libpq.so.5.18'), 'library');
    const program = path.join(folder, 'native/postgres');
    fs.writeFileSync(program, '', { mode: 0o644 });
    await Promise.all([completeInstallation(folder, [program]), completeInstallation(folder, [program])]);
    expect(fs.readlinkSync(path.join(folder, 'native/lib/libpq.so.5'))).toBe('libpq.so.5.18');
    expect(fs.statSync(program).mode & 0o777).toBe(0o755);
  });
});

describe('several processes', () => {
  test('processes that race on a fresh folder share one server', async () => {
    const folder = scratchFolder();
    const members = [member(folder), member(folder), member(folder)];
    const answers = await Promise.all(members.map((each) => each.hear()));
    expect(answers.filter(({ isStarter }) => isStarter)).toHaveLength(1);
    expect(serverPids(folder)).toHaveLength(1);
    expect(fs.readdirSync(folder).sort()).toEqual(['postgres', 'postgres.log']);
    await Promise.all(members.map((each) => each.tell('leave')));
    expect(serverPids(folder)).toEqual([]);
  });

  test('a server whose members were all killed is adopted with its data', async () => {
    const folder = usedFolder();
    const killed = member(folder);
    await killed.hear();
    await killed.tell('query create table kept as select 42 as answer');
    const pid = postmasterPid(folder);
    await kill(killed.child);
    const embedded = await open(folder);
    expect(embedded.isStarter).toBe(false);
    expect(postmasterPid(folder)).toBe(pid);
    expect(await query(embedded, 'select answer from kept')).toEqual([{ answer: 42 }]);
    await embedded.leave();
    expect(serverPids(folder)).toEqual([]);
  });

  test('a process that arrives while the server stops always gets a working one', async () => {
    const folder = usedFolder();
    let current = await open(folder);
    let restarts = 0;
    for (let round = 0; round < 40; round++) {
      const leaving = current.leave();
      await delay(round % 20);
      const next = await openEmbedded({ dataFolder: folder });
      if (next.isStarter) restarts++;
      await expectAnswer(next);
      await leaving;
      await expectAnswer(next);
      current = next;
    }
    await current.leave();
    expect(restarts).toBeGreaterThan(10);
    expect(serverPids(folder)).toEqual([]);
  });

  test('after kill -9 of the server the next open recovers every acknowledged row', async () => {
    const folder = usedFolder();
    const victim = await open(folder);
    const client = await connectTo(victim);
    await client.query('create table acknowledged (n int)');
    let rows = 0;
    setTimeout(() => process.kill(postmasterPid(folder), 'SIGKILL'), 200);
    // A backend notices only between commands that its server is gone, so an end to this is set here.
    const end = Date.now() + 300;
    while (Date.now() < end)
      await client.query('insert into acknowledged values (1)').then(
        () => rows++,
        () => {},
      );
    await client.end().catch(() => {});
    const next = await open(folder);
    expect(rows).toBeGreaterThan(10);
    expect(await query(next, 'select count(*)::int as rows from acknowledged')).toEqual([{ rows }]);
  });

  test('after kill -9 of the server its members start it again by themselves', async () => {
    const folder = usedFolder();
    const members = [await open(folder), await open(folder)] as const;
    const killed = postmasterPid(folder);
    process.kill(killed, 'SIGKILL');
    await vi.waitFor(() => expectAnswer(members[0]), { timeout: 120_000 });
    expect(postmasterPid(folder)).not.toBe(killed);
    // They are members again: the server stays until the last of them leaves.
    const locks = `select count(*)::int as members from pg_locks where locktype = 'advisory' and mode = 'ShareLock'`;
    const areMembers = async () => expect(await query(members[0], locks)).toEqual([{ members: 2 }]);
    await vi.waitFor(areMembers, { timeout: 120_000 });
    for (const member of members) await member.leave();
    expect(serverPids(folder)).toEqual([]);
  });

  test('a start waits for processes of a killed server that still work', async () => {
    const folder = usedFolder();
    const victim = await open(folder);
    const busy = query(victim, 'select sum(n) from generate_series(1, 6000000) as n').catch(() => {});
    await delay(100);
    process.kill(postmasterPid(folder), 'SIGKILL');
    await expectAnswer(await open(folder));
    const log = fs.readFileSync(path.join(folder, 'postgres.log'), 'utf8');
    expect(log).toContain('pre-existing shared memory');
    await busy;
  });

  test('a start is not stopped by a stranger who got the process number of a killed server', async () => {
    const folder = usedFolder();
    const killed = await open(folder);
    const cluster = path.join(folder, 'postgres');
    const { uid, gid } = fs.statSync(cluster);
    const pid = postmasterPid(folder);
    process.kill(pid, 'SIGKILL');
    await killed.leave();
    const stranger = spawn('sleep', ['60'], isRoot ? { uid, gid } : {});
    children.push(stranger);
    for (const name of ['postmaster.pid', '.s.PGSQL.5432.lock']) {
      const lock = fs.readFileSync(path.join(cluster, name), 'utf8');
      expect(lock.startsWith(`${pid}\n`)).toBe(true);
      fs.writeFileSync(path.join(cluster, name), lock.replace(String(pid), String(stranger.pid)));
    }
    const next = await open(folder);
    expect(next.isStarter).toBe(true);
    await expectAnswer(next);
    expect(stranger.exitCode).toBe(null);
  });
});

describe('postmaster.pid while PostgreSQL writes it', () => {
  /** The texts that a starting server writes one over the other, as PostgreSQL 18 does. */
  function steps(cluster: string): string[] {
    const created = `1234567\n${cluster}\n1763283000\n5432\n`;
    const listening = `${created}${cluster}\n`;
    const complete = `${listening}\n  1048577         3\n`;
    return [
      ...[`${created}\n`, listening, `${listening}\n`, complete],
      ...['starting', 'ready   ', 'stopping'].map((status) => `${complete}${status}\n`),
    ];
  }

  test.each(['/var/lib/lanescan/data/postgres', '/tmp/postgres', '/a/postgres'])(
    'cut short anywhere, the record of %s has the true process and socket folder, or none',
    async (cluster) => {
      const folder = scratchFolder();
      const file = path.join(folder, 'postmaster.pid');
      for (const text of steps(cluster)) {
        for (let length = 0; length <= text.length; length++) {
          fs.writeFileSync(file, text.slice(0, length));
          const record = await readRecord({ cluster: folder });
          expect([undefined, 1234567], text.slice(0, length)).toContain(record?.pid);
          expect([undefined, cluster], text.slice(0, length)).toContain(record?.socketFolder);
          expect(record?.isStopping ?? false).toBe(text.endsWith('stopping\n') && length === text.length);
        }
      }
      fs.writeFileSync(file, steps(cluster).at(-2) ?? '');
      expect(await readRecord({ cluster: folder })).toEqual({
        pid: 1234567,
        socketFolder: cluster,
        isStopping: false,
      });
    },
  );

  test('a process that finds it cut short waits for the rest and joins', async () => {
    const folder = usedFolder();
    await open(folder);
    const file = path.join(folder, 'postgres/postmaster.pid');
    const text = fs.readFileSync(file, 'utf8');
    const socketLine = text.split('\n').slice(0, 4).join('\n').length + 1;
    // The pieces of the socket's path that name an existing folder, which is not the server's, and others.
    for (const length of [1, 4, 5, 8, 9, 10, 20].map((piece) => socketLine + piece)) {
      fs.writeFileSync(file, text.slice(0, length));
      const joining = open(folder);
      const early = await Promise.race([joining, delay(100, 'waits')]);
      fs.writeFileSync(file, text);
      expect(early, text.slice(socketLine, length)).toBe('waits');
      const joined = await joining;
      expect(joined.isStarter).toBe(false);
      await joined.leave();
    }
  });
});

describe('what cannot work is rejected in words', () => {
  test('database files of another version, and files that are none', async () => {
    const folder = scratchFolder();
    fs.mkdirSync(path.join(folder, 'postgres'));
    fs.writeFileSync(path.join(folder, 'postgres/diary.txt'), 'mine');
    expect((await rejection(folder)).message).toContain('exists, but is not a PostgreSQL database');
    fs.writeFileSync(path.join(folder, 'postgres/PG_VERSION'), '17\n');
    expect((await rejection(folder)).message).toContain('are of PostgreSQL 17; this Lanescan brings 18');
    expect(fs.readdirSync(folder)).toEqual(['postgres']);
  });

  test('a folder in which the user may not write', async () => {
    const folder = scratchFolder();
    fs.chmodSync(folder, 0o555);
    expect(await member(folder, plainUser).hear()).toEqual({
      what: `The data folder ${folder} cannot be used: no permission to write there.`,
      remedy: expect.stringContaining('--data'),
    });
  });

  test('a server that does not start: with its own last words and where to find more', async () => {
    const folder = usedFolder();
    await (await open(folder)).leave();
    fs.appendFileSync(path.join(folder, 'postgres/postgresql.conf'), 'nonsense = 1\n');
    const error = await rejection(folder);
    expect(error.message).toContain('does not start: FATAL:  configuration file');
    expect(error.remedy).toContain(path.join(folder, 'postgres.log'));
  });

  test('a damaged database: with the words of the process that found out', async () => {
    const folder = usedFolder();
    await (await open(folder)).leave();
    fs.rmSync(path.join(folder, 'postgres/pg_wal'), { recursive: true });
    const { message } = await rejection(folder);
    expect(message).toContain('FATAL:  required WAL directory "pg_wal" does not exist');
    expect(serverPids(folder)).toEqual([]);
  });

  test('a folder for the socket that somebody else could have planted', async () => {
    const folder = path.join(scratchFolder(), 'long'.repeat(40));
    const embedded = await open(folder);
    const { host } = embedded.connection;
    folders.push(host);
    await embedded.leave();
    fs.chmodSync(host, 0o777);
    const expectRejected = async () => {
      const { message, remedy } = await rejection(folder);
      expect(message).toContain('is not private');
      expect(remedy).not.toMatch(/remove|delete|empty/i);
      fs.rmSync(host, { recursive: true });
    };
    await expectRejected();
    fs.symlinkSync(folder, host);
    await expectRejected();
    if (isRoot) {
      fs.mkdirSync(host, { mode: 0o700 });
      fs.chownSync(host, 12345, 12345);
      await expectRejected();
    }
    await (await open(folder)).leave();
  });

  testAsRoot('database files of another user, to a plain user', async () => {
    const folder = usedFolder();
    await (await open(folder)).leave();
    fs.chownSync(path.join(folder, 'postgres'), 12345, 12345);
    const answer = await member(folder, plainUser).hear();
    expect(answer.what).toContain('belong to another user (uid 12345');
  });
});

describe('the user of the server', () => {
  test('a plain user runs it as that user', async () => {
    const folder = scratchFolder();
    if (plainUser) fs.chownSync(folder, plainUser.uid, plainUser.gid);
    const plain = member(folder, plainUser);
    expect(await plain.hear()).toMatchObject({ isStarter: true });
    expect(await plain.tell('query select 1 as one')).toEqual([{ one: 1 }]);
    await plain.tell('leave');
    expect(serverPids(folder)).toEqual([]);
  });

  testAsRoot('root runs it as the owner of the folder, who can share and inherit it', async () => {
    const folder = scratchFolder();
    fs.chownSync(folder, plainUser?.uid ?? 0, plainUser?.gid ?? 0);
    const root = await open(folder);
    expect(fs.statSync(path.join(folder, 'postgres')).uid).toBe(plainUser?.uid);
    const plain = member(folder, plainUser);
    expect(await plain.hear()).toMatchObject({ isStarter: false });
    await root.leave();
    await plain.tell('leave');
    expect(serverPids(folder)).toEqual([]);
    const alone = member(folder, plainUser);
    expect(await alone.hear()).toMatchObject({ isStarter: true });
  });

  testAsRoot('root may keep the data below a private home, where the server may only read', async () => {
    const home = scratchFolder();
    fs.chmodSync(home, 0o700);
    const folder = path.join(home, 'data');
    await expectAnswer(await open(folder));
    const status = fs.readFileSync(`/proc/${postmasterPid(folder)}/status`, 'utf8');
    expect(status).not.toMatch(/^Uid:\s+0\s/m);
    // cap_dac_read_search or, where a container lacks it, cap_dac_override: that and nothing else.
    expect(status).toMatch(/^CapEff:\s+0{15}[24]$/m);
  });
});
