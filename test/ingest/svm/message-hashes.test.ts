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
import { deployedPrograms, offRampAddresses, routerAddresses } from '../../solana/ccip-accounts.ts';
import { discriminator as kitDiscriminator } from '../../solana/ccip-events.ts';
import {
  sentMessageId as kitMessageId,
  type ReceivedBody,
  receivedLeaf,
  type SentBody,
} from '../../solana/ccip-hashes.ts';
import {
  deployedAccounts,
  publishedDiscriminators,
  receivedVector,
  sentVector,
} from '../../solana/published-vectors.ts';
import { toHex } from '../../solana/runtime/bytes.ts';

/** With the id in hexadecimal digits, as the decoders have it. */
function headerOf({ header }: SentBody | ReceivedBody) {
  return { ...header, messageId: toHex(header.messageId) };
}

/** Two implementations, both held to the published values. */
const implementations = {
  'the decoders': {
    discriminator: discriminatorOf,
    idOf: ({ router, body }: typeof sentVector) => sentMessageId({ ...body, header: headerOf(body) }, router),
    leafOf: ({ body, context: { onRamp, receiver, accounts } }: typeof receivedVector) =>
      receivedMessageLeaf({ ...body, header: headerOf(body) }, onRamp, [receiver, ...accounts]),
    deployed: deployedAccounts(programAddresses),
  },
  'the encoders of the tests': {
    discriminator: (...name: Parameters<typeof kitDiscriminator>) =>
      toHex(kitDiscriminator(...name)).slice(2),
    idOf: ({ router, body }: typeof sentVector) => toHex(kitMessageId(router, body)),
    leafOf: ({ body, context }: typeof receivedVector) => toHex(receivedLeaf(body, context)),
    // Both programs have accounts of the same names.
    deployed: [
      ...deployedAccounts({ ...offRampAddresses, ...routerAddresses }),
      ...deployedAccounts({ ...routerAddresses, ...offRampAddresses }),
    ],
  },
};

describe.each(Object.entries(implementations))('%s', (_, { discriminator, idOf, leafOf, deployed }) => {
  test.each(publishedDiscriminators)('have the discriminator of %s:%s', (kind, name, digits) => {
    expect(discriminator(kind, name)).toBe(digits);
  });

  test('have the id of a message from Solana that the router’s own unit test has', () => {
    expect(idOf(sentVector)).toBe(sentVector.messageId);
    expect(idOf({ ...sentVector, router: deployedPrograms.offRamp })).not.toBe(sentVector.messageId);
  });

  test('have the leaf of a message to Solana that the off-ramp’s own unit test has', () => {
    expect(leafOf(receivedVector)).toBe(receivedVector.leaf);
  });

  test.each(deployed)('derive the address of the deployed %s', (_, derived, address) => {
    expect(derived).toBe(address);
  });
});

test('a tree of one leaf has that leaf as its root, and the order within a pair does not matter', () => {
  const [a, b] = [`0x${'11'.repeat(32)}`, `0x${'22'.repeat(32)}`] as const;
  expect(merkleRootOf([a])).toBe(a);
  expect(merkleRootOf([a, b])).toBe(merkleRootOf([b, a]));
  expect(merkleRootOf([a, b, a])).not.toBe(merkleRootOf([a, b]));
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
