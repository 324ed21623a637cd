/** Results of verifiers, in the format of the indexers that the official SDK asks (`--indexer`). */
import Type from 'typebox';
import { ApiError } from '../../domain/errors.ts';
import type { Message } from '../../domain/message.ts';
import { hasAllVerifications, knownVerifications } from '../../domain/verification.ts';
import type { Route } from '../server/route.ts';
import { messageIdDigits, unknownMessage } from './requested-message.ts';
import { dateTime, type ResponseBody } from './response-schema.ts';

/** The names are those of the indexers. */
const messageId = Type.String({ pattern: '^0x[a-f0-9]{64}$' });

const VerifierResults = Type.Object({
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

type VerifierResults = ResponseBody<typeof VerifierResults>;

export const verifierResultRoutes: readonly Route[] = [
  {
    path: '/v1/verifierresults/{messageId}',
    operationId: 'getVerifierResults',
    tag: 'Messages',
    summary: 'Results of the verifiers of a message',
    description:
      'For a message of 2.0 that all required verifiers have verified: their results, as the SDK reads them from an ' +
      'indexer (`--indexer`). They come from the execution or from the verifier results that this service is configured ' +
      'to read. Before that it is a 404: a client that got some of the results would take them for all.',
    success: { description: 'The results.', schema: VerifierResults },
    errors: [404],
    async handle({ path }, { store }) {
      const digits = messageIdDigits(path);
      const found = await store.findMessage(digits);
      if (!found) throw await unknownMessage(store, digits);
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
