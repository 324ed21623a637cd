/** Schemas of manual executions: the diagnosis of a message, the transaction that executes it, and its inputs. */
import Type from 'typebox';
import { Reason } from '../routes/history-schema.ts';
import {
  dateTime,
  decimal,
  flag,
  list,
  messageId,
  oneOf,
  orNull,
  type ResponseBody,
  text,
} from '../routes/response-schema.ts';

export const Diagnosis = Type.Object({
  messageId: messageId,
  network: text('Name of the destination.'),
  outcome: oneOf(
    ['succeeds', 'fails', 'not-yet', 'executed', 'impossible', 'untried'],
    'Expected result of a manual execution now. `not-yet`: the off-ramp would not accept it yet, or inputs are missing. ' +
      '`impossible`: it cannot be built here. `untried`: this service has no endpoint of the destination.',
  ),
  text: text('The same in sentences. They may quote untrusted contracts: show them as text.'),
  gasLimit: orNull(
    decimal('Gas limit for the receiver that the execution needs; a parameter of `/manual-execution`.'),
    'Null where the message’s own limit is enough, or no other limit is known to help.',
  ),
  gas: orNull(decimal('Gas of the transaction, with a margin.'), 'Null where it is not known.'),
  reason: orNull(Reason, 'Why it would fail, or what it waits for.'),
  opensAt: orNull(
    dateTime('When the off-ramp accepts the execution from any account.'),
    'Null where it is unknown.',
  ),
  block: orNull(
    Type.Object({ number: Type.Integer({ minimum: 0 }), timestamp: dateTime('Time of the block.') }),
    'Destination block of the simulation; null where nothing was simulated.',
  ),
});

export type Diagnosis = ResponseBody<typeof Diagnosis>;

const evmAddress = (description: string) => Type.String({ pattern: '^0x[a-fA-F0-9]{40}$', description });

export const ManualExecution = Type.Object({
  messageId: messageId,
  version: text('Version of the off-ramp, such as `1.6`.'),
  network: text('Name of the destination.'),
  inputs: oneOf(
    ['chain', 'mirror'],
    'Where the inputs come from. `mirror`: from the server that the message was mirrored from, which also names the off-ramp.',
  ),
  transaction: Type.Object(
    {
      chainId: Type.Integer({ description: 'EIP-155 chain id of the destination.' }),
      to: evmAddress('The off-ramp.'),
      data: Type.String({ pattern: '^0x([a-f0-9]{2})*$', description: 'The call, ABI-encoded.' }),
      value: Type.Literal('0x0'),
      gas: orNull(
        Type.String({ pattern: '^0x[a-f0-9]+$' }),
        'Gas limit of the transaction: estimated on the destination now, or computed, and never less than the message needs. Null ' +
          'where neither is known to suffice, or where the off-ramp would skip the message (`gasNote` says why): then do not send ' +
          'it. A wallet’s own estimate may be too low; ' +
          'the transaction succeeds with it, and the message fails.',
      ),
    },
    { description: 'As `eth_sendTransaction` takes it, except for `from` and for `chainId` as a number.' },
  ),
  gasNote: orNull(Type.String(), 'Why the gas is not an estimate.'),
  trial: orNull(
    oneOf(['succeeds', 'fails', 'not-yet', 'executed'], 'Result of a simulation of this transaction.'),
    'Null where it was not simulated: `gasNote` says why.',
  ),
  gasLimit: Type.Object(
    {
      message: decimal('Set by the sender for the receiver.'),
      override: orNull(decimal('Set by the transaction instead.'), 'Null: not changed.'),
    },
    { description: 'Gas for the receiver.' },
  ),
  call: Type.Object(
    {
      function: text('Name of the function.'),
      signature: text('Its name and types, of which the selector is made.'),
      arguments: Type.Object(
        {},
        { additionalProperties: true, description: 'By name. Integers are decimal strings.' },
      ),
    },
    { description: '`data` in readable form.' },
  ),
});

export type ManualExecution = ResponseBody<typeof ManualExecution>;

const hex = (description: string) => Type.String({ pattern: '^0x([0-9a-fA-F]{2})*$', description });

const Batch = Type.Object(
  {
    offramp: text('Off-ramp on the destination chain, which executes the message.'),
    onramp: text('On-ramp on the source chain, which created it.'),
    sourceChainSelector: decimal('Chain selector of the source.'),
    destChainSelector: decimal('Chain selector of the destination.'),
    version: orNull(text('Protocol version of the lane, such as `1.6.0`.')),
    merkleRoot: Type.String({
      pattern: '^0x[0-9a-f]{64}$',
      description: 'Root that was committed on the destination chain.',
    }),
    messageBatch: list(
      Type.Object({}, { additionalProperties: true }),
      'Every message of the root, ordered by sequence number: together they are the proof for each of them. ' +
        'Fields as in the event that sent them, integers as strings.',
    ),
  },
  { description: 'Up to version 1.6.' },
);

const Verified = Type.Object(
  {
    offramp: text('Off-ramp on the destination chain, which executes the message.'),
    encodedMessage: hex('The message as the off-ramp takes it.'),
    verifierAddresses: list(
      Type.String(),
      'Verifiers on the destination chain that have verified the message, as far as is known here.',
    ),
    ccvData: list(hex('Verification data.'), 'Verification data of each verifier, in the same order.'),
    verificationComplete: flag('Whether these are all the verifiers that the destination requires.'),
  },
  { description: 'Above version 1.6.' },
);

export const ExecutionInputs = Type.Union([Batch, Verified]);

export type Verified = ResponseBody<typeof Verified>;

/** In the format of the indexers that the official SDK asks, with their names. */
export const VerifierResults = Type.Object({
  success: Type.Literal(true),
  results: Type.Array(
    Type.Object({
      verifierResult: Type.Object({
        message_id: messageId,
        message_ccv_addresses: Type.Array(Type.String(), {
          description: 'The verifiers on the source chain, one for each result.',
        }),
        ccv_data: Type.String({ pattern: '^0x([0-9a-f]{2})*$', description: 'Verification data in hex.' }),
        timestamp: dateTime('Time of the verification.'),
        verifier_source_address: Type.String({ description: 'Verifier on the source chain.' }),
        verifier_dest_address: Type.String({ description: 'Verifier on the destination chain.' }),
      }),
    }),
  ),
  messageID: messageId,
});

export type VerifierResults = ResponseBody<typeof VerifierResults>;
