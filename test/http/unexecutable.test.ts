/** Messages that cannot be executed or tried from here: every answer says why, in words, and what to do. */
import pg from 'pg';
import { expect, onTestFinished, test } from 'vitest';
import type { Diagnosis } from '../../src/api/schemas/diagnosis.ts';
import type { Message } from '../../src/domain/message.ts';
import { fuji, makeMessage } from '../fixtures.ts';
import { expectError, startServer } from './running-server.ts';
import { evmToSvm } from './sample-messages.ts';

/** Records as an import and a mirror store them: without what the chains said. */
const toSolana = { ...evmToSvm, status: 'FAILED' as const, readyForManualExecution: true };
const imported = makeMessage({ number: 71, status: 'FAILED', destNetworkInfo: fuji });
const mirrored = makeMessage({ number: 72, status: 'FAILED', destNetworkInfo: fuji, version: '1.6.0' });
const broken = makeMessage({ number: 73, status: 'FAILED', destNetworkInfo: fuji, version: '1.6.0' });
const odd = makeMessage({ number: 74, status: 'FAILED', destNetworkInfo: fuji, version: '9.9.9' });
const done = makeMessage({ number: 75, status: 'SUCCESS', destNetworkInfo: fuji });

/** The inputs that a mirrored server gave. */
const inputsOf = (message: Message, merkleRoot: string) =>
  JSON.stringify({
    offramp: `0x${'0f'.repeat(20)}`,
    onramp: message.onramp,
    sourceChainSelector: message.sourceNetworkInfo.chainSelector,
    destChainSelector: message.destNetworkInfo.chainSelector,
    version: message.version,
    merkleRoot,
    messageBatch: [{ messageId: message.messageId }],
  });

async function served() {
  const server = await startServer([toSolana, imported, mirrored, broken, odd, done]);
  const client = new pg.Client(server.store.url);
  await client.connect();
  onTestFinished(() => client.end());
  for (const [message, body] of [
    [mirrored, inputsOf(mirrored, `0x${'ab'.repeat(32)}`)],
    [broken, '{"offramp": 7}'],
    [odd, inputsOf(odd, `0x${'ab'.repeat(32)}`)],
  ] as const)
    await client.query('insert into execution_input (message_id, body, fetched_at) values ($1, $2, now())', [
      Buffer.from(message.messageId.slice(2), 'hex'),
      body,
    ]);
  return server;
}

test('a diagnosis and a transaction that are not to be had say why', async () => {
  const { ask } = await served();
  const cases: readonly [Message, Diagnosis['outcome'], RegExp, number, string][] = [
    [
      toSolana,
      'impossible',
      /goes to .*Solana.*not an EVM chain.*ccip-cli/s,
      404,
      'MANUAL_EXECUTION_UNSUPPORTED',
    ],
    [
      imported,
      'not-yet',
      /known from an import only.*Index its source network/s,
      404,
      'EXECUTION_INPUTS_NOT_FOUND',
    ],
    [
      mirrored,
      'not-yet',
      /inputs that cannot be used.*mirrored server.*Index its networks/s,
      404,
      'EXECUTION_INPUTS_NOT_FOUND',
    ],
    [broken, 'not-yet', /inputs that cannot be used.*mirrored server/s, 404, 'EXECUTION_INPUTS_NOT_FOUND'],
    [
      odd,
      'impossible',
      /version 9\.9\.9, whose off-ramps are not known/,
      404,
      'MANUAL_EXECUTION_UNSUPPORTED',
    ],
    [done, 'executed', /executed successfully/, 409, 'MESSAGE_ALREADY_EXECUTED'],
  ];
  for (const [message, outcome, text, status, code] of cases) {
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
    const refusal = await ask(`/v2/messages/${message.messageId}/manual-execution`);
    expect(expectError(refusal, status, code as never).message).toMatch(text);
  }
});
