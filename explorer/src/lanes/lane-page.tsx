/** The page of a lane: volume, delivery times, completeness, overdue messages. */
import { useQuery } from '@tanstack/react-query';
import { Link, useParams } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import type { Completeness, Lane } from '../../../src/client/api-types.ts';
import { statuses } from '../../../src/domain/lifecycle.ts';
import { findNetwork } from '../../../src/domain/networks/networks.ts';
import { counted, dayName, duration, exactTime, grouped, percent } from '../../../src/text/format.ts';
import { isInFlight, laneWords } from '../../../src/text/message-words.ts';
import { BarChart } from '../parts/charts.tsx';
import { laneMessages, SearchableHash, sentMessages } from '../parts/hash.tsx';
import { Icon, LaneLabel } from '../parts/icons.tsx';
import { MessageRow } from '../parts/message-row.tsx';
import { Loaded, Notice, Skeleton, useTitle } from '../parts/page.tsx';
import { FailureReasons, FailureShareChart, Figures, needActionFigure, Panel } from '../parts/statistics.tsx';
import { Ago } from '../parts/text.tsx';
import {
  failuresQuery,
  type LaneSelectors,
  lanesQuery,
  networksQuery,
  searchQuery,
} from '../server/api-client.ts';
import { serverNow } from '../server/clock.ts';
import { deliveryBars, timeBars } from './lane-charts.ts';

/** The charts are made from this many messages: the API has counts per lane, not per lane and day. */
const SAMPLE = 1_000;
const SHOWN_MESSAGES = 8;

const sampleQuery = (ends: LaneSelectors) => searchQuery({ ...ends, limit: String(SAMPLE) });

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
  const query = useQuery({ ...lanesQuery(ends), enabled: !defined.isLoading });
  const lane = query.data?.data[0];
  useTitle(lane ? laneWords(lane) : 'Lane');
  return (
    <div className="page">
      <p className="back">
        <Link to="/lane" className="button quiet">
          <Icon name="left" /> Lanes
        </Link>
      </p>
      <Loaded query={query} skeleton={<Skeleton width="320px" />}>
        {({ data: [found] }) =>
          found ? (
            <LaneView lane={found} ends={ends} />
          ) : (
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
          )
        }
      </Loaded>
    </div>
  );
}

interface LaneProps {
  readonly lane: Lane;
  readonly ends: LaneSelectors;
}

function LaneView({ lane, ends }: LaneProps) {
  const { delivery, messages, sourceNetworkInfo: source, destNetworkInfo: dest } = lane;
  const { p50Ms, p90Ms, p99Ms } = delivery;
  return (
    <>
      <header className="page-head">
        <h1 className="message-lane">
          <LaneLabel source={source} dest={dest} />
        </h1>
        <p className="muted">
          {lane.version !== null && `CCIP ${lane.version}, `}last message{' '}
          <Ago at={lane.lastSentAt} suffix=" ago" />
        </p>
      </header>
      <Figures
        figures={[
          {
            name: 'Messages',
            value: grouped(messages),
            about: `${percent(lane.byStatus.SUCCESS, messages)} delivered`,
          },
          {
            name: 'Half arrive within',
            value: p50Ms === null ? '–' : duration(p50Ms),
            about: p90Ms !== null && p99Ms !== null && `90 %: ${duration(p90Ms)} · 99 %: ${duration(p99Ms)}`,
          },
          {
            name: 'In flight',
            value: grouped(lane.inFlight),
            about: overdueWords({ lane, ends }),
            isAction: Boolean(lane.overdue),
          },
          needActionFigure(lane.readyForManualExecution, ends),
        ]}
      />
      <LaneCharts ends={ends} lane={lane} />
      <LaneFailures ends={ends} />
      <Panel title="Is anything missing?">
        <ul className="stack gap-16">
          {lane.onramps.map(({ onramp, version, completeness }) => (
            <li key={onramp}>
              <CompletenessWords completeness={completeness} />
              <div className="completeness-ramp">
                <span className="muted">on-ramp{version !== null && ` ${version}`}</span>
                <span>
                  <SearchableHash text={onramp} what="on-ramp" search={laneMessages(lane)} network={source} />
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
                  search={sentMessages(source)}
                  network={source}
                />
              </span>
            </li>
          )}
        </ul>
      </Panel>
      <NewestMessages ends={ends} />
    </>
  );
}

function overdueWords({ lane: { overdue, delivery }, ends }: LaneProps): ReactNode {
  if (overdue === null || delivery.p99Ms === null) return 'no delivery to compare with';
  if (overdue === 0) return 'none overdue';
  const since = new Date(serverNow() - delivery.p99Ms).toISOString();
  const status = statuses.filter((one) => isInFlight({ status: one })).join(',');
  return (
    <Link to="/" search={{ ...ends, status, sentBefore: `${since.slice(0, 19)}Z` }}>
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

function LaneCharts({ ends, lane }: LaneProps) {
  const skeleton = (
    <div className="panels" aria-busy="true">
      <section className="panel stack gap-16 chart-place" />
      <section className="panel stack gap-16 chart-place" />
    </div>
  );
  return (
    <Loaded query={useQuery(sampleQuery(ends))} skeleton={skeleton}>
      {({ data: messages, pagination }) => {
        const oldest = messages.at(-1)?.sendTimestamp;
        const sample = pagination.hasNextPage
          ? `the latest ${grouped(messages.length)} messages`
          : 'all messages';
        const deliveries = deliveryBars(messages, lane.delivery);
        const since = oldest !== undefined && (
          <p className="muted" title={exactTime(oldest)}>
            {sample}, since {dayName(oldest)}
          </p>
        );
        return (
          <div className="panels">
            <Panel title="Messages over time" about={since}>
              <BarChart label={`Messages sent over time: ${sample}`} bars={timeBars(messages, serverNow())} />
            </Panel>
            <Panel title="How long deliveries took" about={`of ${sample}`}>
              {deliveries ? (
                <BarChart label={`Delivery times of ${sample}`} {...deliveries} />
              ) : (
                <p className="muted">None of them was delivered yet.</p>
              )}
            </Panel>
          </div>
        );
      }}
    </Loaded>
  );
}

const FAILURE_DAYS = 30;
const SHOWN_REASONS = 4;

function LaneFailures({ ends }: Pick<LaneProps, 'ends'>) {
  const { data } = useQuery(failuresQuery(FAILURE_DAYS, ends));
  if (!data) return null;
  const messages = data.days.reduce((sum, day) => sum + day.messages, 0);
  const link = data.failed > 0 && (
    <Link to="/" search={{ ...ends, status: 'FAILED' }}>
      Failed messages
    </Link>
  );
  return (
    <div className="panels">
      <Panel title="Share of failures" about={`${percent(data.failed, messages)} in ${FAILURE_DAYS} days`}>
        <FailureShareChart days={data.days} />
      </Panel>
      <Panel title="Why messages failed" about={link}>
        <FailureReasons
          failures={data}
          none={`No message of the last ${FAILURE_DAYS} days has failed.`}
          shown={SHOWN_REASONS}
          withLanes={false}
        />
      </Panel>
    </div>
  );
}

function NewestMessages({ ends }: Pick<LaneProps, 'ends'>) {
  const { data } = useQuery(sampleQuery(ends));
  if (!data) return null;
  const link = (
    <Link to="/" search={{ ...ends }}>
      All of this lane
    </Link>
  );
  return (
    <Panel title="Newest messages" about={link}>
      <ol className="rows">
        {data.data.slice(0, SHOWN_MESSAGES).map((message) => (
          <MessageRow key={message.messageId} message={message} isFresh={false} />
        ))}
      </ol>
    </Panel>
  );
}
