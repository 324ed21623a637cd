/**
 * Endpoint profiles, each with a public page where the behaviour or the wording was seen. Limits are smaller
 * than the real ones, so that a test chain of `PROFILE_BLOCKS` blocks meets them.
 */
import { archiveNode, type EndpointProfile, type RpcErrorReply } from './endpoint-profile.ts';

/** A chain of so many blocks meets every limit. */
export const PROFILE_BLOCKS = 1_200;

const tooManyTopics: RpcErrorReply = {
  code: -32602,
  message: 'exceed max addresses or topics per search position',
};

/** Kinds of filters that are rejected. */
const filterLimits: readonly EndpointProfile[] = [
  {
    name: 'address-required',
    seen: 'https://www.allnodes.com/eth/host',
    logs: {
      addressRequired: {
        code: -32701,
        message:
          'Please specify an address in your request or, to remove restrictions, order a dedicated full node here: https://www.allnodes.com/eth/host',
      },
    },
    alone: 'complete',
  },
  {
    name: 'address-field-required',
    seen: 'https://github.com/ChainSafe/forest/issues/6134',
    logs: {
      addressRequired: {
        code: -32602,
        message: 'error deserializing parameter: missing field `address`, name: ethFilter',
      },
    },
    alone: 'complete',
  },
  {
    name: 'short-range-without-address',
    seen: 'https://github.com/ponder-sh/ponder/pull/2239',
    logs: {
      blocksWithoutAddress: {
        max: 10,
        error: { code: 35, message: 'ranges over {max} blocks are not supported on freetier' },
      },
    },
    alone: 'complete',
  },
  {
    name: 'few-topics',
    seen: 'https://github.com/smartcontractkit/ccip-tools-ts/pull/357',
    logs: {
      topics: { max: 4, error: tooManyTopics },
      blocks: {
        max: 512,
        error: {
          code: -32000,
          message: 'requested too many blocks from {from} to {to}, maximum is set to {max}',
        },
      },
    },
    alone: 'complete',
  },
  {
    name: 'one-topic-unnamed',
    seen: 'invented',
    logs: { topics: { max: 1, error: { code: -32000, message: 'nope' } } },
    alone: 'complete',
  },
  {
    name: 'one-address',
    seen: 'https://kasane-network.github.io/kasane-docs/en/doc/rpc/logs.html',
    logs: {
      addresses: { max: 1, error: { code: -32005, message: 'UnsupportedFilter' } },
      topics: { max: 16, error: { code: -32005, message: 'UnsupportedFilter' } },
    },
    alone: 'complete',
  },
  {
    name: 'few-addresses',
    seen: 'https://github.com/onflow/flow-evm-gateway',
    logs: { addresses: { max: 6, error: { code: -32602, message: 'exceed max addresses' } } },
    alone: 'complete',
  },
  {
    name: 'few-addresses-and-address-required',
    seen: 'invented',
    logs: {
      addressRequired: { code: -32602, message: 'invalid params' },
      addresses: { max: 1, error: { code: -32602, message: 'invalid params' } },
      topics: { max: 2, error: { code: -32602, message: 'invalid params' } },
    },
    alone: 'complete',
  },
  {
    name: 'logs-rejected-with-receipts',
    seen: 'https://github.com/bnb-chain/bsc/issues/1215',
    logs: { rejected: { code: -32005, message: 'limit exceeded' } },
    alone: 'complete',
  },
  {
    name: 'logs-rejected',
    seen: 'https://github.com/bnb-chain/docs-site/issues/621',
    logs: { rejected: { code: -32005, message: 'limit exceeded' } },
    receipts: {
      code: -32601,
      message: 'the method eth_getBlockReceipts does not exist/is not available',
    },
    alone: 'stuck',
  },
];

/** How endpoints reject long ranges. */
const rangeLimits: readonly EndpointProfile[] = [
  {
    name: 'range-by-code-alone',
    seen: 'https://github.com/smartcontractkit/ccip-tools-ts',
    logs: {
      blocks: { max: 500, error: { code: -32012, message: 'block limit exceeded (maximum: {max})' } },
    },
    alone: 'complete',
  },
  {
    name: 'range-unnamed',
    seen: 'invented',
    logs: { blocks: { max: 500, error: { code: -32000, message: 'nope' } } },
    alone: 'complete',
  },
  {
    name: 'range-as-internal-error',
    seen: 'https://www.jsonrpc.org/specification#error_object',
    logs: { blocks: { max: 500, error: { code: -32603, message: 'Internal error' } } },
    alone: 'complete',
  },
  {
    name: 'range-as-http-502',
    seen: 'https://github.com/thetatoken/theta-eth-rpc-adaptor/issues/21',
    logs: {
      blocks: { max: 500, error: { message: '502 Bad Gateway', status: 502, isPlainText: true } },
    },
    alone: 'complete',
  },
  {
    name: 'range-as-http-413',
    seen: 'https://github.com/OffchainLabs/arbitrum-sdk/issues/609',
    logs: {
      blocks: {
        max: 500,
        error: { code: -32614, message: 'eth_getLogs is limited to a {max} range', status: 413 },
      },
    },
    alone: 'complete',
  },
  {
    name: 'range-as-gap',
    seen: 'https://doc.confluxnetwork.org/es/docs/espace/rpc/eth_getlogs',
    logs: {
      blocks: {
        max: 500,
        error: {
          code: -32016,
          message:
            'Error processing request: Filter error: The gap between from_epoch and to_epoch is larger than max_gap (from: {from}, to: {to}, max_gap: {max})',
        },
      },
    },
    alone: 'complete',
  },
  {
    name: 'range-as-reset',
    seen: 'https://github.com/ethereum/go-ethereum/issues/20426',
    logs: { blocks: { max: 500, error: { message: '', isReset: true } } },
    alone: 'complete',
  },
  {
    name: 'ten-blocks',
    seen: 'https://www.alchemy.com/docs/chains/boba/boba-api-endpoints/eth-get-logs',
    logs: {
      blocks: {
        max: 10,
        error: {
          code: -32600,
          message:
            'Under the Free tier plan, you can make eth_getLogs requests with up to a {max} block range. Based on your parameters, this block range should work: [{fromHex}, {acceptedToHex}]. Upgrade to PAYG for expanded block range.',
          status: 400,
        },
      },
    },
    alone: 'complete',
  },
  {
    name: 'range-in-data',
    seen: 'https://github.com/bobanetwork/boba_legacy/issues/827',
    logs: {
      blocks: {
        max: 500,
        error: { code: -32602, message: 'invalid params: range {count} is bigger than range limit {max}' },
      },
    },
    alone: 'complete',
  },
  {
    name: 'range-exceeds-limit',
    seen: 'https://github.com/INFURA/infura/issues/237',
    logs: {
      blocks: { max: 300, error: { code: -32602, message: 'range {count} exceeds limit of {max}' } },
    },
    alone: 'complete',
  },
  {
    name: 'range-too-wide',
    seen: 'https://github.com/moonbeam-foundation/moonbeam/pull/3250',
    logs: {
      blocks: {
        max: 256,
        error: { code: -32603, message: 'block range is too wide (maximum {max})' },
      },
    },
    alone: 'complete',
  },
  {
    name: 'slow-query',
    seen: 'https://github.com/ethereum/go-ethereum/issues/28765',
    logs: { blocks: { max: 300, error: { code: -32002, message: 'request timed out' } } },
    alone: 'complete',
  },
];

/** How endpoints reject, or cut, long answers. */
const resultLimits: readonly EndpointProfile[] = [
  {
    name: 'results-with-range',
    seen: 'https://github.com/aurora-is-near/aurora-relayer/pull/327',
    logs: {
      results: {
        max: 20,
        error: {
          code: -32005,
          message:
            'query returned more than {max} results. Try with this block range [{fromHex}, {acceptedToHex}].',
        },
      },
    },
    alone: 'complete',
  },
  {
    name: 'results-with-the-same-range',
    seen: 'https://github.com/base/base/issues/2421',
    logs: {
      results: {
        max: 20,
        error: {
          code: -32602,
          message: 'query exceeds max results {max}, retry with the range {from}-{to}',
        },
      },
    },
    alone: 'complete',
  },
  {
    name: 'results-without-range',
    seen: 'https://github.com/ponder-sh/ponder/blob/main/packages/utils/src/getLogsRetryHelper.ts',
    logs: {
      results: {
        max: 20,
        error: { code: -32000, message: 'logs matched by query exceeds limit of {max}' },
      },
    },
    alone: 'complete',
  },
  {
    name: 'results-as-size',
    seen: 'https://github.com/bancorprotocol/webapp/issues/523',
    logs: {
      results: {
        max: 20,
        error: { code: -32602, message: 'Log response size exceeded. Please reduce query block range.' },
      },
    },
    alone: 'complete',
  },
  {
    name: 'cuts-answers',
    seen: 'https://github.com/ethers-io/ethers.js/issues/1389',
    logs: { truncatedAt: 100 },
    alone: 'complete',
  },
];

/** History that is not there, and answers that lack something. */
const missingData: readonly EndpointProfile[] = [
  {
    name: 'pruned-in-silence',
    seen: 'https://github.com/erigontech/erigon/pull/16042',
    logs: { kept: { blocks: 400, answer: 'empty' } },
    alone: 'incomplete',
  },
  {
    name: 'pruned-with-an-error',
    seen: 'https://github.com/paradigmxyz/reth/pull/27002',
    logs: { kept: { blocks: 400, answer: { code: 4444, message: 'pruned history unavailable' } } },
    alone: 'incomplete',
  },
  {
    name: 'blind-to-addresses',
    seen: 'https://github.com/hl-archive-node/nanoreth/issues/78',
    logs: { isBlindToAddresses: true },
    alone: 'incomplete',
  },
  {
    name: 'leaves-out-logs',
    seen: 'https://github.com/enviodev/hyperindex/issues/1498',
    logs: { leavesOutEvery: 3 },
    alone: 'incomplete',
  },
  {
    name: 'no-old-state',
    seen: 'https://github.com/ethereum/go-ethereum/issues/16471',
    state: {
      keptBlocks: 128,
      answer: {
        code: -32000,
        message: 'missing trie node b03d68ac51042467d7637d4ef9e1c52370abc410f263166965cb1e280b1f6d17 (path )',
      },
    },
    alone: 'complete',
  },
  {
    name: 'current-state-for-old',
    seen: 'invented',
    state: { keptBlocks: 128, answer: 'current' },
    alone: 'complete',
  },
];

/** Odd chains: logs and blooms. */
const oddChains: readonly EndpointProfile[] = [
  {
    name: 'log-index-per-transaction',
    seen: 'https://github.com/0xPolygon/zkevm-node/issues/3446',
    logs: { hasIndexPerTransaction: true },
    alone: 'complete',
  },
  {
    name: 'logs-in-reverse',
    seen: 'https://github.com/enviodev/hyperindex/issues/1498',
    logs: { order: 'reversed' },
    alone: 'complete',
  },
  {
    name: 'logs-by-address',
    seen: 'https://github.com/erigontech/erigon/issues/17249',
    logs: { order: 'by address' },
    alone: 'complete',
  },
  {
    name: 'empty-bloom',
    seen: 'https://github.com/across-protocol/relayer/pull/1789',
    bloom: 'zero',
    alone: 'complete',
  },
  {
    name: 'no-bloom',
    seen: 'https://github.com/onflow/flow-evm-gateway/issues/372',
    bloom: 'absent',
    alone: 'complete',
  },
  {
    name: 'full-bloom',
    seen: 'https://github.com/matter-labs/zksync-era/issues/4580',
    bloom: 'full',
    alone: 'complete',
  },
  {
    name: 'log-times',
    seen: 'https://github.com/ethereum/execution-apis/pull/639',
    logs: { hasBlockTimestamp: true },
    alone: 'complete',
  },
];

/** Heads and finality. */
const heads: readonly EndpointProfile[] = [
  {
    name: 'unknown-finalized',
    seen: 'https://github.com/node-real/bsc-erigon/issues/376',
    finalized: { error: { code: -39001, message: 'Unknown block' } },
    alone: 'stuck',
  },
  {
    name: 'unsupported-finalized',
    seen: 'https://github.com/rsksmart/rskj/issues/3309',
    finalized: { error: { code: -32602, message: 'unsupported block tag: finalized' } },
    alone: 'stuck',
  },
  {
    name: 'finality-hours-behind',
    seen: 'https://github.com/ethereum-optimism/developers/issues/462',
    finalized: { lagBlocks: 500 },
    alone: 'complete',
  },
  {
    name: 'finality-at-genesis',
    seen: 'https://github.com/foundry-rs/foundry/issues/7245',
    finalized: 'genesis',
    alone: 'complete',
  },
  {
    name: 'instant-finality',
    seen: 'https://github.com/ava-labs/builders-hub/pull/148',
    finalized: { lagBlocks: 0 },
    alone: 'complete',
  },
  {
    name: 'unsynchronized-balancer',
    seen: 'https://github.com/ethereum/go-ethereum/issues/24078',
    lag: { blocks: 5, every: 3 },
    alone: 'complete',
  },
];

/** Rates, quotas and faults of the transport. */
const transports: readonly EndpointProfile[] = [
  {
    name: 'rate-without-retry-after',
    seen: 'https://github.com/hyperlane-xyz/hyperlane-monorepo/pull/2021',
    rate: {
      max: 200,
      error: {
        code: 429,
        message:
          'Your app has exceeded its compute units per second capacity. If you have retries enabled, you can safely ignore this message.',
        status: 429,
      },
    },
    alone: 'complete',
  },
  {
    name: 'rate-with-retry-after',
    seen: 'https://developer.mozilla.org/en-US/docs/Web/HTTP/Status/429',
    rate: {
      max: 200,
      retryAfterSeconds: 1,
      error: { message: 'Too Many Requests', status: 429, isPlainText: true },
    },
    alone: 'complete',
  },
  {
    name: 'rate-in-words',
    seen: 'https://github.com/fluencelabs/dev-rewards/issues/20',
    rate: { max: 200, error: { code: -32005, message: 'rate limit exceeded' } },
    alone: 'complete',
  },
  {
    name: 'daily-cap',
    seen: 'https://github.com/gochain/web3/issues/180',
    cap: {
      max: 60,
      error: { code: -32005, message: 'daily request count exceeded, request rate limited', status: 429 },
    },
    alone: 'stuck',
  },
  {
    name: 'payment-required',
    seen: 'https://github.com/enviodev/hyperindex/issues/715',
    cap: { max: 60, error: { message: 'Payment Required', status: 402, isPlainText: true } },
    alone: 'stuck',
  },
  {
    name: 'small-batches',
    seen: 'https://github.com/erigontech/erigon/issues/7072',
    batch: {
      max: 10,
      error: { code: -32000, message: 'batch limit {max} exceeded: {count} requests given' },
    },
    alone: 'complete',
  },
  {
    name: 'no-batches',
    seen: 'https://github.com/subquery/subql/issues/1852',
    batch: { max: 1, error: { code: -32600, message: 'Invalid Request', status: 400 } },
    alone: 'complete',
  },
  {
    name: 'resets',
    seen: 'https://github.com/BoringDAO/boringDAO-bridge/pull/11',
    resetsEvery: 7,
    alone: 'complete',
  },
  {
    name: 'unhealthy-backend',
    seen: 'https://github.com/ponder-sh/ponder/blob/main/packages/utils/src/getLogsRetryHelper.ts',
    fails: {
      every: 9,
      error: {
        code: -32011,
        message: 'no backend is currently healthy to serve traffic',
        status: 503,
      },
    },
    alone: 'complete',
  },
  {
    name: 'bad-gateway',
    seen: 'https://github.com/hyperlane-xyz/hyperlane-monorepo/pull/2021',
    fails: { every: 8, error: { message: '<html>502 Bad Gateway</html>', status: 502, isPlainText: true } },
    alone: 'complete',
  },
];

export const profiles: readonly EndpointProfile[] = [
  archiveNode,
  ...filterLimits,
  ...rangeLimits,
  ...resultLimits,
  ...missingData,
  ...oddChains,
  ...heads,
  ...transports,
];

/** The profile of that name. */
export function profileOf(name: string): EndpointProfile {
  const found = profiles.find((profile) => profile.name === name);
  if (!found) throw new RangeError(`There is no profile ${name}.`);
  return found;
}
