/**
 * Solana endpoint profiles, each with a public page where the behaviour or the wording was seen. Limits are smaller
 * than the real ones, so that a world of `PROFILE_STEPS` steps meets them.
 */
import { archiveNode, type SolanaProfile } from './solana-profile.ts';

/** Random traffic of so many steps meets every limit. */
export const PROFILE_STEPS = 160;

/** Nodes behind the cluster. */
const lagging: readonly SolanaProfile[] = [
  {
    name: 'lags-behind',
    seen: 'https://github.com/solana-labs/solana/issues/21046',
    lag: { slots: 30 },
    alone: 'complete',
  },
  {
    name: 'balancer-with-a-lagging-node',
    seen: 'https://github.com/solana-labs/solana/issues/24417',
    lag: { slots: 250, every: 3 },
    alone: 'complete',
  },
  {
    name: 'lagging-node-that-ignores-the-context-slot',
    seen: 'https://github.com/solana-labs/solana/issues/24620',
    lag: { slots: 250, every: 3, ignoresMinContextSlot: true },
    signatures: { unknownSignature: 'silent' },
    alone: 'complete',
  },
  {
    name: 'unhealthy-now-and-then',
    seen: 'https://github.com/solana-labs/solana/issues/18691',
    fails: { every: 4, error: { code: -32005, message: 'Node is behind by 59093 slots' } },
    alone: 'complete',
  },
];

/** Nodes without the whole history. */
const pruned: readonly SolanaProfile[] = [
  {
    name: 'pruned-in-silence',
    seen: 'https://github.com/anza-xyz/agave/pull/7937',
    kept: { slots: 150, answer: 'silent' },
    signatures: { unknownSignature: 'silent' },
    alone: 'incomplete',
  },
  {
    name: 'pruned-and-current',
    seen: 'https://github.com/anza-xyz/agave/pull/7937',
    kept: { slots: 150, answer: 'silent' },
    alone: 'incomplete',
  },
  {
    name: 'no-transaction-history',
    seen: 'https://github.com/solana-labs/solana/pull/17494',
    kept: {
      slots: 150,
      answer: { code: -32011, message: 'Transaction history is not available from this node' },
    },
    alone: 'incomplete',
  },
  {
    name: 'long-term-storage-now-and-then',
    seen: 'https://github.com/anza-xyz/agave/pull/3700',
    longTermStorage: {
      belowSlots: 100,
      failsEvery: 3,
      error: { code: -32019, message: 'Failed to query long-term storage; please try again' },
    },
    alone: 'complete',
  },
  {
    name: 'long-term-storage-away',
    seen: 'https://github.com/anza-xyz/agave/pull/3700',
    longTermStorage: {
      belowSlots: 100,
      failsEvery: 1,
      error: { code: -32019, message: 'Failed to query long-term storage; please try again' },
    },
    alone: 'incomplete',
  },
];

/** What is wrong with lists of signatures. */
const lists: readonly SolanaProfile[] = [
  {
    name: 'short-pages',
    seen: 'https://github.com/solana-labs/solana/pull/11622',
    signatures: { pageMax: 7 },
    alone: 'complete',
  },
  {
    name: 'short-pages-now-and-then',
    seen: 'https://github.com/solana-labs/solana/pull/11622',
    signatures: { shortEvery: 2 },
    alone: 'complete',
  },
  {
    name: 'empty-pages-now-and-then',
    seen: 'https://github.com/solana-labs/solana/issues/21442',
    signatures: { emptyEvery: 3, pageMax: 20 },
    alone: 'complete',
  },
  {
    name: 'signatures-disappear',
    seen: 'https://github.com/solana-labs/solana/issues/21843',
    signatures: { leavesOutEvery: 2, pageMax: 25 },
    alone: 'incomplete',
  },
  {
    name: 'duplicate-signatures',
    seen: 'https://github.com/solana-labs/solana/issues/24417',
    signatures: { repeatsEvery: 4 },
    alone: 'complete',
  },
  {
    name: 'out-of-order-within-a-slot',
    seen: 'https://github.com/solana-labs/solana/issues/21720',
    signatures: { order: 'reversed in a slot', pageMax: 10 },
    alone: 'complete',
  },
  {
    name: 'unknown-signatures-in-silence',
    seen: 'https://github.com/solana-labs/solana/issues/24620',
    signatures: { unknownSignature: 'silent', pageMax: 30 },
    alone: 'complete',
  },
  {
    name: 'no-block-times',
    seen: 'https://solana.com/docs/rpc/http/getsignaturesforaddress',
    signatures: { hasNoTimes: true },
    alone: 'complete',
  },
];

/** What is wrong with transactions. */
const transactions: readonly SolanaProfile[] = [
  {
    name: 'null-transactions-now-and-then',
    seen: 'https://github.com/solana-labs/solana/issues/12908',
    transactions: { nullEvery: 4 },
    alone: 'complete',
  },
  {
    name: 'no-logs',
    seen: 'https://github.com/solana-labs/solana/pull/12832',
    transactions: { noLogsEvery: 1 },
    alone: 'incomplete',
  },
  {
    name: 'some-transactions-without-logs',
    seen: 'https://github.com/solana-labs/solana/pull/12832',
    transactions: { noLogsEvery: 5 },
    alone: 'incomplete',
  },
  {
    name: 'no-inner-instructions',
    seen: 'invented',
    transactions: { hasNoInnerInstructions: true },
    alone: 'incomplete',
  },
  {
    name: 'no-stack-heights',
    seen: 'invented',
    transactions: { hasNoStackHeight: true },
    alone: 'incomplete',
  },
  {
    name: 'transactions-of-a-new-version',
    seen: 'https://github.com/anza-xyz/agave/blob/master/rpc-client-api/src/custom_error.rs',
    transactions: { newVersion: { version: 2, every: 9 } },
    alone: 'incomplete',
  },
  {
    name: 'transactions-of-the-year-9987',
    seen: 'invented',
    transactions: { time: 253_000_000_000 },
    alone: 'incomplete',
  },
  {
    name: 'rejects-version-1',
    seen: 'invented',
    transactions: { maxVersion: 0 },
    alone: 'incomplete',
  },
];

const tooManyCalls =
  'Too many requests for a specific RPC call, please contact your app developer to further troubleshoot. If you are using an open endpoint, please consider signing up for your own subscription to avoid getting rate limited, you can find some suitable options at https://solana.com/rpc.';

/** Methods that are rejected, and how. */
const rejecting: readonly SolanaProfile[] = [
  {
    name: 'rate-limit',
    seen: 'https://github.com/blocto/solana-go-sdk/issues/107',
    rate: { max: 40, error: { code: 429, message: tooManyCalls, status: 429 } },
    alone: 'complete',
  },
  {
    name: 'rate-limit-with-retry-after',
    seen: 'invented',
    rate: { max: 40, retryAfterSeconds: 1, error: { code: 429, message: tooManyCalls, status: 429 } },
    alone: 'complete',
  },
  {
    name: 'rate-limit-in-an-ordinary-answer',
    seen: 'https://github.com/solana-foundation/solana-go/issues/119',
    rate: {
      max: 40,
      error: {
        code: 429,
        message: 'Connection rate limits exceeded, contact your app developer or support@rpcpool.com.',
      },
    },
    alone: 'complete',
  },
  {
    name: 'batches-for-paid-plans',
    seen: 'invented',
    batch: {
      max: 1,
      error: {
        code: -32403,
        message:
          'Batch requests are only available for paid plans. Please upgrade if you would like to gain access',
        status: 403,
      },
    },
    alone: 'complete',
  },
  {
    name: 'batches-as-internal-error',
    seen: 'invented',
    batch: { max: 1, error: { message: 'Internal Server Error', status: 500, isPlainText: true } },
    alone: 'complete',
  },
  {
    name: 'small-batches',
    seen: 'invented',
    batch: { max: 5, error: { code: -32600, message: 'Batch size {count} exceeds the limit of {max}' } },
    alone: 'complete',
  },
  {
    name: 'no-program-accounts',
    seen: 'https://github.com/bmresearch/Solnet/issues/282',
    programAccounts: { code: 410, message: 'The RPC call or parameters have been disabled.' },
    alone: 'complete',
  },
  {
    name: 'program-excluded-from-indexes',
    seen: 'https://github.com/solana-labs/solana/issues/20973',
    programAccounts: {
      code: -32010,
      message:
        'Ccip842gzYHhvdDkSyi2YVCoAWPbYJoApMFzSxQroE9C excluded from account secondary indexes; this RPC method unavailable for key',
    },
    alone: 'complete',
  },
  {
    name: 'gateway-errors-now-and-then',
    seen: 'invented',
    fails: {
      every: 4,
      error: { message: '<html><body>502 Bad Gateway</body></html>', status: 502, isPlainText: true },
    },
    alone: 'complete',
  },
  { name: 'resets-connections', seen: 'invented', resetsEvery: 5, alone: 'complete' },
];

/** Endpoints of something else. */
const others: readonly SolanaProfile[] = [
  {
    name: 'wrong-cluster',
    seen: 'https://solana.com/docs/rpc/http/getgenesishash',
    genesisHash: '5eykt4UsFv8P8NJdTREpY1vzqKqZKvdpKuc147dw2N9d',
    alone: 'stuck',
  },
  { name: 'no-accounts', seen: 'invented', hasNoAccounts: true, alone: 'stuck' },
];

export const profiles: readonly SolanaProfile[] = [
  archiveNode,
  ...lagging,
  ...pruned,
  ...lists,
  ...transactions,
  ...rejecting,
  ...others,
];

export function profileOf(name: string): SolanaProfile {
  const found = profiles.find((one) => one.name === name);
  if (!found) throw new RangeError(`There is no profile ${name}.`);
  return found;
}
