/** `lanescan search`, `show` and the help of every verb, as processes. */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import type { Message } from '../../src/domain/message.ts';
import { openStore } from '../../src/store/store.ts';
import { createTestDatabase, provideTestDatabase } from '../database.ts';
import {
  evmAddress,
  fuji,
  makeMessage,
  makeSnapshot,
  makeToken,
  makeVerifier,
  networkInfo,
  sepolia,
  solanaDevnet,
} from '../fixtures.ts';
import {
  buildProgram,
  hasTerminal,
  lanescan,
  lanescanOn,
  onTerminal,
  runProgram,
  type Setting,
  shell,
  withoutColours,
} from './program.ts';

const { version } = JSON.parse(readFileSync(path.resolve('package.json'), 'utf8'));
const secondsAgo = (seconds: number) => new Date(Date.now() - seconds * 1000).toISOString();

/** Names as an attacker of the reader's terminal would write them. */
const hostile = '\u001b[31mEvil\u001b]0;owned\u0007\u202eNet\n\u009b2J';

const success = makeMessage({ number: 1, status: 'SUCCESS', sendTimestamp: secondsAgo(3 * 60 + 5) });
const failed = makeMessage({
  number: 2,
  status: 'FAILED',
  sendTimestamp: secondsAgo(3 * 3600 + 60),
  tokenAmounts: [makeToken(sepolia, fuji, 'LINK'), makeToken(sepolia, fuji, 'USDC')],
});
const toSolana = makeMessage({
  number: 3,
  status: 'SOURCE_FINALIZED',
  sendTimestamp: secondsAgo(2 * 86_400 + 60),
  destNetworkInfo: solanaDevnet,
});
const verifying = makeMessage({
  number: 4,
  status: 'VERIFYING',
  version: '2.0.0',
  finality: 10,
  sendTimestamp: secondsAgo(9 * 86_400),
  executor: { address: evmAddress('executor') },
  verifiers: {
    items: [
      makeVerifier('Alice', { completedAt: '2026-01-01T00:00:30.000Z' }),
      makeVerifier('Bob'),
      makeVerifier('Carol \u001b[5m', { isRequired: false }),
    ],
    optionalThreshold: 1,
  },
  fees: {
    fixedFeesDetails: {
      tokenAddress: evmAddress('link'),
      totalAmount: '1000000',
      items: [
        { contractAddress: evmAddress('fee a'), feeType: 'VERIFIER', amount: '400000' },
        { contractAddress: evmAddress('fee b'), feeType: 'TOKEN_POOL', amount: '600000' },
      ],
    },
  },
});
const evil = makeMessage({
  number: 5,
  status: 'COMMITTED',
  readyForManualExecution: true,
  sendTimestamp: secondsAgo(30 * 86_400),
  sourceNetworkInfo: { ...networkInfo('ethereum-testnet-sepolia-base-1'), displayName: hostile },
});
const newestFirst = [success, failed, toSolana, verifying, evil];

const [few, many, empty] = [provideTestDatabase(), provideTestDatabase(), provideTestDatabase()];
const MANY = 2_500;

async function fill({ url }: { readonly url: string }, messages: readonly Message[]): Promise<void> {
  const store = await openStore({ place: { url } });
  await store.apply(messages.map(makeSnapshot));
  await store.close();
}

beforeAll(async () => {
  await buildProgram();
  await fill(few, newestFirst);
  await fill(
    many,
    Array.from({ length: MANY }, (_, i) => makeMessage({ number: i + 1 })),
  );
});

const inFew = (env: Record<string, string> = {}): Setting => ({ env: { DATABASE_URL: few.url, ...env } });
const search = (...args: readonly string[]) => lanescanOn(few, 'search', ...args);
const idsIn = (lines: string) =>
  lines
    .trimEnd()
    .split('\n')
    .map((line) => (JSON.parse(line) as Message).messageId);
const inMany = (): Setting => ({ env: { DATABASE_URL: many.url } });

describe('help and usage', () => {
  test('every verb has help with examples', async () => {
    const { stdout, code } = await lanescan(['--help']);
    expect(code).toBe(0);
    const verbs = [
      ...['serve', 'import', 'export', 'mirror', 'search', 'show', 'lanes', 'audit', 'migrate', 'doctor'],
      ...['webhooks', 'demo', 'backup', 'config', 'completion'],
    ];
    for (const verb of verbs) expect(stdout).toMatch(new RegExp(`^  ${verb} `, 'm'));
    expect(stdout).toContain('Examples:');
    const helps = await Promise.all(verbs.map((verb) => lanescan([verb, '--help'])));
    for (const [i, help] of helps.entries()) {
      expect(help.code).toBe(0);
      expect(help.stdout).toMatch(new RegExp(`^Usage: lanescan ${verbs[i]}`));
      expect(help.stdout).toMatch(/Examples:\n {2}\$ /);
      expect(help.stderr).toBe('');
    }
  });

  test('--version prints the version alone', async () => {
    expect(await runProgram(['--version'])).toEqual({ code: 0, stdout: `${version}\n`, stderr: '' });
  });

  test('the command is found through a link, as packages make them, and gives Node its settings', {
    tags: 'slow',
  }, () => {
    const tell = 'data:text/javascript,console.error(process.execArgv.join())';
    const program = path.resolve('bin/lanescan');
    const linked = shell(`ln -s '${program}' ./linked && NODE_OPTIONS='--import=${tell}' ./linked --version`);
    const stderr = '--min-semi-space-size=32,--max-semi-space-size=32\n';
    expect(linked).toEqual({ code: 0, stdout: `${version}\n`, stderr });
  });

  const account = evmAddress('sender');
  const [earlier, later] = ['2026-01-01T00:00:00Z', '2026-02-01T00:00:00Z'];
  test.each<[command: string, hint: RegExp]>([
    ['serch', /unknown command 'serch'\n\(Did you mean search\?\)/],
    ['search --limti 3', /unknown option '--limti'\n\(Did you mean --limit\?\)/],
    [
      'search --limit 0',
      /^lanescan: --limit takes a whole number from 1 to 1000\nTry: lanescan search --help$/m,
    ],
    ['search --limit 1 --limit 2', /--limit is given more than once/],
    ['search --sender ', /--sender is empty/],
    ['search --sender zz --status FAILD', /--sender takes an address.*\n.*--status .* did you mean FAILED/],
    [`search --sent-after ${later} --sent-before ${earlier}`, /--sent-before must be later than --sent/],
    ['search --cursor nonsense', /--cursor is damaged or was not issued by this service/],
    [`search --cursor x --sender ${account}`, /--sender cannot be combined with --cursor/],
    [
      'search --source ethereum-testnet-sepola',
      /unknown network, .* did you mean ethereum-testnet-sepolia\?/,
    ],
    ['search --dest arbitrum', /did you mean ethereum-mainnet-arbitrum-1, .* or another of \d+\?/],
    ['search sepolia to nowhere-at-all', /--dest is an unknown network, "nowhere-at-all"/],
    ['search 0x1234…5678', /is not a message id.*nor a token or label/],
    [`search ${account} --q ${account}`, /--q is given more than once/],
    ['search --url lanescan.example', /--url is not a valid URL/],
    ['search --url http://127.0.0.1:9 --data x', /--url and --data exclude each other/],
    ['show', /missing required argument 'id'/],
    ['show hello', /"hello" is not a message id\./],
    ['show 0x12345', /its first 6 are enough; "0x12345" is too short/],
    ['import', /missing required argument 'file'/],
    ['serve --port http', /--port is "http"\. It takes a port from 0 to 65535/],
  ])('%s exits 2 with a hint', async (command, hint) => {
    const { code, stdout, stderr } = await lanescanOn(few, ...command.split(' '));
    expect(stderr).toMatch(hint);
    expect(stderr).toMatch(/^lanescan: /);
    expect([code, stdout]).toEqual([2, '']);
  });
});

describe('search', () => {
  test('in a pipe: whole ids, no colours, the footer beside it', async () => {
    const { code, stdout, stderr } = await search();
    const [titles, ...lines] = stdout.trimEnd().split('\n');
    expect(titles).toMatch(/^STATUS +LANE +MESSAGE +SENDER → RECEIVER +TOKENS +AGE$/);
    expect(lines.map((line) => /0x[0-9a-f]{64}/.exec(line)?.[0])).toEqual(
      newestFirst.map(({ messageId }) => messageId),
    );
    expect(lines[0]).toMatch(
      /^✓ SUCCESS +Ethereum Sepolia → Avalanche Fuji +0x\S+ {2}0x\w{40} → 0x\w{40} +– +\d+ min$/,
    );
    expect(lines[1]).toMatch(/^✗ FAILED .* 2 +3 h +needs action$/);
    expect(lines[2]).toMatch(/^◔ SOURCE_FINALIZED +Ethereum Sepolia → Solana Devnet .* 2 d$/);
    expect(stdout).not.toContain('\u001b');
    expect(stderr).toBe('5 messages shown\n');
    expect(code).toBe(0);
  });

  test.runIf(hasTerminal).each([60, 80, 120, 200])(
    'on a terminal of %i columns no line is wider',
    { tags: 'slow' },
    (columns) => {
      const { code, lines } = onTerminal(columns, 'lanescan search', inFew());
      const shown = lines.map(withoutColours);
      const rows = shown.slice(1, 6);
      expect(code).toBe(0);
      expect(Math.max(...rows.map((line) => [...line].length))).toBeLessThanOrEqual(columns);
      const starts = [...(shown[0] ?? '').matchAll(/\S+(?: → \S+)?/g)].map(({ index }) => index);
      for (const row of rows)
        for (const start of starts.slice(1, 3)) expect(row.slice(start - 2, start)).toBe('  ');
      expect(rows[0]).toContain('✓ SUCCESS');
      expect(rows[1]).toMatch(columns >= 120 ? /needs action$|!$/ : /!$/);
      const id = failed.messageId;
      const [head, tail] = columns === 60 ? [8, 4] : [10, 6];
      expect(rows[1]).toContain(columns === 200 ? id : `${id.slice(0, head)}…${id.slice(-tail)}`);
      expect(rows[1]).toMatch(/3 h/);
      if (columns >= 80) expect(rows[0]).toMatch(/Ethereum Sep.* → Avalanche Fuji/);
      if (columns === 200) expect(rows[0]).toMatch(/0x\w{8}…\w{6} → 0x\w{8}…\w{6}/);
      expect(shown.at(-1)).toBe('5 messages shown');
      expect(lines.join('\n')).toContain('\u001b[32m');
    },
  );

  test.runIf(hasTerminal)('NO_COLOR and a dumb terminal get no colours', { tags: 'slow' }, () => {
    for (const env of [{ NO_COLOR: '1' }, { TERM: 'dumb' }] as Record<string, string>[]) {
      expect(onTerminal(80, 'lanescan search', inFew(env)).lines.join('\n')).not.toContain('\u001b');
    }
  });

  test.runIf(hasTerminal)(
    'hostile names cannot reach the terminal, in a table, a record or JSON',
    { tags: 'slow' },
    () => {
      const { messageId } = evil;
      for (const verb of ['search', `show ${messageId}`, 'search --json', `show ${messageId} --json`]) {
        const { code, lines } = onTerminal(200, `lanescan ${verb}`, inFew());
        const text = withoutColours(lines.join('\n'));
        expect(code).toBe(0);
        // biome-ignore lint/suspicious/noControlCharactersInRegex: just those must not be there
        expect(text).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202a-\u202e]/);
        expect(text).toContain('Evil');
      }
    },
  );

  test('--json is one record a line, byte for byte as stored, and nothing else', async () => {
    const { stdout } = await search('--json');
    const records = stdout.trimEnd().split('\n');
    expect(records.map((record) => JSON.parse(record))).toEqual(newestFirst);
    expect(stdout).toContain('\u202e');
  });

  test('--all walks every page once, and what it prints can be imported again', {
    tags: 'slow',
  }, async () => {
    const { stdout, stderr } = shell('lanescan search --all --json --limit 300', inMany());
    const ids = idsIn(stdout);
    expect(new Set(ids).size).toBe(MANY);
    expect(ids).toHaveLength(MANY);
    expect(stderr).toBe('2,500 messages shown\n');
    const copy = await createTestDatabase();
    onTestFinished(() => copy.drop());
    const piped = `lanescan search --all --json | DATABASE_URL='${copy.url}' lanescan import -`;
    const again = shell(piped, inMany());
    expect(again.stdout).toContain('stdin: 2,500 new, 0 updated, 0 unchanged, 0 rejected');
    const copied = shell('lanescan search --all --json', { env: { DATABASE_URL: copy.url } });
    // Not shown by a difference of megabytes.
    expect(copied.stdout === stdout).toBe(true);
  });

  test('a table of many pages has its titles once', { tags: 'slow' }, () => {
    const { stdout } = shell('lanescan search --all --limit 1000', inMany());
    expect(stdout.match(/^STATUS/gm)).toHaveLength(1);
    expect(stdout.trimEnd().split('\n')).toHaveLength(MANY + 1);
  });

  test('a reader that leaves early ends the walk quietly', { tags: 'slow' }, () => {
    const piped = 'set -o pipefail; lanescan search --all --json --limit 5 | head -2 | grep -c .';
    expect(shell(piped, inMany())).toEqual({ code: 0, stdout: '2\n', stderr: '' });
  });

  test.each<[filter: string, found: readonly Message[]]>([
    ['--status FAILED,SUCCESS', [success, failed]],
    ['--dest solana-devnet', [toSolana]],
    ['--dest solana_devnet --source 11155111', [toSolana]],
    [`--dest-chain-selector ${solanaDevnet.chainSelector}`, [toSolana]],
    ['--ready-for-manual-exec-only', [failed, evil]],
    ['--ready-for-manual-exec-only --status FAILED', [failed]],
    [`--source-token-address ${makeToken(sepolia, fuji, 'USDC').sourceTokenAddress}`, [failed]],
    [`--source-transaction-hash ${success.sendTransactionHash.toUpperCase().replace('0X', '0x')}`, [success]],
    [`--message-id ${evil.messageId},${success.messageId}`, [success, evil]],
    [`--q ${toSolana.receiver}`, [toSolana]],
  ])('the filter %s', async (filter, expected) => {
    const { stdout } = await search('--json', ...filter.split(' '));
    expect(idsIn(stdout)).toEqual(expected.map(({ messageId }) => messageId));
  });

  test('nothing found is told in words and is no failure', async () => {
    const neither = /No message matches all of these filters.*999999999999 is neither a selector/;
    expect(await search('--status', 'BLESSED', '--dest', '999999999999')).toEqual({
      ...{ code: 0, stdout: '' },
      stderr: expect.stringMatching(neither),
    });
    expect(await lanescanOn(empty, 'search')).toEqual({
      ...{ code: 0, stdout: '' },
      stderr: expect.stringContaining('lanescan import'),
    });
  });
});

describe('show', () => {
  const show = (id: string, ...args: readonly string[]) => lanescanOn(few, 'show', id, ...args);
  const shown = async ({ messageId }: Message) => {
    const { stdout } = await show(messageId);
    expect(stdout).not.toMatch(/undefined|null|NaN|\[object/);
    expect(stdout).not.toContain('\u001b');
    return stdout;
  };

  test('an EVM to EVM message', async () => {
    const text = await shown(success);
    expect(text).toMatch(/^✓ SUCCESS {3}Ethereum Sepolia → Avalanche Fuji {3}CCIP 1\.6\.0\n0x[0-9a-f]{64}\n/);
    expect(text).toMatch(/Sent +\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC {3}\d+ min ago/);
    expect(text).toMatch(/Executed .* after 1 min$/m);
    for (const key of ['sender', 'origin', 'receiver', 'onramp', 'sendTransactionHash'] as const)
      expect(text).toContain(success[key]);
    expect(text).toMatch(/Gas limit +200,000/);
    expect(text).toMatch(/Data {2}5 bytes\n +Hex +0x68656c6c6f\n +Text +"hello"/);
  });

  test('an EVM to SVM message that is on its way', async () => {
    const text = await shown(toSolana);
    expect(text).toMatch(/Executed +not yet/);
    expect(text).toMatch(/Compute units +200,000/);
    expect(text).toContain(toSolana.receiver);
    expect(text).not.toContain('Gas limit');
  });

  test('a 2.0 message with verifiers, executor and the parts of its fee', async () => {
    const text = await shown(verifying);
    expect(text).toContain('Verifiers  1 of 2 required done · 0 of 1 optional done, 1 needed');
    expect(text).toMatch(/Alice +✓ completed 2026-01-01 00:00:30 UTC {3}required/);
    expect(text).toMatch(/Carol .*○ pending {3}optional/);
    expect(text).toMatch(/Executor +0x/);
    expect(text).toMatch(/Finality +10 block confirmations/);
    expect(text).toMatch(/Total +1000000\n +verifier +400000 {3}to 0x\w{40}\n +token pool +600000/);
  });

  test('a failed message says what it means and what to do', async () => {
    const text = await shown(failed);
    const byHand = (id: string, ...args: readonly string[]) =>
      ['$ ccip-cli manual-exec', id, ...args].join(' ');
    expect(text).toMatch(/The execution failed\n {2}It reached Avalanche Fuji, but its execution there/);
    expect(text).toContain(byHand(failed.messageId, '--api http://127.0.0.1:8080 --rpc $DEST_RPC'));
    expect(text).toContain(byHand(failed.sendTransactionHash, '--log-index 3 --rpc $SOURCE_RPC'));
    expect(text).toMatch(/Token 1 of 2\n[\s\S]*Token 2 of 2\n/);
    const waiting =
      'Waiting for manual execution\n  It reached Avalanche Fuji, but it was not executed there';
    expect(await shown(evil)).toContain(waiting);
  });

  test('an id may be shortened as the table does it, or to its first digits', async () => {
    const { messageId } = failed;
    const shortened = `${messageId.slice(0, 10)}…${messageId.slice(-6)}`;
    for (const id of [shortened, messageId.slice(0, 9), messageId.slice(2).toUpperCase()])
      expect(JSON.parse((await show(id, '--json')).stdout)).toEqual(failed);
  });

  test('an unknown id exits 1 and says where to look', async () => {
    const id = success.sendTransactionHash;
    const stderr = `lanescan: Message ${id} not found. If it is a transaction: lanescan search ${id}\n`;
    expect(await show(id)).toEqual({ code: 1, stdout: '', stderr });
  });
});
