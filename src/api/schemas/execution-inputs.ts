/** Schema of what an off-ramp needs to execute a message by hand. */
import Type from 'typebox';
import { type Answer, decimal, orNull } from './fields.ts';

const hex = (description: string) => Type.String({ pattern: '^0x([0-9a-fA-F]{2})*$', description });

const Batch = Type.Object(
  {
    offramp: Type.String({ description: 'Off-ramp on the destination chain, which executes the message.' }),
    onramp: Type.String({ description: 'On-ramp on the source chain, which created it.' }),
    sourceChainSelector: decimal('Chain selector of the source.'),
    destChainSelector: decimal('Chain selector of the destination.'),
    version: orNull(Type.String({ description: 'Protocol version of the lane, such as `1.6.0`.' })),
    merkleRoot: Type.String({
      pattern: '^0x[0-9a-f]{64}$',
      description: 'Root that was committed on the destination chain.',
    }),
    messageBatch: Type.Array(Type.Object({}, { additionalProperties: true }), {
      description:
        'Every message of the root, in the order of their sequence numbers: together they are the proof for each ' +
        'of them. Fields as in the event that sent them, integers as strings.',
    }),
  },
  { description: 'Up to version 1.6.' },
);

const Verified = Type.Object(
  {
    offramp: Type.String({ description: 'Off-ramp on the destination chain, which executes the message.' }),
    encodedMessage: hex('The message as the off-ramp takes it.'),
    verifierAddresses: Type.Array(Type.String(), {
      description:
        'Verifiers on the destination chain that have verified the message, as far as is known here.',
    }),
    ccvData: Type.Array(hex('Verification data.'), {
      description: 'What each of them has to say, in the same order.',
    }),
    verificationComplete: Type.Boolean({
      description: 'Whether these are all the verifiers that the destination asks for.',
    }),
  },
  { description: 'Above version 1.6.' },
);

export const ExecutionInputs = Type.Union([Batch, Verified]);

export type Verified = Answer<typeof Verified>;
