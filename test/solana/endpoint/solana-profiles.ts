/**
 * Solana endpoint profiles, each with a public page where the behaviour or the wording was seen. Limits are smaller
 * than the real ones, so that a world of `PROFILE_STEPS` steps meets them.
 */
import {
  finderOf,
  httpReply,
  limit,
  type ProfileTable,
  reply,
} from '../../virtual-chain/endpoint-profile.ts';
import { archiveNode, type SolanaProfile } from './solana-profile.ts';

/** Random traffic of so many steps meets every limit. */
export const PROFILE_STEPS = 160;

/** A page of Solana's repository, or of Agave's, which has followed it. */
const solana = (page: string) => `https://github.com/solana-labs/solana/${page}` as const;
const agave = (page: string) => `https://github.com/anza-xyz/agave/${page}` as const;

const storageFailing = (failsEvery: number) => ({
  belowSlots: 100,
  failsEvery,
  error: reply(-32019, 'Failed to query long-term storage; please try again'),
});
const keptInSilence = { slots: 150, answer: 'silent' } as const;
const tooManyCalls = limit(
  40,
  429,
  'Too many requests for a specific RPC call, please contact your app developer to further troubleshoot. If you are using an open endpoint, please consider signing up for your own subscription to avoid getting rate limited, you can find some suitable options at https://solana.com/rpc.',
  429,
);

const table: ProfileTable<SolanaProfile> = {
  // Nodes behind the cluster.
  'lags-behind': [solana('issues/21046'), { lag: { slots: 30 } }],
  'balancer-with-a-lagging-node': [solana('issues/24417'), { lag: { slots: 250, every: 3 } }],
  'lagging-node-that-ignores-the-context-slot': [
    solana('issues/24620'),
    {
      lag: { slots: 250, every: 3, ignoresMinContextSlot: true },
      signatures: { unknownSignature: 'silent' },
    },
  ],
  'unhealthy-now-and-then': [
    solana('issues/18691'),
    { fails: { every: 4, error: reply(-32005, 'Node is behind by 59093 slots') } },
  ],

  // Nodes without the whole history.
  'pruned-in-silence': [
    agave('pull/7937'),
    { alone: 'incomplete', kept: keptInSilence, signatures: { unknownSignature: 'silent' } },
  ],
  'pruned-and-current': [agave('pull/7937'), { alone: 'incomplete', kept: keptInSilence }],
  'no-transaction-history': [
    solana('pull/17494'),
    {
      alone: 'incomplete',
      kept: { slots: 150, answer: reply(-32011, 'Transaction history is not available from this node') },
    },
  ],
  'long-term-storage-now-and-then': [agave('pull/3700'), { longTermStorage: storageFailing(3) }],
  'long-term-storage-away': [agave('pull/3700'), { alone: 'incomplete', longTermStorage: storageFailing(1) }],

  // What is wrong with lists of signatures.
  'short-pages': [solana('pull/11622'), { signatures: { pageMax: 7 } }],
  'short-pages-now-and-then': [solana('pull/11622'), { signatures: { shortEvery: 2 } }],
  'empty-pages-now-and-then': [solana('issues/21442'), { signatures: { emptyEvery: 3, pageMax: 20 } }],
  'signatures-disappear': [
    solana('issues/21843'),
    { alone: 'incomplete', signatures: { leavesOutEvery: 2, pageMax: 25 } },
  ],
  'duplicate-signatures': [solana('issues/24417'), { signatures: { repeatsEvery: 4 } }],
  'out-of-order-within-a-slot': [
    solana('issues/21720'),
    { signatures: { order: 'reversed in a slot', pageMax: 10 } },
  ],
  'unknown-signatures-in-silence': [
    solana('issues/24620'),
    { signatures: { unknownSignature: 'silent', pageMax: 30 } },
  ],
  'no-block-times': [
    'https://solana.com/docs/rpc/http/getsignaturesforaddress',
    { signatures: { hasNoTimes: true } },
  ],

  // What is wrong with transactions.
  'null-transactions-now-and-then': [solana('issues/12908'), { transactions: { nullEvery: 4 } }],
  'no-logs': [solana('pull/12832'), { alone: 'incomplete', transactions: { noLogsEvery: 1 } }],
  'some-transactions-without-logs': [
    solana('pull/12832'),
    { alone: 'incomplete', transactions: { noLogsEvery: 5 } },
  ],
  'no-inner-instructions': [
    'invented',
    { alone: 'incomplete', transactions: { hasNoInnerInstructions: true } },
  ],
  'no-stack-heights': ['invented', { alone: 'incomplete', transactions: { hasNoStackHeight: true } }],
  'transactions-of-a-new-version': [
    agave('blob/master/rpc-client-api/src/custom_error.rs'),
    { alone: 'incomplete', transactions: { newVersion: { version: 2, every: 9 } } },
  ],
  'transactions-of-the-year-9987': [
    'invented',
    { alone: 'incomplete', transactions: { time: 253_000_000_000 } },
  ],
  'rejects-version-1': ['invented', { alone: 'incomplete', transactions: { maxVersion: 0 } }],

  // Methods that are rejected, and how.
  'rate-limit': ['https://github.com/blocto/solana-go-sdk/issues/107', { rate: tooManyCalls }],
  'rate-limit-with-retry-after': ['invented', { rate: { ...tooManyCalls, retryAfterSeconds: 1 } }],
  'rate-limit-in-an-ordinary-answer': [
    'https://github.com/solana-foundation/solana-go/issues/119',
    {
      rate: limit(
        40,
        429,
        'Connection rate limits exceeded, contact your app developer or support@rpcpool.com.',
      ),
    },
  ],
  'batches-for-paid-plans': [
    'invented',
    {
      batch: limit(
        1,
        -32403,
        'Batch requests are only available for paid plans. Please upgrade if you would like to gain access',
        403,
      ),
    },
  ],
  'batches-as-internal-error': [
    'invented',
    { batch: { max: 1, error: httpReply(500, 'Internal Server Error') } },
  ],
  'no-batches-and-gateway-errors': [
    'invented',
    {
      batch: { max: 1, error: httpReply(500, 'Internal Server Error') },
      fails: { every: 4, error: httpReply(502, '<html><body>502 Bad Gateway</body></html>') },
    },
  ],
  'small-batches': ['invented', { batch: limit(5, -32600, 'Batch size {count} exceeds the limit of {max}') }],
  'gateway-errors-now-and-then': [
    'invented',
    { fails: { every: 4, error: httpReply(502, '<html><body>502 Bad Gateway</body></html>') } },
  ],
  'resets-connections': ['invented', { resetsEvery: 5 }],

  // Endpoints of something else.
  'wrong-cluster': [
    'https://solana.com/docs/rpc/http/getgenesishash',
    { alone: 'stuck', genesisHash: '5eykt4UsFv8P8NJdTREpY1vzqKqZKvdpKuc147dw2N9d' },
  ],
  'no-accounts': ['invented', { alone: 'stuck', hasNoAccounts: true }],
};

export const profiles: readonly SolanaProfile[] = [
  archiveNode,
  ...Object.entries(table).map(([name, [seen, traits]]) => ({ name, seen, ...traits })),
];
export const profileOf = finderOf(profiles);
