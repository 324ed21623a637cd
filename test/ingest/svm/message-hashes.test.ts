/** Ids, leaves and derived addresses against published values: unit tests of the programs, and deployed accounts. */
import { base58, hex } from '@scure/base';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { discriminatorOf } from '../../../src/ingest/svm/decode/discriminators.ts';
import {
  merkleRootOf,
  receivedMessageLeaf,
  sentMessageId,
} from '../../../src/ingest/svm/decode/message-hashes.ts';
import { isOnCurve, programAddresses } from '../../../src/ingest/svm/program-addresses.ts';
import type { ReceivedBody, SentBody } from '../../solana/ccip-hashes.ts';
import {
  deployedAccounts,
  publishedDiscriminators,
  receivedVector,
  sentVector,
} from '../../solana/published-vectors.ts';
import { toHex } from '../../solana/runtime/bytes.ts';

describe('the discriminators are those that the programs have', () => {
  test.each(publishedDiscriminators)('%s:%s', (kind, name, digits) => {
    expect(discriminatorOf(kind, name)).toBe(digits);
  });
});

test('the id of a message from Solana is that of the router’s own unit test', () => {
  const { router, body, messageId } = sentVector;
  expect(sentMessageId({ ...body, header: headerOf(body) }, router)).toBe(messageId);
});

test('the leaf of a message to Solana is that of the off-ramp’s own unit test', () => {
  const { body, context, leaf } = receivedVector;
  const { onRamp, receiver, accounts } = context;
  expect(receivedMessageLeaf({ ...body, header: headerOf(body) }, onRamp, [receiver, ...accounts])).toBe(
    leaf,
  );
});

/** With the id in hexadecimal digits, as the decoders have it. */
function headerOf({ header }: SentBody | ReceivedBody) {
  return { ...header, messageId: toHex(header.messageId) };
}

test('a tree of one leaf has that leaf as its root, and the order within a pair does not matter', () => {
  const [a, b] = [`0x${'11'.repeat(32)}`, `0x${'22'.repeat(32)}`] as const;
  expect(merkleRootOf([a])).toBe(a);
  expect(merkleRootOf([a, b])).toBe(merkleRootOf([b, a]));
  expect(merkleRootOf([a, b, a])).not.toBe(merkleRootOf([a, b]));
});

describe('derived addresses are those of the deployed programs', () => {
  test.each(deployedAccounts(programAddresses))('%s', (_, derived, deployed) => {
    expect(derived).toBe(deployed);
  });
});

test('public keys are points of the curve, derived addresses are not, and any 32 bytes have an answer', () => {
  // The base point of ed25519, and the identity.
  expect(isOnCurve(hex.decode('58'.padEnd(64, '6')))).toBe(true);
  expect(isOnCurve(hex.decode('01'.padEnd(64, '0')))).toBe(true);
  expect(isOnCurve(base58.decode('3Yrg9E4ySAeRezgQY99NNarAmFLtixapga9MZb6y2dt3'))).toBe(false);
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 32, maxLength: 32 }), (bytes) => {
      expect(typeof isOnCurve(bytes)).toBe('boolean');
    }),
    { numRuns: 50 },
  );
});
