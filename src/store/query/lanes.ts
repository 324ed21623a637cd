/**
 * Reads of the statistics that every write updates: lanes, days, totals.
 *
 * Nothing here counts messages. The cost of each read grows with the number of lanes, days and messages in flight, never
 * with the number of messages.
 */
import { addFlatHistogram, MAX_DELIVERY_MS, percentile } from '../../domain/delivery-times.ts';
import { type Status, statuses, statusRank } from '../../domain/lifecycle.ts';
import type { NetworkInfo } from '../../domain/message.ts';
import type { NumberRun } from '../../domain/missing-numbers.ts';
import type { StatementForms } from '../cluster/statement-forms.ts';
import { groupBy } from '../group-by.ts';
import type { Read } from '../reads/reads.ts';
import { selectorOf, storedSelector } from '../write/message-row.ts';

export type StatusCounts = Readonly<Record<Status, number>>;

export interface MessageCounts {
  readonly messages: number;
  readonly byStatus: StatusCounts;
  /** Neither failed nor succeeded yet. */
  readonly inFlight: number;
  readonly readyForManualExecution: number;
}

/** Which sequence numbers of an on-ramp are present; numbers are uint64 in decimal. */
export interface Completeness {
  readonly first: string;
  readonly last: string;
  readonly present: string;
  /** Missing between first and last. */
  readonly missing: string;
  /** How many ranges the missing ones make. */
  readonly missingRangeCount: number;
  /** The lowest of the missing ranges, both ends included. */
  readonly missingRanges: readonly { readonly from: string; readonly to: string }[];
  readonly isComplete: boolean;
}

export interface OnrampStatistics {
  readonly onramp: string;
  readonly version: string | null;
  readonly completeness: Completeness;
}

/** The description of a lane, from its newest message. */
export interface LaneIdentity {
  readonly sourceNetworkInfo: NetworkInfo;
  readonly destNetworkInfo: NetworkInfo;
  readonly routerAddress: string | null;
}

export interface LaneStatistics extends LaneIdentity, MessageCounts {
  /** Of the on-ramp that was used last. */
  readonly version: string | null;
  /** In flight for longer than 99 of 100 took, counted up to `MAX_OVERDUE`; null where nothing was delivered. */
  readonly overdue: number | null;
  readonly lastSentAt: string;
  readonly delivery: {
    readonly messages: number;
    readonly p50Ms: number | null;
    readonly p90Ms: number | null;
    readonly p99Ms: number | null;
  };
  /** The one that was used last comes first. */
  readonly onramps: readonly OnrampStatistics[];
}

/** One lane, all from a source, all to a destination, or all there are. */
export interface LaneEnds {
  readonly sourceChainSelector?: string;
  readonly destChainSelector?: string;
}

export interface LaneSelection extends LaneEnds {
  /** Deliveries of messages sent on this UTC day or later, `2026-01-31`. */
  readonly deliveredSince: string;
  readonly now: Date;
  /** How many missing ranges are named for each on-ramp. */
  readonly namedRanges: number;
  /** How many lanes, those with the most messages first. */
  readonly limit: number;
}

export type LanePage = Awaited<ReturnType<typeof readLanes>>;

export async function readLanes(forms: StatementForms, read: Read, selection: LaneSelection) {
  const rows = await read(
    `select source_selector, dest_selector, status, ready, messages from lane_total
     where ${IS_BETWEEN} and messages > 0`,
    endValues(selection),
  );
  const totals = laneCountsOf(rows);
  const shown = totals.slice(0, selection.limit);
  const lanes = [shown.map(({ source }) => source), shown.map(({ dest }) => dest)];
  const onramps = groupBy(await readOnramps(read, lanes, selection.namedRanges), keyOf);
  const histograms = await readHistograms(read, lanes, selection.deliveredSince);
  const p99s = shown.map(({ key }) => percentile(histograms.get(key) ?? new Map(), 0.99));
  // The cost is bounded by the messages in flight, which have a partial index.
  const limits = p99s.map((p99Ms) => (p99Ms === null ? null : new Date(selection.now.getTime() - p99Ms)));
  const late = await read(forms.overdue, [...lanes, limits]);
  const overdue = new Map(late.map((row) => [keyOf(row), row.overdue as number]));

  const statistics: readonly LaneStatistics[] = shown.flatMap(({ key, counts }, index) => {
    const ramps = onramps.get(key) ?? [];
    const newest = ramps[0];
    // Removed between two statements.
    if (!newest) return [];
    const histogram = histograms.get(key) ?? new Map();
    const description = descriptionOf(newest);
    const p99Ms = p99s[index] ?? null;
    return [
      {
        ...identityOf(description),
        version: description.version,
        ...counts,
        overdue: p99Ms === null ? null : (overdue.get(key) ?? 0),
        lastSentAt: (newest.last_sent_at as Date).toISOString(),
        delivery: {
          messages: [...histogram.values()].reduce((sum, count) => sum + count, 0),
          p50Ms: percentile(histogram, 0.5),
          p90Ms: percentile(histogram, 0.9),
          p99Ms,
        },
        onramps: ramps.map(onrampOf),
      },
    ];
  });
  /** `total` is how many lanes match, shown or not. */
  return { lanes: statistics, total: totals.length };
}

type Row = Record<string, unknown>;

const keyOf = (row: Row) => `${row.source_selector},${row.dest_selector}`;

/** Those with the most messages first. */
function laneCountsOf(rows: readonly Row[]) {
  const lanes = [...groupBy(rows, keyOf)].map(([key, group]) => ({
    key,
    // As stored: signed.
    source: group[0]?.source_selector as string,
    dest: group[0]?.dest_selector as string,
    counts: countsOf(group),
  }));
  // Lanes of the same volume keep one order from request to request.
  return lanes.sort((a, b) => b.counts.messages - a.counts.messages || (a.key < b.key ? -1 : 1));
}

/** SQL condition on the ends of a lane; null is any. */
export const IS_BETWEEN =
  '($1::bigint is null or source_selector = $1) and ($2::bigint is null or dest_selector = $2)';

/** The values of `IS_BETWEEN`. */
export function endValues({ sourceChainSelector, destChainSelector }: LaneEnds): (string | null)[] {
  return [sourceChainSelector, destChainSelector].map((selector) =>
    selector === undefined ? null : storedSelector(selector),
  );
}

/** The sum of rows with a status, `ready` and a number of messages. */
export function countsOf(rows: readonly Row[]): MessageCounts {
  const byStatus = Object.fromEntries(statuses.map((status) => [status, 0])) as Record<Status, number>;
  let readyForManualExecution = 0;
  for (const row of rows) {
    byStatus[statusOf(row)] += Number(row.messages);
    if (row.ready) readyForManualExecution += Number(row.messages);
  }
  const sum = (added: readonly Status[]) => added.reduce((total, status) => total + byStatus[status], 0);
  const inFlight = sum(statuses.filter((status) => statusRank(status) < statusRank('FAILED')));
  return { messages: sum(statuses), byStatus, inFlight, readyForManualExecution };
}

function statusOf({ status }: Row): Status {
  const known = statuses[status as number];
  if (!known) throw new Error(`A statistic has the unknown status ${status}`);
  return known;
}

/** SQL: lanes from two arrays, `$1` and `$2`. */
const LANES = 'unnest($1::bigint[], $2::bigint[]) as lane (source, dest)';

/** On-ramps with their first and last numbers and their lowest gaps. Reads only the ends of `lane_run`. */
function readOnramps(read: Read, lanes: readonly unknown[], namedRanges: number): Promise<Row[]> {
  const ofOnramp =
    'source_selector = o.source_selector and dest_selector = o.dest_selector and onramp = o.onramp';
  return read(
    `select o.source_selector, o.dest_selector, o.last_sent_at, o.description, o.present, o.runs,
            first.from_sequence as first, last.to_sequence as last, gaps.ranges
     from ${LANES}
     join lane_onramp o on o.source_selector = source and o.dest_selector = dest
     cross join lateral (
       select from_sequence from lane_run where ${ofOnramp} order by from_sequence limit 1) first
     cross join lateral (
       select to_sequence from lane_run where ${ofOnramp} order by from_sequence desc limit 1) last
     cross join lateral (
       select coalesce(json_agg(json_build_array((to_sequence + 1)::text, (next_from - 1)::text)
                                order by to_sequence), '[]') as ranges
       from (select to_sequence, lead(from_sequence) over (order by from_sequence) as next_from
             from (select from_sequence, to_sequence from lane_run where ${ofOnramp}
                   order by from_sequence limit $3) run) gap
       where next_from is not null) gaps
     order by o.last_sent_at desc, o.onramp`,
    [...lanes, namedRanges + 1],
  );
}

async function readHistograms(read: Read, lanes: readonly unknown[], since: string) {
  const rows = await read(
    `select source_selector, dest_selector, histogram
     from ${LANES} join lane_delivery on source_selector = source and dest_selector = dest and day >= $3::date`,
    [...lanes, since],
  );
  const histograms = new Map<string, Map<number, number>>();
  for (const row of rows) {
    const sum = histograms.get(keyOf(row)) ?? new Map<number, number>();
    histograms.set(keyOf(row), sum);
    addFlatHistogram(sum, row.histogram as number[]);
  }
  return histograms;
}

/** As `describeLane` wrote it. */
function descriptionOf(row: Row): LaneIdentity & Pick<OnrampStatistics, 'onramp' | 'version'> {
  return JSON.parse(row.description as string);
}

function identityOf({ sourceNetworkInfo, destNetworkInfo, routerAddress }: LaneIdentity): LaneIdentity {
  return { sourceNetworkInfo, destNetworkInfo, routerAddress };
}

function onrampOf(row: Row): OnrampStatistics {
  const { onramp, version } = descriptionOf(row);
  const missing =
    BigInt(row.last as string) - BigInt(row.first as string) + 1n - BigInt(row.present as string);
  return {
    onramp,
    version,
    completeness: {
      first: row.first as string,
      last: row.last as string,
      present: row.present as string,
      missing: missing.toString(),
      missingRangeCount: Number(row.runs) - 1,
      missingRanges: (row.ranges as [string, string][]).map(([from, to]) => ({ from, to })),
      isComplete: missing === 0n,
    },
  };
}

/** Undefined where the lane has no message. */
export async function readLaneIdentity(read: Read, lane: Required<LaneEnds>) {
  const [row] = await read(
    `select description from lane_onramp where source_selector = $1 and dest_selector = $2
     order by last_sent_at desc, onramp limit 1`,
    endValues(lane),
  );
  return row && identityOf(descriptionOf(row));
}

export type Stats = Awaited<ReturnType<typeof readStats>>;
export type DayCounts = Stats['days'][number];

export interface StatsSelection {
  readonly topLanes: number;
  /** UTC days, `2026-01-31`, both ends included. */
  readonly firstDay: string;
  readonly lastDay: string;
}

/**
 * One statement, so that the position and all counts are of one snapshot, also on a replica. On a cluster the counts are those of
 * the assigned position, which is published a moment later; on one node `publication` is empty.
 */
export async function readStats(read: Read, { topLanes, firstDay, lastDay }: StatsSelection) {
  const [row] = await read(
    // With ties: there may be more lanes than asked for.
    `with lane as (
       select source_selector, dest_selector, sum(messages) as messages from lane_total where messages > 0
       group by 1, 2 order by 3 desc fetch first ($1::int) rows with ties)
     select (select greatest(position, (select assigned_position from publication)) from store)::text as position,
       (select json_agg(json_build_object('source_selector', source_selector::text,
          'dest_selector', dest_selector::text, 'status', status, 'ready', ready, 'messages', messages))
        from lane_total where messages > 0) as lanes,
       (select json_agg(d) from (
          select distinct on (source_selector, dest_selector)
            source_selector::text, dest_selector::text, description
          from lane join lane_onramp using (source_selector, dest_selector)
          order by source_selector, dest_selector, last_sent_at desc, onramp) d) as described,
       (select json_agg(d) from (
          select to_char(day, 'YYYY-MM-DD') as day, status, sum(messages) as messages from day_total
          where day between $2::date and $3::date group by 1, 2 having sum(messages) > 0 order by 1) d) as days`,
    [topLanes, firstDay, lastDay],
  );
  const rowsOf = (name: string) => (row?.[name] ?? []) as Row[];
  const lanes = laneCountsOf(rowsOf('lanes'));
  const described = new Map(
    rowsOf('described').map((lane) => [keyOf(lane), identityOf(descriptionOf(lane))]),
  );
  return {
    /** Of the latest change that is counted: everything here is of one snapshot. */
    position: String(row?.position ?? 0),
    all: countsOf(rowsOf('lanes')),
    /** The lanes with the most messages. */
    topLanes: lanes.slice(0, topLanes).flatMap(({ key, counts }) => {
      const identity = described.get(key);
      return identity ? [{ ...identity, counts }] : [];
    }),
    /** One entry a day (UTC, `2026-01-31`) that has messages, oldest first. */
    days: [...groupBy(rowsOf('days'), (row) => row.day as string)].map(([day, group]) => {
      const { messages, byStatus } = countsOf(group);
      return { day, messages, byStatus };
    }),
  };
}

export interface DeliverySelection {
  readonly sourceChainSelector: string;
  readonly destChainSelector: string;
  /** Only messages with this finality. */
  readonly finality: number;
  /** Only messages with one of these tokens, as canonical bytes in hex; null: any. */
  readonly sourceTokens: readonly string[] | null;
}

/**
 * Delivery times (ms) of the latest successes on a lane, newest first, to estimate the latency from: `samples` at most, of so
 * many candidates.
 */
export async function readRecentDeliveries(
  forms: StatementForms,
  read: Read,
  lane: DeliverySelection,
  { samples, candidates }: { readonly samples: number; readonly candidates: number },
): Promise<readonly number[]> {
  const rows = await read(forms.recentDeliveries, [
    storedSelector(lane.sourceChainSelector),
    storedSelector(lane.destChainSelector),
    candidates,
    lane.finality,
    lane.sourceTokens?.map((token) => Buffer.from(token, 'hex')) ?? null,
    samples,
    statusRank('SUCCESS'),
  ]);
  return rows.map((row) => Math.min(Number(row.delivery_ms), MAX_DELIVERY_MS));
}

/** What contracts count of a lane, with what the records have of it: what `audit` judges both ends of a lane by. */
export interface CountedLane {
  readonly sourceChainSelector: string;
  readonly destChainSelector: string;
  /** Canonical bytes in hex. */
  readonly onramp: string;
  /** Messages that the on-ramp has sent, or messages of it that are committed on the destination. */
  readonly kind: 'sent' | 'committed';
  readonly lastNumber: string;
  /** Whether everything from number 1 on is expected; false where indexing starts at a configured block or time. */
  readonly isWhole: boolean;
  readonly checkedAt: Date;
  /** The numbers that the records have, the lowest first. */
  readonly present: readonly NumberRun[];
}

/** Of a lane with more runs than this, the lowest are compared. */
const MAX_RUNS = 10_000;

export async function readCountedLanes(read: Read, ends: LaneEnds): Promise<readonly CountedLane[]> {
  const ofLane =
    'source_selector = c.source_selector and dest_selector = c.dest_selector and onramp = c.onramp';
  const rows = await read<CountedLane>(
    `select c.source_selector as "sourceChainSelector", c.dest_selector as "destChainSelector",
            encode(c.onramp, 'hex') as onramp, c.kind, c.last_number as "lastNumber", c.is_whole as "isWhole",
            c.checked_at as "checkedAt", present.runs as present
     from index_counter c
     cross join lateral (
       select coalesce(json_agg(json_build_object('from', lower(run)::text, 'to', (upper(run) - 1)::text)
                                order by run), '[]') as runs
       from (select run from (
               select unnest(range_agg(numrange(from_sequence, to_sequence + 1))) as run from (
                 select from_sequence, to_sequence from lane_run where c.kind = 'sent' and ${ofLane}
                 union all
                 select from_sequence, to_sequence from lane_fact
                 where c.kind = 'committed' and ${ofLane}) piece) merged
             order by run limit ${MAX_RUNS}) bounded) present
     where ${IS_BETWEEN}
     order by c.source_selector, c.dest_selector, c.onramp, c.kind`,
    endValues(ends),
  );
  return rows.map((row) => ({
    ...row,
    sourceChainSelector: selectorOf(row.sourceChainSelector),
    destChainSelector: selectorOf(row.destChainSelector),
  }));
}

/**
 * How many messages of indexed source networks are known from imports and mirrors alone. Null where no network is indexed:
 * then nothing could confirm them.
 */
export async function countUnconfirmed(read: Read, ends: LaneEnds): Promise<number | null> {
  const [row] = await read(
    `select case when exists (select 1 from index_network) then (
       select count(*) from message
       where is_snapshot and source_selector in (select selector from index_network) and ${IS_BETWEEN}) end as messages`,
    endValues(ends),
  );
  return row?.messages == null ? null : Number(row.messages);
}
