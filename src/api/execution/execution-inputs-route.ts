/** Inputs of a manual execution, in the format of the official SDK. */
import Type from 'typebox';
import { ApiError } from '../../domain/errors.ts';
import type { BatchInputs, MirroredInputs, VerifiedInputs } from '../../store/query/execution-inputs.ts';
import { messageIdDigits, unknownMessage } from '../routes/requested-message.ts';
import { decimal, orNull, type ResponseBody } from '../routes/response-schema.ts';
import type { Route } from '../server/route.ts';
import { unavailableInputs } from './execution-preparation.ts';

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

const ExecutionInputs = Type.Union([Batch, Verified]);

type Verified = ResponseBody<typeof Verified>;

export const executionInputRoutes: readonly Route[] = [
  {
    path: '/v2/messages/{messageId}/execution-inputs',
    mediaType: 'application/json',
    operationId: 'getExecutionInputs',
    tag: 'Messages',
    summary: 'Inputs of a manual execution',
    description:
      'For a message that was not delivered: all that its off-ramp needs to execute it, as the SDK’s ' +
      '`getExecutionInput` reads it. Up to version 1.6 that is every message of the committed root, above it the ' +
      'encoded message and the verifications. Messages that were indexed from their chain have it, and mirrored ones ' +
      'whose server had it. Attestations that tokens such as USDC need are not included.',
    success: { description: 'What the off-ramp needs.', schema: ExecutionInputs },
    errors: [404, 409],
    async handle({ path }, { store }) {
      const digits = messageIdDigits(path);
      const inputs = await store.executionInputs(digits);
      if (!inputs) throw await unknownMessage(store, digits);
      if (inputs.kind === 'unavailable') {
        const { code, text } = unavailableInputs(inputs);
        throw new ApiError(code, `Message 0x${digits} ${text}`);
      }
      return { body: bodyOf(inputs) };
    },
  },
];

function bodyOf(inputs: BatchInputs | VerifiedInputs | MirroredInputs): string {
  switch (inputs.kind) {
    case 'batch':
      return batchBody(inputs);
    case 'verified':
      return verifiedBody(inputs);
    case 'mirrored':
      return inputs.body;
  }
}

/** Stored JSON is sent without parsing: a batch may have megabytes. */
function batchBody({ message, offramp, merkleRoot, batch }: BatchInputs): string {
  const rest = JSON.stringify({
    offramp,
    onramp: message.onramp,
    sourceChainSelector: message.sourceNetworkInfo.chainSelector,
    destChainSelector: message.destNetworkInfo.chainSelector,
    version: message.version,
    merkleRoot,
  });
  return `${rest.slice(0, -1)},"messageBatch":[${batch.join(',')}]}`;
}

function verifiedBody({ offramp, encodedMessage, verifications, isComplete }: VerifiedInputs): string {
  const body: Verified = {
    offramp,
    encodedMessage,
    verifierAddresses: verifications.map(({ verifier }) => verifier),
    ccvData: verifications.map(({ data }) => data),
    verificationComplete: isComplete,
  };
  return JSON.stringify(body);
}
