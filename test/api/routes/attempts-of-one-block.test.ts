/** Attempts of one block: the last one is the one that counts, with its own details, however many there are. */
import { base58 } from '@scure/base';
import { describe, expect, test } from 'vitest';
import type { Attempts, Failures, MessageReasons } from '../../../src/api/routes/history-schema.ts';
import type { Executed, ExecutionDetails, Observation } from '../../../src/domain/facts.ts';
import { MAX_ATTEMPTS } from '../../../src/domain/filters/query.ts';
import type { Message } from '../../../src/domain/message.ts';
import {
  fuji,
  hashOf,
  makeExecuted,
  makeExecutionDetails,
  makeMessage,
  makeSent,
  sepolia,
  solanaDevnet,
} from '../../fixtures.ts';
import { startServer } from '../running-server.ts';

const OFF_RAMP = 'offVkroQ4wYMv6QFPBvJazAx2p8BnLh7sJRdyQ5GYfx';
const SLOT = { blockHash: '8pJ3vQ7mC1zq2nS4xT6uY9wB5kD2fG7hL3aE6rM1oPqN' };

/** One attempt: its outcome, and what was left behind. */
function attempt(
  message: Message,
  success: boolean,
  seen: Partial<Observation>,
  left: Partial<ExecutionDetails> = {},
): readonly [Executed, ExecutionDetails] {
  const executed = makeExecuted(message, success, 5000);
  const details = makeExecutionDetails(message, '0x', 5000);
  const at = { ...executed.seen, ...seen };
  return [
    { ...executed, seen: at },
    { ...details, ...left, seen: at },
  ];
}

/** On Solana, whose logs are counted within their transaction. */
const onSolana = (message: Message, success: boolean, name: string, logIndex: number, number = 0) =>
  attempt(
    message,
    success,
    { ...SLOT, transactionHash: base58.encode(new Uint8Array(64).fill(name.charCodeAt(0))), logIndex },
    {
      returnData: null,
      ...(!success && {
        failure: {
          offRamp: OFF_RAMP,
          roles: {},
          error: JSON.stringify({ InstructionError: [1, { Custom: number }] }),
          logs: [`Program ${OFF_RAMP} failed: custom program error: 0x${number.toString(16)}`],
        },
      }),
    },
  );

const solana = (number: number) =>
  makeMessage({
    number,
    sourceNetworkInfo: sepolia,
    destNetworkInfo: solanaDevnet,
    sendTimestamp: new Date().toISOString(),
  });

const lastOf = async (ask: (path: string) => Promise<{ json<T>(): T }>, { messageId }: Message) =>
  (await ask(`/v2/messages/${messageId}/attempts`)).json<Attempts>().attempts.at(-1);

describe('on Solana', () => {
  test('a message that was executed does not end with an attempt that failed in the same slot', async () => {
    const { store, ask } = await startServer();
    const message = solana(1);
    // The failed transaction has more log lines than the one that succeeded.
    await store.apply([
      makeSent(message),
      ...onSolana(message, true, 'A', 40),
      ...onSolana(message, false, 'B', 200),
    ]);
    expect((await ask(`/v2/messages/${message.messageId}`)).json<Message>().status).toBe('SUCCESS');
    expect(await lastOf(ask, message)).toMatchObject({ outcome: 'SUCCESS', logIndex: 40 });
    const { data } = (
      await ask(`/v2/messages/reasons?messageId=${message.messageId}`)
    ).json<MessageReasons>();
    expect(data).toEqual([]);
  });

  test('many attempts in one slot each have their reason, and the last is the one of the record', async () => {
    const { store, ask } = await startServer([], { failureReportMaxAgeMs: 0 });
    const message = solana(2);
    const names = [...'CDEFGHJKLMNP'];
    await store.apply([
      makeSent(message),
      ...names.flatMap((name, index) => onSolana(message, false, name, 300 - index, 9_100 + index)),
    ]);
    const answer = (await ask(`/v2/messages/${message.messageId}/attempts`)).json<Attempts>();
    expect(answer.attempts).toHaveLength(names.length);
    for (const { reason } of answer.attempts) expect(reason).not.toBeNull();
    const last = answer.attempts.at(-1);
    const record = (await ask(`/v2/messages/${message.messageId}`)).json<Message>();
    expect(last?.transactionHash).toBe(record.receiptTransactionHash);
    const { data } = (
      await ask(`/v2/messages/reasons?messageId=${message.messageId}`)
    ).json<MessageReasons>();
    expect(data).toEqual([{ messageId: message.messageId, reason: last?.reason }]);
    const { reasons } = (await ask('/v2/stats/failures')).json<Failures>();
    expect(reasons.map(({ title }) => title)).toEqual([
      expect.stringContaining(String(last?.reason?.error?.arguments.at(-1)?.value)),
    ]);
  });
});

describe('on an EVM chain', () => {
  const message = makeMessage({ number: 3, sourceNetworkInfo: sepolia, destNetworkInfo: fuji });
  const onEvm = (logIndex: number, success = false) =>
    attempt(
      message,
      success,
      { logIndex, transactionHash: hashOf('tx', 1_000 - logIndex) },
      { gasUsed: String(logIndex) },
    );

  test('attempts of one block are in the order of their logs, and a limit keeps the latest with their details', async () => {
    const { store, ask } = await startServer();
    const count = MAX_ATTEMPTS + 5;
    await store.apply([
      makeSent(message),
      ...Array.from({ length: count }, (_, index) => onEvm(index)).flat(),
    ]);
    const { attempts, truncated } = (
      await ask(`/v2/messages/${message.messageId}/attempts`)
    ).json<Attempts>();
    expect(truncated).toBe(true);
    expect(attempts.map(({ logIndex }) => logIndex)).toEqual(
      Array.from({ length: MAX_ATTEMPTS }, (_, index) => count - MAX_ATTEMPTS + index),
    );
    for (const { logIndex, gasUsed } of attempts) expect(gasUsed).toBe(String(logIndex));
    const record = (await ask(`/v2/messages/${message.messageId}`)).json<Message>();
    expect(record.receiptTransactionHash).toBe(attempts.at(-1)?.transactionHash);
  });
});

test('a change that brought several attempts of one slot carries the one that counts', async () => {
  const { store } = await startServer();
  const message = solana(4);
  await store.apply([
    makeSent(message),
    ...onSolana(message, false, 'B', 200),
    ...onSolana(message, true, 'A', 40),
  ]);
  const { changes } = await store.changesAfter('0', 10);
  expect(changes.map(({ status, attempt: brought }) => [status, brought?.executed.success])).toEqual([
    ['SUCCESS', true],
  ]);
});
