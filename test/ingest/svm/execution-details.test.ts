/** What is kept of a failed transaction can be stored and read again, whatever a node says of it. */
import { expect, onTestFinished, test } from 'vitest';
import { executionDetails } from '../../../src/ingest/svm/decode/execution-details.ts';
import type { SolanaTransaction } from '../../../src/ingest/svm/transaction.ts';
import { openTestStore } from '../../database.ts';
import { makeExecuted, makeMessage, makeSent, sepolia, solanaDevnet } from '../../fixtures.ts';

test('an error that is cut off within a character', async () => {
  const store = await openTestStore();
  onTestFinished(() => store.close());
  const message = makeMessage({ sourceNetworkInfo: sepolia, destNetworkInfo: solanaDevnet });
  const executed = makeExecuted(message, false);
  const transaction = {
    feePayer: 'x',
    computeUnits: 5,
    isFailed: true,
    error: '😀'.repeat(200).slice(1),
    logs: [],
    instructions: [],
  } as unknown as SolanaTransaction;
  const details = executionDetails(message.messageId, 'x', transaction, executed.seen);
  await store.apply([makeSent(message), executed, details]);
  const found = await store.messageExecutions(message.messageId.slice(2));
  expect(found?.facts).toHaveLength(2);
});
