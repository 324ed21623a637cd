/** Records of every kind: lanes between both families, three versions, all statuses, with and without parts. */
import { statuses } from '../../src/domain/lifecycle.ts';
import type { Message } from '../../src/domain/message.ts';
import {
  evmAddress,
  fuji,
  hashOf,
  makeMessage,
  makeToken,
  makeVerifier,
  sepolia,
  solanaDevnet,
  svmAddress,
} from '../fixtures.ts';

const itemizedFees: Message['fees'] = {
  fixedFeesDetails: {
    tokenAddress: evmAddress('link'),
    totalAmount: '340282366920938463463374607431768211456',
    items: (['VERIFIER', 'TOKEN_POOL', 'EXECUTOR', 'NETWORK'] as const).map((feeType, index) => ({
      contractAddress: evmAddress('charges', feeType),
      feeType,
      amount: String(10 ** index),
    })),
  },
};

const verifiers: NonNullable<Message['verifiers']> = {
  items: [
    {
      ...makeVerifier('Committee', { completedAt: '2026-01-01T00:20:00.000Z' }),
      metadata: { name: 'Committee', logoUrl: 'https://verifier.example/logo.svg?size=2&theme=%22dark%22' },
    },
    makeVerifier('Second opinion', { isRequired: false }),
  ],
  optionalThreshold: 1,
};

/** One record of each status on each of three protocol versions, from Sepolia to Fuji. */
const lifecycles = ['1.5.0', '1.6.0', '2.0.0'].flatMap((version, row) =>
  statuses.map((status, column) =>
    makeMessage({
      number: 1 + row * statuses.length + column,
      version,
      status,
      nonce: version === '2.0.0' ? null : String(column),
      ...(version === '2.0.0' && {
        verifiers,
        executor: { address: evmAddress('executor') },
        fees: itemizedFees,
        finality: 32,
      }),
    }),
  ),
);

export const tokenToEvm = makeMessage({
  number: 30,
  status: 'SUCCESS',
  version: '1.5.0',
  nonce: '9',
  tokenAmounts: [makeToken(sepolia, fuji, 'LINK'), makeToken(sepolia, fuji, 'USDC')],
});

export const evmToSvm = makeMessage({
  number: 31,
  status: 'SUCCESS',
  destNetworkInfo: solanaDevnet,
  tokenAmounts: [makeToken(sepolia, solanaDevnet, 'LINK')],
  extraArgs: {
    computeUnits: 0,
    accountIsWritableBitmap: '18446744073709551615',
    allowOutOfOrderExecution: true,
    tokenReceiver: svmAddress('token receiver'),
    accounts: [svmAddress('account', 1), svmAddress('account', 2)],
  },
});

export const svmToEvm = makeMessage({
  number: 32,
  status: 'FAILED',
  sourceNetworkInfo: solanaDevnet,
  destNetworkInfo: fuji,
  tokenAmounts: [{ ...makeToken(solanaDevnet, fuji, 'LINK'), extraData: null, destGasAmount: null }],
});

/** Everything that may be null is. */
export const barest = makeMessage({
  number: 33,
  nonce: null,
  routerAddress: null,
  data: null,
  version: null,
  sourceNetworkInfo: {
    ...sepolia,
    name: 'ünïcode-😀-"network"',
    chainSelector: '18446744073709551615',
    displayName: null,
  },
});

/** Three messages of one transaction. */
export const batch = [40, 41, 42].map((number) =>
  makeMessage({
    number,
    sendTransactionHash: hashOf('batch'),
    sendLogIndex: number,
    sender: evmAddress('batcher'),
  }),
);

export const sampleMessages: readonly Message[] = [
  ...lifecycles,
  tokenToEvm,
  evmToSvm,
  svmToEvm,
  barest,
  ...batch,
];
