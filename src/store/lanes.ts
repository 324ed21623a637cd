/** Reading the statistics that every write keeps: lanes, days, totals. Nothing here counts messages. */
import { type DeliveryHistogram, percentile } from '../domain/delivery-times.ts';
import { type Status, statuses, statusRank } from '../domain/lifecycle.ts';
import type { NetworkInfo } from '../domain/message.ts';
import type { Read } from './read.ts';
import { selectorOf, storedSelector } from './message-row.ts';

export type StatusCounts = Readonly<Record<Status, number>>;

/** Which sequence numbers of an on-ramp are there. */
export interface Completeness {
  readonly onramp: string;
  readonly version: string | null;
  readonly first: string;
  readonly last: string;
  readonly present: string;
  /** Missing between first and last. */
  readonly missing: string;
  /** The first of the missing ranges, both ends included. */
  readonly missingRanges: readonly { readonly from: string; readonly to: string }[];
}

export interface LaneStatistics {
  readonly sourceNetworkInfo: NetworkInfo;
  readonly destNetworkInfo: NetworkInfo;
  readonly routerAddress: string | null;
  /** Of the on-ramp that was used last. */
  readonly version: string | null;
  readonly messages: number;
  readonly byStatus: StatusCounts;
  readonly inFlight: number;
  readonly readyForManualExecution: number;
  /** In flight for longer than 99 of 100 took; null where too little is known. */
  readonly overdue: number | null;
  readonly lastSentAt: string;
  readonly delivery: {
    readonly messages: number;
    readonly p50Ms: number | null;
    readonly p90Ms: number | null;
    readonly p99Ms: number | null;
  };
  readonly onramps: readonly Completeness[];
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
}

interface Description {
  readonly onramp: string;
  readonly routerAddress: string | null;
  readonly version: string | null;
  readonly sourceNetworkInfo: NetworkInfo;
  readonly destNetworkInfo: NetworkInfo;
}

export async function readLanes(read: Read, selection: LaneSelection): Promise<readonly LaneStatistics[]> {
  const where = [
    selection.sourceChainSelector === undefined ? null : storedSelector(selection.sourceChainSelector),
    selection.destChainSelector === undefined ? null : storedSelector(selection.destChainSelector),
  ];
  const ofLane =
    '($1::bigint is null or source_selector = $1) and ($2::bigint is null or dest_selector = $2)';
  const onramps = groupByLane(
    await read(
      `select source_selector, dest_selector, encode(onramp, 'hex') as onramp, last_sent_at, description
       from lane_onramp where ${ofLane} order by last_sent_at desc`,
      where,
    ),
  );
  const totals = groupByLane(
    await read(
      `select source_selector, dest_selector, status, ready, messages from lane_total
       where ${ofLane} and messages > 0`,
      where,
    ),
  );
  const deliveries = groupByLane(
    await read(
      `select source_selector, dest_selector, bucket, sum(messages)::bigint as messages from lane_delivery
       where ${ofLane} and day >= $3::date group by 1, 2, 3`,
      [...where, selection.deliveredSince],
    ),
  );
  const runs = groupByLane(await readCompleteness(read, ofLane, where, selection.namedRanges));

  const lanes: LaneStatistics[] = [];
  for (const [key, counts] of totals) {
    const ramps = onramps.get(key) ?? [];
    const newest = ramps[0];
    if (!newest) continue;
    const histogram: DeliveryHistogram = new Map(
      (deliveries.get(key) ?? []).map((row) => [row.bucket as number, Number(row.messages)]),
    );
    const description = JSON.parse(newest.description as string) as Description;
    const p99Ms = percentile(histogram, 0.99);
    lanes.push({
      sourceNetworkInfo: description.sourceNetworkInfo,
      destNetworkInfo: description.destNetworkInfo,
      routerAddress: description.routerAddress,
      version: description.version,
      ...countsOf(counts),
      overdue: p99Ms === null ? null : await countOverdue(read, newest, selection.now, p99Ms),
      lastSentAt: (newest.last_sent_at as Date).toISOString(),
      delivery: {
        messages: [...histogram.values()].reduce((sum, count) => sum + count, 0),
        p50Ms: percentile(histogram, 0.5),
        p90Ms: percentile(histogram, 0.9),
        p99Ms,
      },
      onramps: ramps.flatMap((ramp) => completenessOf(ramp, runs.get(key) ?? [])),
    });
  }
  return lanes.sort((a, b) => b.messages - a.messages);
}

type Row = Record<string, unknown>;

function groupByLane(rows: readonly Row[]): Map<string, Row[]> {
  const lanes = new Map<string, Row[]>();
  for (const row of rows) {
    const key = `${row.source_selector},${row.dest_selector}`;
    const group = lanes.get(key);
    if (group) group.push(row);
    else lanes.set(key, [row]);
  }
  return lanes;
}

function countsOf(
  rows: readonly Row[],
): Pick<LaneStatistics, 'messages' | 'byStatus' | 'inFlight' | 'readyForManualExecution'> {
  const byStatus = emptyCounts();
  let messages = 0;
  let inFlight = 0;
  let readyForManualExecution = 0;
  for (const row of rows) {
    const status = statuses[row.status as number] ?? 'SENT';
    const count = Number(row.messages);
    byStatus[status] += count;
    messages += count;
    if (statusRank(status) < statusRank('FAILED')) inFlight += count;
    if (row.ready) readyForManualExecution += count;
  }
  return { messages, byStatus, inFlight, readyForManualExecution };
}

export function emptyCounts(): Record<Status, number> {
  return Object.fromEntries(statuses.map((status) => [status, 0])) as Record<Status, number>;
}

/** Bounded by what is in flight, which an index of its own lists. */
async function countOverdue(read: Read, lane: Row, now: Date, p99Ms: number): Promise<number> {
  const [row] = await read(
    `select count(*)::int as overdue from message
     where source_selector = $1 and dest_selector = $2 and status < 6 and sent_at < $3::timestamptz`,
    [lane.source_selector, lane.dest_selector, new Date(now.getTime() - p99Ms)],
  );
  return (row?.overdue as number | undefined) ?? 0;
}

/** For each on-ramp the ends, what is present, and the first gaps between its runs. */
function readCompleteness(
  read: Read,
  ofLane: string,
  where: readonly unknown[],
  namedRanges: number,
): Promise<Row[]> {
  return read(
    `with run as (
       select source_selector, dest_selector, onramp, from_sequence, to_sequence,
              lead(from_sequence) over (partition by source_selector, dest_selector, onramp
                                        order by from_sequence) as next_from
       from lane_run where ${ofLane}),
     gap as (
       select *, row_number() over (partition by source_selector, dest_selector, onramp
                                    order by from_sequence) as number
       from run where next_from is not null)
     select r.source_selector, r.dest_selector, encode(r.onramp, 'hex') as onramp,
            min(r.from_sequence) as first, max(r.to_sequence) as last,
            sum(r.to_sequence - r.from_sequence + 1) as present,
            (select coalesce(json_agg(json_build_array((g.to_sequence + 1)::text, (g.next_from - 1)::text)
                                      order by g.from_sequence), '[]')
             from gap g where g.number <= $3 and g.source_selector = r.source_selector
               and g.dest_selector = r.dest_selector and g.onramp = r.onramp) as gaps
     from run r group by 1, 2, r.onramp`,
    [...where, namedRanges],
  );
}

function completenessOf(ramp: Row, rows: readonly Row[]): Completeness[] {
  const row = rows.find(({ onramp }) => onramp === ramp.onramp);
  if (!row) return [];
  const { onramp, version } = JSON.parse(ramp.description as string) as Description;
  const present = BigInt(row.present as string);
  const missing = BigInt(row.last as string) - BigInt(row.first as string) + 1n - present;
  return [
    {
      onramp,
      version,
      first: String(row.first),
      last: String(row.last),
      present: present.toString(),
      missing: missing.toString(),
      missingRanges: (row.gaps as [string, string][]).map(([from, to]) => ({ from, to })),
    },
  ];
}

export interface DayCounts {
  /** UTC, `2026-01-31`. */
  readonly day: string;
  readonly byStatus: StatusCounts;
}

/** Messages by the day they were sent, one entry a day that has any, oldest first. */
export async function readDays(
  read: Read,
  since: string,
  lane: LaneEnds = {},
): Promise<readonly DayCounts[]> {
  const rows = await read(
    `select to_char(day, 'YYYY-MM-DD') as day, status, sum(messages)::bigint as messages from day_total
     where day >= $1::date and ($2::bigint is null or source_selector = $2)
       and ($3::bigint is null or dest_selector = $3)
     group by 1, 2 having sum(messages) > 0 order by 1`,
    [
      since,
      lane.sourceChainSelector === undefined ? null : storedSelector(lane.sourceChainSelector),
      lane.destChainSelector === undefined ? null : storedSelector(lane.destChainSelector),
    ],
  );
  const days = new Map<string, Record<Status, number>>();
  for (const row of rows) {
    const counts = days.get(row.day as string) ?? emptyCounts();
    counts[statuses[row.status as number] ?? 'SENT'] += Number(row.messages);
    days.set(row.day as string, counts);
  }
  return [...days].map(([day, byStatus]) => ({ day, byStatus }));
}

export interface DeliverySelection {
  readonly sourceChainSelector: string;
  readonly destChainSelector: string;
  /** Only messages with this finality; null: any. */
  readonly finality: number | null;
  /** Only messages with one of these tokens, as canonical bytes in hex; null: any. */
  readonly sourceTokens: readonly string[] | null;
}

/** How many times are wanted, and how many messages are looked at for them: what bounds the cost. */
export interface DeliveryBounds {
  readonly samples: number;
  readonly candidates: number;
}

/** Delivery times (ms) of the latest successes on a lane, newest first; what a latency is estimated from. */
export async function readRecentDeliveries(
  read: Read,
  lane: DeliverySelection,
  { samples, candidates }: DeliveryBounds,
): Promise<readonly number[]> {
  const rows = await read(
    `select delivery_ms from (
       select message_id, delivery_ms, finality from message
       where source_selector = $1 and dest_selector = $2
       order by sent_at desc, message_id desc limit $3) recent
     where delivery_ms is not null and ($4::bigint is null or finality = $4)
       and ($5::bytea[] is null or exists (
         select from message_token t where t.message_id = recent.message_id and t.source_token = any($5)))
     limit $6`,
    [
      storedSelector(lane.sourceChainSelector),
      storedSelector(lane.destChainSelector),
      candidates,
      lane.finality,
      lane.sourceTokens?.map((token) => Buffer.from(token, 'hex')) ?? null,
      samples,
    ],
  );
  return rows.map((row) => Number(row.delivery_ms));
}

/** By chain selector: how many messages each network in the store has sent and received. */
export type NetworkTotals = ReadonlyMap<string, { readonly sent: number; readonly received: number }>;

export async function readNetworkTotals(read: Read): Promise<NetworkTotals> {
  const rows = await read(
    `select selector, sum(sent)::bigint as sent, sum(received)::bigint as received from (
       select source_selector as selector, messages as sent, 0 as received from lane_total
       union all select dest_selector, 0, messages from lane_total) t group by 1`,
    [],
  );
  return new Map(
    rows.map((row) => [
      selectorOf(row.selector as string),
      { sent: Number(row.sent), received: Number(row.received) },
    ]),
  );
}
