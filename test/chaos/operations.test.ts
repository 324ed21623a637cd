// @module-tag slow: backups and rolling restarts of whole deployments
/** What those who run the service do with it: back up, restore, restart without downtime, run out of disk. */
import { execFile, execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { get, type IncomingMessage } from 'node:http';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import type pg from 'pg';
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { isRoot } from '../../src/store/server/embedded-binaries.ts';
import { openStore } from '../../src/store/store.ts';
import { numbersUpTo, readStream, until } from '../api/live/live-server.ts';
import type { SearchBody } from '../api/running-server.ts';
import { buildProgram, type Running, runProgram, start } from '../cli/program.ts';
import { openTestStore } from '../database.ts';
import { makeMessage, makeSnapshot } from '../fixtures.ts';
import { keptStatistics, recount } from '../lanes/recount.ts';
import { connectForTest } from '../postgres.ts';
import { SECRET, startReceiver } from '../webhooks/receiver.ts';
import { freePort, problemsOf, temporaryFolder, writeArchive } from './deployment.ts';
import { startSystemServer, systemPostgres } from './system-postgres.ts';

const run = promisify(execFile);
const isFull = process.env.LANESCAN_TEST_SCALE === 'full';

beforeAll(() => buildProgram(), 300_000);

async function connected(url: string): Promise<pg.Client> {
  const client = await connectForTest(url);
  return client;
}

const stop = async (running: Running) => {
  running.child.kill('SIGTERM');
  return running.outcome;
};

describe('a backup', () => {
  test('of the stopped data folder is a copy of it, which starts as it is', async () => {
    const folder = await temporaryFolder(onTestFinished);
    const archive = await writeArchive(folder, 3, 20);
    const data = path.join(folder, 'data');
    expect((await runProgram(['import', '--data', data, ...archive.files.slice(0, 2)])).code).toBe(0);
    const backup = path.join(folder, 'backup');
    execFileSync('cp', ['-a', data, backup]);
    // What comes later is not in it, and importing brings it.
    expect((await runProgram(['import', '--data', data, ...archive.files])).code).toBe(0);
    expect(await messagesIn(backup)).toBe(40);
    expect((await runProgram(['import', '--data', backup, ...archive.files])).code).toBe(0);
    expect(await messagesIn(backup)).toBe(60);
    expect(await problemsOf(backup, new Map())).toEqual([]);
  });

  test('that is tried out beside the running original does not touch it', async () => {
    const folder = await temporaryFolder(onTestFinished);
    const archive = await writeArchive(folder, 2, 20);
    const data = path.join(folder, 'data');
    const server = start(['serve', '--port', '0', '--data', data]);
    onTestFinished(async () => void (await stop(server)));
    await server.untilSaid(/listens on/);
    expect((await runProgram(['import', '--data', data, ...archive.files.slice(0, 1)])).code).toBe(0);
    const backup = path.join(folder, 'backup');
    execFileSync('cp', ['-a', data, backup]);
    expect((await runProgram(['import', '--data', backup, ...archive.files])).code).toBe(0);
    expect(await messagesIn(data)).toBe(20);
    expect(await messagesIn(backup)).toBe(40);
  });

  async function messagesIn(dataFolder: string): Promise<number> {
    const store = await openStore({ place: { dataFolder } });
    const { count } = await store.countMessages();
    await store.close();
    return count;
  }

  test.skipIf(systemPostgres === undefined)(
    'of a server is what pg_dump writes while records come in (needs PostgreSQL of the operating system)',
    async () => {
      const server = await startSystemServer();
      onTestFinished(() => server.remove());
      const folder = await temporaryFolder(onTestFinished);
      const store = await openStore({ place: { url: server.url }, content: 'real' });
      onTestFinished(() => store.close());
      const messages = Array.from({ length: 400 }, (_, index) => makeMessage({ number: index + 1 }));
      const batches = Array.from({ length: 20 }, (_, index) => messages.slice(index * 20, index * 20 + 20));
      for (const batch of batches.slice(0, 5)) await store.apply(batch.map(makeSnapshot));
      const file = path.join(folder, 'lanescan.dump');
      const dumping = run(path.join(systemPostgres ?? '', 'pg_dump'), ['-Fc', '-f', file, '-d', server.url]);
      for (const batch of batches.slice(5)) await store.apply(batch.map(makeSnapshot));
      await dumping;

      await server.query('create database restored');
      const restored = server.url.replace('/lanescan?', '/restored?');
      await run(path.join(systemPostgres ?? '', 'pg_restore'), ['--no-owner', '-d', restored, file]);
      const again = await openStore({ place: { url: restored }, content: 'real' });
      onTestFinished(() => again.close());
      const { count } = await again.countMessages();
      expect(count).toBeGreaterThanOrEqual(100);
      const client = await connected(restored);
      const { rows } = await client.query(
        'select count(*)::int as rows, max(position)::int as last, (select position::int from store) as position from history',
      );
      expect(rows[0]).toEqual({ rows: count, last: count, position: count });
      expect(await keptStatistics(client)).toEqual(await recount(client));
      const report = await again.apply(messages.map(makeSnapshot));
      expect(report).toMatchObject({ created: 400 - count, unchanged: count });
    },
  );
});

describe('a rolling restart', () => {
  const get200 = async (port: string, url: string): Promise<number> => {
    const request = get({ host: '127.0.0.1', port, path: url, agent: false });
    const [answer] = (await once(request, 'response')) as [IncomingMessage];
    for await (const _ of answer);
    return answer.statusCode ?? 0;
  };

  /** In turn to those servers that are ready, and on to the next one where nobody listens; like any balancer. */
  function createBalancer(ports: readonly string[]) {
    const ready = new Set(ports);
    const stopping = new AbortController();
    const checking = ports.map(async (port) => {
      while (!stopping.signal.aborted) {
        const status = await get200(port, '/readyz').catch(() => 0);
        if (status === 200) ready.add(port);
        else ready.delete(port);
        await delay(50, undefined, { signal: stopping.signal }).catch(() => undefined);
      }
    });
    let turn = 0;
    return {
      async ask(url: string): Promise<number> {
        for (let refusals = 0; ; ) {
          const port = [...ready][turn++ % Math.max(1, ready.size)];
          if (port === undefined) throw new Error('No server is ready');
          try {
            return await get200(port, url);
          } catch (error) {
            if ((error as NodeJS.ErrnoException).code !== 'ECONNREFUSED' || ++refusals > 20) throw error;
          }
        }
      },
      async close() {
        stopping.abort();
        await Promise.all(checking);
      },
    };
  }

  test('of two servers on one database fails no request', { timeout: 600_000 }, async () => {
    const store = await openTestStore();
    onTestFinished(() => store.close());
    await store.apply([makeSnapshot(makeMessage())]);
    const ports = [await freePort(), await freePort()];
    const startOn = async (port: string) => {
      const env = { DATABASE_URL: store.url, LANESCAN_DRAIN_SECONDS: '1' };
      const running = start(['serve', '--port', port], { env });
      await running.untilSaid(/listens on/);
      return running;
    };
    const servers = await Promise.all(ports.map(startOn));
    onTestFinished(async () => void (await Promise.all(servers.map(stop))));

    const balancer = createBalancer(ports);
    let isOver = false;
    const outcomes = new Map<string, number>();
    const client = async () => {
      while (!isOver) {
        const outcome = await balancer.ask('/v2/messages?limit=5').then(String, String);
        outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
      }
    };
    const clients = [client(), client(), client(), client()];
    let restarts = 0;
    for (let round = 0; round < (isFull ? 20 : 1); round++) {
      for (const [index, port] of ports.entries()) {
        const server = servers[index];
        if (server) expect((await stop(server)).code).toBe(0);
        servers[index] = await startOn(port);
        restarts++;
        // A supervisor goes on when the new one is ready, and the balancer has seen it.
        await delay(200);
      }
    }
    isOver = true;
    await Promise.all([...clients, balancer.close()]);
    process.stderr.write(`${restarts} restarts in turn: ${JSON.stringify(Object.fromEntries(outcomes))}\n`);
    expect([...outcomes.keys()]).toEqual(['200']);
    expect(outcomes.get('200')).toBeGreaterThan(20);
  });
});

describe('a clock that is wrong', () => {
  /** Loaded before the program: its clock is off by so much. */
  const shiftedClock = `
    const shift = Number(process.env.TEST_CLOCK_SHIFT_MS);
    const Real = Date;
    globalThis.Date = class extends Real {
      constructor(...given) {
        if (given.length === 0) super(Real.now() + shift);
        else super(...given);
      }
      static now() {
        return Real.now() + shift;
      }
    };`;
  const HOUR = 3_600_000;

  test('by hours breaks neither cursors nor streams, and webhooks go out in time', {
    timeout: 120_000,
  }, async () => {
    const store = await openTestStore();
    onTestFinished(() => store.close());
    const receiver = await startReceiver();
    const folder = await temporaryFolder(onTestFinished);
    writeFileSync(path.join(folder, 'clock.mjs'), shiftedClock);
    const config = path.join(folder, 'lanescan.yaml');
    writeFileSync(
      config,
      `webhooks: [{ name: ops, url: "${receiver.url}", secret: "\${SECRET}", allowPrivate: true }]\n`,
    );
    const serve = async (shift: number) => {
      const running = start(['serve', '--port', '0', '--config', config], {
        env: {
          DATABASE_URL: store.url,
          SECRET,
          TEST_CLOCK_SHIFT_MS: String(shift),
          NODE_OPTIONS: `--import ${pathToFileURL(path.join(folder, 'clock.mjs'))}`,
        },
      });
      onTestFinished(async () => void (await stop(running)));
      const [, url = ''] = await running.untilSaid(/listens on (http:\/\/[\d.:]+)/);
      return { running, url };
    };
    const ahead = await serve(5 * HOUR);
    await ahead.running.untilSaid(/Webhook ops: this server delivers/);
    const behind = await serve(-5 * HOUR);

    const reader = await readStream(`${ahead.url}/v2/messages/stream`);
    receiver.reply = () => ({ status: 500 });
    const messages = Array.from({ length: 25 }, (_, index) => makeMessage({ number: index + 1 }));
    await store.apply(messages.map(makeSnapshot));
    await until(() => reader.hasReached(25));
    await reader.disconnect();
    await store.apply([makeSnapshot(makeMessage({ number: 1, status: 'SUCCESS' }))]);
    await reader.connect(`${behind.url}/v2/messages/stream`);
    await until(() => reader.hasReached(26));
    expect(reader.positions).toEqual(numbersUpTo(26));
    await reader.disconnect();

    const seen: string[] = [];
    let cursor: string | null = null;
    for (let page = 0; page === 0 || cursor !== null; page++) {
      const { url } = page % 2 === 0 ? ahead : behind;
      const query: string = cursor === null ? '' : `&cursor=${cursor}`;
      const body = (await (await fetch(`${url}/v2/messages?limit=4${query}`)).json()) as SearchBody;
      seen.push(...body.data.map(({ messageId }) => messageId));
      cursor = body.pagination.cursor;
    }
    expect(seen).toEqual(messages.map(({ messageId }) => messageId).reverse());

    // What the one leaves undone is due for the other in seconds, not in ten hours.
    await until(() => receiver.receipts.length > 0, 120_000);
    await stop(ahead.running);
    receiver.reply = () => ({ status: 200 });
    await until(() => receiver.accepted.length > 0, 120_000);
    const signedAt = Number(receiver.accepted[0]?.headers['webhook-timestamp']) * 1000;
    expect(Math.abs(signedAt - Date.now())).toBeLessThan(60_000);
  });
});

/** A file system of its own that can be full; only root may make one, and not in every container. */
function mountSmallDisk(folder: string, megabytes: number): boolean {
  if (!isRoot() || process.platform !== 'linux') return false;
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${megabytes}m,mode=0777`, 'lanescan-test', folder], {
      stdio: 'ignore',
    });
    return true;
  } catch {
    return false;
  }
}

const probe = mkdtempSync(path.join(os.tmpdir(), 'lanescan-mount-'));
const canMount = mountSmallDisk(probe, 1);
if (canMount) execFileSync('umount', [probe]);
rmSync(probe, { recursive: true });

describe.skipIf(!canMount)('a full disk (needs root, and a system that lets it mount)', () => {
  test('fails the import in clear words, and everything goes on when there is room', {
    timeout: 240_000,
  }, async () => {
    const folder = await temporaryFolder(onTestFinished);
    const disk = path.join(folder, 'disk');
    mkdirSync(disk);
    expect(mountSmallDisk(disk, 256)).toBe(true);
    onTestFinished(() => void execFileSync('umount', ['-l', disk]));
    const archive = await writeArchive(folder, 12, 200);
    const data = path.join(disk, 'data');
    const server = start(['serve', '--port', '0', '--data', data]);
    onTestFinished(async () => void (await stop(server)));
    const [, url = ''] = await server.untilSaid(/listens on (http:\/\/[\d.:]+)/);
    expect((await runProgram(['import', '--data', data, ...archive.files.slice(0, 1)])).code).toBe(0);

    const { bavail, bsize } = statfsSync(disk);
    const ballast = path.join(disk, 'ballast');
    writeFileSync(ballast, Buffer.alloc(Math.max(0, bavail * bsize - 4 * 1024 * 1024)));
    const failed = await runProgram(['import', '--data', data, ...archive.files]);
    process.stderr.write(`disk full: ${failed.stderr.trim().split('\n').at(-1)}\n`);
    expect(failed.code).toBe(1);
    expect(failed.stderr).toMatch(/^lanescan: .*(No space left|no space is left)/m);
    expect(failed.stderr).not.toMatch(/bug in Lanescan|\n +at /);
    const during = await fetch(`${url}/v2/messages`);
    expect([200, 503]).toContain(during.status);

    rmSync(ballast);
    await until(async () => (await fetch(`${url}/v2/messages`)).status === 200, 120_000);
    const again = await runProgram(['import', '--data', data, ...archive.files]);
    expect({ code: again.code, stderr: again.stderr.slice(-500) }).toMatchObject({ code: 0 });
    const told = new Map([...archive.records.values()].flat().map(({ messageId }) => [messageId, 0]));
    expect(await problemsOf(data, told)).toEqual([]);
  });
});
