/** Ids, leaves, discriminators and derived addresses against published values, of the decoders and of the kit's encoders. */
import { createRequire } from 'node:module';
import { base58, hex } from '@scure/base';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { decodeBase58, discriminatorOf } from '../../../src/ingest/svm/decode/borsh.ts';
import { sentMessageId } from '../../../src/ingest/svm/decode/sent-message.ts';
import { deriveAddress, isOnCurve } from '../../../src/ingest/svm/program-addresses.ts';
import { deployedPrograms } from '../../solana/ccip-accounts.ts';
import { sentMessageId as kitMessageId, receivedLeaf } from '../../solana/ccip-events.ts';
import {
  deployedAccounts,
  publishedDiscriminators,
  receivedVector,
  sentVector,
} from '../../solana/published-vectors.ts';
import { addressOf, toBase58, toHex } from '../../solana/runtime/bytes.ts';

test.each(publishedDiscriminators)('%s:%s has the published discriminator', (kind, name, digits) => {
  expect(discriminatorOf(kind, name)).toBe(digits);
});

describe('a message from Solana has the id that the router’s own unit test has, and another one of another router', () => {
  const { router, body, messageId } = sentVector;
  /** With the id in hexadecimal digits, as the decoders have it. */
  const decoded = { ...body, header: { ...body.header, messageId: toHex(body.header.messageId) } };
  test.each([
    ['the decoders', (emitter: string) => sentMessageId(decoded, emitter)],
    ['the encoders of the tests', (emitter: string) => toHex(kitMessageId(emitter, body))],
  ])('for %s', (_, idOf) => {
    expect(idOf(router)).toBe(messageId);
    expect(idOf(deployedPrograms.offRamp)).not.toBe(messageId);
  });
});

test('a message to Solana has the leaf that the off-ramp’s own unit test has', () => {
  const { body, context, leaf } = receivedVector;
  expect(toHex(receivedLeaf(body, context))).toBe(leaf);
});

test('base58 agrees with @scure/base for bytes of every length', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 70 }), (bytes) => {
      expect(toBase58(bytes)).toBe(base58.encode(bytes));
      expect(decodeBase58(base58.encode(bytes))).toEqual(bytes);
    }),
  );
});

describe('derived addresses', () => {
  test.each(Object.entries(deployedAccounts))('are those of deployed accounts: %s', (deployed, derived) => {
    expect(derived).toBe(deployed);
  });

  test('and the curve are those of web3.js', () => {
    const lab = createRequire(new URL('../../lab/package.json', import.meta.url));
    const { PublicKey } = lab('@solana/web3.js') as {
      PublicKey: {
        new (address: string): object;
        isOnCurve(bytes: Uint8Array): boolean;
        findProgramAddressSync(seeds: Uint8Array[], program: object): [{ toBase58(): string }];
      };
    };
    for (let number = 0n; number < 60n; number++) {
      const program = addressOf('program', number);
      const seeds = [Buffer.from('seed'), Buffer.from(new BigUint64Array([number]).buffer)];
      const [theirs] = PublicKey.findProgramAddressSync(seeds, new PublicKey(program));
      expect(deriveAddress(program, 'seed', number)).toBe(theirs.toBase58());
      expect(isOnCurve(base58.decode(program))).toBe(PublicKey.isOnCurve(base58.decode(program)));
    }
    // The base point of ed25519, and the identity.
    for (const point of ['58'.padEnd(64, '6'), '01'.padEnd(64, '0')])
      expect(isOnCurve(hex.decode(point))).toBe(true);
  });
});
