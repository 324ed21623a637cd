/** The networks: all that are known, their traffic, and how far each is indexed. */
import Type from 'typebox';
import { type ProblemKind, problemKinds, problemSentences } from '../domain/indexing-problem.ts';
import { NetworkInfo } from '../domain/message-schema.ts';
import { networkBySelector, networks } from '../domain/networks.ts';
import { parseParameters, trueOrFalse } from '../domain/search-parameters.ts';
import type { MirrorState } from '../store/mirror-ledger.ts';
import type { NetworkProgress } from '../store/networks.ts';
import type { Store } from '../store/store.ts';
import {
  FAILING_AFTER_SECONDS,
  type IndexingHealth,
  indexingHealth,
  indexingHealths,
  LAGGING_AFTER_BLOCKS,
  LAGGING_AFTER_SECONDS,
  lagBlocks,
  lagSeconds,
  type MirrorHealth,
  mirrorHealth,
  mirrorHealths,
  OLD_BLOCK_SECONDS,
  STALE_AFTER_SECONDS,
  STOPPED_AFTER_SECONDS,
} from './indexing-health.ts';
import type { Route } from './route.ts';

/** A sentence names no more networks than this. */
const NAMED_NETWORKS = 8;

/** For whoever looks for what is not here: how far each network is indexed, in a sentence or two. */
export async function indexedSoFar(store: Pick<Store, 'networkProgress'>): Promise<string> {
  const progress = await store.networkProgress();
  if (progress.length === 0) {
    return 'No network is indexed here: records come from imports only, and it was not among them.';
  }
  const told = progress.slice(0, NAMED_NETWORKS).map((network) => {
    const name = networkBySelector(network.selector)?.displayName ?? network.selector;
    const health = indexingHealth(network);
    if (network.indexedBlock === null) {
      return `${name} (nothing yet${health === 'ok' ? '' : `, ${health}`})`;
    }
    const lag = lagBlocks(network);
    const remarks = [
      ...(lag === null ? [] : [`${lag} behind its head`]),
      ...(network.owedBlocks > 0 ? [`${network.owedBlocks} blocks of its history still to be read`] : []),
      ...(health === 'ok' ? [] : [health]),
    ].join(', ');
    return `${name} to block ${network.indexedBlock}${remarks === '' ? '' : ` (${remarks})`}`;
  });
  const more = progress.length - told.length;
  return (
    `Indexed so far: ${told.join('; ')}${more > 0 ? `; and ${more} more, see /v2/networks` : ''}. ` +
    'It may be newer than that, or come from a network that is not indexed here.'
  );
}

const orNull = <T extends Type.TSchema>(schema: T) => Type.Union([schema, Type.Null()]);
const count = (description: string) => Type.Integer({ minimum: 0, description });

const Indexing = Type.Object(
  {
    headBlock: orNull(count('Newest block that the network has told of.')),
    finalizedBlock: orNull(count('Newest block that is final.')),
    indexedBlock: orNull(
      count(
        'Newest block that was read. New blocks come first; what is owed below it is told by `owedBlocks`.',
      ),
    ),
    startBlock: orNull(count('Where the wanted history begins; null while that is being looked for.')),
    owedBlocks: count('Blocks of the history that are still to be read.'),
    failedRanges: count('Ranges of blocks that could not be read and are tried again.'),
    failedBlocks: count('Blocks in those ranges.'),
    oldestFailureAt: orNull(
      Type.String({ format: 'date-time', description: 'When the oldest of those ranges failed first.' }),
    ),
    unreadableLogs: count('Logs of genuine contracts that could not be understood and are kept.'),
    foreignLogs: count('Logs of contracts that no router named: seen, not believed.'),
    lagBlocks: orNull(count('Blocks between the head and the indexed one.')),
    lagSeconds: orNull(
      count('Age of the newest block that was read, in seconds: it grows while nothing is read.'),
    ),
    isIndexed: Type.Boolean({ description: 'Whether an indexer works on the network now.' }),
    lastSeenAt: Type.String({ format: 'date-time', description: 'When an indexer was last alive.' }),
    health: Type.Unsafe<IndexingHealth>({
      type: 'string',
      enum: [...indexingHealths],
      description:
        `\`stopped\`: no indexer has been alive for ${STOPPED_AFTER_SECONDS} seconds; new messages and status changes are missing. ` +
        `\`failing\`: there is a problem, or blocks could not be read for ${FAILING_AFTER_SECONDS} seconds. ` +
        `\`stale\`: an indexer is alive but recorded no progress for ${STALE_AFTER_SECONDS} seconds. ` +
        `\`lagging\`: more than ${LAGGING_AFTER_SECONDS} seconds behind the head (where block times are not ` +
        `known, ${LAGGING_AFTER_BLOCKS} blocks), or the newest block is older than ${OLD_BLOCK_SECONDS} seconds. ` +
        '`ok`: none of these. The first that holds.',
    }),
    updatedAt: Type.String({ format: 'date-time', description: 'When this was told.' }),
    problem: orNull(
      Type.String({ description: 'Why indexing does not go on, in a sentence; null while it does.' }),
    ),
    problemKind: orNull(
      Type.Unsafe<ProblemKind>({
        type: 'string',
        enum: [...problemKinds],
        description: 'The kind of that problem.',
      }),
    ),
  },
  { description: 'How far the network is indexed.' },
);

const Mirror = Type.Object({
  health: Type.Unsafe<MirrorHealth>({
    type: 'string',
    enum: [...mirrorHealths],
    description:
      '`stopped`: the process that follows the server is not alive. `behind`: the server could not be read to its ' +
      'newest message for some time. `ok`: neither.',
  }),
  lastSeenAt: Type.String({ format: 'date-time', description: 'When the process was last alive.' }),
  currentAt: orNull(
    Type.String({ format: 'date-time', description: 'When the server was last read to its newest message.' }),
  ),
});

export const networkRoutes: readonly Route[] = [
  {
    path: '/v2/networks',
    aliases: ['/networks'],
    mediaType: 'application/json',
    operationId: 'listNetworks',
    tag: 'Networks',
    summary: 'Networks',
    description:
      'Every network that is known, and any other that messages in the store name, ordered by name; with how many ' +
      'messages each has sent and received, and how far it is indexed.',
    queryParameters: [
      {
        name: 'active',
        description: '`true` keeps only networks that have messages; `false` keeps all.',
        schema: { type: 'boolean', default: false },
        example: true,
      },
      {
        name: 'indexed',
        description: '`true` keeps only networks that are, or were, indexed here; `false` keeps all.',
        schema: { type: 'boolean', default: false },
        example: true,
      },
    ],
    success: {
      description: 'The networks.',
      schema: Type.Object({
        simulated: Type.Boolean({
          description: 'True where the data is the demo’s: no chain stands behind it.',
        }),
        lastChangeAt: orNull(
          Type.String({
            format: 'date-time',
            description: 'When the latest change of a message was recorded, wherever it came from.',
          }),
        ),
        mirrors: Type.Array(Mirror, { description: 'Other servers that are followed.' }),
        data: Type.Array(
          Type.Object({
            ...NetworkInfo.properties,
            sent: count('Messages from this network.'),
            received: count('Messages to this network.'),
            indexing: Type.Union([
              Indexing,
              Type.Null({ description: 'Not indexed: its records come from imports only.' }),
            ]),
          }),
        ),
      }),
    },
    errors: [400],
    async handle({ query }, { store }) {
      const { active = false, indexed = false } = parseParameters(query, {
        active: trueOrFalse,
        indexed: trueOrFalse,
      });
      const [traffic, progress, mirrors, lastChangeAt] = await Promise.all([
        store.networkTraffic(),
        store.networkProgress(),
        store.mirrors(),
        store.lastChangeAt(),
      ]);
      const bySelector = new Map(traffic.map((network) => [network.selector, network]));
      const indexing = new Map(progress.map((network) => [network.selector, network]));
      const infos = new Map(traffic.map(({ selector, info }) => [selector, info]));
      // The table's own words win over a record's.
      for (const { selector, family, ...network } of networks) {
        infos.set(selector, { ...network, chainSelector: selector, chainFamily: family });
      }
      const data = [...infos.values()]
        .map((info) => {
          const { sent = 0, received = 0 } = bySelector.get(info.chainSelector) ?? {};
          const told = indexing.get(info.chainSelector);
          return { ...infoOf(info), sent, received, indexing: told ? indexingOf(told) : null };
        })
        .filter(({ sent, received }) => !active || sent + received > 0)
        .filter(({ indexing }) => !indexed || indexing !== null)
        .sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
      return {
        body: JSON.stringify({
          simulated: store.simulated,
          lastChangeAt: lastChangeAt?.toISOString() ?? null,
          mirrors: mirrors.map(mirrorOf),
          data,
        }),
      };
    },
  },
];

function infoOf({ name, chainSelector, chainId, chainFamily, displayName }: NetworkInfo): NetworkInfo {
  return { name, chainSelector, chainId, chainFamily, displayName };
}

/** Without its source: where records come from is the operator's business. */
function mirrorOf(mirror: MirrorState): object {
  return {
    health: mirrorHealth(mirror),
    lastSeenAt: mirror.seenAt.toISOString(),
    currentAt: mirror.currentAt?.toISOString() ?? null,
  };
}

function indexingOf(progress: NetworkProgress): object {
  const { headBlock, finalizedBlock, indexedBlock, startBlock, updatedAt, problemKind } = progress;
  const { owedBlocks, failedRanges, failedBlocks, oldestFailureAt, unreadableLogs, foreignLogs } = progress;
  return {
    headBlock,
    finalizedBlock,
    indexedBlock,
    startBlock,
    owedBlocks,
    failedRanges,
    failedBlocks,
    oldestFailureAt: oldestFailureAt?.toISOString() ?? null,
    unreadableLogs,
    foreignLogs,
    lagBlocks: lagBlocks(progress),
    lagSeconds: wholeSeconds(lagSeconds(progress)),
    isIndexed: progress.isLeased,
    lastSeenAt: progress.seenAt.toISOString(),
    health: indexingHealth(progress),
    updatedAt: updatedAt.toISOString(),
    // The operator's own text may name hosts and ports.
    problem: problemKind === null ? null : problemSentences[problemKind],
    problemKind,
  };
}

function wholeSeconds(seconds: number | null): number | null {
  return seconds === null ? null : Math.round(seconds);
}
