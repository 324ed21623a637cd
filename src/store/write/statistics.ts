/**
 * Statistics, updated by every write in its own transaction: totals, days, delivery times, and which sequence numbers each
 * lane has. The writers' lock makes it safe to read a row and then write it.
 */
import type { ClientBase } from 'pg';
import { addFlatHistogram, deliveryBucket, flatHistogram } from '../../domain/delivery-times.ts';
import { statusRank } from '../../domain/lifecycle.ts';
import type { Message } from '../../domain/message.ts';
import { groupBy } from '../group-by.ts';
import { columnsOf } from '../sql.ts';
import { messageIdArray } from './message-row.ts';

/** The fields of a message that statistics count. */
export interface CountedMessage {
  readonly sourceSelector: string;
  readonly destSelector: string;
  readonly onramp: string;
  readonly sequenceNumber: string;
  /** The UTC day of sending, `2026-01-31`. */
  readonly day: string;
  readonly status: number;
  readonly ready: boolean;
  readonly deliveryMs: number | null;
}

/** A message before and after a change; undefined where it did not exist, or was removed. */
export interface CountedChange {
  readonly messageId: string;
  readonly before: CountedMessage | undefined;
  readonly after: CountedMessage | undefined;
}

/** A message that may be the newest of its lane. */
export interface LaneMessage {
  readonly row: LaneKey & { readonly messageId: string; readonly sentAt: string };
  readonly message: Message;
}

/** The part of a record that describes its lane, as JSON. */
export function describeLane(message: Message): string {
  const { onramp, routerAddress, version, sourceNetworkInfo, destNetworkInfo } = message;
  return JSON.stringify({ onramp, routerAddress, version, sourceNetworkInfo, destNetworkInfo });
}

/** Updates the statistics after the changes were written to `message`. */
export async function updateStatistics(
  client: ClientBase,
  changes: readonly CountedChange[],
  messages: readonly LaneMessage[],
): Promise<void> {
  const lane = { source_selector: 'bigint', dest_selector: 'bigint' };
  await addCounts(
    client,
    'lane_total',
    { ...lane, status: 'smallint', ready: 'boolean' },
    countChanges(changes, (counted) => [...laneOf(counted), counted.status, counted.ready]),
  );
  await addCounts(
    client,
    'day_total',
    { day: 'date', ...lane, status: 'smallint' },
    countChanges(changes, (counted) => [counted.day, ...laneOf(counted), counted.status]),
  );
  await addDeliveries(client, countChanges(changes, deliveryKey));
  await redescribeLanes(client, changes);
  await describeLanes(client, messages);
  await updateRuns(client, changes);
}

// --- Counts ------------------------------------------------------------------------------------------

const laneOf = ({ sourceSelector, destSelector }: CountedMessage) => [sourceSelector, destSelector];

/** The columns of a count's key. */
type CountKey = readonly (string | number | boolean)[];

function deliveryKey(counted: CountedMessage): CountKey | undefined {
  if (counted.status !== SUCCESS || counted.deliveryMs === null) return undefined;
  return [...laneOf(counted), counted.day, deliveryBucket(counted.deliveryMs)];
}

const SUCCESS = statusRank('SUCCESS');

interface CountChange {
  readonly key: readonly string[];
  readonly delta: number;
}

/** By how much each count changes; changes of 0 are left out. */
function countChanges(
  changes: readonly CountedChange[],
  keyOf: (counted: CountedMessage) => CountKey | undefined,
): CountChange[] {
  const deltas = new Map<string, number>();
  const add = (counted: CountedMessage | undefined, amount: number) => {
    const key = counted && keyOf(counted)?.join();
    if (key !== undefined) deltas.set(key, (deltas.get(key) ?? 0) + amount);
  };
  for (const { before, after } of changes) {
    add(before, -1);
    add(after, +1);
  }
  return [...deltas]
    .filter(([, delta]) => delta !== 0)
    .map(([key, delta]) => ({ key: key.split(','), delta }));
}

async function addCounts(
  client: ClientBase,
  table: string,
  columns: Readonly<Record<string, string>>,
  deltas: readonly CountChange[],
): Promise<void> {
  if (deltas.length === 0) return;
  const names = Object.keys(columns);
  const arrays = [...Object.values(columns), 'bigint'].map((type, index) => `$${index + 1}::${type}[]`);
  await client.query(
    `insert into ${table} as t (${names}, messages) select * from unnest(${arrays})
     on conflict (${names}) do update set messages = t.messages + excluded.messages`,
    [...names.map((_, index) => deltas.map(({ key }) => key[index])), deltas.map(({ delta }) => delta)],
  );
}

/** Adds to the histograms of the days that changed. A lane's day is one row. */
async function addDeliveries(client: ClientBase, deltas: readonly CountChange[]): Promise<void> {
  if (deltas.length === 0) return;
  const keys = new Map(deltas.map(({ key }) => [key.slice(0, 3).join(), key.slice(0, 3)]));
  const stored = await readLaneDays(client, [...keys.values()]);
  const days = new Map([...keys].map(([id, key]) => [id, { key, histogram: stored.get(id) ?? new Map() }]));
  for (const { key, delta } of deltas) {
    const day = days.get(key.slice(0, 3).join());
    if (day) addFlatHistogram(day.histogram, [Number(key[3]), delta]);
  }
  await writeLaneDays(client, [...days.values()]);
}

/** A row of `lane_delivery`. */
export interface LaneDay {
  /** Source, destination and day. */
  readonly key: readonly string[];
  readonly histogram: ReadonlyMap<number, number>;
}

const laneDayArrays = (keys: readonly (readonly string[])[]) =>
  [0, 1, 2].map((index) => keys.map((key) => key[index]));

/** The histograms that these keys have, by the key joined with commas. */
export async function readLaneDays(client: ClientBase, keys: readonly LaneDay['key'][]) {
  const { rows } = await client.query(
    `select source_selector, dest_selector, day::text as day, histogram
     from unnest($1::bigint[], $2::bigint[], $3::date[]) as changed (source, dest, on_day)
     join lane_delivery on source_selector = source and dest_selector = dest and day = on_day`,
    laneDayArrays(keys),
  );
  return new Map(
    rows.map((row) => {
      const histogram = new Map<number, number>();
      addFlatHistogram(histogram, row.histogram);
      return [[row.source_selector, row.dest_selector, row.day].join(), histogram];
    }),
  );
}

export async function writeLaneDays(client: ClientBase, days: readonly LaneDay[]): Promise<void> {
  if (days.length === 0) return;
  await client.query(
    `insert into lane_delivery (source_selector, dest_selector, day, histogram)
     select * from unnest($1::bigint[], $2::bigint[], $3::date[], $4::json[])
     on conflict (source_selector, dest_selector, day) do update set histogram = excluded.histogram`,
    [
      ...laneDayArrays(days.map(({ key }) => key)),
      days.map(({ histogram }) => JSON.stringify(flatHistogram(histogram))),
    ],
  );
}

// --- Descriptions of lanes ---------------------------------------------------------------------------

/**
 * Finds the newest message of a lane again after the one before was removed, or turned out to have been sent earlier or on
 * another lane. Reorganisations do that, at the head of a lane, where the index finds the next one quickly.
 */
async function redescribeLanes(client: ClientBase, changes: readonly CountedChange[]): Promise<void> {
  const changed = changes.filter(({ before }) => before).map(({ messageId }) => messageId);
  if (changed.length === 0) return;
  const { rows: lanes } = await client.query(
    'select source_selector, dest_selector, onramp from lane_onramp where newest_message = any($1)',
    [messageIdArray(changed)],
  );
  // Statements over one table each: a cluster cannot join a lane with the newest of its messages.
  const ofLane = 'source_selector = $1 and dest_selector = $2 and onramp = $3';
  for (const { source_selector, dest_selector, onramp } of lanes) {
    const lane = [source_selector, dest_selector, onramp];
    const { rows: newest } = await client.query(
      `select message_id, sent_at, record from message where ${ofLane} order by sort_key desc, message_id desc limit 1`,
      lane,
    );
    if (newest[0] === undefined) await client.query(`delete from lane_onramp where ${ofLane}`, lane);
    else
      await client.query(
        `update lane_onramp set newest_message = $4, last_sent_at = $5, description = $6 where ${ofLane}`,
        [...lane, newest[0].message_id, newest[0].sent_at, describeLane(JSON.parse(newest[0].record))],
      );
  }
}

async function describeLanes(client: ClientBase, messages: readonly LaneMessage[]): Promise<void> {
  const newest = new Map<string, LaneMessage>();
  for (const message of messages) {
    const key = laneKey(message.row);
    const known = newest.get(key);
    if (!known || isOlder(known, message)) newest.set(key, message);
  }
  if (newest.size === 0) return;
  const rows = [...newest.values()].map(({ row }) => row);
  await client.query(
    `insert into lane_onramp as t (source_selector, dest_selector, onramp, newest_message, last_sent_at, description)
     select source, dest, decode(onramp, 'hex'), decode(message_id, 'hex'), sent_at, description
     from unnest($1::bigint[], $2::bigint[], $3::text[], $4::text[], $5::timestamptz[], $6::text[])
       as n (source, dest, onramp, message_id, sent_at, description)
     on conflict (source_selector, dest_selector, onramp) do update
       set newest_message = excluded.newest_message, last_sent_at = excluded.last_sent_at,
           description = excluded.description
       where (excluded.last_sent_at, excluded.newest_message) >= (t.last_sent_at, t.newest_message)`,
    [
      ...columnsOf(rows, ...LANE, 'messageId', 'sentAt'),
      [...newest.values()].map(({ message }) => describeLane(message)),
    ],
  );
}

/** In the order of a search: by send time, then by id. Stored times sort as text. */
function isOlder({ row: one }: LaneMessage, { row: other }: LaneMessage): boolean {
  return one.sentAt < other.sentAt || (one.sentAt === other.sentAt && one.messageId < other.messageId);
}

// --- Runs of sequence numbers ------------------------------------------------------------------------

/** Each on-ramp has its own sequence numbers. */
type LaneKey = Pick<CountedMessage, (typeof LANE)[number]>;
const LANE = ['sourceSelector', 'destSelector', 'onramp'] as const;

function laneKey({ sourceSelector, destSelector, onramp }: LaneKey): string {
  return `${sourceSelector},${destSelector},${onramp}`;
}

async function updateRuns(client: ClientBase, changes: readonly CountedChange[]): Promise<void> {
  const moved = changes.filter(
    ({ before, after }) =>
      !before ||
      !after ||
      before.sequenceNumber !== after.sequenceNumber ||
      laneKey(before) !== laneKey(after),
  );
  const added = moved.flatMap(({ after }) => after ?? []);
  const removed = await withoutNumbersInUse(
    client,
    moved.flatMap(({ before }) => before ?? []),
  );
  const runs = [...runsOf(added, true), ...runsOf(removed, false)];
  if (runs.length === 0) return;
  await client.query(UPDATE_RUNS, columnsOf(runs, ...LANE, 'from', 'to', 'isPresent'));
}

/** Numbers of lanes as runs, both ends included: a batch has many numbers and, as a rule, few runs. */
function runsOf(counted: readonly CountedMessage[], isPresent: boolean) {
  return [...groupBy(counted, laneKey).values()].flatMap((ofLane) => {
    const numbers = ofLane.map(({ sequenceNumber }) => BigInt(sequenceNumber));
    const runs: { readonly from: bigint; to: bigint }[] = [];
    for (const number of numbers.sort((a, b) => (a < b ? -1 : Number(a > b)))) {
      const run = runs.at(-1);
      if (run && number <= run.to + 1n) run.to = number;
      else runs.push({ from: number, to: number });
    }
    const { sourceSelector, destSelector, onramp } = ofLane[0] as CountedMessage;
    return runs.map((run) => ({ sourceSelector, destSelector, onramp, ...run, isPresent }));
  });
}

/** Leaves out numbers that another message still has. */
async function withoutNumbersInUse(client: ClientBase, removed: readonly CountedMessage[]) {
  if (removed.length === 0) return removed;
  const { rows } = await client.query(
    `select n.source as "sourceSelector", n.dest as "destSelector", n.onramp, n.number
     from unnest($1::bigint[], $2::bigint[], $3::text[], $4::numeric[]) as n (source, dest, onramp, number)
     join message m on m.source_selector = n.source and m.dest_selector = n.dest
       and m.onramp = decode(n.onramp, 'hex') and m.sequence_number = n.number`,
    columnsOf(removed, ...LANE, 'sequenceNumber'),
  );
  const inUse = new Set(rows.map((row) => `${laneKey(row)},${row.number}`));
  return removed.filter((counted) => !inUse.has(`${laneKey(counted)},${counted.sequenceNumber}`));
}

/**
 * Replaces the runs that overlap or adjoin the changed numbers (those that begin among them, and the one that begins before
 * and reaches them), for any number of lanes. A key may be deleted and inserted again: `after` reads all of `touched` first.
 */
const UPDATE_RUNS = `with changed as (
    select source, dest, decode(ramp, 'hex') as ramp, first, last, is_present
    from unnest($1::bigint[], $2::bigint[], $3::text[], $4::numeric[], $5::numeric[], $6::boolean[])
      as n (source, dest, ramp, first, last, is_present)),
  touched as (
    delete from lane_run r
    using (
      select distinct source, dest, ramp, t.from_sequence
      from (select source, dest, ramp, lower(span) as lower_end, upper(span) as upper_end
            from (select source, dest, ramp, unnest(range_agg(numrange(first - 1, last + 1, '[]'))) as span
                  from changed group by source, dest, ramp) spans) a
      cross join lateral (
        (select from_sequence from lane_run
         where source_selector = source and dest_selector = dest and onramp = ramp
           and from_sequence between a.lower_end and a.upper_end)
        union all
        (select from_sequence from (
           select from_sequence, to_sequence from lane_run
           where source_selector = source and dest_selector = dest and onramp = ramp
             and from_sequence < a.lower_end
           order by from_sequence desc limit 1) before
         where to_sequence >= a.lower_end)) t) found
    where r.source_selector = found.source and r.dest_selector = found.dest and r.onramp = found.ramp
      and r.from_sequence = found.from_sequence
    returning source, dest, ramp, numrange(r.from_sequence, r.to_sequence + 1) as run),
  after as (
    select source, dest, ramp, unnest(
        coalesce(range_agg(run) filter (where is_present), '{}')
          - coalesce(range_agg(run) filter (where not is_present), '{}')) as run
    from (select source, dest, ramp, run, true as is_present from touched
          union all select source, dest, ramp, numrange(first, last + 1), is_present from changed) piece
    group by source, dest, ramp),
  inserted as (
    insert into lane_run (source_selector, dest_selector, onramp, from_sequence, to_sequence)
    select source, dest, ramp, lower(run), upper(run) - 1 from after)
  update lane_onramp set present = lane_onramp.present + n.present, runs = lane_onramp.runs + n.runs
  from (select source, dest, ramp, sum(present) as present, sum(runs) as runs
        from (select source, dest, ramp, lower(run) - upper(run) as present, -1 as runs from touched
              union all select source, dest, ramp, upper(run) - lower(run), 1 from after) each
        group by source, dest, ramp) n
  where source_selector = source and dest_selector = dest and onramp = ramp`;
