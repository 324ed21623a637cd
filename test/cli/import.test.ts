/** `lanescan import`: what gets in, what is turned away, and what survives an interruption at any moment. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { constants, gunzipSync, gzipSync } from 'node:zlib';
import type pg from 'pg';
import { afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { Message } from '../../src/domain/message.ts';
import { createTestDatabase, type TestDatabase } from '../database.ts';
import { digits, makeMessage } from '../fixtures.ts';
import { connectTo } from '../postgres.ts';
import {
  buildProgram,
  freshFolder,
  hasTerminal,
  lanescan,
  lanescanOn,
  onTerminal,
  shell,
  start,
  withoutColours,
} from './program.ts';

let database: TestDatabase;
let client: pg.Client;
let folder: string;

beforeAll(buildProgram);
beforeEach(async () => {
  database = await createTestDatabase();
  client = await connectTo(database.url);
  folder = freshFolder();
});
afterEach(async () => {
  await client.end();
  await database.drop();
});

const env = () => ({ DATABASE_URL: database.url });
const ndjson = (messages: readonly Message[]) =>
  messages.map((message) => `${JSON.stringify(message)}\n`).join('');
const messagesFrom = (first: number, count: number, overrides: Partial<Message> = {}) =>
  Array.from({ length: count }, (_, i) => makeMessage({ number: first + i, ...overrides }));

function file(name: string, content: string | Buffer): string {
  const at = path.join(folder, name);
  writeFileSync(at, content);
  return at;
}

/** Rejects go where the test can find them. */
const importing = (...args: readonly string[]) =>
  lanescanOn(database, 'import', '--rejects', path.join(folder, 'rejects.ndjson'), ...args);

function rejects(): {
  file: string;
  line: number;
  problems: { path: string; problem: string }[];
  text: string | null;
}[] {
  const lines = readFileSync(path.join(folder, 'rejects.ndjson'), 'utf8').trimEnd().split('\n');
  return lines.map((line) => JSON.parse(line));
}

async function messageCount(): Promise<number> {
  return Number((await client.query('select count(*) from message')).rows[0].count);
}

/** Everything that an import leaves behind, but for the time at which it did. */
async function digestOf(connected: pg.Client): Promise<{ messages: string; history: string }> {
  const { rows } = await connected.query(`select
    (select md5(string_agg(md5(m::text), '' order by message_id)) from message m) messages,
    (select md5(string_agg(md5((to_jsonb(h) - 'recorded_at')::text), '' order by message_id, position)) from history h) history`);
  return rows[0];
}

describe('what gets in', () => {
  test('plain files, gzip and standard input, each with its counts', async () => {
    const plain = file('plain.ndjson', ndjson(messagesFrom(1, 3)));
    const packed = file(
      'packed.ndjson.gz',
      Buffer.concat([messagesFrom(3, 2), messagesFrom(5, 2)].map((part) => gzipSync(ndjson(part)))),
    );
    const first = await importing(plain, packed);
    expect(first.stdout).toBe(
      `${plain}: 3 new, 0 updated, 0 unchanged, 0 rejected\n${packed}: 3 new, 0 updated, 1 unchanged, 0 rejected\n`,
    );
    expect(first.code).toBe(0);
    const input = `${ndjson(messagesFrom(6, 1, { status: 'COMMITTED' }))}${ndjson(messagesFrom(7, 1))}${ndjson(messagesFrom(7, 1))}`;
    const piped = await lanescan(['import', '-'], { env: env(), input });
    expect(piped.stdout).toBe('stdin: 1 new, 1 updated, 1 unchanged, 0 rejected\n');
    const zipped = shell(`cat ${packed} | lanescan import -`, { env: env() });
    expect(zipped.stdout).toBe('stdin: 0 new, 0 updated, 4 unchanged, 0 rejected\n');
    expect(await messageCount()).toBe(7);
  });

  test('the same file twice changes nothing, history included', async () => {
    const records = file('records.ndjson', ndjson(messagesFrom(1, 50, { status: 'SUCCESS' })));
    await importing(records);
    const before = await digestOf(client);
    const again = await importing(records);
    expect(again.stdout).toContain('0 new, 0 updated, 50 unchanged');
    expect(await digestOf(client)).toEqual(before);
    expect((await client.query('select count(*) from history')).rows[0].count).toBe('50');
  });

  test.each(['older first', 'newer first'])(
    'an older state never takes back a later one: %s',
    async (order) => {
      const older = file('older.ndjson', ndjson(messagesFrom(1, 5, { status: 'COMMITTED' })));
      const newer = file('newer.ndjson', ndjson(messagesFrom(1, 5, { status: 'SUCCESS' })));
      await importing(...(order === 'older first' ? [older, newer] : [newer, older]));
      const { rows } = await client.query('select record from message order by message_id');
      const expected = messagesFrom(1, 5, { status: 'SUCCESS' }).sort((a, b) =>
        a.messageId < b.messageId ? -1 : 1,
      );
      expect(rows.map(({ record }) => JSON.parse(record))).toEqual(expected);
    },
  );

  test('members that the contract does not have are kept and told; impossible ones are left out, harmlessly', async () => {
    const [message] = messagesFrom(1, 1);
    const rich = { ...message, laneTier: 'gold', status: 'ROUTED', finality: null, 'extra\u001b[2J': 1 };
    const records = file('rich.ndjson', `${JSON.stringify(rich)}\n`);
    const { stdout } = await importing(records);
    expect(stdout).toContain('kept, not a field of the contract: $.laneTier (1 times)');
    expect(stdout).toContain('ignored, cannot be kept: $.extra\\u{1b}[2J (1 times)');
    expect(stdout).toContain('unknown: status ROUTED, shown as SENT (1 times)');
    expect(stdout).toContain('incomplete: 1 records');
  });
});

describe('what is turned away', () => {
  test('bad lines go to the rejects file with their number and every reason; all good ones are in', async () => {
    const [first, second, third] = messagesFrom(1, 3).map((message) => JSON.stringify(message));
    const wrong = JSON.stringify({ ...makeMessage(), sender: 'nobody', sequenceNumber: -1, status: 7 });
    const records = file(
      'mixed.ndjson',
      Buffer.concat([
        Buffer.from(`${first}\n{"broken\n`),
        Buffer.from([0x22, 0xff, 0xfe, 0x22, 0x0a]),
        Buffer.from(`${second}\n${wrong}\n`),
        Buffer.alloc(16 * 1024 * 1024 + 1, 'x'),
        Buffer.from(`\n[]\n${third}`),
      ]),
    );
    const { code, stdout } = await importing(records);
    expect(stdout).toContain(
      '3 new, 0 updated, 0 unchanged, 5 rejected\n  rejected lines with their reasons: ',
    );
    expect(code).toBe(3);
    expect(await messageCount()).toBe(3);
    const turnedAway = rejects();
    expect(turnedAway.map(({ line }) => line)).toEqual([2, 3, 5, 6, 7]);
    const because = (pattern: RegExp) => [{ path: '$', problem: expect.stringMatching(pattern) }];
    expect(turnedAway).toMatchObject([
      { file: records, text: '{"broken', problems: because(/^is not valid JSON/) },
      { text: null, problems: because(/^is not valid UTF-8$/) },
      { problems: [{ path: '$.status' }, { path: '$.sender' }, { path: '$.sequenceNumber' }] },
      { text: null, problems: because(/^is 16777217 bytes long/) },
      { problems: because(/must be an object/) },
    ]);
  });

  test('several files share a rejects file without overwriting each other', { tags: 'slow' }, async () => {
    const { code } = await importing(file('a.ndjson', 'a\n'), file('b.ndjson', '\nb\n'));
    expect(rejects().map(({ file: name, line }) => [path.basename(name), line])).toEqual([
      ['a.ndjson', 1],
      ['b.ndjson', 2],
    ]);
    expect(code).toBe(3);
  });

  test('a rejects file that cannot be written is told', { tags: 'slow' }, async () => {
    const bad = file('bad.ndjson', 'bad\n'.repeat(10));
    for (const place of ['/nowhere/rejects', folder]) {
      const { code, stderr } = await lanescanOn(database, 'import', '--rejects', place, bad);
      expect(stderr).toMatch(
        /^lanescan: Cannot write the rejected lines of .*Choose another file with --rej/,
      );
      expect(code).toBe(1);
    }
  });

  test('truncated gzip says so and keeps everything that came before', { tags: 'slow' }, async () => {
    const whole = gzipSync(Array.from({ length: 3000 }, (_, i) => recordLine(i)).join(''));
    const cut = whole.subarray(0, Math.floor(whole.length * 0.7));
    const readable =
      gunzipSync(cut, { finishFlush: constants.Z_SYNC_FLUSH }).toString().split('\n').length - 1;
    const { code, stderr } = await importing(file('cut.ndjson.gz', cut));
    expect(stderr).toMatch(/cut\.ndjson\.gz is damaged gzip .* The lines before the damage were imported/);
    expect(code).toBe(1);
    expect(readable).toBeGreaterThan(1000);
    expect(await messageCount()).toBe(readable);
  });

  test('a file that is missing or a folder is found before anything is read', async () => {
    const good = file('good.ndjson', ndjson(messagesFrom(1, 1)));
    for (const bad of [path.join(folder, 'missing.ndjson'), folder]) {
      const { code, stdout, stderr } = await importing(good, bad);
      expect(stderr).toMatch(/^lanescan: Cannot read .*Check the path\.\n$/);
      expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    }
    expect(await messageCount()).toBe(0);
    expect(existsSync(path.join(folder, 'rejects.ndjson'))).toBe(false);
  });
});

const template = JSON.stringify(makeMessage({ status: 'SUCCESS', data: '0x' }));
const { messageId: templateId } = makeMessage();

/** One of as many records as a test likes, quickly made. */
function recordLine(number: number, data = '0x'): string {
  const sentAt = new Date(Date.UTC(2026, 0, 1) + number * 1000).toISOString();
  return `${template
    .replace(templateId, `0x${digits('line', number)}`)
    .replace(/"sendTimestamp":"[^"]*"/, `"sendTimestamp":"${sentAt}"`)
    .replace('"sequenceNumber":"1"', `"sequenceNumber":"${number}"`)
    .replace('"data":"0x"', `"data":"${data}"`)}\n`;
}

describe('interruptions', () => {
  test('killed at random moments and interrupted, an import run again ends as if nothing had happened', {
    tags: 'slow',
  }, async () => {
    const RECORDS = 50_000;
    const records = file('many.ndjson', Array.from({ length: RECORDS }, (_, i) => recordLine(i)).join(''));
    const undisturbed = await createTestDatabase();
    const reference = start(['import', records], { env: { DATABASE_URL: undisturbed.url } });

    for (const [round, signal] of (['SIGKILL', 'SIGINT', 'SIGKILL'] as const).entries()) {
      const running = start(['import', records], { env: env() });
      while ((await messageCount()) < 1_000 + round * 4_000) await delay(30);
      await delay(Math.random() * 300);
      running.child.kill(signal);
      const { code, stdout } = await running.outcome;
      expect(code).toBe(signal === 'SIGINT' ? 130 : null);
      if (signal === 'SIGINT')
        expect(stdout).toContain('interrupted; import the same file again to continue');
      expect(await messageCount()).toBeLessThan(RECORDS);
    }
    const last = await start(['import', records], { env: env() }).outcome;
    expect(last.stdout).toMatch(/many\.ndjson: [\d,]+ new, 0 updated, [\d,]+ unchanged, 0 rejected/);
    expect(last.code).toBe(0);

    expect((await reference.outcome).stdout).toContain('50,000 new');
    const other = await connectTo(undisturbed.url);
    expect(await digestOf(client)).toEqual(await digestOf(other));
    await other.end();
    await undisturbed.drop();
  });

  test('Ctrl-C ends an import from a pipe that says nothing', { tags: 'slow' }, async () => {
    const running = start(['import', '-'], { env: env(), input: null });
    running.child.stdin.write(recordLine(1));
    const isOpen = `select from pg_stat_activity where datname = current_database() and application_name = 'lanescan'`;
    while ((await client.query(isOpen)).rowCount === 0) await delay(20);
    await delay(1_000);
    running.child.kill('SIGINT');
    const { code, stdout } = await running.outcome;
    expect(stdout).toMatch(/^stdin: 1 new.*\n {2}interrupted/);
    expect(code).toBe(130);
  });
});

test.runIf(hasTerminal)('progress on a terminal is a bar, gone at the end', { tags: 'slow' }, () => {
  const records = file('bar.ndjson', Array.from({ length: 5_000 }, (_, i) => recordLine(i)).join(''));
  const { lines } = onTerminal(100, `lanescan import ${records}`, { env: env() });
  const text = withoutColours(lines.join('\n'));
  expect(text).toMatch(/Importing \S+ █*░* \d+% · /);
  const last = text.slice(text.lastIndexOf('\u001b[K') + 3);
  expect(last).toBe(`${records}: 5,000 new, 0 updated, 0 unchanged, 0 rejected`);
});
