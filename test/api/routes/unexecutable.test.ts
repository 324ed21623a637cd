/** Messages that cannot be executed or tried from here: every answer says why, in words, and what to do. */
import { expect, onTestFinished, test } from 'vitest';
import type { Diagnosis, ManualExecution } from '../../../src/api/execution/execution-schema.ts';
import type { ErrorCode } from '../../../src/domain/errors.ts';
import { readRampMessage } from '../../../src/domain/manual-execution/ramp-messages.ts';
import type { Message } from '../../../src/domain/message.ts';
import { evmToSvm } from '../../fixtures/sample-messages.ts';
import { evmAddress, fuji, makeMessage, networkInfo } from '../../fixtures.ts';
import { connectForTest } from '../../postgres.ts';
import { expectError, startServer } from '../running-server.ts';

/** Records as an import and a mirror store them: without what the chains said. */
const toSolana = { ...evmToSvm, status: 'FAILED' as const, readyForManualExecution: true };
const imported = makeMessage({ number: 71, status: 'FAILED', destNetworkInfo: fuji });
const mirrored = makeMessage({ number: 72, status: 'FAILED', destNetworkInfo: fuji, version: '1.6.0' });
const broken = makeMessage({ number: 73, status: 'FAILED', destNetworkInfo: fuji, version: '1.6.0' });
const odd = makeMessage({ number: 74, status: 'FAILED', destNetworkInfo: fuji, version: '9.9.9' });
const done = makeMessage({ number: 75, status: 'SUCCESS', destNetworkInfo: fuji });

/** The inputs that a mirrored server gave. */
const inputsOf = (
  message: Message,
  merkleRoot: string,
  messageBatch: readonly object[] = [{ messageId: message.messageId }],
) =>
  JSON.stringify({
    offramp: `0x${'0f'.repeat(20)}`,
    onramp: message.onramp,
    sourceChainSelector: message.sourceNetworkInfo.chainSelector,
    destChainSelector: message.destNetworkInfo.chainSelector,
    version: message.version,
    merkleRoot,
    messageBatch,
  });

async function serve(messages: readonly Message[], inputs: readonly (readonly [Message, string])[]) {
  const server = await startServer(messages);
  onTestFinished(() => server.close());
  const client = await connectForTest(server.store.url);
  for (const [message, body] of inputs)
    await client.query('insert into execution_input (message_id, body, fetched_at) values ($1, $2, now())', [
      Buffer.from(message.messageId.slice(2), 'hex'),
      body,
    ]);
  return server;
}

test('a diagnosis and a transaction that are not to be had say why', async () => {
  const { ask } = await serve(
    [toSolana, imported, mirrored, broken, odd, done],
    [
      [mirrored, inputsOf(mirrored, `0x${'ab'.repeat(32)}`)],
      [broken, '{"offramp": 7}'],
      [odd, inputsOf(odd, `0x${'ab'.repeat(32)}`)],
    ],
  );
  const noInputs = 'EXECUTION_INPUTS_NOT_FOUND';
  const cases: readonly [Message, Diagnosis['outcome'], RegExp, ErrorCode][] = [
    [toSolana, 'impossible', /goes to .*Solana.*not an EVM chain.*ccip-cli/s, 'MANUAL_EXECUTION_UNSUPPORTED'],
    [imported, 'not-yet', /known from an import only.*Index its source network/s, noInputs],
    [mirrored, 'not-yet', /inputs that cannot be used.*mirrored server.*Index its networks/s, noInputs],
    [broken, 'not-yet', /inputs that cannot be used.*mirrored server/s, noInputs],
    [odd, 'impossible', /version 9\.9\.9, whose off-ramps are not known/, 'MANUAL_EXECUTION_UNSUPPORTED'],
    [done, 'executed', /executed successfully/, 'MESSAGE_ALREADY_EXECUTED'],
  ];
  for (const [message, outcome, text, code] of cases) {
    const diagnosis = await ask(`/v2/messages/${message.messageId}/diagnosis`);
    expect(diagnosis.status, diagnosis.text).toBe(200);
    expect(diagnosis.json<Diagnosis>()).toMatchObject({
      messageId: message.messageId,
      outcome,
      text: expect.stringMatching(text),
      gas: null,
      reason: null,
      block: null,
    });
    const rejection = await ask(`/v2/messages/${message.messageId}/manual-execution`);
    expect(expectError(rejection, outcome === 'executed' ? 409 : 404, code).message).toMatch(text);
  }
});

/** A message of 1.6 with one transfer, alone under its root, so that its leaf is the root. */
function withTransfer(number: number, extraData: string, destNetworkInfo = fuji): readonly [Message, string] {
  const record = makeMessage({ number, status: 'FAILED', destNetworkInfo, version: '1.6.0' });
  const { messageId, sourceNetworkInfo, onramp, sender, receiver } = record;
  const message = {
    messageId,
    sequenceNumber: '1',
    nonce: '0',
    gasLimit: '200000',
    sender,
    receiver,
    data: '0x1234',
    tokenAmounts: [
      {
        sourcePoolAddress: evmAddress('pool'),
        destTokenAddress: evmAddress('token'),
        destGasAmount: '90000',
        extraData,
        amount: '5',
      },
    ],
  };
  const { leaf } = readRampMessage(message, {
    sourceChainSelector: BigInt(sourceNetworkInfo.chainSelector),
    destChainSelector: BigInt(destNetworkInfo.chainSelector),
    sourceFamily: sourceNetworkInfo.chainFamily,
    onramp,
  });
  return [record, inputsOf(record, leaf, [message])];
}

test('without an endpoint there is gas only where it is known to suffice', async () => {
  const decimals = `0x${'00'.repeat(31)}12`;
  const plain = withTransfer(81, decimals);
  const attested = withTransfer(82, `0xf3567d18${'00'.repeat(8)}00000006`);
  const unknown = withTransfer(83, '0x1234');
  const toArbitrum = withTransfer(84, decimals, networkInfo('ethereum-testnet-sepolia-arbitrum-1'));
  const { ask } = await serve(
    [plain, attested, unknown, toArbitrum].map(([record]) => record),
    [plain, attested, unknown, toArbitrum],
  );
  const answerOf = ([{ messageId }]: readonly [Message, string], parameters = '') =>
    ask(`/v2/messages/${messageId}/manual-execution${parameters}`);

  const { transaction, trial, gasNote } = (await answerOf(plain)).json<ManualExecution>();
  expect(Number(transaction.gas)).toBeGreaterThan(200_000 + 90_000);
  expect(Number(transaction.gas)).toBeLessThan(1_500_000);
  expect(trial).toBeNull();
  expect(gasNote).toMatch(/no endpoint of the destination.*computed/);
  const raised = (await answerOf(plain, '?gasLimit=3000000')).json<ManualExecution>();
  expect(Number(raised.transaction.gas) - Number(transaction.gas)).toBeGreaterThan((2_800_000 * 64) / 63);

  expect(expectError(await answerOf(attested), 404, 'MANUAL_EXECUTION_UNSUPPORTED').message).toMatch(
    /needs an attestation/,
  );
  expect((await answerOf(unknown)).json<ManualExecution>()).toMatchObject({
    transaction: { gas: null },
    gasNote: expect.stringMatching(/Whether the pool of .* needs an attestation is not known/),
  });
  expect((await answerOf(toArbitrum)).json<ManualExecution>()).toMatchObject({
    transaction: { gas: null },
    gasNote: expect.stringMatching(/arbitrum-1 may count gas otherwise/),
  });
});
