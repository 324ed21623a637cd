/** Why executions fail, on real contracts of every version: what the receiver did is what people are told. */
import pg from 'pg';
import { encodeErrorResult, type Hex, parseAbi } from 'viem';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import type { Attempts, Reason } from '../../src/api/schemas/attempts.ts';
import { attemptsOf as attemptsIn } from '../../src/domain/attempts.ts';
import type { Message } from '../../src/domain/message.ts';
import { openTestStore } from '../database.ts';
import { type RunningServer, startServer } from '../http/running-server.ts';
import {
  type Contract,
  type Lab,
  type LabNetwork,
  type SentMessage,
  startLab,
  type Version,
  versions,
} from '../lab/lab.ts';
import { ccipContract } from '../lab/solidity.ts';
import { indexOnce } from './indexing.ts';

const errors = parseAbi([
  'error Error(string message)',
  'error Panic(uint256 code)',
  'error EnforcedPause()',
  'error TooSpicy(uint8 level)',
  'error CallFailed(uint256 index, bytes result)',
]);
type Errors = typeof errors;
const encode = (
  errorName: Extract<Errors[number], { type: 'error' }>['name'],
  args: readonly unknown[] = [],
) => encodeErrorResult({ abi: errors, errorName, args } as never);

/** How the receiver refuses, and what people are told. The data is cut off from 2.0 on: some words are lost there. */
const cases: readonly {
  readonly name: string;
  readonly manner: Hex | 'all-gas';
  readonly code: string;
  readonly text: RegExp;
  readonly textOf20?: RegExp;
}[] = [
  {
    name: 'a message',
    manner: encode('Error', ['not today']),
    code: 'Error',
    text: /“not today”/,
    textOf20: /which the off-ramp has cut off/,
  },
  {
    name: 'a failed check of the compiler',
    manner: encode('Panic', [18n]),
    code: 'Panic',
    text: /a division by zero \(panic 18\)/,
  },
  {
    name: 'an error that is known',
    manner: encode('EnforcedPause'),
    code: 'EnforcedPause',
    text: /^The called contract is paused\.$/,
  },
  {
    name: 'an error that is not known',
    manner: encode('TooSpicy', [9]),
    code: 'unknown-error',
    text: new RegExp(`selector ${encode('TooSpicy', [9]).slice(0, 10)}`),
  },
  {
    name: 'an error inside of another',
    manner: encode('CallFailed', [1n, encode('EnforcedPause')]),
    code: 'EnforcedPause',
    text: /paused/,
    textOf20: /CallFailed/,
  },
  { name: 'nothing', manner: '0x', code: 'no-reason', text: /without a reason/ },
  {
    name: 'all its gas',
    manner: 'all-gas',
    code: 'out-of-gas',
    text: /runs out of gas; its gas limit is 200,000/,
  },
];

let lab: Lab;
let server: RunningServer;

beforeAll(async () => {
  lab = await startLab();
  server = await startServer();
}, 180_000);
afterAll(async () => {
  await server?.close();
  await lab?.stop();
});

async function attemptsOf({ messageId }: SentMessage): Promise<Attempts['attempts']> {
  const answer = await server.ask(`/v2/messages/${messageId}/attempts`);
  expect(answer.status).toBe(200);
  return answer.json<Attempts>().attempts;
}

describe.each(versions)('on %s', (version) => {
  test('the reason of every refusal is told, and who tried', {
    tags: version === '1.6' ? [] : ['slow'],
  }, async () => {
    const lane = lab.lane(version, 'a');
    await lane.replaceRamps();
    const messages: SentMessage[] = [];
    for (const _ of cases) messages.push(await lane.sendOne({ data: '0x1234' }));
    if (version !== '2.0') await lane.commit(messages);
    if (version === '1.2' || version === '1.5') await lane.bless(messages);
    for (const [index, { manner }] of cases.entries()) {
      const message = messages[index] as SentMessage;
      await lane.refuseWith(message, manner);
      await lane.execute(message, { fail: true });
    }
    const rescued = messages[0] as SentMessage;
    await lane.executeByHand(rescued);
    await indexOnce(server.store, lab);

    for (const [index, { name, code, text, textOf20 }] of cases.entries()) {
      const message = messages[index] as SentMessage;
      const attempts = await attemptsOf(message);
      const [first] = attempts;
      expect(first, name).toMatchObject({
        outcome: 'FAILED',
        caller: expect.stringMatching(/^0x[0-9a-f]{40}$/i),
      });
      expect(first?.gasUsed, name).toEqual(version === '1.6' ? expect.stringMatching(/^\d+$/) : null);
      const isCut = version === '2.0' && textOf20 !== undefined;
      // Without the gas that was used, a revert without data may always be for want of gas.
      const expected = code === 'no-reason' && version !== '1.6' ? 'out-of-gas' : code;
      if (!isCut || code === 'Error') expect(first?.reason?.code, name).toBe(expected);
      expect(first?.reason?.text, name).toMatch(isCut ? textOf20 : text);
      expect(first?.reason?.wrappers[0]?.name, name).toBe('ReceiverError');
      expect(attempts.slice(1).map(({ outcome }) => outcome)).toEqual(message === rescued ? ['SUCCESS'] : []);
    }
  });
});

/** How the token or its pool on the destination refuses, and what people are told. */
const poolCases: readonly {
  readonly name: string;
  readonly code: string;
  readonly text: RegExp;
  readonly fixableBy: Reason['fixableBy'];
  refuse(site: PoolSite): Promise<unknown>;
  allow(site: PoolSite): Promise<unknown>;
}[] = [
  {
    name: 'a rate limit that is used up',
    code: 'TokenRateLimitReached',
    text: /^The token pool's rate limit is used up/,
    fixableBy: 'anyone',
    refuse: ({ limit }) => limit({ isEnabled: true, capacity: 1_000_000n, rate: 1n }),
    allow: ({ limit }) => limit({ isEnabled: false, capacity: 0n, rate: 0n }),
  },
  {
    name: 'an amount that the rate limit never allows',
    code: 'TokenMaxCapacityExceeded',
    text: /^The amount .*is more than the token pool's rate limit ever allows/,
    fixableBy: 'pool-owner',
    refuse: ({ limit }) => limit({ isEnabled: true, capacity: 2n, rate: 1n }),
    allow: ({ limit }) => limit({ isEnabled: false, capacity: 0n, rate: 0n }),
  },
  {
    name: 'a pool without liquidity',
    code: 'ERC20InsufficientBalance',
    text: /holds .*of a token/,
    fixableBy: 'pool-owner',
    async refuse({ network, token, pool }) {
      await network.rpc('hardhat_impersonateAccount', [pool]);
      await network.rpc('hardhat_setBalance', [pool, '0xde0b6b3a7640000']);
      const [elsewhere] = network.accounts;
      await token.send('transfer', [elsewhere, await token.read<bigint>('balanceOf', [pool])], {
        from: pool,
      });
    },
    allow: ({ token, pool }) => token.send('mint', [pool, 10n ** 27n]),
  },
  {
    name: 'a paused token',
    code: 'EnforcedPause',
    text: /^The called contract is paused\.$/,
    fixableBy: 'pool-owner',
    refuse: ({ token }) => token.send('setPaused', [true]),
    allow: ({ token }) => token.send('setPaused', [false]),
  },
];

interface PoolSite {
  readonly network: LabNetwork;
  readonly token: Contract;
  readonly pool: Hex;
  /** Sets the limit on what comes in. */
  limit(config: { isEnabled: boolean; capacity: bigint; rate: bigint }): Promise<unknown>;
}

function poolSite(version: Version): PoolSite {
  const network = lab.b;
  const pool = network.contracts[version]?.pool;
  if (!pool) throw new Error(`The lab has no pool of ${version}`);
  const release = version === '1.2' ? 'v1_4_0' : 'v1_5_1';
  const contract = network.contract(pool, ccipContract(`${release}/lock_release_token_pool`).abi);
  const unlimited = { isEnabled: false, capacity: 0n, rate: 0n };
  return {
    network,
    token: network.foundation.tokens[0],
    pool,
    limit: (config) =>
      contract.send('setChainRateLimiterConfig', [lab.a.selector, unlimited, config], {
        from: network.foundation.accounts[version].owner,
      }),
  };
}

describe.each(versions)('a token pool of %s', (version) => {
  test('that refuses is told as such, with the reason', { tags: 'slow' }, async () => {
    const lane = lab.lane(version, 'a');
    await lane.replaceRamps();
    const site = poolSite(version);
    const messages: SentMessage[] = [];
    for (const _ of poolCases) messages.push(await lane.sendOne({ tokens: [{ amount: 900_000n }] }));
    if (version !== '2.0') await lane.commit(messages);
    if (version === '1.2' || version === '1.5') await lane.bless(messages);
    for (const [index, { refuse, allow }] of poolCases.entries()) {
      await refuse(site);
      const { state } = await lane.execute(messages[index] as SentMessage);
      await allow(site);
      expect(state).toBe('failure');
    }
    await indexOnce(server.store, lab);
    for (const [index, { name, code, text, fixableBy }] of poolCases.entries()) {
      const [attempt] = await attemptsOf(messages[index] as SentMessage);
      expect(attempt?.reason, name).toMatchObject({
        code,
        fixableBy,
        text: expect.stringMatching(text),
      });
      expect(attempt?.reason?.text, name).not.toMatch(/unknown|undefined/);
      expect(
        attempt?.reason?.wrappers.map((wrapper) => wrapper.name),
        name,
      ).toContain('TokenHandlingError');
    }
  });
});

test('an attempt in a block that a reorganisation removed is shown as removed', async () => {
  const lane = lab.lane('1.6', 'a');
  await lane.replaceRamps();
  const message = await lane.sendOne({ data: '0x12' });
  await lane.commit([message]);
  await lane.refuseWith(message, encode('EnforcedPause'));
  const fork = await lab.b.fork();
  const { blockHash } = await lane.execute(message, { fail: true });
  await indexOnce(server.store, lab);
  expect(await attemptsOf(message)).toMatchObject([{ blockHash, removedAt: null }]);
  await fork.abandon();
  await indexOnce(server.store, lab);
  expect(await attemptsOf(message)).toMatchObject([
    { blockHash, outcome: 'FAILED', removedAt: expect.any(String), reason: { code: 'EnforcedPause' } },
  ]);
  const again = await lane.execute(message, { fail: true });
  await indexOnce(server.store, lab);
  expect(
    (await attemptsOf(message)).map((attempt) => [attempt.blockHash, attempt.removedAt === null]),
  ).toEqual(
    expect.arrayContaining([
      [blockHash, false],
      [again.blockHash, true],
    ]),
  );
});

test('a message that nobody has executed has no attempts; one that is not known is not found', async () => {
  const message = await lab.lane('1.6', 'b').sendOne();
  await indexOnce(server.store, lab);
  expect(await attemptsOf(message)).toEqual([]);
  const unknown = await server.ask(`/v2/messages/0x${'ab'.repeat(32)}/attempts`);
  expect(unknown.status).toBe(404);
});

test('a store of an earlier version reads in what its executions returned', async () => {
  const store = await openTestStore();
  onTestFinished(() => store.close());
  const lane = lab.lane('1.6', 'b');
  await lane.replaceRamps();
  const message = await lane.sendOne({ data: '0x12' });
  await lane.commit([message]);
  await lane.refuseWith(message, encode('EnforcedPause'));
  await lane.execute(message, { fail: true });
  await indexOnce(store, lab);
  const reasonNow = async () => {
    const found = await store.messageExecutions(message.messageId.slice(2));
    const attempts = attemptsIn(JSON.parse(found?.record ?? '') as Message, found?.facts ?? []);
    expect(attempts).toHaveLength(1);
    return attempts[0]?.reason?.code;
  };
  expect(await reasonNow()).toBe('EnforcedPause');

  // As the migration leaves a store that was indexed before there were details.
  const client = new pg.Client(store.url);
  await client.connect();
  onTestFinished(() => client.end());
  await client.query(`delete from fact where kind = 'ExecutionDetails'`);
  await client.query('update index_network set lacks_attempts = true');
  expect(await reasonNow()).toBeUndefined();

  await indexOnce(store, lab);
  expect(await reasonNow()).toBe('EnforcedPause');
  const { rows } = await client.query('select distinct lacks_attempts from index_network');
  expect(rows).toEqual([{ lacks_attempts: false }]);
});
