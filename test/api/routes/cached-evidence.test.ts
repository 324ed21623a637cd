/** Searches by transaction find facts that change no record: a cached response must not hide them. */
import { expect, test } from 'vitest';
import type { Fact } from '../../../src/domain/facts.ts';
import { makeExecuted, makeMessage, makeRange, makeRootBlessed, makeSent, seenOn } from '../../fixtures.ts';
import { type SearchBody, startServerForTest } from '../running-server.ts';

const message = makeMessage({ version: '1.5.0' });
const executedLater = makeExecuted(message, true, 9000);
/** What is known first; then a fact that changes no record, and its transaction. */
const cases: Readonly<Record<string, { readonly before: readonly Fact[]; readonly added: Fact }>> = {
  'an attempt that failed before the last one': {
    before: [makeExecuted(message, false, 5001)],
    added: makeExecuted(message, false, 5000),
  },
  'an attempt that failed before the success': {
    before: [executedLater],
    added: makeExecuted(message, false, 5002),
  },
  'a second commit': {
    before: [makeRange('Committed', message, 1, 1), executedLater],
    added: makeRange('Committed', message, 1, 2, 4200),
  },
  'a blessing of a message that was executed': {
    before: [makeRange('Committed', message, 1, 1), executedLater],
    added: makeRootBlessed(message, 1, 1),
  },
};

for (const [what, { before, added }] of Object.entries(cases)) {
  test(`${what} is found at once by its transaction, and no longer after it was orphaned`, async () => {
    const server = await startServerForTest();
    await server.store.apply([makeSent(message), ...before]);
    const path = `/v2/messages?destTransactionHash=${added.kind === 'Snapshot' ? '' : added.seen.transactionHash}`;
    const find = async (more = '') => {
      const answer = await server.ask(path + more);
      expect(answer.status, answer.text).toBe(200);
      return answer.json<SearchBody>().data.length;
    };
    // From the second request on the response is cached.
    for (let i = 0; i < 3; i++) expect(await find()).toBe(0);
    const report = await server.store.apply([added]);
    expect(report).toEqual({ created: 0, updated: 0, removed: 0, unchanged: 1 });
    expect([await find(), await find('&limit=33')]).toEqual([1, 1]);
    for (let i = 0; i < 3; i++) expect(await find()).toBe(1);
    const { blockHash } = added.kind === 'Snapshot' ? seenOn(message.destNetworkInfo, 0) : added.seen;
    await server.store.apply([], [{ network: message.destNetworkInfo.chainSelector, blockHash }]);
    expect([await find(), await find('&limit=34')]).toEqual([0, 0]);
  });
}
