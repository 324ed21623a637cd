/** Prepared executions are cached: a batch is read and hashed once for those who ask at once, or again within seconds. */
import { expect, onTestFinished, test } from 'vitest';
import { createPreparations } from '../../../src/api/execution/execution-preparation.ts';
import type { ManualExecution } from '../../../src/api/execution/execution-schema.ts';
import type { Fact } from '../../../src/domain/facts.ts';
import { proveLeaf, readRampMessage } from '../../../src/domain/manual-execution/ramp-messages.ts';
import type { Message } from '../../../src/domain/message.ts';
import { openTestStore } from '../../database.ts';
import { evmAddress, fuji, makeExecuted, makeMessage, makeRange, makeSent, sepolia } from '../../fixtures.ts';
import { startServer } from '../running-server.ts';

const SIZE = 5;
const messages = Array.from({ length: SIZE }, (_, place) =>
  makeMessage({
    number: place + 1,
    sequenceNumber: String(place + 1),
    version: '1.6.0',
    sourceNetworkInfo: sepolia,
    destNetworkInfo: fuji,
    onramp: evmAddress('the on-ramp'),
  }),
);
/** As the official SDK has messages of 1.6. */
const materialOf = ({ messageId, sequenceNumber, sender, receiver }: Message) => ({
  messageId,
  sequenceNumber,
  nonce: '1',
  sender,
  receiver,
  data: `0x${'ab'.repeat(500)}`,
  gasLimit: '200000',
  tokenAmounts: [],
});
function committedFacts(): Fact[] {
  const [first = makeMessage()] = messages;
  const lane = {
    sourceChainSelector: BigInt(sepolia.chainSelector),
    destChainSelector: BigInt(fuji.chainSelector),
    sourceFamily: sepolia.chainFamily,
    onramp: first.onramp,
  };
  const leaves = messages.map((message) => readRampMessage(materialOf(message), lane).leaf);
  return [
    ...messages.map((message) => ({ ...makeSent(message), execution: { message: materialOf(message) } })),
    {
      ...makeRange('Committed', first, 1, SIZE),
      merkleRoot: proveLeaf(leaves, 0).root,
      offramp: evmAddress('the off-ramp'),
    },
    ...messages.map((message) => makeExecuted(message, false)),
  ];
}

test('the inputs of a message are read once for all who ask within seconds, until its record changes', async () => {
  const store = await openTestStore();
  onTestFinished(() => store.close());
  await store.apply(committedFacts());
  let reads = 0;
  store.observeReads((query) => {
    if (query === 'executionInputs') reads++;
  });
  // Kept for as long as the test takes, on any machine.
  const { prepare } = createPreparations(store, 3_600_000);
  const [message = makeMessage(), other = makeMessage()] = messages;
  const digits = message.messageId.slice(2);
  const first = await prepare(digits);
  expect(first).toMatchObject({ kind: 'ready', prepared: { messageId: message.messageId } });
  const readsOfOne = reads;
  expect(await Promise.all([prepare(digits), prepare(digits)])).toEqual([first, first]);
  expect(reads).toBe(readsOfOne);
  await Promise.all(Array.from({ length: 10 }, () => prepare(other.messageId.slice(2))));
  expect(reads).toBe(2 * readsOfOne);

  await store.apply([makeExecuted(message, false, 6_000)]);
  expect(await prepare(digits)).not.toBe(first);
  await store.apply([makeExecuted(message, true, 7_000)]);
  expect(await prepare(digits)).toMatchObject({ kind: 'blocked', code: 'MESSAGE_ALREADY_EXECUTED' });
});

test('the transaction and the diagnosis of a message share what was prepared', async () => {
  const { store, ask } = await startServer();
  await store.apply(committedFacts());
  const [message = makeMessage()] = messages;
  const path = `/v2/messages/${message.messageId}/manual-execution`;
  const limits = Array.from({ length: 20 }, (_, place) => `${path}?gasLimit=${300_000 + place}`);
  const paths = [...limits, path, `/v2/messages/${message.messageId}/diagnosis`];
  let reads = 0;
  store.observeReads((query) => {
    if (query === 'executionInputs') reads++;
  });
  const answers = await Promise.all(paths.map((each) => ask(each)));
  expect(answers.map(({ status }) => status)).toEqual(paths.map(() => 200));
  // The inputs of one message take four reads.
  expect(reads).toBeLessThan(paths.length);
  const { transaction } = (await ask(path)).json<ManualExecution>();
  expect(transaction.to.toLowerCase()).toBe(evmAddress('the off-ramp').toLowerCase());
});
