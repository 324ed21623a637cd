/** Schema of the results of verifiers. The names are those of the indexers, as the SDK reads them. */
import Type from 'typebox';
import { dateTime, type ResponseBody } from './fields.ts';

const messageId = Type.String({ pattern: '^0x[a-f0-9]{64}$' });

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
