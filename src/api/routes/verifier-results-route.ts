/** Results of verifiers, in the format of the indexers that the official SDK asks (`--indexer`). */
import { ApiError } from '../../domain/errors.ts';
import { rejectParameters } from '../../domain/filters/search-parameters.ts';
import type { Message } from '../../domain/message.ts';
import { hasAllVerifications, knownVerifications } from '../../domain/verification.ts';
import { VerifierResults } from '../schemas/verifier-results-schema.ts';
import type { Route } from '../server/route.ts';
import { messageIdDigits, messageIdParameter } from './messages-route.ts';
import { indexedSoFar } from './networks-route.ts';

export const verifierResultRoutes: readonly Route[] = [
  {
    path: '/v1/verifierresults/{messageId}',
    mediaType: 'application/json',
    operationId: 'getVerifierResults',
    tag: 'Messages',
    summary: 'Results of the verifiers of a message',
    description:
      'For a message of 2.0 that all required verifiers have verified: their results, as the SDK reads them from an ' +
      'indexer (`--indexer`). They come from the execution or from the verifier results that this service is configured ' +
      'to read. Before that it is a 404: a client that got some of the results would take them for all.',
    pathParameters: [messageIdParameter],
    success: { description: 'The results.', schema: VerifierResults },
    errors: [400, 404],
    async handle({ path: { messageId = '' }, query }, { store }) {
      rejectParameters(query);
      const digits = messageIdDigits(messageId);
      const found = await store.findMessage(digits);
      if (!found) {
        throw new ApiError(
          'MESSAGE_NOT_FOUND',
          `No message 0x${digits} is known here. ${await indexedSoFar(store)}`,
        );
      }
      const message = JSON.parse(found.record) as Message;
      if (!hasAllVerifications(message)) {
        throw new ApiError(
          'VERIFIER_RESULTS_NOT_FOUND',
          `Message 0x${digits} ${message.verifiers ? 'is not verified yet, as far as is known here' : 'has no verifiers'}.`,
        );
      }
      return { body: JSON.stringify(resultsOf(message)) };
    },
  },
];

function resultsOf(message: Message): VerifierResults {
  const verifications = knownVerifications(message);
  const verifiers = verifications.map(({ sourceAddress }) => sourceAddress);
  return {
    success: true,
    results: verifications.map(({ sourceAddress, destAddress, data, timestamp }) => ({
      verifierResult: {
        message_id: message.messageId,
        message_ccv_addresses: verifiers,
        ccv_data: data,
        timestamp,
        verifier_source_address: sourceAddress,
        verifier_dest_address: destAddress,
      },
    })),
    messageID: message.messageId,
  };
}
