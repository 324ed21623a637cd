/** Inputs of a manual execution, in the format of the official SDK. */
import { ApiError } from '../../domain/errors.ts';
import { rejectParameters } from '../../domain/filters/search-parameters.ts';
import {
  type BatchInputs,
  MAX_BATCH_BYTES,
  type MirroredInputs,
  type SequenceRun,
  type UnavailableInputs,
  type VerifiedInputs,
} from '../../store/query/execution-inputs.ts';
import { ExecutionInputs, type Verified } from '../schemas/execution-inputs-schema.ts';
import type { Route } from '../server/route.ts';
import { messageIdDigits, messageIdParameter } from './messages-route.ts';
import { indexedSoFar } from './networks-route.ts';

export const executionInputRoutes: readonly Route[] = [
  {
    path: '/v2/messages/{messageId}/execution-inputs',
    aliases: ['/messages/{messageId}/execution-inputs'],
    mediaType: 'application/json',
    operationId: 'getExecutionInputs',
    tag: 'Messages',
    summary: 'Inputs of a manual execution',
    description:
      'For a message that was not delivered: all that its off-ramp needs to execute it, as the SDK’s ' +
      '`getExecutionInput` reads it. Up to version 1.6 that is every message of the committed root, above it the ' +
      'encoded message and the verifications. Messages that were indexed from their chain have it, and mirrored ones ' +
      'whose server had it. Attestations that tokens such as USDC need are not included.',
    pathParameters: [messageIdParameter],
    success: { description: 'What the off-ramp needs.', schema: ExecutionInputs },
    errors: [400, 404, 409],
    async handle({ path: { messageId = '' }, query }, { store }) {
      rejectParameters(query);
      const digits = messageIdDigits(messageId);
      const inputs = await store.executionInputs(digits);
      if (!inputs) {
        throw new ApiError(
          'MESSAGE_NOT_FOUND',
          `No message 0x${digits} is known here. ${await indexedSoFar(store)}`,
        );
      }
      if (inputs.kind === 'unavailable') {
        const code =
          inputs.reason === 'not committed' ? 'EXECUTION_INPUTS_NOT_READY' : 'EXECUTION_INPUTS_NOT_FOUND';
        throw new ApiError(code, `Message 0x${digits} ${whatIsMissing(inputs)}`);
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

/** What is missing, as a sentence that continues `Message 0x…`. */
export function whatIsMissing({ reason, run, missing = [], bytes = 0 }: UnavailableInputs): string {
  const batch = run ? `The root that covers it has the sequence numbers ${runText(run)}` : '';
  switch (reason) {
    case 'not read from its chain':
      return (
        'is known from an import only, which does not have what an execution by hand needs. ' +
        'Index its source network to get it from the chain.'
      );
    case 'not committed':
      return 'is not committed on its destination yet, as far as that is indexed here. Until then it cannot be executed.';
    case 'off-ramp unknown':
      return 'is committed, but by a source that does not tell its off-ramp. Index its destination network to learn it.';
    case 'too long':
      return `cannot be proven here. ${batch}, more than are put together.`;
    case 'too large':
      return (
        `cannot be proven here. ${batch}, whose messages have ${megabytes(bytes)} MB together; at most ` +
        `${megabytes(MAX_BATCH_BYTES)} MB are put together. Read them from the source chain instead.`
      );
    case 'incomplete':
      return (
        `cannot be proven yet. ${batch}; not read from the chain here: ${missing.map(runText).join(', ')}. ` +
        'The proof takes all of them, so it can be built as soon as they are indexed.'
      );
  }
}

function megabytes(bytes: number): number {
  return Math.ceil(bytes / 1024 / 1024);
}

function runText({ from, to }: SequenceRun): string {
  return from === to ? `${from}` : `${from} to ${to}`;
}
