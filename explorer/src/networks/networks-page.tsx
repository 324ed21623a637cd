/** The networks page: how far each network is indexed, and what could not be read. */
import { useQuery } from '@tanstack/react-query';
import { Link, useSearch } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import type { Indexing, Network, NetworkList } from '../../../src/client/api-types.ts';
import { blockNoun } from '../../../src/domain/chain-families.ts';
import { counted, duration, grouped, printable } from '../../../src/text/format.ts';
import { networkName } from '../../../src/text/message-words.ts';
import { CopyButton } from '../parts/copy.tsx';
import { Icon, NetworkLabel } from '../parts/icons.tsx';
import { Loaded, MessagesLink, Notice, RowsSkeleton, useTitle } from '../parts/page.tsx';
import { type Column, Table } from '../parts/table.tsx';
import { Ago } from '../parts/text.tsx';
import { networksQuery } from '../server/api-client.ts';
import type { Filters } from '../server/search-view.ts';

export function NetworksPage() {
  useTitle('Networks');
  const query = useQuery(networksQuery(false));
  return (
    <div className="page">
      <header className="page-head flow spread baseline">
        <h1>Networks</h1>
        {query.data && <Summary list={query.data} />}
      </header>
      <Loaded query={query} skeleton={<RowsSkeleton rows={3} />}>
        {({ data }) => <NetworkTable networks={data} />}
      </Loaded>
    </div>
  );
}

function NetworkTable({ networks }: { readonly networks: readonly Network[] }) {
  const { show } = useSearch({ from: '/network' });
  const isAll = show === 'all';
  const shown = networks
    .filter(({ sent, received, indexing }) => isAll || sent + received > 0 || indexing !== null)
    .sort(byUrgency);
  const isIndexed = shown.some(({ indexing }) => indexing !== null);
  const known = counted(networks.length, 'known network');
  return (
    <>
      {shown.length === 0 ? (
        <Notice title="No network has messages yet">
          <p>{counted(networks.length, 'network')} are known by name.</p>
        </Notice>
      ) : (
        <Table
          columns={[networkColumn, ...(isIndexed ? indexingColumns : []), ...trafficColumns]}
          items={shown}
          keyOf={({ chainSelector }) => chainSelector}
        />
      )}
      <p className="below">
        <Link to="/network" search={isAll ? {} : { show: 'all' }} resetScroll={false} className="button">
          {isAll ? 'Only those with messages' : `All ${known}`}
        </Link>
      </p>
    </>
  );
}

function Summary({ list: { data, simulated } }: { readonly list: NetworkList }) {
  const indexed = data.flatMap(({ indexing }) => (indexing ? [indexing] : []));
  const troubled = indexed.filter(({ health }) => health !== 'ok').length;
  const health = troubled === 0 ? 'all well' : `${troubled} not well`;
  const words = simulated
    ? 'Simulated: no chain is indexed. A real instance shows the progress of each network here.'
    : indexed.length === 0
      ? 'No network is indexed here: all records come from imports or from another server.'
      : `${counted(indexed.length, 'network')} indexed, ${health}.`;
  return <p className={!simulated && troubled > 0 ? 'action bold' : 'muted'}>{words}</p>;
}

const urgency = { stopped: 0, failing: 1, stale: 2, lagging: 3, ok: 4 } as const;
const rank = ({ indexing }: Network) => (indexing ? urgency[indexing.health] : 5);

/** Networks with problems first, then the busiest. */
function byUrgency(a: Network, b: Network): number {
  return (
    rank(a) - rank(b) ||
    b.sent + b.received - (a.sent + a.received) ||
    networkName(a).localeCompare(networkName(b))
  );
}

const networkColumn: Column<Network> = {
  key: 'network',
  heading: 'Network',
  cell: (network) => (
    <>
      <NetworkLabel network={network} />
      <span className="network-ids line gap-4 muted small">
        {network.chainFamily} {printable(network.chainId).slice(0, 24)} · {network.chainSelector}
        <CopyButton text={network.chainSelector} what="chain selector" />
        {network.blockExplorer !== null && (
          <a href={network.blockExplorer} target="_blank" rel="noreferrer">
            block explorer
          </a>
        )}
      </span>
    </>
  ),
};

const indexingColumns: readonly Column<Network>[] = [
  {
    key: 'health',
    heading: 'Indexed',
    span: ({ indexing }) => (indexing ? 1 : 3),
    cell: ({ indexing, chainFamily }) =>
      indexing ? (
        indexingWords(indexing, blockNoun(chainFamily))
      ) : (
        <span className="muted">not indexed: its records come from imports</span>
      ),
  },
  {
    key: 'lag',
    heading: 'Lag',
    cell: ({ indexing, chainFamily }) => (indexing ? lagWords(indexing, blockNoun(chainFamily)) : undefined),
  },
  {
    key: 'seen',
    heading: 'Last seen',
    cell: ({ indexing }) => (indexing ? <Ago at={indexing.lastSeenAt} suffix=" ago" /> : undefined),
  },
];

const trafficColumns: readonly Column<Network>[] = [
  {
    key: 'sent',
    heading: 'Sent',
    cell: ({ sent, chainSelector }) => messageCount(sent, { sourceChainSelector: chainSelector }),
  },
  {
    key: 'received',
    heading: 'Received',
    cell: ({ received, chainSelector }) => messageCount(received, { destChainSelector: chainSelector }),
  },
];

const messageCount = (count: number, search: Filters) =>
  count === 0 ? <span className="muted">0</span> : <MessagesLink search={search} words={grouped(count)} />;

const healthLooks = {
  ok: { word: 'Up to date', tone: 'done', icon: 'tick' },
  lagging: { word: 'Lagging', tone: 'action', icon: 'hand' },
  stale: { word: 'No progress for long', tone: 'action', icon: 'hand' },
  failing: { word: 'Failing', tone: 'failed', icon: 'hand' },
  stopped: { word: 'Stopped: no indexer is alive', tone: 'failed', icon: 'hand' },
} as const;

/** At the head, but older blocks are still to be read or could not be read. */
const gapsLook = { word: 'At the head, with gaps behind it', tone: 'moving', icon: 'info' } as const;

/** @param noun block or slot */
function indexingWords(indexing: Indexing, noun: string): ReactNode {
  const { health, indexedBlock, headBlock, finalizedBlock, owedBlocks, unreadableLogs, problem } = indexing;
  const { failedRanges, failedBlocks, oldestFailureAt, findings } = indexing;
  const hasGaps = health === 'ok' && (owedBlocks > 0 || failedRanges > 0);
  const { word, tone, icon } = hasGaps ? gapsLook : healthLooks[health];
  return (
    <div className="stack gap-2">
      <span className="inline bold" style={{ color: `var(--${tone})` }}>
        <Icon name={icon} />
        {word}
      </span>
      <span>
        {indexedBlock === null ? 'nothing yet' : `to ${noun} ${grouped(indexedBlock)}`}
        {headBlock !== null && <span className="muted"> of {grouped(headBlock)}</span>}
        {finalizedBlock !== null && <span className="muted">, final to {grouped(finalizedBlock)}</span>}
      </span>
      {owedBlocks > 0 && <span>{counted(owedBlocks, noun)} of its history still to be read</span>}
      {failedRanges > 0 && (
        <span className="problem">
          {counted(failedRanges, 'range')} ({counted(failedBlocks, noun)}) could not be read and will be tried
          again
          {oldestFailureAt !== null && ['; the oldest for ', <Ago key="age" at={oldestFailureAt} />]}
        </span>
      )}
      {unreadableLogs > 0 && (
        <span className="action bold">{counted(unreadableLogs, 'log')} not understood, and kept</span>
      )}
      {problem !== null && <span className="problem wrap">{printable(problem)}</span>}
      {findings.map(({ kind, text, isLoss }) => (
        <span key={kind} className={isLoss ? 'problem wrap' : 'muted wrap'}>
          {text}
        </span>
      ))}
    </div>
  );
}

function lagWords({ lagBlocks, lagSeconds }: Indexing, noun: string): string {
  const parts = [
    ...(lagBlocks === null ? [] : [counted(lagBlocks, noun)]),
    ...(lagSeconds === null || lagSeconds === 0 ? [] : [duration(lagSeconds * 1_000)]),
  ];
  return parts.length === 0 ? 'not known' : parts.join(', ');
}
