// @module-tag slow: needs a cluster
/** An export from a cluster is in the order of an export from one node, across shards and pages. Needs CITUS_URL. */
import { describe, expect, it, onTestFinished } from 'vitest';
import { parseSearch } from '../../src/domain/filters/search-parameters.ts';
import type { Message } from '../../src/domain/message.ts';
import { openTestStore } from '../database.ts';
import { evmAddress, fuji, makeMessage, makeSnapshot, makeToken, sepolia } from '../fixtures.ts';

/** More than the first two pages of an export have. */
const MESSAGES = 700;

describe.skipIf(process.env.CITUS_URL === undefined)('an export from a cluster', () => {
  it('is newest first, whatever it is filtered by', async () => {
    const store = await openTestStore();
    onTestFinished(() => store.close());
    const account = evmAddress('account', 1);
    const token = makeToken(sepolia, fuji, 'LINK');
    // Not in the order of their times; two messages have each time.
    const messages = Array.from({ length: MESSAGES }, (_, number) =>
      makeMessage({
        number,
        sender: evmAddress('account', number % 2),
        receiver: evmAddress('account', number % 3),
        tokenAmounts: number % 2 === 0 ? [token, token] : [],
        status: number % 5 === 0 ? 'FAILED' : 'SUCCESS',
        sendTimestamp: new Date(Date.UTC(2026, 0, 1) + ((number * 37) % 350) * 1_000).toISOString(),
      }),
    );
    await store.apply(messages.map(makeSnapshot));
    const inOrder = [...messages].sort(
      (a, b) => b.sendTimestamp.localeCompare(a.sendTimestamp) || (b.messageId < a.messageId ? -1 : 1),
    );

    const isAccount = (address: string) => address.toLowerCase() === account.toLowerCase();
    const cases: readonly (readonly [Record<string, string>, (message: Message) => boolean])[] = [
      [{}, () => true],
      [{ sender: account }, ({ sender }) => isAccount(sender)],
      [{ address: account }, ({ sender, receiver }) => isAccount(sender) || isAccount(receiver)],
      [{ status: 'FAILED,SUCCESS' }, () => true],
      [{ sourceTokenAddress: token.sourceTokenAddress }, ({ tokenAmounts }) => tokenAmounts.length > 0],
    ];
    for (const [parameters, isWanted] of cases) {
      const { filters } = parseSearch(Object.entries(parameters));
      const exported: string[] = [];
      for await (const records of store.exportRecords(filters)) {
        exported.push(...records.map((record) => (JSON.parse(record) as Message).messageId));
      }
      expect(exported, JSON.stringify(parameters)).toEqual(
        inOrder.filter(isWanted).map(({ messageId }) => messageId),
      );
    }
  });
});
