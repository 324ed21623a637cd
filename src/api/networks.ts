/** The networks: all that are known, their traffic, and how far each is indexed. */
import Type from 'typebox';
import { NetworkInfo } from '../domain/message-schema.ts';
import { networkBySelector, networks } from '../domain/networks.ts';
import { parseParameters, trueOrFalse } from '../domain/search-parameters.ts';
import type { NetworkProgress } from '../store/networks.ts';
import type { Store } from '../store/store.ts';
import type { Route } from './route.ts';

/** Whoever indexes a network tells of it at least this often, even when nothing is new. */
const STALE_AFTER_SECONDS = 300;
/** Further behind the head than this is worth a look; finality alone takes some networks a quarter of an hour. */
const LAGGING_AFTER_SECONDS = 300;
/** The same in blocks, where no block times are known. */
const LAGGING_AFTER_BLOCKS = 100;
/** A range of blocks that could not be read for so long is a problem of its own. */
const FAILING_AFTER_SECONDS = 3600;

const healths = ['ok', 'lagging', 'stale', 'failing'] as const;
export type IndexingHealth = (typeof healths)[number];

/**
 * How indexing a network does: `failing` while a problem is told or blocks cannot be read, `stale` when nobody has told anything for long,
 * `lagging` when far behind the head, else `ok`.
 */
export function indexingHealth(progress: NetworkProgress, now: Date): IndexingHealth {
  if (progress.problem !== null) return 'failing';
  const failedFor =
    progress.oldestFailureAt === null ? 0 : now.getTime() - progress.oldestFailureAt.getTime();
  if (failedFor > FAILING_AFTER_SECONDS * 1000) return 'failing';
  if (now.getTime() - progress.updatedAt.getTime() > STALE_AFTER_SECONDS * 1000) return 'stale';
  const seconds = lagSeconds(progress);
  const isBehind =
    seconds === null ? (lagBlocks(progress) ?? 0) > LAGGING_AFTER_BLOCKS : seconds > LAGGING_AFTER_SECONDS;
  return isBehind ? 'lagging' : 'ok';
}

function lagBlocks({ headBlock, indexedBlock }: NetworkProgress): number | null {
  return headBlock === null || indexedBlock === null ? null : Math.max(0, headBlock - indexedBlock);
}

function lagSeconds({ headAt, indexedAt }: NetworkProgress): number | null {
  if (headAt === null || indexedAt === null) return null;
  return Math.max(0, Math.round((headAt.getTime() - indexedAt.getTime()) / 1000));
}

/** A sentence names no more networks than this. */
const NAMED_NETWORKS = 8;

/** For whoever looks for what is not here: how far each network is indexed, in a sentence or two. */
export async function indexedSoFar(store: Pick<Store, 'networkProgress'>): Promise<string> {
  const progress = await store.networkProgress();
  if (progress.length === 0) {
    return 'No network is indexed here: records come from imports only, and it was not among them.';
  }
  const now = new Date();
  const told = progress.slice(0, NAMED_NETWORKS).map((network) => {
    const name = networkBySelector(network.selector)?.displayName ?? network.selector;
    const health = indexingHealth(network, now);
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
    lagSeconds: orNull(count('Seconds between the times of those two.')),
    health: Type.Unsafe<IndexingHealth>({
      type: 'string',
      enum: [...healths],
      description:
        `\`failing\`: there is a problem, or blocks could not be read for ${FAILING_AFTER_SECONDS} seconds. \`stale\`: nothing was told for ${STALE_AFTER_SECONDS} seconds. ` +
        `\`lagging\`: more than ${LAGGING_AFTER_SECONDS} seconds behind the head (where block times are not ` +
        `known, ${LAGGING_AFTER_BLOCKS} blocks). \`ok\`: none of these. The first that holds.`,
    }),
    updatedAt: Type.String({ format: 'date-time', description: 'When this was told.' }),
    problem: orNull(Type.String({ description: 'Why indexing does not go on; null while it does.' })),
  },
  { description: 'How far the network is indexed.' },
);

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
    ],
    success: {
      description: 'The networks.',
      schema: Type.Object({
        simulated: Type.Boolean({
          description: 'True where the data is the demo’s: no chain stands behind it.',
        }),
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
      const { active = false } = parseParameters(query, { active: trueOrFalse });
      const [traffic, progress] = await Promise.all([store.networkTraffic(), store.networkProgress()]);
      const bySelector = new Map(traffic.map((network) => [network.selector, network]));
      const indexing = new Map(progress.map((network) => [network.selector, network]));
      const infos = new Map(traffic.map(({ selector, info }) => [selector, info]));
      // The table's own words win over a record's.
      for (const { selector, family, ...network } of networks) {
        infos.set(selector, { ...network, chainSelector: selector, chainFamily: family });
      }
      const now = new Date();
      const data = [...infos.values()]
        .map((info) => {
          const { sent = 0, received = 0 } = bySelector.get(info.chainSelector) ?? {};
          const told = indexing.get(info.chainSelector);
          return { ...infoOf(info), sent, received, indexing: told ? indexingOf(told, now) : null };
        })
        .filter(({ sent, received }) => !active || sent + received > 0)
        .sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
      return { body: JSON.stringify({ simulated: store.simulated, data }) };
    },
  },
];

function infoOf({ name, chainSelector, chainId, chainFamily, displayName }: NetworkInfo): NetworkInfo {
  return { name, chainSelector, chainId, chainFamily, displayName };
}

function indexingOf(progress: NetworkProgress, now: Date): object {
  const { headBlock, finalizedBlock, indexedBlock, startBlock, updatedAt, problem } = progress;
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
    lagSeconds: lagSeconds(progress),
    health: indexingHealth(progress, now),
    updatedAt: updatedAt.toISOString(),
    problem,
  };
}
