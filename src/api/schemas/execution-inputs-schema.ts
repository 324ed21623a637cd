/** Schema of the inputs of a manual execution. */
import Type from 'typebox';
import { decimal, orNull, type ResponseBody } from './fields.ts';

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
        'Every message of the root, ordered by sequence number: together they are the proof for each of them. ' +
        'Fields as in the event that sent them, integers as strings.',
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
      description: 'Verification data of each verifier, in the same order.',
    }),
    verificationComplete: Type.Boolean({
      description: 'Whether these are all the verifiers that the destination requires.',
    }),
  },
  { description: 'Above version 1.6.' },
);

export const ExecutionInputs = Type.Union([Batch, Verified]);

export type Verified = ResponseBody<typeof Verified>;
