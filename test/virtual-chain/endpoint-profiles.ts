/**
 * Endpoint profiles, each with a public page where the behaviour or the wording was seen. Limits are smaller
 * than the real ones, so that a test chain of `PROFILE_BLOCKS` blocks meets them.
 */
import {
  archiveNode,
  type EndpointProfile,
  finderOf,
  httpReply,
  limit,
  type ProfileTable,
  reply,
} from './endpoint-profile.ts';

/** A chain of so many blocks meets every limit. */
export const PROFILE_BLOCKS = 1_200;

const table: ProfileTable<EndpointProfile> = {
  // Kinds of filters that are rejected.
  'address-required': [
    'https://www.allnodes.com/eth/host',
    {
      logs: {
        addressRequired: reply(
          -32701,
          'Please specify an address in your request or, to remove restrictions, order a dedicated full node here: https://www.allnodes.com/eth/host',
        ),
      },
    },
  ],
  'address-field-required': [
    'https://github.com/ChainSafe/forest/issues/6134',
    {
      logs: {
        addressRequired: reply(
          -32602,
          'error deserializing parameter: missing field `address`, name: ethFilter',
        ),
      },
    },
  ],
  'short-range-without-address': [
    'https://github.com/ponder-sh/ponder/pull/2239',
    {
      logs: {
        blocksWithoutAddress: limit(10, 35, 'ranges over {max} blocks are not supported on freetier'),
      },
    },
  ],
  'few-topics': [
    'https://github.com/smartcontractkit/ccip-tools-ts/pull/357',
    {
      logs: {
        topics: limit(4, -32602, 'exceed max addresses or topics per search position'),
        blocks: limit(512, -32000, 'requested too many blocks from {from} to {to}, maximum is set to {max}'),
      },
    },
  ],
  'one-topic-unnamed': ['invented', { logs: { topics: limit(1, -32000, 'nope') } }],
  'one-address': [
    'https://kasane-network.github.io/kasane-docs/en/doc/rpc/logs.html',
    {
      logs: {
        addresses: limit(1, -32005, 'UnsupportedFilter'),
        topics: limit(16, -32005, 'UnsupportedFilter'),
      },
    },
  ],
  'few-addresses': [
    'https://github.com/onflow/flow-evm-gateway',
    { logs: { addresses: limit(6, -32602, 'exceed max addresses') } },
  ],
  'few-addresses-and-address-required': [
    'invented',
    {
      logs: {
        addressRequired: reply(-32602, 'invalid params'),
        addresses: limit(1, -32602, 'invalid params'),
        topics: limit(2, -32602, 'invalid params'),
      },
    },
  ],
  'logs-rejected-with-receipts': [
    'https://github.com/bnb-chain/bsc/issues/1215',
    { logs: { rejected: reply(-32005, 'limit exceeded') } },
  ],
  'logs-rejected': [
    'https://github.com/bnb-chain/docs-site/issues/621',
    {
      logs: { rejected: reply(-32005, 'limit exceeded') },
      receipts: reply(-32601, 'the method eth_getBlockReceipts does not exist/is not available'),
      alone: 'stuck',
    },
  ],

  // How endpoints reject long ranges.
  'range-by-code-alone': [
    'https://github.com/smartcontractkit/ccip-tools-ts',
    { logs: { blocks: limit(500, -32012, 'block limit exceeded (maximum: {max})') } },
  ],
  'range-unnamed': ['invented', { logs: { blocks: limit(500, -32000, 'nope') } }],
  'range-as-internal-error': [
    'https://www.jsonrpc.org/specification#error_object',
    { logs: { blocks: limit(500, -32603, 'Internal error') } },
  ],
  'range-as-http-502': [
    'https://github.com/thetatoken/theta-eth-rpc-adaptor/issues/21',
    { logs: { blocks: { max: 500, error: httpReply(502, '502 Bad Gateway') } } },
  ],
  'range-as-http-413': [
    'https://github.com/OffchainLabs/arbitrum-sdk/issues/609',
    { logs: { blocks: limit(500, -32614, 'eth_getLogs is limited to a {max} range', 413) } },
  ],
  'range-as-gap': [
    'https://doc.confluxnetwork.org/es/docs/espace/rpc/eth_getlogs',
    {
      logs: {
        blocks: limit(
          500,
          -32016,
          'Error processing request: Filter error: The gap between from_epoch and to_epoch is larger than max_gap (from: {from}, to: {to}, max_gap: {max})',
        ),
      },
    },
  ],
  'range-as-reset': [
    'https://github.com/ethereum/go-ethereum/issues/20426',
    { logs: { blocks: { max: 500, error: { message: '', isReset: true } } } },
  ],
  'ten-blocks': [
    'https://www.alchemy.com/docs/chains/boba/boba-api-endpoints/eth-get-logs',
    {
      logs: {
        blocks: limit(
          10,
          -32600,
          'Under the Free tier plan, you can make eth_getLogs requests with up to a {max} block range. Based on your parameters, this block range should work: [{fromHex}, {acceptedToHex}]. Upgrade to PAYG for expanded block range.',
          400,
        ),
      },
    },
  ],
  'range-in-data': [
    'https://github.com/bobanetwork/boba_legacy/issues/827',
    {
      logs: {
        blocks: limit(500, -32602, 'invalid params: range {count} is bigger than range limit {max}'),
      },
    },
  ],
  'range-exceeds-limit': [
    'https://github.com/INFURA/infura/issues/237',
    { logs: { blocks: limit(300, -32602, 'range {count} exceeds limit of {max}') } },
  ],
  'range-too-wide': [
    'https://github.com/moonbeam-foundation/moonbeam/pull/3250',
    { logs: { blocks: limit(256, -32603, 'block range is too wide (maximum {max})') } },
  ],
  'slow-query': [
    'https://github.com/ethereum/go-ethereum/issues/28765',
    { logs: { blocks: limit(300, -32002, 'request timed out') } },
  ],

  // How endpoints reject, or cut, long answers.
  'results-with-range': [
    'https://github.com/aurora-is-near/aurora-relayer/pull/327',
    {
      logs: {
        results: limit(
          20,
          -32005,
          'query returned more than {max} results. Try with this block range [{fromHex}, {acceptedToHex}].',
        ),
      },
    },
  ],
  'results-with-the-same-range': [
    'https://github.com/base/base/issues/2421',
    {
      logs: {
        results: limit(20, -32602, 'query exceeds max results {max}, retry with the range {from}-{to}'),
      },
    },
  ],
  'results-without-range': [
    'https://github.com/ponder-sh/ponder/blob/main/packages/utils/src/getLogsRetryHelper.ts',
    { logs: { results: limit(20, -32000, 'logs matched by query exceeds limit of {max}') } },
  ],
  'results-as-size': [
    'https://github.com/bancorprotocol/webapp/issues/523',
    {
      logs: {
        results: limit(20, -32602, 'Log response size exceeded. Please reduce query block range.'),
      },
    },
  ],
  'cuts-answers': ['https://github.com/ethers-io/ethers.js/issues/1389', { logs: { truncatedAt: 100 } }],

  // History that is not there, and answers that lack something.
  'pruned-in-silence': [
    'https://github.com/erigontech/erigon/pull/16042',
    { logs: { kept: { blocks: 400, answer: 'empty' } }, alone: 'incomplete' },
  ],
  'pruned-with-an-error': [
    'https://github.com/paradigmxyz/reth/pull/27002',
    {
      logs: { kept: { blocks: 400, answer: reply(4444, 'pruned history unavailable') } },
      alone: 'incomplete',
    },
  ],
  'blind-to-addresses': [
    'https://github.com/hl-archive-node/nanoreth/issues/78',
    { logs: { isBlindToAddresses: true }, alone: 'incomplete' },
  ],
  'leaves-out-logs': [
    'https://github.com/enviodev/hyperindex/issues/1498',
    { logs: { leavesOutEvery: 3 }, alone: 'incomplete' },
  ],
  'no-old-state': [
    'https://github.com/ethereum/go-ethereum/issues/16471',
    {
      state: {
        keptBlocks: 128,
        answer: reply(
          -32000,
          'missing trie node b03d68ac51042467d7637d4ef9e1c52370abc410f263166965cb1e280b1f6d17 (path )',
        ),
      },
    },
  ],
  'current-state-for-old': ['invented', { state: { keptBlocks: 128, answer: 'current' } }],

  // Odd chains: logs and blooms.
  'log-index-per-transaction': [
    'https://github.com/0xPolygon/zkevm-node/issues/3446',
    { logs: { hasIndexPerTransaction: true } },
  ],
  'logs-in-reverse': ['https://github.com/enviodev/hyperindex/issues/1498', { logs: { order: 'reversed' } }],
  'logs-by-address': ['https://github.com/erigontech/erigon/issues/17249', { logs: { order: 'by address' } }],
  'empty-bloom': ['https://github.com/across-protocol/relayer/pull/1789', { bloom: 'zero' }],
  'no-bloom': ['https://github.com/onflow/flow-evm-gateway/issues/372', { bloom: 'absent' }],
  'full-bloom': ['https://github.com/matter-labs/zksync-era/issues/4580', { bloom: 'full' }],
  'log-times': ['https://github.com/ethereum/execution-apis/pull/639', { logs: { hasBlockTimestamp: true } }],

  // Heads and finality.
  'unknown-finalized': [
    'https://github.com/node-real/bsc-erigon/issues/376',
    { finalized: { error: reply(-39001, 'Unknown block') }, alone: 'stuck' },
  ],
  'unsupported-finalized': [
    'https://github.com/rsksmart/rskj/issues/3309',
    { finalized: { error: reply(-32602, 'unsupported block tag: finalized') }, alone: 'stuck' },
  ],
  'finality-hours-behind': [
    'https://github.com/ethereum-optimism/developers/issues/462',
    { finalized: { lagBlocks: 500 } },
  ],
  'finality-at-genesis': ['https://github.com/foundry-rs/foundry/issues/7245', { finalized: 'genesis' }],
  'instant-finality': ['https://github.com/ava-labs/builders-hub/pull/148', { finalized: { lagBlocks: 0 } }],
  'unsynchronized-balancer': [
    'https://github.com/ethereum/go-ethereum/issues/24078',
    { lag: { blocks: 5, every: 3 } },
  ],

  // Rates, quotas and faults of the transport.
  'rate-without-retry-after': [
    'https://github.com/hyperlane-xyz/hyperlane-monorepo/pull/2021',
    {
      rate: limit(
        200,
        429,
        'Your app has exceeded its compute units per second capacity. If you have retries enabled, you can safely ignore this message.',
        429,
      ),
    },
  ],
  'rate-with-retry-after': [
    'https://developer.mozilla.org/en-US/docs/Web/HTTP/Status/429',
    { rate: { max: 200, retryAfterSeconds: 1, error: httpReply(429, 'Too Many Requests') } },
  ],
  'rate-in-words': [
    'https://github.com/fluencelabs/dev-rewards/issues/20',
    { rate: limit(200, -32005, 'rate limit exceeded') },
  ],
  'daily-cap': [
    'https://github.com/gochain/web3/issues/180',
    { cap: limit(60, -32005, 'daily request count exceeded, request rate limited', 429), alone: 'stuck' },
  ],
  'payment-required': [
    'https://github.com/enviodev/hyperindex/issues/715',
    { cap: { max: 60, error: httpReply(402, 'Payment Required') }, alone: 'stuck' },
  ],
  'small-batches': [
    'https://github.com/erigontech/erigon/issues/7072',
    { batch: limit(10, -32000, 'batch limit {max} exceeded: {count} requests given') },
  ],
  'no-batches': [
    'https://github.com/subquery/subql/issues/1852',
    { batch: limit(1, -32600, 'Invalid Request', 400) },
  ],
  resets: ['https://github.com/BoringDAO/boringDAO-bridge/pull/11', { resetsEvery: 7 }],
  'unhealthy-backend': [
    'https://github.com/ponder-sh/ponder/blob/main/packages/utils/src/getLogsRetryHelper.ts',
    { fails: { every: 9, error: reply(-32011, 'no backend is currently healthy to serve traffic', 503) } },
  ],
  'bad-gateway': [
    'https://github.com/hyperlane-xyz/hyperlane-monorepo/pull/2021',
    { fails: { every: 8, error: httpReply(502, '<html>502 Bad Gateway</html>') } },
  ],
};

export const profiles: readonly EndpointProfile[] = [
  archiveNode,
  ...Object.entries(table).map(([name, [seen, traits]]) => ({ name, seen, ...traits })),
];
export const profileOf = finderOf(profiles);
