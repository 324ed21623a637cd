/** The networks page: how far each network is indexed, and what could not be read. */
import { useQuery } from '@tanstack/react-query';
import { Link, useSearch } from '@tanstack/react-router';
import type { Indexing, Network, NetworkList } from '../../../src/client/api-types.ts';
import { blockNoun } from '../../../src/domain/chain-families.ts';
import { counted, duration, grouped, printable } from '../../../src/text/format.ts';
import { networkName } from '../../../src/text/message-words.ts';
import { CopyButton } from '../parts/copy-button.tsx';
import { Icon } from '../parts/icons.tsx';
import { NetworkMark } from '../parts/network.tsx';
import { FailureNotice, Notice, Skeleton } from '../parts/notices.tsx';
import { useTitle } from '../parts/page-title.ts';
import { Ago } from '../parts/time.tsx';
import { networksQuery } from '../server/api-client.ts';

export function NetworksPage() {
  useTitle('Networks');
  const { show } = useSearch({ from: '/network' });
  const { data, error, refetch } = useQuery(networksQuery(false));
  const isShown = ({ sent, received, indexing }: Network) =>
    show === 'all' || sent + received > 0 || indexing !== null;
  const shown = (data?.data ?? []).filter(isShown).sort(byUrgency);
  const isIndexed = shown.some(({ indexing }) => indexing !== null);
  return (
    <div className="page">
      <header className="page-head">
        <h1>Networks</h1>
        {data && <Summary list={data} />}
      </header>
      {error && !data && <FailureNotice error={error} onRetry={() => void refetch()} />}
      {!error && !data && (
        <div className="skeletons" aria-busy="true">
          <Skeleton width="100%" />
          <Skeleton width="100%" />
          <Skeleton width="100%" />
        </div>
      )}
      {data && shown.length === 0 && (
        <Notice title="No network has messages yet">
          <p>{counted(data.data.length, 'network')} are known by name.</p>
        </Notice>
      )}
      {shown.length > 0 && (
        <table className="ledger networks">
          <thead>
            <tr>
              <th scope="col">Network</th>
              {isIndexed && (
                <>
                  <th scope="col" className="column-health">
                    Indexed
                  </th>
                  <th scope="col">Lag</th>
                  <th scope="col">Last seen</th>
                </>
              )}
              <th scope="col">Sent</th>
              <th scope="col">Received</th>
            </tr>
          </thead>
          <tbody>
            {shown.map((network) => (
              <NetworkRow key={network.chainSelector} network={network} isIndexed={isIndexed} />
            ))}
          </tbody>
        </table>
      )}
      {data && (
        <p className="below">
          <Link
            to="/network"
            search={show === 'all' ? {} : { show: 'all' }}
            resetScroll={false}
            className="button"
          >
            {show === 'all'
              ? 'Only those with messages'
              : `All ${counted(data.data.length, 'known network')}`}
          </Link>
        </p>
      )}
    </div>
  );
}

function Summary({ list: { data, simulated } }: { readonly list: NetworkList }) {
  const indexed = data.flatMap(({ indexing }) => (indexing ? [indexing] : []));
  if (simulated) {
    return (
      <p className="muted">
        Simulated: no chain is indexed. A real instance shows the progress of each network here.
      </p>
    );
  }
  if (indexed.length === 0) {
    return (
      <p className="muted">
        No network is indexed here: all records come from imports or from another server.
      </p>
    );
  }
  const troubled = indexed.filter(({ health }) => health !== 'ok').length;
  return (
    <p className={troubled > 0 ? 'worth-a-look' : 'muted'}>
      {counted(indexed.length, 'network')} indexed, {troubled === 0 ? 'all well' : `${troubled} not well`}.
    </p>
  );
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

function NetworkRow({ network, isIndexed }: { readonly network: Network; readonly isIndexed: boolean }) {
  const { chainSelector, chainFamily, chainId, blockExplorer, indexing, sent, received } = network;
  return (
    <tr>
      <th scope="row">
        <span className="network">
          <NetworkMark name={networkName(network)} seed={chainSelector} />
          <bdi className="network-name">{networkName(network)}</bdi>
        </span>
        <span className="network-ids">
          {chainFamily} {printable(chainId).slice(0, 24)} · {chainSelector}
          <CopyButton text={chainSelector} what="chain selector" />
          {blockExplorer !== null && (
            <a href={blockExplorer} target="_blank" rel="noreferrer">
              block explorer
            </a>
          )}
        </span>
      </th>
      {isIndexed && <IndexingCells indexing={indexing} chainFamily={chainFamily} />}
      <td data-name="Sent">
        {sent > 0 ? (
          <Link to="/" search={{ sourceChainSelector: chainSelector }}>
            {grouped(sent)}
          </Link>
        ) : (
          <span className="muted">0</span>
        )}
      </td>
      <td data-name="Received">
        {received > 0 ? (
          <Link to="/" search={{ destChainSelector: chainSelector }}>
            {grouped(received)}
          </Link>
        ) : (
          <span className="muted">0</span>
        )}
      </td>
    </tr>
  );
}

interface IndexingCellsProps {
  readonly indexing: Indexing | null;
  readonly chainFamily: string;
}

function IndexingCells({ indexing, chainFamily }: IndexingCellsProps) {
  if (!indexing) {
    return (
      <td className="column-health muted" colSpan={3} data-name="Indexed">
        not indexed: its records come from imports
      </td>
    );
  }
  const noun = blockNoun(chainFamily);
  return (
    <>
      <td className="column-health" data-name="Indexed">
        <IndexingWords indexing={indexing} noun={noun} />
      </td>
      <td data-name="Lag">{lagWords(indexing, noun)}</td>
      <td data-name="Last seen">
        <Ago at={indexing.lastSeenAt} suffix=" ago" />
      </td>
    </>
  );
}

const healthLooks = {
  ok: { word: 'Up to date', tone: 'done', icon: 'tick' },
  lagging: { word: 'Lagging', tone: 'action', icon: 'hand' },
  stale: { word: 'No progress for long', tone: 'action', icon: 'hand' },
  failing: { word: 'Failing', tone: 'failed', icon: 'hand' },
  stopped: { word: 'Stopped: no indexer is alive', tone: 'failed', icon: 'hand' },
} as const;

/** At the head, but older blocks are still to be read or could not be read. */
const gapsLook = { word: 'At the head, with gaps behind it', tone: 'moving', icon: 'info' } as const;

interface IndexingWordsProps {
  readonly indexing: Indexing;
  /** Block or slot. */
  readonly noun: string;
}

function IndexingWords({ indexing, noun }: IndexingWordsProps) {
  const { health, indexedBlock, headBlock, finalizedBlock, owedBlocks, unreadableLogs, problem } = indexing;
  const hasGaps = health === 'ok' && (owedBlocks > 0 || indexing.failedRanges > 0);
  const { word, tone, icon } = hasGaps ? gapsLook : healthLooks[health];
  return (
    <div className="indexing">
      <span className={`health tone-${tone}`}>
        <Icon name={icon} />
        {word}
      </span>
      <span>
        {indexedBlock === null ? 'nothing yet' : `to ${noun} ${grouped(indexedBlock)}`}
        {headBlock !== null && <span className="muted"> of {grouped(headBlock)}</span>}
        {finalizedBlock !== null && <span className="muted">, final to {grouped(finalizedBlock)}</span>}
      </span>
      {owedBlocks > 0 && <span>{counted(owedBlocks, noun)} of its history still to be read</span>}
      <FailedRanges indexing={indexing} noun={noun} />
      {unreadableLogs > 0 && (
        <span className="worth-a-look">{counted(unreadableLogs, 'log')} not understood, and kept</span>
      )}
      {problem !== null && <span className="problem wrap">{printable(problem)}</span>}
      {indexing.findings.map(({ kind, text, isLoss }) => (
        <span key={kind} className={isLoss ? 'problem wrap' : 'muted wrap'}>
          {text}
        </span>
      ))}
    </div>
  );
}

function FailedRanges({
  indexing: { failedRanges, failedBlocks, oldestFailureAt },
  noun,
}: IndexingWordsProps) {
  if (failedRanges === 0) return null;
  return (
    <span className="problem">
      {counted(failedRanges, 'range')} ({counted(failedBlocks, noun)}) could not be read and will be tried
      again
      {oldestFailureAt !== null && (
        <>
          ; the oldest for <Ago at={oldestFailureAt} />
        </>
      )}
    </span>
  );
}

function lagWords({ lagBlocks, lagSeconds }: Indexing, noun: string): string {
  const parts = [
    ...(lagBlocks === null ? [] : [counted(lagBlocks, noun)]),
    ...(lagSeconds === null || lagSeconds === 0 ? [] : [duration(lagSeconds * 1_000)]),
  ];
  return parts.length === 0 ? 'not known' : parts.join(', ');
}
