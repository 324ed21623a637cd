// @module-tag slow: indexes a cluster and runs the program
/** Attempts to execute messages on Solana: what the programs said is what people are told. */
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import type { Attempt, Attempts, Failures } from '../../../src/api/routes/history-schema.ts';
import type { Message } from '../../../src/domain/message.ts';
import { kindNumbers } from '../../../src/store/facts/kinds.ts';
import { type RunningServer, startServer } from '../../api/running-server.ts';
import { startNodeProxy } from '../../chain/node-proxy.ts';
import { lanescan } from '../../cli/program.ts';
import { connectForTest } from '../../postgres.ts';
import { TOKEN_PROGRAM } from '../../solana/ccip-calls.ts';
import { createSolanaWorld, type SolanaWorld } from '../../solana/ccip-world.ts';
import { type SolanaProvider, startSolanaProvider } from '../../solana/endpoint/node.ts';
import { type EvmMessage, messageIdOf } from '../../solana/received-messages.ts';
import { budgetExceeded, customFailure } from '../../solana/runtime/runtime.ts';
import type { ExecuteOptions, TrueExecution } from '../../solana/world-options.ts';
import { indexOnce, sourceOf, storeReceived } from './indexed-world.ts';

const anchorLine = (name: string, number: number) =>
  `AnchorError thrown in programs/any/src/lib.rs:1. Error Code: ${name}. Error Number: ${number}. Error Message: Not this way.`;
const HOSTILE = `\u0000\u001b[31m\u202eUSDC\u2066\ud800${'x'.repeat(4_000)}`;

const cases: readonly (ExecuteOptions & {
  readonly name: string;
  readonly code: string;
  readonly text: RegExp;
  readonly fixableBy: string;
})[] = [
  {
    name: 'the receiver fails with an error of its own',
    failure: customFailure(6_001),
    words: [anchorLine('TooSpicy', 6_001)],
    code: 'TooSpicy',
    text: /^The receiver failed with TooSpicy \(error 6001\), as the program calls it\. It says: “Not this way”/,
    fixableBy: 'receiver-owner',
  },
  {
    name: 'the receiver fails with a number alone',
    failure: customFailure(77),
    code: 'program-error',
    text: /^The receiver failed with its own error 77, which is not known here\./,
    fixableBy: 'receiver-owner',
  },
  {
    name: 'the receiver runs out of compute units',
    failure: budgetExceeded,
    code: 'out-of-compute',
    text: /^The receiver ran out of compute units; the message asks for 80,000 for its receiver\.$/,
    fixableBy: 'anyone',
  },
  {
    name: "the pool's rate limit is used up",
    failing: 'pool',
    failure: customFailure(6_017),
    code: 'RLRateLimitReached',
    text: /rate limit is used up/,
    fixableBy: 'anyone',
  },
  {
    name: 'the pool has no liquidity',
    failing: 'token program',
    failure: customFailure(1),
    words: ['Error: insufficient funds'],
    code: 'InsufficientFunds',
    text: /holds less of the token/,
    fixableBy: 'pool-owner',
  },
  {
    name: 'the off-ramp finds another amount',
    failing: 'off-ramp',
    failure: customFailure(9_032),
    code: 'OfframpReleaseMintBalanceMismatch',
    text: /takes a fee on transfers/,
    fixableBy: 'pool-owner',
  },
  {
    name: 'the receiver fills the log, and then writes short lines that still fit',
    failure: customFailure(79),
    words: ['x'.repeat(7_500), 'y'.repeat(3_000), ...Array.from({ length: 70 }, () => 'z')],
    code: 'program-error',
    text: /^A program of the transaction failed with its own error 79, .*The log was cut off, so that the program is not known\.$/,
    fixableBy: 'unknown',
  },
  {
    name: 'the receiver writes what nobody should see',
    failure: customFailure(78),
    words: [HOSTILE, HOSTILE],
    code: 'program-error',
    text: /^The receiver failed with its own error 78/,
    fixableBy: 'receiver-owner',
  },
];

let world: SolanaWorld;
let provider: SolanaProvider;
let server: RunningServer;
const executed = new Map<EvmMessage, readonly TrueExecution[]>();
let rescued: EvmMessage;
let hurried: EvmMessage;
let harassed: EvmMessage;

beforeAll(async () => {
  world = createSolanaWorld();
  const messages = [...cases, ...cases.slice(0, 3)].map(() => world.receive({ tokens: [5n] }));
  world.commit(messages);
  const run = (message: EvmMessage, options: ExecuteOptions) => {
    const execution = world.execute(message, options) as TrueExecution;
    executed.set(message, [...(executed.get(message) ?? []), execution]);
  };
  for (const [index, options] of cases.entries()) {
    world.cluster.grow(2);
    run(messages[index] as EvmMessage, { outcome: 'failure', ...options });
  }
  [rescued, hurried, harassed] = messages.slice(cases.length) as [EvmMessage, EvmMessage, EvmMessage];
  run(rescued, { outcome: 'failure', failure: budgetExceeded });
  world.cluster.grow(3);
  run(rescued, { isManual: true });
  // Two attempts in one slot, whose logs have the same numbers.
  world.cluster.grow(1);
  run(hurried, { outcome: 'failure', failure: customFailure(81) });
  run(hurried, { outcome: 'failure', failure: customFailure(82) });
  // Anybody can execute a message and let the transaction fail afterwards.
  world.execute(harassed, { outcome: 'later failure', isManual: true });
  world.settle();
  provider = await startSolanaProvider(world.cluster);
  server = await startServer();
  await storeReceived(server.store, world);
  await indexOnce(server.store, sourceOf(world, [provider]));
});
afterAll(async () => {
  await server?.close();
  await provider?.close();
});

async function attemptsOf(message: EvmMessage): Promise<readonly Attempt[]> {
  const answer = await server.ask(`/v2/messages/${messageIdOf(message)}/attempts`);
  expect(answer.status).toBe(200);
  return answer.json<Attempts>().attempts;
}

const messageOf = (index: number) => [...executed.keys()][index] as EvmMessage;

test.each(cases.map((given, index) => [given.name, index] as const))('%s', async (_, index) => {
  const { code, text, fixableBy, failure } = cases[index] as (typeof cases)[number];
  const [execution] = executed.get(messageOf(index)) ?? [];
  const attempts = await attemptsOf(messageOf(index));
  expect(attempts).toMatchObject([
    {
      outcome: 'FAILED',
      transactionHash: execution?.signature,
      blockNumber: execution?.slot,
      caller: expect.stringMatching(/^[1-9A-HJ-NP-Za-km-z]{32,44}$/),
      gasUsed: expect.stringMatching(/^\d+$/),
      returnData: null,
      removedAt: null,
      reason: { code, fixableBy, text: expect.stringMatching(text), advice: expect.stringMatching(/\w/) },
    },
  ]);
  const [attempt] = attempts as [Attempt];
  expect(JSON.parse(attempt.transactionError ?? '')).toMatchObject({
    InstructionError: [expect.any(Number), failure?.error],
  });
  expect(attempt.logs?.some((line) => / failed: /.test(line))).toBe(true);
  expect(attempt.reason?.text).not.toMatch(/undefined/);
});

test('log lines are bounded, and without control and bidirectional characters', async () => {
  for (const message of executed.keys())
    for (const { logs, reason } of await attemptsOf(message)) {
      const text = `${(logs ?? []).join('')}${reason?.text ?? ''}`;
      expect(text).not.toMatch(/\p{Cc}|\p{Cf}|\p{Cs}/u);
      expect(text.length).toBeLessThan(7_000);
      for (const line of logs ?? []) expect(line.length).toBeLessThanOrEqual(300);
    }
});

test('a message that was rescued has both attempts, and who sent them', async () => {
  const [failed, success] = await attemptsOf(rescued);
  expect(failed).toMatchObject({ outcome: 'FAILED', reason: { code: 'out-of-compute' } });
  expect(success).toMatchObject({
    outcome: 'SUCCESS',
    reason: null,
    logs: null,
    transactionError: null,
    gasUsed: expect.stringMatching(/^\d+$/),
  });
  expect(success?.caller).not.toBe(failed?.caller);
});

test('two attempts in one slot keep their own reasons', async () => {
  const attempts = await attemptsOf(hurried);
  expect(attempts.map(({ blockNumber, logIndex }) => `${blockNumber} ${logIndex}`)).toHaveLength(2);
  expect(new Set(attempts.map(({ blockNumber }) => blockNumber)).size).toBe(1);
  expect(attempts.map(({ transactionError }) => transactionError).toSorted()).toEqual([
    expect.stringContaining('{"Custom":81}'),
    expect.stringContaining('{"Custom":82}'),
  ]);
});

test('a message whose execution was taken back by a later instruction has no attempt, and is not FAILED', async () => {
  expect(await attemptsOf(harassed)).toEqual([]);
  const answer = await server.ask(`/v2/messages/${messageIdOf(harassed)}`);
  expect(answer.json<Message>()).toMatchObject({ status: 'COMMITTED', receiptTransactionHash: null });
});

test('failed messages are grouped by what the programs said', async () => {
  const answer = await server.ask('/v2/stats/failures?windowDays=7');
  const { reasons } = answer.json<Failures>();
  const codes = reasons.map(({ code }) => code);
  for (const { code } of cases) expect(codes).toContain(code);
  const limit = reasons.find(({ code }) => code === 'RLRateLimitReached');
  expect(limit).toMatchObject({
    title: "The token or its pool says: the token pool's rate limit is used up",
    messages: 1,
  });
});

describe('lanescan show', () => {
  test('has reason, error and log lines, and no control characters', async () => {
    const index = cases.findIndex(({ failing }) => failing === 'token program');
    const shown = await lanescan(['show', messageIdOf(messageOf(index)), '--url', server.url]);
    expect(shown.code).toBe(0);
    expect(shown.stdout).toContain('holds less of the token');
    expect(shown.stdout).toMatch(/Said by +the token or its pool, which may claim anything/);
    expect(shown.stdout).toContain(`InsufficientFunds(program: ${TOKEN_PROGRAM}, number: 1)`);
    expect(shown.stdout).toContain('Program log: Error: insufficient funds');
    expect(shown.stdout).toMatch(/Compute units +\d+/);
    const hostile = await lanescan(['show', messageIdOf(messageOf(cases.length - 1)), '--url', server.url]);
    expect(hostile.stdout.replaceAll('\n', '')).not.toMatch(/\p{Cc}|\p{Cf}/u);
  });
});

test('a store that was indexed before reads in how executions failed, as pending slots that progress shows meanwhile', async () => {
  const client = await connectForTest(server.store.url);
  await client.query(`delete from fact where kind = ${kindNumbers.ExecutionDetails}`);
  await client.query('update index_network set lacks_attempts = true');
  expect((await attemptsOf(messageOf(0))).map(({ reason }) => reason)).toEqual([null]);
  // Held up: the endpoint answers for no transaction.
  const proxy = await startNodeProxy(provider.url.href);
  onTestFinished(proxy.close);
  let release: () => void = () => undefined;
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  proxy.interfere = ({ method }, truth) => (method === 'getTransaction' ? held.then(() => truth) : truth);
  const source = { ...sourceOf(world, [provider]), rpc: [proxy.url] };
  await indexOnce(server.store, source, { until: ([status]) => (status?.worker?.owedBlocks ?? 0) > 0 });
  const pendingSlots = async () => (await server.store.networkProgress()).map(({ owedBlocks }) => owedBlocks);
  expect(await pendingSlots()).toEqual([expect.toSatisfy((slots) => slots > 0)]);
  release();
  await indexOnce(server.store, sourceOf(world, [provider]));
  expect(await pendingSlots()).toEqual([0]);
  expect((await attemptsOf(messageOf(0))).map(({ reason }) => reason?.code)).toEqual(['TooSpicy']);
  const { rows } = await client.query('select lacks_attempts from index_network');
  expect(rows).toEqual([{ lacks_attempts: false }]);
});
