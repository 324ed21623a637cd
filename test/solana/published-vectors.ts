/**
 * Published figures of CCIP's Solana programs: their unit tests and their deployed accounts. The product's decoders and the
 * encoders of these tests are two implementations, and both are held to them.
 */

import { addresses, deployedPrograms } from './ccip-accounts.ts';
import { evmExtraArgs, type LeafContext, type ReceivedBody, type SentBody } from './ccip-events.ts';
import { fromHex } from './runtime/bytes.ts';

export const publishedDiscriminators = [
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
  ['event', 'CCIPMessageSentV2', '70205df81d5c63bc'],
  ['event', 'ExecutionStateChangedV2', '4ee3f4167a84579f'],
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
] as const;

const key = (last: 'a' | 'b' | 'c') => `DS2tt4BX7YwCw7yrDNwbAdnYrxjeCPeGJbHmZEYC8RT${last}`;
const ones = BigInt(`0x${'01'.repeat(32)}`);
const padded = (start: string) => fromHex(start.padEnd(64, '0'));

/** The unit test `test_hash` of the router's on-ramp. */
export const sentVector: { readonly router: string; readonly body: SentBody; readonly messageId: string } = {
  router: deployedPrograms.router,
  body: {
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
  },
  messageId: '0x46abd733e950b0b0e05b1b4b040cf2df6c38899af71aad058ff08bfa96d4b532',
};

/** The unit test `test_hash` of the off-ramp. */
export const receivedVector: {
  readonly body: ReceivedBody;
  readonly context: LeafContext;
  readonly leaf: string;
} = {
  body: {
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
  context: {
    onRamp: fromHex('010203'),
    receiver: deployedPrograms.router,
    accounts: ['EvhgrPhTDt4LcSPS2kfJgH6T6XWZ6wT3X9ncDGLT1vui'],
  },
  leaf: '0x5ddb3c9fccb01abee926ec6112afa075dc81fdfe1e2902595d9c1d1d1de4f1d1',
};

const { router, offRamp } = deployedPrograms;
const ETHEREUM = 5009297550715157269n;
const SEPOLIA = 16015286601757825753n;
const devnetRouter = 'Ccip8ZTcM2qHjVt8FYHtuCAqjc637yLKnsJ5q5r2e6eL';
const devnetOffRamp = 'offVkroQ4wYMv6QFPBvJazAx2p8BnLh7sJRdyQ5GYfx';
const devnetRoot = fromHex('91d3c913d08bc07134dad446c3231fa2b3c9621bba719f273551c92390834c1c');

/** Accounts of the deployed programs, by the address that is derived for each. Those of devnet are of a failed execution. */
export const deployedAccounts: Readonly<Record<string, string>> = {
  '3Yrg9E4ySAeRezgQY99NNarAmFLtixapga9MZb6y2dt3': addresses.config(router),
  '2AjuzTy6z2webxEUu7eZ1DkAyLagZaqH2dgzhbBYjJiG': addresses.feeBillingSigner(router),
  CowGG7G1FsfedN4jx66Gw7co1xEsiKQfE1f8BXSnSK9w: addresses.destChainState(router, ETHEREUM),
  FMupGnCxUXo7FwuNbMUXYspP84LQZRC5syLD1krXCKzg: addresses.destChainState(router, SEPOLIA),
  G88p8xbxwG6D5ZRbx7S31sdPPYR2UnRs1PhhE5iAL1ny: addresses.config(offRamp),
  A4qQENKi1unhuDYL5ANPQKnGoNjFhNcvWaMoCH6iMd51: addresses.referenceAddresses(offRamp),
  CbvY411CTxKUjJGku71PvpmzVvzpd17jk7cV9mAm2LVF: addresses.sourceChainState(offRamp, ETHEREUM),
  CVnNuPzPa3XiyM45yhbBqdP1QuhbP2heYjxatEgtneWM: addresses.feeBillingSigner(offRamp),
  AFUaqKMB92kQB5y7op5pyB3hYG275rZcS7Y8inWJyc2K: addresses.config(devnetOffRamp),
  '3a94c3Z5bDSw2c2GryztaTv7MZYG7rBCXs2eaQUp22ei': addresses.referenceAddresses(devnetOffRamp),
  '3uLA89AnqSX5sHimPnxna1jP217nxGk7UtebLLaukcQr': addresses.sourceChainState(devnetOffRamp, SEPOLIA),
  FQxTi1fukqHYZSHFGZcGPwyNoHPs7JdAcrkJtcGFYQ1t: addresses.commitReport(devnetOffRamp, SEPOLIA, devnetRoot),
  '9eWtJJhas4BMyVBBuCTPP4LcHR3XSvPr4qeEZJwnBgw8': addresses.allowedOffRamp(
    devnetRouter,
    SEPOLIA,
    devnetOffRamp,
  ),
  // The metadata of wrapped SOL.
  '6dM4TqWyWJsbx7obrdLcviBkTafD5E8av61zfU6jq57X': addresses.metadata(
    'So11111111111111111111111111111111111111112',
  ),
};
