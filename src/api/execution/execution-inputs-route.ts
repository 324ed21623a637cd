/** Inputs of a manual execution, in the format of the official SDK. */
import { ApiError } from '../../domain/errors.ts';
import type { BatchInputs, MirroredInputs, VerifiedInputs } from '../../store/query/execution-inputs.ts';
import { messageIdDigits, unknownMessage } from '../routes/requested-message.ts';
import type { Route } from '../server/route.ts';
import { unavailableInputs } from './execution-preparation.ts';
import { ExecutionInputs, type Verified } from './execution-schema.ts';

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
