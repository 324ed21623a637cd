/** What `lanescan doctor` says of the disk: what the store takes, how fast it grows, and how long the disk lasts. */
import { describe, expect, test } from 'vitest';
import { growthFindings } from '../../../src/cli/doctor/disk-findings.ts';
import type { DiskUsage, Growth, Pace } from '../../../src/store/query/disk-usage.ts';
import { openStore } from '../../../src/store/store.ts';
import { provideTestDatabase } from '../../database.ts';
import { makeMessage, makeSnapshot } from '../../fixtures.ts';
import { queryOnce } from '../../postgres.ts';
import { freshFolder, lanescan, lanescanOn } from '../program.ts';

const DAY_MS = 86_400_000;
const GIGABYTE = 1e9;

const pace = (messagesPerDay: number, spanMs = 7 * DAY_MS): Pace => ({
  messagesPerDay,
  bytesPerDay: messagesPerDay * 4_000,
  spanMs,
});

function usageOf(growth: Partial<Growth>, differences: Partial<DiskUsage> = {}): DiskUsage {
  const recorded = pace(250_000);
  return {
    databaseBytes: 40 * GIGABYTE,
    tables: [],
    messages: 10_000_000,
    growth: {
      ...{ bytesPerMessage: 4_000, recorded, sent: recorded, isLoad: false, expected: recorded },
      ...growth,
    },
    disk: { freeBytes: 100 * GIGABYTE, walBytes: 1.2 * GIGABYTE },
    ...differences,
  };
}

const textsOf = (usage: DiskUsage) =>
  growthFindings(usage).map(({ severity, what }) => `${severity}: ${what}`);
const growthText = (...usage: Parameters<typeof usageOf>) => textsOf(usageOf(...usage))[1];

describe('the findings about the disk', () => {
  const lately = '250,000 messages a day (1.0 GB), as recorded in the last 7 d';

  test('say the size of the store and of a message', () => {
    const [size] = textsOf(usageOf({}));
    expect(size).toBe('ok: Size: 40.0 GB, and 1.2 GB of write-ahead log; 4.0 kB a message (10,000,000)');
    const [few] = textsOf(usageOf({ bytesPerMessage: null }, { databaseBytes: 9.1e6, disk: null }));
    expect(few).toBe('ok: Size: 9.1 MB; too few messages to tell what one takes');
    const [away] = textsOf(usageOf({}, { databaseBytes: null, disk: null }));
    expect(away).toBe('ok: Size: unknown while a worker is away; 4.0 kB a message (10,000,000)');
  });

  test.each([
    [100, 'ok', '100 days'],
    [30, 'ok', '30 days'],
    [29.9, 'warning', '29 days'],
    [3, 'warning', '3 days'],
    [2.9, 'error', '2 days'],
    [0.5, 'error', '12 hours'],
    [800, 'ok', '2 years'],
    [9_999, 'ok', 'more than 10 years'],
  ])('with space for %d days are of severity %s', (days, severity, words) => {
    const disk = { freeBytes: days * GIGABYTE, walBytes: 0 };
    const [, growth] = growthFindings(usageOf({}, { disk }));
    expect(growth).toMatchObject({
      severity,
      what: `Growth: ${lately}. At that pace the disk lasts ${words}`,
    });
    expect(growth?.remedy === undefined).toBe(severity === 'ok');
  });

  test('say what is unknown', () => {
    expect(growthText({ recorded: null, expected: null })).toBe(
      'ok: Growth: unknown, with less than an hour of history',
    );
    const unsized = { ...pace(10), bytesPerDay: null };
    expect(growthText({ recorded: unsized, expected: unsized })).toBe(
      'ok: Growth: 10 messages a day, as recorded in the last 7 d. How long the disk lasts is unknown',
    );
    expect(growthText({}, { disk: null })).toBe(
      `ok: Growth: ${lately}. The free space of the database server cannot be seen from here`,
    );
  });

  test('a store to which nothing is added lasts', () => {
    expect(growthText({ recorded: pace(0), expected: pace(0) })).toBe(
      'ok: Growth: 0 messages a day (0 bytes), as recorded in the last 7 d. At that pace the disk lasts more than 10 years',
    );
  });

  test('show both paces while history is loaded, and count with the one that goes on', () => {
    const sent = pace(25_000);
    const load = { recorded: pace(250_000, 2 * DAY_MS), sent, isLoad: true, expected: sent };
    const words =
      'Growth: 25,000 messages a day (100.0 MB), as sent in the last 7 d; history was loaded lately: 250,000 messages a day (1.0 GB), as recorded in the last 2 d. At that pace the disk lasts';
    expect(growthText(load)).toBe(`ok: ${words} 2 years`);
    const disk = (days: number) => ({ disk: { freeBytes: days * GIGABYTE, walBytes: 0 } });
    expect(growthText(load, disk(2.9))).toBe(
      `warning: ${words} 29 days, but the load fills it in 2 days if it takes so long`,
    );
    expect(growthText(load, disk(0.25))).toBe(
      `error: ${words} 2 days, but the load fills it in 6 hours if it takes so long`,
    );
    expect(growthText(load, disk(4))).toBe(`ok: ${words} 40 days`);
  });

  test('know no pace during a load without a whole day', () => {
    expect(growthText({ sent: null, isLoad: true, expected: null })).toBe(
      `ok: Growth: ${lately}; that is a load of history, and no whole day of messages shows the pace after it. How long the disk lasts is unknown`,
    );
  });
});

describe('doctor', () => {
  const database = provideTestDatabase();
  /** A store with a week of history: 1,400 messages, 200 on each day. */
  async function fill(place: Parameters<typeof openStore>[0]['place']): Promise<void> {
    const store = await openStore({ place });
    const now = Date.now();
    const messages = Array.from({ length: 1_400 }, (_, index) =>
      makeMessage({
        number: index + 1,
        sendTimestamp: new Date(now - (1_400 - index) * (DAY_MS / 200)).toISOString(),
      }),
    );
    await store.apply(messages.map(makeSnapshot));
    await store.close();
  }
  const PACE = /^✓ Growth: 19\d messages a day \(\d+\.\d [kM]B\), as recorded in the last 7 d\. (.*)$/m;

  test('says the pace of a server’s database, and that its disk cannot be seen', async () => {
    await fill({ url: database.url });
    await queryOnce(
      database.url,
      `update history set recorded_at = now() - (1400 - position) * interval '440 seconds'`,
    );
    const { code, stdout } = await lanescanOn(database, 'doctor', '--port', '0');
    expect(stdout).toMatch(/^✓ Size: \d+\.\d MB; \d\.\d kB a message \(1,400\)$/m);
    expect(PACE.exec(stdout)?.[1]).toBe('The free space of the database server cannot be seen from here');
    expect(code).toBe(0);
  });

  test('sees the disk of an embedded database, and no pace in what has just been made', {
    tags: 'slow',
  }, async () => {
    const data = freshFolder();
    await fill({ dataFolder: data });
    const { code, stdout } = await lanescan(['doctor', '--port', '0', '--data', data]);
    expect(stdout).toMatch(/^✓ Disk of .*: \d+\.\d GB free$/m);
    expect(stdout).toMatch(
      /^✓ Size: \d+\.\d MB, and \d+\.\d MB of write-ahead log; \d\.\d kB a message \(1,400\)$/m,
    );
    expect(stdout).toMatch(/^✓ Growth: unknown, with less than an hour of history$/m);
    expect(code).toBe(0);
  });
});
