/** `lanescan lanes` and `lanescan audit`, as people and scripts see them. */
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import type { CliContext } from '../../src/cli/context.ts';
import { createProgram } from '../../src/cli/main.ts';
import { cellsOf } from '../../src/cli/output/terminal-text.ts';
import type { Store } from '../../src/store/store.ts';
import { lanescan, withoutColours } from '../cli/program.ts';
import { openTestStore } from '../database.ts';
import { fuji, makeMessage, makeSnapshot, sepolia, solanaDevnet } from '../fixtures.ts';

const DAY_MS = 86_400_000;
let store: Store & { readonly url: string };
const run = (...args: readonly string[]) => lanescan(args, { env: { DATABASE_URL: store.url } });

/** The same on a terminal so many cells wide. */
async function onTerminal(columns: number, ...args: readonly string[]): Promise<string[]> {
  let shown = '';
  const terminal = {
    write(text: string, done?: () => void) {
      shown += text;
      done?.();
      return true;
    },
    isTTY: true,
    columns,
  };
  const context = {
    environment: { DATABASE_URL: store.url, TERM: 'xterm' },
    input: process.stdin,
    out: terminal,
    err: terminal,
    now: Date.now,
    signal: new AbortController().signal,
    exitCode: 0,
  } satisfies CliContext;
  await createProgram(context).parseAsync(['node', 'lanescan', ...args]);
  return shown.trimEnd().split('\n');
}

beforeAll(async () => {
  store = await openTestStore();
  const yesterday = Date.now() - DAY_MS;
  await store.apply(
    [
      ...Array.from({ length: 20 }, (_, i) =>
        makeMessage({
          number: i + 1,
          status: 'SUCCESS',
          sendTimestamp: new Date(yesterday).toISOString(),
          receiptTimestamp: new Date(yesterday + 600_000).toISOString(),
          deliveryTime: 600_000,
        }),
      ),
      makeMessage({ number: 21, status: 'FAILED' }),
      makeMessage({ number: 25, sendTimestamp: new Date(yesterday).toISOString() }),
      ...[1, 2].map((number) => makeMessage({ number: 100 + number, destNetworkInfo: solanaDevnet })),
      makeMessage({
        number: 200,
        sourceNetworkInfo: { ...fuji, displayName: 'A network \u001b[31mwith a very long name indeed' },
        destNetworkInfo: sepolia,
      }),
    ].map(makeSnapshot),
  );
});
afterAll(() => store.close());

describe('lanescan lanes', () => {
  test('in a pipe has every column in full, and the count beside it', async () => {
    const { code, stdout, stderr } = await run('lanes');
    expect(code).toBe(0);
    const [titles = '', first = '', ...rest] = stdout.trimEnd().split('\n');
    expect(titles).toMatch(
      /^LANE +VERSION +MESSAGES +IN FLIGHT +OVERDUE +FAILED +MANUAL +P50 +P99 +LAST SENT +MISSING$/,
    );
    expect(first).toMatch(/^Ethereum Sepolia → \S.*? +1\.6\.0 +22 +1 +1 +1 +1 +(9|10) min \d+ s .* 1 d +3$/);
    expect(rest).toHaveLength(2);
    expect(stderr).toBe('3 lanes\n');
  });

  test.each([40, 60, 80, 100, 120, 200])(
    'on a terminal of %i cells never wraps, and keeps what matters',
    async (columns) => {
      const lines = await onTerminal(columns, 'lanes');
      for (const line of lines) expect(cellsOf(withoutColours(line))).toBeLessThanOrEqual(columns);
      const [titles = '', first = ''] = lines.map(withoutColours);
      expect(titles).toMatch(/^LANE.* MESSAGES.* MISSING$/);
      expect(first).toMatch(/ → .* 22.* 3$/);
      expect(titles.includes('P99')).toBe(columns >= 120);
      expect(lines.join('')).not.toContain('\u001b[31mwith');
      expect(lines.at(-1)).toContain('3 lanes');
    },
  );

  test('takes networks by name, and gives each lane as /v2/lanes does', async () => {
    const ends = ['--source', 'Ethereum Sepolia', '--dest', 'solana-devnet'];
    const { stdout } = await run('lanes', ...ends, '--json');
    const lines = stdout.trimEnd().split('\n');
    expect(lines).toHaveLength(1);
    expect(JSON.parse(lines[0] ?? '')).toMatchObject({
      destNetworkInfo: { name: 'solana-devnet' },
      messages: 2,
      delivery: { windowDays: 30, p50Ms: null },
      onramps: [{ completeness: { present: '2', isComplete: true } }],
    });
  });

  test('rejects what is no network or no window, as wrong usage', async () => {
    const unknown = await run('lanes', '--source', 'sepolja');
    expect(unknown).toMatchObject({ code: 2, stdout: '' });
    expect(unknown.stderr).toContain('is an unknown network, "sepolja"');
    const window = await run('lanes', '--window-days', '0');
    expect(window.code).toBe(2);
    expect(window.stderr).toContain('--window-days takes a whole number from 1 to 365');
  });

  test('says so where there is no such lane', async () => {
    const { code, stdout, stderr } = await run('lanes', '--source', 'solana-devnet');
    expect({ code, stdout }).toEqual({ code: 0, stdout: '' });
    expect(stderr).toContain('No message of this lane is indexed.');
  });
});

describe('lanescan audit', () => {
  test('says of each on-ramp what is missing, and ends with status 1 where anything is', async () => {
    const { code, stdout, stderr } = await run('audit');
    expect(code).toBe(1);
    expect(stdout).toMatch(/^Ethereum Sepolia → .*\n {2}0x\w{40} \(1\.6\.0\) {2}1…25: 3 missing: 22…24\n/);
    expect(stdout).toContain('101…102: none missing');
    expect(stderr).toBe('NOT complete: 3 missing on 1 of 3 on-ramps.\n');
  });

  test('ends with status 0 where the lanes asked for are complete', async () => {
    const { code, stdout, stderr } = await run('audit', '--dest', 'solana-devnet');
    expect(code).toBe(0);
    expect(stdout).toContain('101…102: none missing');
    expect(stderr).toBe('Complete: nothing is missing on this on-ramp.\n');
  });

  test('as JSON gives one on-ramp a line, and the same status', async () => {
    const { code, stdout } = await run('audit', '--json');
    expect(code).toBe(1);
    const objects = stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as object);
    expect(objects).toHaveLength(3);
    expect(objects[0]).toMatchObject({
      sourceNetworkInfo: sepolia,
      destNetworkInfo: fuji,
      version: '1.6.0',
      completeness: { missing: '3', missingRanges: [{ from: '22', to: '24' }] },
    });
  });

  test('does not fill the screen with ranges, but says how many more there are', async () => {
    const holed = await openTestStore();
    onTestFinished(() => holed.close());
    await holed.apply(Array.from({ length: 31 }, (_, i) => makeSnapshot(makeMessage({ number: 2 * i + 1 }))));
    const { code, stdout } = await lanescan(['audit'], { env: { DATABASE_URL: holed.url } });
    expect(code).toBe(1);
    expect(stdout).toContain('1…61: 30 missing: 2, 4, 6,');
    expect(stdout).toContain('38, 40 and 10 more ranges, which --json lists\n');
  });

  test('of an empty store is not known to be complete: it says so, and ends with status 3', async () => {
    const empty = await openTestStore();
    onTestFinished(() => empty.close());
    const { code, stdout, stderr } = await lanescan(['audit'], { env: { DATABASE_URL: empty.url } });
    expect({ code, stdout }).toEqual({ code: 3, stdout: '' });
    expect(stderr).toBe(
      'Nothing to check: whether anything is missing is unknown. ' +
        'There are no messages yet. Load some with `lanescan import`, or try `lanescan demo`.\n',
    );
  });

  test.each([[['--source', 'polygon-mainnet']], [['--dest', 'polygon-mainnet', '--json']]])(
    'of lanes that have no message is not known to be complete: %s',
    async (flags) => {
      const { code, stdout, stderr } = await run('audit', ...flags);
      expect({ code, stdout }).toEqual({ code: 3, stdout: '' });
      expect(stderr).toContain('Nothing to check: whether anything is missing is unknown.');
      expect(stderr).not.toMatch(/nothing is missing|complete:/i);
    },
  );
});
