/**
 * Solana endpoint profiles, each with a public page where the behaviour or the wording was seen. Limits are smaller
 * than the real ones, so that a world of `PROFILE_STEPS` steps meets them.
 */
import { archiveNode, type SolanaProfile } from './solana-profile.ts';

/** Random traffic of so many steps meets every limit. */
export const PROFILE_STEPS = 160;

/** A page of Solana's repository, or of Agave's, which has followed it. */
const solana = (page: string) => `https://github.com/solana-labs/solana/${page}`;
const agave = (page: string) => `https://github.com/anza-xyz/agave/${page}`;
const invented = 'invented';

type Rows = Readonly<Record<string, Omit<SolanaProfile, 'name'>>>;

/** Nodes behind the cluster. */
const lagging: Rows = {
  'lags-behind': { alone: 'complete', seen: solana('issues/21046'), lag: { slots: 30 } },
  'balancer-with-a-lagging-node': {
    alone: 'complete',
    seen: solana('issues/24417'),
    lag: { slots: 250, every: 3 },
  },
  'lagging-node-that-ignores-the-context-slot': {
    alone: 'complete',
    seen: solana('issues/24620'),
    lag: { slots: 250, every: 3, ignoresMinContextSlot: true },
    signatures: { unknownSignature: 'silent' },
  },
  'unhealthy-now-and-then': {
    alone: 'complete',
    seen: solana('issues/18691'),
    fails: { every: 4, error: { code: -32005, message: 'Node is behind by 59093 slots' } },
  },
};

const storageFailing = (failsEvery: number) => ({
  seen: agave('pull/3700'),
  longTermStorage: {
    belowSlots: 100,
    failsEvery,
    error: { code: -32019, message: 'Failed to query long-term storage; please try again' },
  },
});
const noHistory = { code: -32011, message: 'Transaction history is not available from this node' };
const keptInSilence = { slots: 150, answer: 'silent' } as const;

/** Nodes without the whole history. */
const pruned: Rows = {
  'pruned-in-silence': {
    alone: 'incomplete',
    seen: agave('pull/7937'),
    kept: keptInSilence,
    signatures: { unknownSignature: 'silent' },
  },
  'pruned-and-current': { alone: 'incomplete', seen: agave('pull/7937'), kept: keptInSilence },
  'no-transaction-history': {
    alone: 'incomplete',
    seen: solana('pull/17494'),
    kept: { slots: 150, answer: noHistory },
  },
  'long-term-storage-now-and-then': { alone: 'complete', ...storageFailing(3) },
  'long-term-storage-away': { alone: 'incomplete', ...storageFailing(1) },
};

/** What is wrong with lists of signatures. */
const lists: Rows = {
  'short-pages': { alone: 'complete', seen: solana('pull/11622'), signatures: { pageMax: 7 } },
  'short-pages-now-and-then': {
    alone: 'complete',
    seen: solana('pull/11622'),
    signatures: { shortEvery: 2 },
  },
  'empty-pages-now-and-then': {
    alone: 'complete',
    seen: solana('issues/21442'),
    signatures: { emptyEvery: 3, pageMax: 20 },
  },
  'signatures-disappear': {
    alone: 'incomplete',
    seen: solana('issues/21843'),
    signatures: { leavesOutEvery: 2, pageMax: 25 },
  },
  'duplicate-signatures': {
    alone: 'complete',
    seen: solana('issues/24417'),
    signatures: { repeatsEvery: 4 },
  },
  'out-of-order-within-a-slot': {
    alone: 'complete',
    seen: solana('issues/21720'),
    signatures: { order: 'reversed in a slot', pageMax: 10 },
  },
  'unknown-signatures-in-silence': {
    alone: 'complete',
    seen: solana('issues/24620'),
    signatures: { unknownSignature: 'silent', pageMax: 30 },
  },
  'no-block-times': {
    alone: 'complete',
    seen: 'https://solana.com/docs/rpc/http/getsignaturesforaddress',
    signatures: { hasNoTimes: true },
  },
};

/** What is wrong with transactions. */
const transactions: Rows = {
  'null-transactions-now-and-then': {
    alone: 'complete',
    seen: solana('issues/12908'),
    transactions: { nullEvery: 4 },
  },
  'no-logs': { alone: 'incomplete', seen: solana('pull/12832'), transactions: { noLogsEvery: 1 } },
  'some-transactions-without-logs': {
    alone: 'incomplete',
    seen: solana('pull/12832'),
    transactions: { noLogsEvery: 5 },
  },
  'no-inner-instructions': {
    alone: 'incomplete',
    seen: invented,
    transactions: { hasNoInnerInstructions: true },
  },
  'no-stack-heights': { alone: 'incomplete', seen: invented, transactions: { hasNoStackHeight: true } },
  'transactions-of-a-new-version': {
    alone: 'incomplete',
    seen: agave('blob/master/rpc-client-api/src/custom_error.rs'),
    transactions: { newVersion: { version: 2, every: 9 } },
  },
  'transactions-of-the-year-9987': {
    alone: 'incomplete',
    seen: invented,
    transactions: { time: 253_000_000_000 },
  },
  'rejects-version-1': { alone: 'incomplete', seen: invented, transactions: { maxVersion: 0 } },
};

const tooManyCalls = {
  code: 429,
  message:
    'Too many requests for a specific RPC call, please contact your app developer to further troubleshoot. If you are using an open endpoint, please consider signing up for your own subscription to avoid getting rate limited, you can find some suitable options at https://solana.com/rpc.',
  status: 429,
};
const rateExceeded = {
  code: 429,
  message: 'Connection rate limits exceeded, contact your app developer or support@rpcpool.com.',
};
const batchesArePaid = {
  code: -32403,
  message:
    'Batch requests are only available for paid plans. Please upgrade if you would like to gain access',
  status: 403,
};

/** Methods that are rejected, and how. */
const rejecting: Rows = {
  'rate-limit': {
    alone: 'complete',
    seen: 'https://github.com/blocto/solana-go-sdk/issues/107',
    rate: { max: 40, error: tooManyCalls },
  },
  'rate-limit-with-retry-after': {
    alone: 'complete',
    seen: invented,
    rate: { max: 40, retryAfterSeconds: 1, error: tooManyCalls },
  },
  'rate-limit-in-an-ordinary-answer': {
    alone: 'complete',
    seen: 'https://github.com/solana-foundation/solana-go/issues/119',
    rate: { max: 40, error: rateExceeded },
  },
  'batches-for-paid-plans': { alone: 'complete', seen: invented, batch: { max: 1, error: batchesArePaid } },
  'batches-as-internal-error': {
    alone: 'complete',
    seen: invented,
    batch: { max: 1, error: { message: 'Internal Server Error', status: 500, isPlainText: true } },
  },
  'small-batches': {
    alone: 'complete',
    seen: invented,
    batch: { max: 5, error: { code: -32600, message: 'Batch size {count} exceeds the limit of {max}' } },
  },
  'no-program-accounts': {
    alone: 'complete',
    seen: 'https://github.com/bmresearch/Solnet/issues/282',
    programAccounts: { code: 410, message: 'The RPC call or parameters have been disabled.' },
  },
  'program-excluded-from-indexes': {
    alone: 'complete',
    seen: solana('issues/20973'),
    programAccounts: {
      code: -32010,
      message:
        'Ccip842gzYHhvdDkSyi2YVCoAWPbYJoApMFzSxQroE9C excluded from account secondary indexes; this RPC method unavailable for key',
    },
  },
  'gateway-errors-now-and-then': {
    alone: 'complete',
    seen: invented,
    fails: {
      every: 4,
      error: { message: '<html><body>502 Bad Gateway</body></html>', status: 502, isPlainText: true },
    },
  },
  'resets-connections': { alone: 'complete', seen: invented, resetsEvery: 5 },
};

/** Endpoints of something else. */
const others: Rows = {
  'wrong-cluster': {
    alone: 'stuck',
    seen: 'https://solana.com/docs/rpc/http/getgenesishash',
    genesisHash: '5eykt4UsFv8P8NJdTREpY1vzqKqZKvdpKuc147dw2N9d',
  },
  'no-accounts': { alone: 'stuck', seen: invented, hasNoAccounts: true },
};

export const profiles: readonly SolanaProfile[] = [
  archiveNode,
  ...[lagging, pruned, lists, transactions, rejecting, others].flatMap((rows) =>
    Object.entries(rows).map(([name, traits]) => ({ name, ...traits })),
  ),
];

export function profileOf(name: string): SolanaProfile {
  const found = profiles.find((one) => one.name === name);
  if (!found) throw new RangeError(`There is no profile ${name}.`);
  return found;
}
