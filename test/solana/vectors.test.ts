/** The tests' own encoders against published figures: discriminators, ids, leaves and deployed addresses. */
import { createRequire } from 'node:module';
import path from 'node:path';
import { keccak_256 } from '@noble/hashes/sha3.js';
import { base58 } from '@scure/base';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { fromBase58, fromHex, toBase58, toHex, u64 } from './bytes.ts';
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
import { discriminator, evmExtraArgs, executionStateChanged } from './ccip-events.ts';
import { merkleProof, merkleRoot, receivedLeaf, type SentBody, sentMessageId } from './ccip-hashes.ts';
import { addressOf, isOnCurve, programAddress } from './program-address.ts';

const key = (last: 'a' | 'b' | 'c') => `DS2tt4BX7YwCw7yrDNwbAdnYrxjeCPeGJbHmZEYC8RT${last}`;
const ones = BigInt(`0x${'01'.repeat(32)}`);
const padded = (start: string, size = 32) => fromHex(start.padEnd(size * 2, '0'));
const SEPOLIA = 16015286601757825753n;
const ETHEREUM = 5009297550715157269n;

test.each([
  ['event', 'CCIPMessageSent', '174d49b77bb97339'],
  ['event', 'OfframpAdded', '9e4d344971f74c96'],
  ['event', 'OfframpRemoved', 'e751ca0959c19a25'],
  ['event', 'CcipVersionForDestChainVersionBumped', '51615a469aa3ff4e'],
  ['event', 'CcipVersionForDestChainVersionRolledBack', '324f2cafe8f1e1ab'],
  ['event', 'CommitReportAccepted', '2c2e4ded46bbaa85'],
  ['event', 'ExecutionStateChanged', 'b9b08c70ef4e1ff9'],
  ['event', 'SkippedAlreadyExecutedMessage', '7c88d8e719e805ef'],
  ['event', 'CommitReportPDAClosed', '45f04895ae12ec2e'],
  ['event', 'Transmitted', '905e8eaa316e43bd'],
  ['event', 'Burned', 'cf25fb9aefe50e43'],
  ['global', 'ccip_send', '6cd886bff9ea2154'],
  ['global', 'commit', 'df8c8ea5e5d09c4a'],
  ['global', 'commit_price_only', 'ba91c3e3cfd3e286'],
  ['global', 'execute', '82ddf29a0dc1bd1d'],
  ['global', 'manually_execute', 'eedbe00be2f82fc0'],
  ['global', 'close_commit_report_account', '6d918140e2ac3d6a'],
  ['global', 'type_version', '81fb08f37ae5fca4'],
  ['global', 'cpi_event', 'bcd8a66c1aa68eb6'],
  ['account', 'Config', '9b0caae01efacc82'],
  ['account', 'DestChain', '4d12f184d436da10'],
  ['account', 'AllowedOfframp', 'f761b310cf24ec84'],
  ['account', 'ReferenceAddresses', '6305d8d4fa4b4a0c'],
  ['account', 'SourceChain', 'f2ebdc62fc79bfd8'],
  ['account', 'CommitReport', '2ee7f7e7ae44221a'],
  ['account', 'State', 'd8926b5e684bb6b1'],
] as const)('the discriminator of %s %s', (kind, name, expected) => {
  expect(toHex(discriminator(kind, name))).toBe(`0x${expected}`);
});

test('base58 agrees with @scure/base for bytes of every length', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 70 }), (bytes) => {
      expect(toBase58(bytes)).toBe(base58.encode(bytes));
      expect(fromBase58(base58.encode(bytes))).toEqual(bytes);
    }),
  );
  expect(() => fromBase58('0OIl')).toThrow(RangeError);
});

/** The unit test `test_hash` of the router's on-ramp. */
const routerVector: SentBody = {
  header: {
    messageId: new Uint8Array(32),
    sourceChainSelector: 10n,
    destChainSelector: 20n,
    sequenceNumber: 30n,
    nonce: 40n,
  },
  sender: key('a'),
  data: fromHex('040506'),
  receiver: padded('010203'),
  extraArgs: evmExtraArgs(1n, true),
  feeToken: key('b'),
  tokenAmounts: [
    {
      sourcePoolAddress: key('c'),
      destTokenAddress: fromHex('00010203'),
      extraData: fromHex('040506'),
      amount: ones,
      destExecData: fromHex('040506'),
    },
  ],
  feeTokenAmount: 50n,
  feeValueJuels: 500n,
};

describe('ids and leaves', () => {
  test('a message from Solana has the id of the router program and of no other', () => {
    expect(toHex(sentMessageId(deployedPrograms.router, routerVector))).toBe(
      '0x46abd733e950b0b0e05b1b4b040cf2df6c38899af71aad058ff08bfa96d4b532',
    );
    expect(sentMessageId(deployedPrograms.offRamp, routerVector)).not.toEqual(
      sentMessageId(deployedPrograms.router, routerVector),
    );
  });

  test('a message to Solana has the leaf of the off-ramp', () => {
    const leaf = receivedLeaf(
      {
        header: {
          messageId: padded('080503'),
          sourceChainSelector: 67n,
          destChainSelector: 78n,
          sequenceNumber: 89n,
          nonce: 90n,
        },
        sender: padded('010203'),
        data: fromHex('040506'),
        tokenReceiver: key('b'),
        tokenAmounts: [
          {
            sourcePoolAddress: fromHex('00010203'),
            destTokenAddress: key('c'),
            destGasAmount: 100,
            extraData: fromHex('040506'),
            amount: ones,
          },
        ],
        computeUnits: 1000,
        isWritableBitmap: 1n,
      },
      {
        onRamp: fromHex('010203'),
        receiver: deployedPrograms.router,
        accounts: ['EvhgrPhTDt4LcSPS2kfJgH6T6XWZ6wT3X9ncDGLT1vui'],
      },
    );
    expect(toHex(leaf)).toBe('0x5ddb3c9fccb01abee926ec6112afa075dc81fdfe1e2902595d9c1d1d1de4f1d1');
  });

  test('an execution event has 89 bytes, and the state last', () => {
    const { header } = routerVector;
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
  const { router, offRamp } = deployedPrograms;
  test.each([
    ['router config', routerAddresses.config(router), '3Yrg9E4ySAeRezgQY99NNarAmFLtixapga9MZb6y2dt3'],
    [
      'router fee billing signer',
      routerAddresses.feeBillingSigner(router),
      '2AjuzTy6z2webxEUu7eZ1DkAyLagZaqH2dgzhbBYjJiG',
    ],
    [
      'lane to Ethereum',
      routerAddresses.destChainState(router, ETHEREUM),
      'CowGG7G1FsfedN4jx66Gw7co1xEsiKQfE1f8BXSnSK9w',
    ],
    [
      'lane to Sepolia',
      routerAddresses.destChainState(router, SEPOLIA),
      'FMupGnCxUXo7FwuNbMUXYspP84LQZRC5syLD1krXCKzg',
    ],
    ['off-ramp config', offRampAddresses.config(offRamp), 'G88p8xbxwG6D5ZRbx7S31sdPPYR2UnRs1PhhE5iAL1ny'],
    [
      'reference addresses',
      offRampAddresses.referenceAddresses(offRamp),
      'A4qQENKi1unhuDYL5ANPQKnGoNjFhNcvWaMoCH6iMd51',
    ],
    [
      'lane from Ethereum',
      offRampAddresses.sourceChainState(offRamp, ETHEREUM),
      'CbvY411CTxKUjJGku71PvpmzVvzpd17jk7cV9mAm2LVF',
    ],
    [
      'off-ramp fee billing signer',
      offRampAddresses.feeBillingSigner(offRamp),
      'CVnNuPzPa3XiyM45yhbBqdP1QuhbP2heYjxatEgtneWM',
    ],
  ])('the deployed %s', (_, derived, deployed) => {
    expect(derived).toBe(deployed);
  });

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
