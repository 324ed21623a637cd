/**
 * Freshness of the data: whether indexers and mirrors keep the records up to date, and the banner when they do not.
 *
 * A connected stream does not show that: it is silent while the indexer is dead, and also when nothing happens.
 */
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { NetworkList } from '../../../src/client/api-types.ts';
import { blockNoun } from '../../../src/domain/chain-families.ts';
import type { Message } from '../../../src/domain/message.ts';
import { ageInWords, exactTime } from '../../../src/text/format.ts';
import { networkName } from '../../../src/text/message-words.ts';
import { freshnessQuery, networksQuery } from '../server/api-client.ts';
import { useTimed } from '../server/clock.ts';
import { Icon } from './icons.tsx';
import { Ago } from './text.tsx';

/** A network or a mirror that is not read, and when its process was last alive. */
interface Outage {
  readonly isStopped: boolean;
  /** The network; null for a mirror. */
  readonly network: NetworkList['data'][number] | null;
  readonly lastSeenAt: string;
}

/**
 * - `unknown`: the server has not answered yet.
 * - `live`: all indexers and mirrors are alive.
 * - `behind`: alive, but at least one lags or has a problem.
 * - `stopped`: at least one indexer or mirror is dead.
 * - `imported`: records come from imports only, so nothing keeps them up to date.
 */
export type FreshnessState = 'unknown' | 'live' | 'behind' | 'stopped' | 'imported';

/** Polled; while it cannot be read, nothing is known. */
export function useFreshness() {
  const { data, isError } = useQuery(freshnessQuery);
  return freshnessOf(isError ? undefined : data);
}

function freshnessOf(list: NetworkList | undefined) {
  const sources = [
    ...(list?.data ?? []).flatMap((network) => (network.indexing ? [{ network, ...network.indexing }] : [])),
    ...(list?.mirrors ?? []).map((mirror) => ({ network: null, ...mirror })),
  ];
  const outages = sources
    .filter(({ health }) => health !== 'ok' && health !== 'lagging')
    .map(
      ({ network, health, lastSeenAt }): Outage => ({ isStopped: health === 'stopped', network, lastSeenAt }),
    );
  const stopped = outages.filter(({ isStopped }) => isStopped).length;
  const stateOf = (): FreshnessState => {
    if (stopped > 0) return 'stopped';
    if (sources.some(({ health }) => health !== 'ok')) return 'behind';
    if (list === undefined) return 'unknown';
    return sources.length > 0 || list.simulated ? 'live' : 'imported';
  };
  return {
    state: stateOf(),
    outages,
    /** Whether all indexers and mirrors have stopped. */
    isEverything: sources.length > 0 && stopped === sources.length,
    lastChangeAt: list?.lastChangeAt ?? null,
  };
}

function useOutagesOf({ sourceNetworkInfo, destNetworkInfo }: Message): Outage[] {
  const { outages } = useFreshness();
  const ends = [sourceNetworkInfo.chainSelector, destNetworkInfo.chainSelector];
  return outages.filter(({ network }) => network === null || ends.includes(network.chainSelector));
}

/** Whether changes of a message are no longer seen: it may have moved on, so it must not be called late. */
export function useIsUnwatched(message: Message): boolean {
  return useOutagesOf(message).some(({ isStopped }) => isStopped);
}

/** For a message. A delivered one does not change any more. */
export function MessageFreshnessBanner({ message }: { readonly message: Message }) {
  const outages = useOutagesOf(message);
  return message.status === 'SUCCESS' ? null : <OutageBanner outages={outages} isEverything={false} />;
}

/** For the list of messages: all outages. */
export function FreshnessBanner() {
  return <OutageBanner {...useFreshness()} />;
}

type Outages = Pick<ReturnType<typeof useFreshness>, 'outages' | 'isEverything'>;

function OutageBanner({ outages, isEverything }: Outages) {
  const stopped = outages.filter(({ isStopped }) => isStopped);
  const shown = stopped.length > 0 ? stopped : outages;
  const [earliest = ''] = shown.map(({ lastSeenAt }) => lastSeenAt).sort();
  const since = useTimed((now) => ageInWords(now - Date.parse(earliest)));
  // Always in the page, so that a screen reader announces its new content.
  return (
    <div role="status">
      {shown.length > 0 && (
        <div className="outage">
          <Icon name="hand" />
          <p>
            <strong>
              <bdi>{subjectOf(shown, isEverything)}</bdi>{' '}
              {stopped.length > 0 ? (
                <>
                  stopped{' '}
                  <time dateTime={earliest} title={exactTime(earliest)}>
                    {since} ago
                  </time>
                  .
                </>
              ) : (
                'has problems.'
              )}
            </strong>{' '}
            New messages and status changes {stopped.length > 0 ? 'are missing' : 'may come late'}.
          </p>
          <Link to="/network" className="outage-more small">
            Networks
          </Link>
        </div>
      )}
    </div>
  );
}

const NAMED = 2;

function subjectOf(outages: readonly Outage[], isEverything: boolean): string {
  const names = outages.flatMap(({ network }) => (network ? [networkName(network)] : []));
  if (names.length === 0) return 'Mirroring';
  if (isEverything && names.length > 1) return 'Indexing';
  const others = names.length - NAMED;
  const named = names.slice(0, NAMED).join(others > 0 ? ', ' : ' and ');
  return `Indexing of ${named}${others > 0 ? ` and ${others} more` : ''}`;
}

/** How far each network is indexed: shown where a message was not found. */
export function IndexedSoFar() {
  const { data } = useQuery(networksQuery(false));
  if (!data || data.simulated) return null;
  const indexed = data.data.flatMap((network) =>
    network.indexing ? [{ ...network, ...network.indexing }] : [],
  );
  if (indexed.length === 0) {
    return (
      <p className="muted">
        No network is indexed here: records come from imports only, and it was not among them.
      </p>
    );
  }
  return (
    <ul className="stack gap-4">
      {indexed.map(({ indexedBlock, health, lastSeenAt, ...network }) => (
        <li key={network.chainSelector}>
          <bdi>{networkName(network)}</bdi>: indexed to {blockNoun(network.chainFamily)} {indexedBlock ?? '–'}
          <span className="muted">
            {' '}
            ({health}, last seen <Ago at={lastSeenAt} suffix=" ago" />)
          </span>
        </li>
      ))}
    </ul>
  );
}
