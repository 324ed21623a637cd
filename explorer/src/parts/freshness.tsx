/**
 * Freshness of the data: whether indexers and mirrors keep the records up to date, and the banner when they do not.
 *
 * A connected stream does not show that: it is silent while the indexer is dead, and also when nothing happens.
 */
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import type { Indexing, Network, NetworkList } from '../../../src/client/api-types.ts';
import type { Message } from '../../../src/domain/message.ts';
import { ageInWords, exactTime } from '../../../src/text/format.ts';
import { networkName } from '../../../src/text/message-words.ts';
import { freshnessQuery } from '../server/api-client.ts';
import { useTimed } from '../server/clock.ts';
import { Icon } from './icons.tsx';

/** A network or a mirror that is not read, and when its process was last alive. */
interface Outage {
  readonly kind: 'stopped' | 'troubled';
  /** The network; null for a mirror. */
  readonly network: Network | null;
  readonly lastSeenAt: string;
}

export interface Freshness {
  /**
   * - `unknown`: the server has not answered yet.
   * - `live`: all indexers and mirrors are alive.
   * - `behind`: alive, but at least one lags or has a problem.
   * - `stopped`: at least one indexer or mirror is dead.
   * - `imported`: records come from imports only, so nothing keeps them up to date.
   */
  readonly state: 'unknown' | 'live' | 'behind' | 'stopped' | 'imported';
  readonly outages: readonly Outage[];
  /** Whether all indexers and mirrors have stopped. */
  readonly isEverything: boolean;
  readonly lastChangeAt: string | null;
}

const unknown: Freshness = { state: 'unknown', outages: [], isEverything: false, lastChangeAt: null };

export function useFreshness(): Freshness {
  const { data, isError } = useQuery(freshnessQuery);
  return data && !isError ? freshnessOf(data) : unknown;
}

function freshnessOf({ simulated, data, mirrors, lastChangeAt }: NetworkList): Freshness {
  const networks = data.flatMap((network) =>
    network.indexing ? [{ network, indexing: network.indexing }] : [],
  );
  const outages = [
    ...networks.flatMap(({ network, indexing }) => outageOf(network, indexing) ?? []),
    ...mirrors.flatMap(({ health, lastSeenAt }): readonly Outage[] =>
      health === 'ok'
        ? []
        : [{ kind: health === 'stopped' ? 'stopped' : 'troubled', network: null, lastSeenAt }],
    ),
  ];
  const sources = networks.length + mirrors.length;
  const isLagging = networks.some(({ indexing }) => indexing.health === 'lagging');
  const stopped = outages.filter(({ kind }) => kind === 'stopped');
  const state =
    stopped.length > 0
      ? 'stopped'
      : outages.length > 0 || isLagging
        ? 'behind'
        : sources > 0 || simulated
          ? 'live'
          : 'imported';
  return { state, outages, isEverything: sources > 0 && stopped.length === sources, lastChangeAt };
}

function outageOf(network: Network, { health, lastSeenAt }: Indexing): Outage | null {
  if (health === 'stopped') return { kind: 'stopped', network, lastSeenAt };
  return health === 'failing' || health === 'stale' ? { kind: 'troubled', network, lastSeenAt } : null;
}

/** For the list of messages: all outages. */
export function FreshnessBanner() {
  const { outages, isEverything } = useFreshness();
  return <OutageBanner outages={outages} isEverything={isEverything} />;
}

/** For a message: the outages of its networks and of mirrors. A delivered message does not change any more. */
export function MessageFreshnessBanner({ message }: { readonly message: Message }) {
  const outages = useOutagesOf(message);
  if (message.status === 'SUCCESS') return null;
  return <OutageBanner outages={outages} isEverything={false} />;
}

/** Whether changes of a message are no longer seen: it may have moved on, so it must not be called late. */
export function useIsUnwatched(message: Message): boolean {
  return useOutagesOf(message).some(({ kind }) => kind === 'stopped');
}

function useOutagesOf({ sourceNetworkInfo, destNetworkInfo }: Message): readonly Outage[] {
  const { outages } = useFreshness();
  const ends = [sourceNetworkInfo.chainSelector, destNetworkInfo.chainSelector];
  return outages.filter(({ network }) => network === null || ends.includes(network.chainSelector));
}

function OutageBanner({
  outages,
  isEverything,
}: {
  readonly outages: readonly Outage[];
  readonly isEverything: boolean;
}) {
  const stopped = outages.filter(({ kind }) => kind === 'stopped');
  const shown = stopped.length > 0 ? stopped : outages;
  const [first, ...more] = shown;
  // Always in the page, so that a screen reader announces its new content.
  return (
    <div role="status">
      {first && (
        <div className="outage">
          <Icon name="hand" />
          <p>
            <strong>
              {stopped.length === 0 ? (
                <>{subject(shown, isEverything)} has problems.</>
              ) : (
                <>
                  {subject(shown, isEverything)} stopped <Since at={earliest(first, more)} />.
                </>
              )}
            </strong>{' '}
            {stopped.length === 0
              ? 'New messages and status changes may come late.'
              : 'New messages and status changes are missing.'}
          </p>
          <Link to="/network" className="outage-more">
            Networks
          </Link>
        </div>
      )}
    </div>
  );
}

const NAMED = 2;

function subject(outages: readonly Outage[], isEverything: boolean): ReactNode {
  const names = outages.flatMap(({ network }) => (network ? [networkName(network)] : []));
  if (names.length === 0) return 'Mirroring';
  if (isEverything && names.length > 1) return 'Indexing';
  const others = names.length - NAMED;
  return (
    <>
      Indexing of <bdi>{names.slice(0, NAMED).join(others > 0 ? ', ' : ' and ')}</bdi>
      {others > 0 && ` and ${others} more`}
    </>
  );
}

function earliest(first: Outage, more: readonly Outage[]): string {
  return more.reduce((at, { lastSeenAt }) => (lastSeenAt < at ? lastSeenAt : at), first.lastSeenAt);
}

function Since({ at }: { readonly at: string }) {
  const text = useTimed((now) => ageInWords(now - Date.parse(at)));
  return (
    <time dateTime={at} title={exactTime(at)}>
      {text} ago
    </time>
  );
}
