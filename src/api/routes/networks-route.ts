/** Networks: traffic, and how far each is indexed. */
import type { NetworkInfo } from '../../domain/message.ts';
import { blockExplorerOf, explorerUrlsOf } from '../../domain/networks/block-explorers.ts';
import { findingKinds } from '../../domain/networks/index-findings.ts';
import { problemSentences } from '../../domain/networks/indexing-problem.ts';
import { knownNetworks } from '../../domain/networks/networks.ts';
import type { MirrorState } from '../../store/ledger/mirror-ledger.ts';
import type { NetworkProgress } from '../../store/query/network-progress.ts';
import { indexingHealth, lagBlocks, lagSeconds, mirrorHealth } from '../metrics/indexing-health.ts';
import { json } from '../server/caching.ts';
import type { Route } from '../server/route.ts';
import { type Indexing, type Mirror, type Network, NetworkList } from './networks-schema.ts';
import { flag, parametersOf } from './query-parameters.ts';

const networkParameters = parametersOf({
  active: { ...flag('`true` keeps only networks that have messages; `false` keeps all.'), example: true },
  indexed: {
    ...flag('`true` keeps only networks that are, or were, indexed here; `false` keeps all.'),
    example: true,
  },
});

export const networkRoutes: readonly Route[] = [
  {
    path: '/v2/networks',
    operationId: 'listNetworks',
    tag: 'Networks',
    summary: 'Networks',
    description:
      'Every network that is known, and any other that messages in the store name, ordered by name; with how many ' +
      'messages each has sent and received, and how far it is indexed.',
    queryParameters: networkParameters.declared,
    success: { description: 'The networks.', schema: NetworkList },
    async handle({ query }, { store }) {
      const { active = false, indexed = false } = networkParameters.parse(query);
      const [traffic, progress, mirrors, lastChangeAt] = await Promise.all([
        store.networkTraffic(),
        store.networkProgress(),
        store.mirrors(),
        store.lastChangeAt(),
      ]);
      const trafficBySelector = new Map(traffic.map((network) => [network.selector, network]));
      const progressBySelector = new Map(progress.map((network) => [network.selector, network]));
      const infos = new Map(traffic.map(({ selector, info }) => [selector, info]));
      // The table of known networks takes precedence over the text of records.
      for (const { selector, name, chainId, family, displayName } of knownNetworks()) {
        infos.set(selector, { name, chainSelector: selector, chainId, chainFamily: family, displayName });
      }
      const data = [...infos.values()]
        .map((info): Network => {
          const { sent = 0, received = 0 } = trafficBySelector.get(info.chainSelector) ?? {};
          const progress = progressBySelector.get(info.chainSelector);
          return {
            ...infoOf(info),
            // Simulated transactions are on no chain: links to them would lead to nothing.
            blockExplorer: store.simulated ? null : blockExplorerOf(info.chainSelector),
            explorerUrls: store.simulated ? null : explorerUrlsOf(info.chainSelector),
            sent,
            received,
            indexing: progress ? indexingOf(progress) : null,
          };
        })
        .filter(({ sent, received }) => !active || sent + received > 0)
        .filter(({ indexing }) => !indexed || indexing !== null)
        .sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
      return json<NetworkList>({
        simulated: store.simulated,
        lastChangeAt: lastChangeAt?.toISOString() ?? null,
        mirrors: mirrors.map(mirrorOf),
        data,
      });
    },
  },
];

/** Without the other members that records may have. */
function infoOf({ name, chainSelector, chainId, chainFamily, displayName }: NetworkInfo): NetworkInfo {
  return { name, chainSelector, chainId, chainFamily, displayName };
}

/** The source is left out: it is the operator's private configuration. */
function mirrorOf(mirror: MirrorState): Mirror {
  return {
    health: mirrorHealth(mirror),
    lastSeenAt: mirror.seenAt.toISOString(),
    currentAt: mirror.currentAt?.toISOString() ?? null,
  };
}

function indexingOf(progress: NetworkProgress): Indexing {
  const { headBlock, finalizedBlock, indexedBlock, startBlock, updatedAt, problemKind } = progress;
  const { owedBlocks, failedRanges, failedBlocks, oldestFailureAt, unreadableLogs, foreignLogs } = progress;
  const lag = lagSeconds(progress);
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
    lagSeconds: lag === null ? null : Math.round(lag),
    isIndexed: progress.isLeased,
    lastSeenAt: progress.seenAt.toISOString(),
    health: indexingHealth(progress),
    updatedAt: updatedAt.toISOString(),
    // The text for the operator may name hosts and ports; clients get a fixed sentence.
    problem: problemKind === null ? null : problemSentences[problemKind],
    problemKind,
    findings: progress.findings.map(({ kind, count }) => {
      const { sentence, isLoss } = findingKinds[kind];
      return { kind, text: sentence, isLoss, count };
    }),
  };
}
