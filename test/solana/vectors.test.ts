/** The tests' own encoders against libraries and documented layouts; `message-hashes.test.ts` holds them to published values. */
import { createRequire } from 'node:module';
import path from 'node:path';
import { keccak_256 } from '@noble/hashes/sha3.js';
import { base58 } from '@scure/base';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  commitReportAccount,
  deployedPrograms,
  destChainAccount,
  offRampAddresses,
  offRampConfig,
  poolState,
  referenceAddressesAccount,
  routerAddresses,
  routerConfig,
  sourceChainAccount,
} from './ccip-accounts.ts';
import { executionStateChanged } from './ccip-events.ts';
import { merkleProof, merkleRoot } from './ccip-hashes.ts';
import { SEPOLIA, sentVector } from './published-vectors.ts';
import { fromBase58, fromHex, toBase58, toHex, u64 } from './runtime/bytes.ts';
import { addressOf, isOnCurve, programAddress } from './runtime/program-address.ts';

test('base58 agrees with @scure/base for bytes of every length', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 70 }), (bytes) => {
      expect(toBase58(bytes)).toBe(base58.encode(bytes));
      expect(fromBase58(base58.encode(bytes))).toEqual(bytes);
    }),
  );
  expect(() => fromBase58('0OIl')).toThrow(RangeError);
});

describe('events and proofs', () => {
  test('an execution event has 89 bytes, and the state last', () => {
    const { header } = sentVector.body;
    const encoded = executionStateChanged(header, new Uint8Array(32).fill(7), 'success');
    expect(encoded).toHaveLength(89);
    expect(encoded[88]).toBe(2);
  });

  test('a proof leads from every leaf to the root', () => {
    for (const count of [1, 2, 3, 5, 8]) {
      const leaves = Array.from({ length: count }, (_, index) => new Uint8Array(32).fill(index + 1));
      for (const [index, leaf] of leaves.entries()) {
        let node: Uint8Array = leaf;
        for (const sibling of merkleProof(leaves, index)) {
          const pair = [node, sibling].sort(Buffer.compare);
          node = keccak_256(Buffer.concat([fromHex(`${'00'.repeat(31)}01`), ...pair]));
        }
        expect(toHex(node)).toBe(toHex(merkleRoot(leaves)));
      }
    }
  });
});

describe('addresses', () => {
  test('the accounts of a failed execution on devnet', () => {
    const devnetOffRamp = 'offVkroQ4wYMv6QFPBvJazAx2p8BnLh7sJRdyQ5GYfx';
    const root = fromHex('91d3c913d08bc07134dad446c3231fa2b3c9621bba719f273551c92390834c1c');
    expect([
      offRampAddresses.config(devnetOffRamp),
      offRampAddresses.referenceAddresses(devnetOffRamp),
      offRampAddresses.sourceChainState(devnetOffRamp, SEPOLIA),
      offRampAddresses.commitReport(devnetOffRamp, SEPOLIA, root),
      routerAddresses.allowedOffRamp('Ccip8ZTcM2qHjVt8FYHtuCAqjc637yLKnsJ5q5r2e6eL', SEPOLIA, devnetOffRamp),
    ]).toEqual([
      'AFUaqKMB92kQB5y7op5pyB3hYG275rZcS7Y8inWJyc2K',
      '3a94c3Z5bDSw2c2GryztaTv7MZYG7rBCXs2eaQUp22ei',
      '3uLA89AnqSX5sHimPnxna1jP217nxGk7UtebLLaukcQr',
      'FQxTi1fukqHYZSHFGZcGPwyNoHPs7JdAcrkJtcGFYQ1t',
      '9eWtJJhas4BMyVBBuCTPP4LcHR3XSvPr4qeEZJwnBgw8',
    ]);
  });

  test('derivation and curve are those of web3.js', () => {
    const lab = createRequire(path.resolve(import.meta.dirname, '../lab/package.json'));
    const { PublicKey } = lab('@solana/web3.js') as {
      PublicKey: {
        new (address: string): { toBytes(): Uint8Array };
        isOnCurve(bytes: Uint8Array): boolean;
        findProgramAddressSync(seeds: Uint8Array[], program: object): [{ toBase58(): string }];
      };
    };
    for (let number = 0n; number < 60n; number++) {
      const program = addressOf('program', number);
      const [theirs] = PublicKey.findProgramAddressSync(
        [Buffer.from('seed'), Buffer.from(u64(number))],
        new PublicKey(program),
      );
      expect(programAddress(program, 'seed', u64(number))).toBe(theirs.toBase58());
      expect(isOnCurve(fromBase58(program))).toBe(PublicKey.isOnCurve(fromBase58(program)));
    }
  });
});

describe('accounts have their fields at the documented offsets', () => {
  const programs = deployedPrograms;
  const owner = addressOf('owner');
  const at = (data: Uint8Array) => ({
    u64: (offset: number) => Buffer.from(data).readBigUInt64LE(offset),
    pubkey: (offset: number) => toBase58(data.slice(offset, offset + 32)),
  });

  test('router', () => {
    const config = at(routerConfig({ programs, selector: 7n, linkTokenMint: addressOf('LINK'), owner }));
    expect([config.u64(10), config.pubkey(82), config.pubkey(114), config.pubkey(146)]).toEqual([
      7n,
      programs.feeQuoter,
      programs.rmnRemote,
      addressOf('LINK'),
    ]);
    const lane = at(
      destChainAccount({ selector: SEPOLIA, sequenceNumber: 5n, restore: { number: 9n, on: 'rollback' } }),
    );
    expect([lane.u64(9), lane.u64(17), lane.u64(25)]).toEqual([SEPOLIA, 5n, 9n]);
  });

  test('off-ramp', () => {
    const config = at(offRampConfig(7n, 3_600n, owner));
    expect([config.u64(16), config.u64(24), config.pubkey(40)]).toEqual([7n, 3_600n, owner]);
    const references = at(referenceAddressesAccount(programs, addressOf('table')));
    expect([9, 41, 73, 105].map(references.pubkey)).toEqual([
      programs.router,
      programs.feeQuoter,
      addressOf('table'),
      programs.rmnRemote,
    ]);
    const onRamp = new Uint8Array(20).fill(0xaa);
    const source = sourceChainAccount({ selector: SEPOLIA, minSeqNr: 3n, onRamp });
    expect([at(source).u64(9), at(source).u64(17)]).toEqual([SEPOLIA, 3n]);
    expect([source[25], source.slice(28, 48), Buffer.from(source).readUInt32LE(92)]).toEqual([1, onRamp, 20]);
    const merkleRoot = new Uint8Array(32).fill(1);
    const report = commitReportAccount({
      selector: SEPOLIA,
      merkleRoot,
      timestamp: 1_747_323_611n,
      minMsgNr: 4n,
      maxMsgNr: 6n,
      executionStates: 0b10_01_00n,
    });
    expect([9, 49, 57, 65, 73].map(at(report).u64)).toEqual([SEPOLIA, 1_747_323_611n, 4n, 6n, 0b10_01_00n]);
    expect(report.slice(17, 49)).toEqual(merkleRoot);
  });

  test('token pool', () => {
    const mint = addressOf('mint');
    const pool = at(poolState({ mint, router: programs.router, poolProgram: owner, tokenProgram: owner }));
    expect([pool.pubkey(9), pool.pubkey(41), pool.pubkey(266)]).toEqual([owner, mint, programs.router]);
  });
});
