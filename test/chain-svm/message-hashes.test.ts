/** Ids, leaves and derived addresses against published values: unit tests of the programs, and deployed accounts. */
import { base58, hex } from '@scure/base';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { discriminatorOf } from '../../src/ingest/svm/decode/discriminators.ts';
import {
  merkleRootOf,
  receivedMessageLeaf,
  sentMessageId,
} from '../../src/ingest/svm/decode/message-hashes.ts';
import { isOnCurve, programAddresses } from '../../src/ingest/svm/program-addresses.ts';

const router = 'Ccip842gzYHhvdDkSyi2YVCoAWPbYJoApMFzSxQroE9C';
const offRamp = 'offqSMQWgQud6WJz694LRzkeN5kMYpCHTpXQr3Rkcjm';
const ethereum = 5009297550715157269n;
const sepolia = 16015286601757825753n;
const key = (end: string) => `DS2tt4BX7YwCw7yrDNwbAdnYrxjeCPeGJbHmZEYC8RT${end}`;
const ones = BigInt(`0x${'01'.repeat(32)}`);

describe('the discriminators are those that the programs have', () => {
  test.each([
    ['event', 'CCIPMessageSent', '174d49b77bb97339'],
    ['event', 'CommitReportAccepted', '2c2e4ded46bbaa85'],
    ['event', 'ExecutionStateChanged', 'b9b08c70ef4e1ff9'],
    ['event', 'OfframpAdded', '9e4d344971f74c96'],
    ['event', 'OfframpRemoved', 'e751ca0959c19a25'],
    ['event', 'CcipVersionForDestChainVersionBumped', '51615a469aa3ff4e'],
    ['event', 'CcipVersionForDestChainVersionRolledBack', '324f2cafe8f1e1ab'],
    ['event', 'SkippedAlreadyExecutedMessage', '7c88d8e719e805ef'],
    ['event', 'CCIPMessageSentV2', '70205df81d5c63bc'],
    ['event', 'ExecutionStateChangedV2', '4ee3f4167a84579f'],
    ['global', 'ccip_send', '6cd886bff9ea2154'],
    ['global', 'commit', 'df8c8ea5e5d09c4a'],
    ['global', 'execute', '82ddf29a0dc1bd1d'],
    ['global', 'manually_execute', 'eedbe00be2f82fc0'],
    ['global', 'cpi_event', 'bcd8a66c1aa68eb6'],
    ['account', 'Config', '9b0caae01efacc82'],
    ['account', 'DestChain', '4d12f184d436da10'],
    ['account', 'AllowedOfframp', 'f761b310cf24ec84'],
    ['account', 'ReferenceAddresses', '6305d8d4fa4b4a0c'],
    ['account', 'SourceChain', 'f2ebdc62fc79bfd8'],
    ['account', 'CommitReport', '2ee7f7e7ae44221a'],
  ] as const)('%s:%s', (kind, name, digits) => {
    expect(discriminatorOf(kind, name)).toBe(digits);
  });
});

test('the id of a message from Solana is that of the router’s own unit test', () => {
  const receiver = new Uint8Array(32);
  receiver.set([1, 2, 3]);
  const id = sentMessageId(
    {
      header: {
        messageId: `0x${'00'.repeat(32)}`,
        sourceChainSelector: 10n,
        destChainSelector: 20n,
        sequenceNumber: 30n,
        nonce: 40n,
      },
      sender: key('a'),
      data: Uint8Array.of(4, 5, 6),
      receiver,
      extraArgs: hex.decode(`181dcf10${'01'.padEnd(32, '0')}01`),
      feeToken: key('b'),
      feeTokenAmount: 50n,
      feeValueJuels: 500n,
      tokenAmounts: [
        {
          sourcePoolAddress: key('c'),
          destTokenAddress: Uint8Array.of(0, 1, 2, 3),
          extraData: Uint8Array.of(4, 5, 6),
          amount: ones,
          destExecData: Uint8Array.of(4, 5, 6),
        },
      ],
    },
    router,
  );
  expect(id).toBe('0x46abd733e950b0b0e05b1b4b040cf2df6c38899af71aad058ff08bfa96d4b532');
});

test('the leaf of a message to Solana is that of the off-ramp’s own unit test', () => {
  const sender = new Uint8Array(32);
  sender.set([1, 2, 3]);
  const leaf = receivedMessageLeaf(
    {
      header: {
        messageId: `0x080503${'00'.repeat(29)}`,
        sourceChainSelector: 67n,
        destChainSelector: 78n,
        sequenceNumber: 89n,
        nonce: 90n,
      },
      sender,
      data: Uint8Array.of(4, 5, 6),
      tokenReceiver: key('b'),
      tokenAmounts: [
        {
          sourcePoolAddress: Uint8Array.of(0, 1, 2, 3),
          destTokenAddress: key('c'),
          destGasAmount: 100,
          extraData: Uint8Array.of(4, 5, 6),
          amount: ones,
        },
      ],
      computeUnits: 1000,
      isWritableBitmap: 1n,
    },
    Uint8Array.of(1, 2, 3),
    [router, 'EvhgrPhTDt4LcSPS2kfJgH6T6XWZ6wT3X9ncDGLT1vui'],
  );
  expect(leaf).toBe('0x5ddb3c9fccb01abee926ec6112afa075dc81fdfe1e2902595d9c1d1d1de4f1d1');
});

test('a tree of one leaf has that leaf as its root, and the order within a pair does not matter', () => {
  const [a, b] = [`0x${'11'.repeat(32)}`, `0x${'22'.repeat(32)}`] as const;
  expect(merkleRootOf([a])).toBe(a);
  expect(merkleRootOf([a, b])).toBe(merkleRootOf([b, a]));
  expect(merkleRootOf([a, b, a])).not.toBe(merkleRootOf([a, b]));
});

describe('derived addresses are those of the deployed programs', () => {
  test.each([
    ['router config', programAddresses.config(router), '3Yrg9E4ySAeRezgQY99NNarAmFLtixapga9MZb6y2dt3'],
    [
      'router fee_billing_signer',
      programAddresses.feeBillingSigner(router),
      '2AjuzTy6z2webxEUu7eZ1DkAyLagZaqH2dgzhbBYjJiG',
    ],
    [
      'dest_chain_state of Ethereum',
      programAddresses.destChainState(router, ethereum),
      'CowGG7G1FsfedN4jx66Gw7co1xEsiKQfE1f8BXSnSK9w',
    ],
    [
      'dest_chain_state of Sepolia',
      programAddresses.destChainState(router, sepolia),
      'FMupGnCxUXo7FwuNbMUXYspP84LQZRC5syLD1krXCKzg',
    ],
    ['off-ramp config', programAddresses.config(offRamp), 'G88p8xbxwG6D5ZRbx7S31sdPPYR2UnRs1PhhE5iAL1ny'],
    [
      'reference_addresses',
      programAddresses.referenceAddresses(offRamp),
      'A4qQENKi1unhuDYL5ANPQKnGoNjFhNcvWaMoCH6iMd51',
    ],
    [
      'source_chain_state of Ethereum',
      programAddresses.sourceChainState(offRamp, ethereum),
      'CbvY411CTxKUjJGku71PvpmzVvzpd17jk7cV9mAm2LVF',
    ],
    [
      'off-ramp fee_billing_signer',
      programAddresses.feeBillingSigner(offRamp),
      'CVnNuPzPa3XiyM45yhbBqdP1QuhbP2heYjxatEgtneWM',
    ],
  ])('%s', (_, derived, deployed) => {
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
