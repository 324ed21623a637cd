/** The page of a lane: volume, delivery times, completeness, overdue messages. */
import { useQuery } from '@tanstack/react-query';
import { Link, useParams } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import type { Completeness, Lane } from '../../../src/client/api-types.ts';
import { findNetwork } from '../../../src/domain/networks/networks.ts';
import { counted, dayName, duration, exactTime, grouped, percent } from '../../../src/text/format.ts';
import { laneWords } from '../../../src/text/message-words.ts';
import { BarChart } from '../parts/charts.tsx';
import { FailureReasons, FailureShareChart } from '../parts/failure-reasons.tsx';
import { Figure, Figures, NeedActionFigure } from '../parts/figures.tsx';
import { laneMessages, SearchableHash, sentMessages } from '../parts/hash.tsx';
import { Icon } from '../parts/icons.tsx';
import { MessageRow } from '../parts/message-row.tsx';
import { LaneLabel } from '../parts/network.tsx';
import { FailureNotice, Notice, Skeleton } from '../parts/notices.tsx';
import { useTitle } from '../parts/page-title.ts';
import { Ago } from '../parts/time.tsx';
import {
  failuresQuery,
  type LaneSelectors,
  lanesQuery,
  networksQuery,
  searchQuery,
} from '../server/api-client.ts';
import { serverNow } from '../server/clock.ts';
import type { Filters } from '../server/search-view.ts';
import { deliveryBars, timeBars } from './lane-charts.ts';

/** The charts are made from this many messages: the API has counts per lane, not per lane and day. */
const SAMPLE = 1_000;
const SHOWN_MESSAGES = 8;

const sampleQuery = (ends: Filters) => searchQuery({ ...ends, limit: String(SAMPLE) });

export function LanePage() {
  const { source, dest } = useParams({ from: '/lane/$source/$dest' });
  const isBuiltIn = [source, dest].every((text) => /^\d+$/.test(text) || findNetwork(text) !== undefined);
  // The server knows networks by name that its operator has defined.
  const defined = useQuery({ ...networksQuery(true), enabled: !isBuiltIn, refetchInterval: false });
  const selectorOf = (text: string) =>
    findNetwork(text)?.selector ??
    defined.data?.data.find(({ name }) => name === text.toLowerCase())?.chainSelector ??
    text;
  const ends = { sourceChainSelector: selectorOf(source), destChainSelector: selectorOf(dest) };
  const { data, error, refetch } = useQuery({ ...lanesQuery(ends), enabled: !defined.isLoading });
  const lane = data?.data[0];
  useTitle(lane ? laneWords(lane) : 'Lane');
  return (
    <div className="page">
      <p className="back">
        <Link to="/lane" className="button quiet">
          <Icon name="left" /> Lanes
        </Link>
      </p>
      {error && !data && <FailureNotice error={error} onRetry={() => void refetch()} />}
      {!error && !data && <Skeleton width="320px" />}
      {data && !lane && (
        <Notice title="No message goes this way">
          <p>
            Nothing from <bdi>{source}</bdi> to <bdi>{dest}</bdi> is known here.
          </p>
          <p>
            <Link to="/lane" className="button">
              Show the lanes that have messages
            </Link>
          </p>
        </Notice>
      )}
      {lane && <LaneView lane={lane} ends={ends} />}
    </div>
  );
}

function LaneView({ lane, ends }: { readonly lane: Lane; readonly ends: LaneSelectors }) {
  const { delivery, messages, byStatus, inFlight, overdue, readyForManualExecution } = lane;
  return (
    <>
      <header className="page-head">
        <h1 className="message-lane">
          <LaneLabel source={lane.sourceNetworkInfo} dest={lane.destNetworkInfo} />
        </h1>
        <p className="muted">
          {lane.version !== null && `CCIP ${lane.version}, `}last message{' '}
          <Ago at={lane.lastSentAt} suffix=" ago" />
        </p>
      </header>
      <Figures>
        <Figure
          name="Messages"
          value={grouped(messages)}
          about={`${percent(byStatus.SUCCESS, messages)} delivered`}
        />
        <Figure
          name="Half arrive within"
          value={delivery.p50Ms === null ? '–' : duration(delivery.p50Ms)}
          about={
            delivery.p90Ms !== null &&
            delivery.p99Ms !== null &&
            `90 %: ${duration(delivery.p90Ms)} · 99 %: ${duration(delivery.p99Ms)}`
          }
        />
        <Figure
          name="In flight"
          value={grouped(inFlight)}
          about={overdueWords(lane, ends)}
          tone={overdue ? 'action' : undefined}
        />
        <NeedActionFigure count={readyForManualExecution} within={ends} />
      </Figures>
      <LaneCharts ends={ends} lane={lane} />
      <LaneFailures ends={ends} />
      <section className="panel">
        <header className="panel-head">
          <h2>Is anything missing?</h2>
        </header>
        <ul className="completeness">
          {lane.onramps.map(({ onramp, version, completeness }) => (
            <li key={onramp}>
              <CompletenessWords completeness={completeness} />
              <div className="completeness-ramp">
                <span className="muted">on-ramp{version !== null && ` ${version}`}</span>
                <span>
                  <SearchableHash
                    text={onramp}
                    what="on-ramp"
                    search={laneMessages(lane.sourceNetworkInfo, lane.destNetworkInfo)}
                    at={{ network: lane.sourceNetworkInfo, page: 'address' }}
                  />
                </span>
              </div>
            </li>
          ))}
          {lane.routerAddress !== null && (
            <li className="completeness-ramp">
              <span className="muted">router</span>
              <span>
                <SearchableHash
                  text={lane.routerAddress}
                  what="router"
                  search={sentMessages(lane.sourceNetworkInfo)}
                  at={{ network: lane.sourceNetworkInfo, page: 'address' }}
                />
              </span>
            </li>
          )}
        </ul>
      </section>
      <NewestMessages ends={ends} />
    </>
  );
}

function overdueWords({ overdue, delivery }: Lane, ends: Filters): ReactNode {
  if (overdue === null || delivery.p99Ms === null) return 'no delivery to compare with';
  if (overdue === 0) return 'none overdue';
  const since = new Date(serverNow() - delivery.p99Ms).toISOString();
  return (
    <Link
      to="/"
      search={{
        ...ends,
        status: 'SENT,SOURCE_FINALIZED,COMMITTED,BLESSED,VERIFYING,VERIFIED',
        sentBefore: `${since.slice(0, 19)}Z`,
      }}
    >
      {overdue} overdue
    </Link>
  );
}

function CompletenessWords({ completeness }: { readonly completeness: Completeness }) {
  const { first, last, missing, missingRanges, missingRangeCount, isComplete } = completeness;
  const range = `${grouped(first)}…${grouped(last)}`;
  if (isComplete) {
    return (
      <p className="complete">
        <Icon name="tick" />
        <strong>{range}</strong>: none missing
      </p>
    );
  }
  const named = missingRanges.map(({ from, to }) =>
    from === to ? grouped(from) : `${grouped(from)}–${grouped(to)}`,
  );
  return (
    <div className="incomplete">
      <p>
        <Icon name="hand" />
        <strong>{range}</strong>: {grouped(missing)} missing, in {counted(missingRangeCount, 'range')}
      </p>
      <p className="muted wrap">
        {named.join(', ')}
        {missingRangeCount > named.length &&
          `, and ${counted(missingRangeCount - named.length, 'more range')}`}
      </p>
    </div>
  );
}

function LaneCharts({ ends, lane }: { readonly ends: Filters; readonly lane: Lane }) {
  const { data, error, refetch } = useQuery(sampleQuery(ends));
  if (error && !data) return <FailureNotice error={error} onRetry={() => void refetch()} />;
  if (!data) {
    return (
      <div className="panels" aria-busy="true">
        <section className="panel chart-place" />
        <section className="panel chart-place" />
      </div>
    );
  }
  const messages = data.data;
  const oldest = messages.at(-1);
  const isAll = !data.pagination.hasNextPage;
  const sample = isAll ? 'all messages' : `the latest ${grouped(messages.length)} messages`;
  const deliveries = deliveryBars(messages, lane.delivery);
  return (
    <div className="panels">
      <section className="panel">
        <header className="panel-head">
          <h2>Messages over time</h2>
          {oldest && (
            <p className="muted" title={exactTime(oldest.sendTimestamp)}>
              {sample}, since {dayName(oldest.sendTimestamp)}
            </p>
          )}
        </header>
        <BarChart label={`Messages sent over time: ${sample}`} bars={timeBars(messages, serverNow())} />
      </section>
      <section className="panel">
        <header className="panel-head">
          <h2>How long deliveries took</h2>
          <p className="muted">of {sample}</p>
        </header>
        {deliveries ? (
          <BarChart label={`Delivery times of ${sample}`} bars={deliveries.bars} marks={deliveries.marks} />
        ) : (
          <p className="muted">None of them was delivered yet.</p>
        )}
      </section>
    </div>
  );
}

const FAILURE_DAYS = 30;
const SHOWN_REASONS = 4;

function LaneFailures({ ends }: { readonly ends: LaneSelectors }) {
  const { data } = useQuery(failuresQuery(FAILURE_DAYS, ends));
  if (!data) return null;
  const messages = data.days.reduce((sum, day) => sum + day.messages, 0);
  return (
    <div className="panels">
      <section className="panel">
        <header className="panel-head">
          <h2>Share of failures</h2>
          <p className="muted">
            {percent(data.failed, messages)} in {FAILURE_DAYS} days
          </p>
        </header>
        <FailureShareChart days={data.days} />
      </section>
      <section className="panel">
        <header className="panel-head">
          <h2>Why messages failed</h2>
          {data.failed > 0 && (
            <Link to="/" search={{ ...ends, status: 'FAILED' }}>
              Failed messages
            </Link>
          )}
        </header>
        {data.failed === 0 ? (
          <p className="muted">No message of the last {FAILURE_DAYS} days has failed.</p>
        ) : (
          <FailureReasons failures={data} shown={SHOWN_REASONS} withLanes={false} />
        )}
      </section>
    </div>
  );
}

function NewestMessages({ ends }: { readonly ends: Filters }) {
  const { data } = useQuery(sampleQuery(ends));
  if (!data) return null;
  return (
    <section className="panel">
      <header className="panel-head">
        <h2>Newest messages</h2>
        <Link to="/" search={ends}>
          All of this lane
        </Link>
      </header>
      <ol className="rows">
        {data.data.slice(0, SHOWN_MESSAGES).map((message) => (
          <MessageRow key={message.messageId} message={message} isFresh={false} />
        ))}
      </ol>
    </section>
  );
}
