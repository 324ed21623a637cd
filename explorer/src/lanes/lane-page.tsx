/** The page of a lane: volume, delivery times, completeness, overdue messages. */
import { useQuery } from '@tanstack/react-query';
import { Link, useParams } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import type { Completeness, Delivery, Lane } from '../../../src/client/api-types.ts';
import { statuses } from '../../../src/domain/lifecycle.ts';
import type { Message } from '../../../src/domain/message.ts';
import { findNetwork } from '../../../src/domain/networks/networks.ts';
import {
  clockTime,
  counted,
  dayName,
  duration,
  exactTime,
  grouped,
  percent,
} from '../../../src/text/format.ts';
import { isInFlight, laneWords } from '../../../src/text/message-words.ts';
import { type Bar, BarChart } from '../parts/charts.tsx';
import { laneMessages, SearchableHash, sentMessages } from '../parts/hash.tsx';
import { Icon, LaneLabel, toneOf } from '../parts/icons.tsx';
import { MessageRow } from '../parts/message-row.tsx';
import { BackLink, Card, Loaded, MessagesLink, Notice, Skeleton, useTitle } from '../parts/page.tsx';
import {
  FailureReasons,
  FailureShareChart,
  Figures,
  needActionFigure,
  outcomeParts,
} from '../parts/statistics.tsx';
import { Ago } from '../parts/text.tsx';
import { failuresQuery, lanesQuery, networksQuery, searchQuery } from '../server/api-client.ts';
import { serverNow } from '../server/clock.ts';

/** The charts are made from this many messages: the API has counts per lane, not per lane and day. */
const SAMPLE = 1_000;
const SHOWN_MESSAGES = 8;

const sampleQuery = (lane: Lane) => searchQuery({ ...laneMessages(lane).filters, limit: String(SAMPLE) });

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
      <BackLink to="/lane" name="Lanes" />
      <Loaded query={query} skeleton={<Skeleton width="320px" />}>
        {({ data: [found] }) =>
          found ? (
            <LaneView lane={found} />
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

function LaneView({ lane }: { readonly lane: Lane }) {
  const { delivery, messages, sourceNetworkInfo: source, destNetworkInfo: dest } = lane;
  const { p50Ms, p90Ms, p99Ms } = delivery;
  return (
    <>
      <header className="page-head flow spread baseline">
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
            about: overdueWords(lane),
            isAction: Boolean(lane.overdue),
          },
          needActionFigure(lane.readyForManualExecution, laneMessages(lane).filters),
        ]}
      />
      <LaneCharts lane={lane} />
      <LaneFailures lane={lane} />
      <Card title="Is anything missing?">
        <ul className="stack gap-16">
          {lane.onramps.map(({ onramp, version, completeness }) => (
            <li key={onramp}>
              <CompletenessWords completeness={completeness} />
              <div className="completeness-ramp flow baseline">
                <span className="muted">on-ramp{version !== null && ` ${version}`}</span>
                <span>
                  <SearchableHash text={onramp} what="on-ramp" search={laneMessages(lane)} network={source} />
                </span>
              </div>
            </li>
          ))}
          {lane.routerAddress !== null && (
            <li className="completeness-ramp flow baseline">
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
      </Card>
      <NewestMessages lane={lane} />
    </>
  );
}

function overdueWords(lane: Lane): ReactNode {
  const { overdue, delivery } = lane;
  if (overdue === null || delivery.p99Ms === null) return 'no delivery to compare with';
  if (overdue === 0) return 'none overdue';
  const since = new Date(serverNow() - delivery.p99Ms).toISOString();
  const status = statuses.filter((one) => isInFlight({ status: one })).join(',');
  const search = { ...laneMessages(lane).filters, status, sentBefore: `${since.slice(0, 19)}Z` };
  return <MessagesLink search={search} words={`${overdue} overdue`} />;
}

function CompletenessWords({ completeness }: { readonly completeness: Completeness }) {
  const { first, last, missing, missingRanges, missingRangeCount, isComplete } = completeness;
  const range = <strong>{`${grouped(first)}…${grouped(last)}`}</strong>;
  if (isComplete) {
    return (
      <p className="line gap-4">
        <span style={toneOf('SUCCESS')}>
          <Icon name="tick" />
        </span>
        <span>{range}: none missing</span>
      </p>
    );
  }
  const named = missingRanges.map(({ from, to }) =>
    from === to ? grouped(from) : `${grouped(from)}–${grouped(to)}`,
  );
  const others = missingRangeCount - named.length;
  return (
    <div className="incomplete">
      <p className="action">
        <Icon name="hand" /> {range}: {grouped(missing)} missing, in {counted(missingRangeCount, 'range')}
      </p>
      <p className="muted wrap">
        {named.join(', ')}
        {others > 0 && `, and ${counted(others, 'more range')}`}
      </p>
    </div>
  );
}

function LaneCharts({ lane }: { readonly lane: Lane }) {
  const skeleton = (
    <div className="columns" aria-busy="true">
      <div className="card chart-place" />
      <div className="card chart-place" />
    </div>
  );
  return (
    <Loaded query={useQuery(sampleQuery(lane))} skeleton={skeleton}>
      {({ data: messages, pagination }) => {
        const oldest = messages.at(-1)?.sendTimestamp;
        const sample = pagination.hasNextPage
          ? `the latest ${grouped(messages.length)} messages`
          : 'all messages';
        const deliveries = deliveryBars(messages, lane.delivery);
        const since = oldest !== undefined && (
          <span title={exactTime(oldest)}>
            {sample}, since {dayName(oldest)}
          </span>
        );
        return (
          <div className="columns">
            <Card title="Messages over time" about={since}>
              <BarChart label={`Messages sent over time: ${sample}`} bars={timeBars(messages, serverNow())} />
            </Card>
            <Card title="How long deliveries took" about={`of ${sample}`}>
              {deliveries ? (
                <BarChart label={`Delivery times of ${sample}`} {...deliveries} />
              ) : (
                <p className="muted">None of them was delivered yet.</p>
              )}
            </Card>
          </div>
        );
      }}
    </Loaded>
  );
}

const FAILURE_DAYS = 30;
const SHOWN_REASONS = 4;

function LaneFailures({ lane }: { readonly lane: Lane }) {
  const ends = laneMessages(lane).filters;
  const { data } = useQuery(failuresQuery(FAILURE_DAYS, ends));
  if (!data) return null;
  const messages = data.days.reduce((sum, day) => sum + day.messages, 0);
  const link = data.failed > 0 && (
    <MessagesLink search={{ ...ends, status: 'FAILED' }} words="Failed messages" />
  );
  return (
    <div className="columns">
      <Card title="Share of failures" about={`${percent(data.failed, messages)} in ${FAILURE_DAYS} days`}>
        <FailureShareChart days={data.days} />
      </Card>
      <Card title="Why messages failed" about={link}>
        <FailureReasons
          failures={data}
          none={`No message of the last ${FAILURE_DAYS} days has failed.`}
          shown={SHOWN_REASONS}
          withLanes={false}
        />
      </Card>
    </div>
  );
}

function NewestMessages({ lane }: { readonly lane: Lane }) {
  const { data } = useQuery(sampleQuery(lane));
  if (!data) return null;
  const all = <MessagesLink search={laneMessages(lane).filters} words="All of this lane" />;
  return (
    <Card title="Newest messages" about={all}>
      <ol className="rows">
        {data.data.slice(0, SHOWN_MESSAGES).map((message) => (
          <MessageRow key={message.messageId} message={message} isFresh={false} />
        ))}
      </ol>
    </Card>
  );
}

// ---- Histograms of the messages: by send time and by delivery time

const HOUR_MS = 3_600_000;
/** Usual widths of a bar, in milliseconds. */
const barWidthsMs = [1 / 60, 1 / 12, 1 / 4, 1, 3, 6, 12, 24, 7 * 24, 30 * 24].map((hours) => hours * HOUR_MS);
const MAX_BARS = 48;

/** From the oldest message until now, with the smallest width that needs at most `MAX_BARS`. */
function timeBars(messages: readonly Message[], now: number): readonly Bar[] {
  const times = messages.map(({ sendTimestamp }) => Date.parse(sendTimestamp));
  const oldest = Math.min(now, ...times);
  const width =
    barWidthsMs.find((one) => (now - oldest) / one <= MAX_BARS) ?? Math.ceil((now - oldest) / MAX_BARS);
  const first = Math.floor(oldest / width) * width;
  const count = Math.max(1, Math.ceil((Math.max(now, ...times) - first + 1) / width));
  const tally = Array.from({ length: count }, () => ({ messages: 0, SUCCESS: 0, FAILED: 0 }));
  messages.forEach(({ status }, index) => {
    const bar = tally[Math.floor(((times[index] ?? first) - first) / width)];
    if (!bar) return;
    bar.messages++;
    if (status === 'SUCCESS' || status === 'FAILED') bar[status]++;
  });
  return tally.map(({ messages: sent, SUCCESS, FAILED }, index) => {
    const iso = new Date(first + index * width).toISOString();
    const isDay = width >= 24 * HOUR_MS;
    const name = isDay ? dayName(iso) : `${dayName(iso)}, ${clockTime(iso).slice(0, 5)}`;
    return {
      key: iso,
      name,
      ...(index % Math.ceil(count / 4) === 0 && { tick: name }),
      parts: outcomeParts(sent, SUCCESS, FAILED),
    };
  });
}

const DELIVERY_BARS = 32;

/** Logarithmic bars: delivery times differ by orders of magnitude. Null where nothing was delivered. */
function deliveryBars(messages: readonly Message[], { p50Ms, p90Ms, p99Ms }: Delivery) {
  const times = messages.flatMap(({ status, deliveryTime }) =>
    status === 'SUCCESS' && deliveryTime ? [deliveryTime] : [],
  );
  if (times.length === 0) return null;
  const low = Math.log(Math.min(...times) * 0.95);
  const high = Math.log(Math.max(...times, p99Ms ?? 0) * 1.05);
  const place = (ms: number) => ((Math.log(ms) - low) / (high - low)) * DELIVERY_BARS;
  const tally = new Array<number>(DELIVERY_BARS).fill(0);
  for (const time of times) {
    const bar = Math.min(DELIVERY_BARS - 1, Math.floor(place(time)));
    tally[bar] = (tally[bar] ?? 0) + 1;
  }
  const edge = (index: number) => Math.exp(low + ((high - low) * index) / DELIVERY_BARS);
  const bars = tally.map(
    (value, index): Bar => ({
      key: String(index),
      name: `${duration(edge(index))} to ${duration(edge(index + 1))}`,
      ...(index % 8 === 0 && { tick: duration(edge(index)) }),
      parts: [{ series: 'Deliveries', tone: 'moving', value }],
    }),
  );
  const marks = Object.entries({ '50 %': p50Ms, '90 %': p90Ms, '99 %': p99Ms }).flatMap(([name, ms]) => {
    const at = ms === null ? -1 : place(ms);
    return at >= 0 && at <= DELIVERY_BARS ? [{ at, name }] : [];
  });
  return { bars, marks };
}
