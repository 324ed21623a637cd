/**
 * Statistics that every write keeps up to date, in its own transaction: totals, days, delivery times, and which
 * sequence numbers each lane has. The writer's lock makes reading and then writing them safe.
 */
import type { ClientBase } from 'pg';
import { deliveryBucket } from '../domain/delivery-times.ts';
import { statusRank } from '../domain/lifecycle.ts';

/** What statistics see of a message. */
export interface Tally {
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

/** A message before and after a change; undefined where it was not, or is no more. */
export interface TallyChange {
  readonly before: Tally | undefined;
  readonly after: Tally | undefined;
}

/** What the newest message on an on-ramp says about its lane. */
export interface LaneDescription {
  readonly sourceSelector: string;
  readonly destSelector: string;
  readonly onramp: string;
  readonly sentAt: string;
  readonly description: string;
}

export async function updateStatistics(
  client: ClientBase,
  changes: readonly TallyChange[],
  lanes: readonly LaneDescription[],
): Promise<void> {
  await addCounts(client, 'lane_total', countChanges(changes, laneTotalKey), [
    ['source_selector', 'bigint'],
    ['dest_selector', 'bigint'],
    ['status', 'smallint'],
    ['ready', 'boolean'],
  ]);
  await addCounts(client, 'day_total', countChanges(changes, dayTotalKey), [
    ['day', 'date'],
    ['source_selector', 'bigint'],
    ['dest_selector', 'bigint'],
    ['status', 'smallint'],
  ]);
  await addCounts(client, 'lane_delivery', countChanges(changes, deliveryKey), [
    ['source_selector', 'bigint'],
    ['dest_selector', 'bigint'],
    ['day', 'date'],
    ['bucket', 'smallint'],
  ]);
  await describeLanes(client, lanes);
  await updateRuns(client, changes);
}

// --- Counts ------------------------------------------------------------------------------------------

type CountKey = readonly string[];

function laneTotalKey(tally: Tally): CountKey {
  return [tally.sourceSelector, tally.destSelector, String(tally.status), String(tally.ready)];
}

function dayTotalKey(tally: Tally): CountKey {
  return [tally.day, tally.sourceSelector, tally.destSelector, String(tally.status)];
}

function deliveryKey({ sourceSelector, destSelector, day, status, deliveryMs }: Tally): CountKey | undefined {
  if (status !== statusRank('SUCCESS') || deliveryMs === null) return undefined;
  return [sourceSelector, destSelector, day, String(deliveryBucket(deliveryMs))];
}

/** How much each count changes; what cancels out is left out. */
function countChanges(
  changes: readonly TallyChange[],
  keyOf: (tally: Tally) => CountKey | undefined,
): { key: CountKey; delta: number }[] {
  const deltas = new Map<string, { key: CountKey; delta: number }>();
  const add = (tally: Tally | undefined, amount: number) => {
    const key = tally && keyOf(tally);
    if (!key) return;
    const entry = deltas.get(key.join()) ?? { key, delta: 0 };
    entry.delta += amount;
    deltas.set(key.join(), entry);
  };
  for (const { before, after } of changes) {
    add(before, -1);
    add(after, +1);
  }
  return [...deltas.values()].filter(({ delta }) => delta !== 0);
}

async function addCounts(
  client: ClientBase,
  table: string,
  deltas: readonly { key: CountKey; delta: number }[],
  columns: readonly (readonly [name: string, type: string])[],
): Promise<void> {
  if (deltas.length === 0) return;
  const names = columns.map(([name]) => name).join(', ');
  const arrays = columns.map(([, type], index) => `$${index + 1}::${type}[]`).join(', ');
  await client.query(
    `insert into ${table} as t (${names}, messages)
     select * from unnest(${arrays}, $${columns.length + 1}::bigint[])
     on conflict (${names}) do update set messages = t.messages + excluded.messages`,
    [...columns.map((_, index) => deltas.map(({ key }) => key[index])), deltas.map(({ delta }) => delta)],
  );
}

async function describeLanes(client: ClientBase, lanes: readonly LaneDescription[]): Promise<void> {
  const newest = new Map<string, LaneDescription>();
  for (const lane of lanes) {
    const key = `${lane.sourceSelector},${lane.destSelector},${lane.onramp}`;
    const known = newest.get(key);
    if (!known || known.sentAt < lane.sentAt) newest.set(key, lane);
  }
  if (newest.size === 0) return;
  const rows = [...newest.values()];
  await client.query(
    `insert into lane_onramp as t (source_selector, dest_selector, onramp, last_sent_at, description)
     select source, dest, decode(onramp, 'hex'), sent_at, description
     from unnest($1::bigint[], $2::bigint[], $3::text[], $4::timestamptz[], $5::text[])
       as n (source, dest, onramp, sent_at, description)
     on conflict (source_selector, dest_selector, onramp) do update
       set last_sent_at = excluded.last_sent_at, description = excluded.description
       where excluded.last_sent_at > t.last_sent_at`,
    [
      rows.map((row) => row.sourceSelector),
      rows.map((row) => row.destSelector),
      rows.map((row) => row.onramp),
      rows.map((row) => row.sentAt),
      rows.map((row) => row.description),
    ],
  );
}

// --- Runs of sequence numbers ------------------------------------------------------------------------

interface Run {
  from: bigint;
  to: bigint;
}

interface LaneNumbers {
  readonly lane: Pick<Tally, 'sourceSelector' | 'destSelector' | 'onramp'>;
  readonly added: Set<bigint>;
  readonly removed: Set<bigint>;
}

async function updateRuns(client: ClientBase, changes: readonly TallyChange[]): Promise<void> {
  for (const { lane, added, removed } of numbersByLane(changes)) {
    const where = [lane.sourceSelector, lane.destSelector, Buffer.from(lane.onramp, 'hex')];
    const gone = removed.size > 0 ? await trulyGone(client, where, removed) : removed;
    const affected = contiguous([...added, ...gone]);
    const touching = await takeTouchingRuns(client, where, affected);
    await insertRuns(
      client,
      where,
      withoutNumbers(mergeRuns([...touching, ...contiguous([...added])]), gone),
    );
  }
}

function numbersByLane(changes: readonly TallyChange[]): Iterable<LaneNumbers> {
  const lanes = new Map<string, LaneNumbers>();
  const numbersOf = (tally: Tally): LaneNumbers => {
    const key = `${tally.sourceSelector},${tally.destSelector},${tally.onramp}`;
    const numbers = lanes.get(key) ?? { lane: tally, added: new Set(), removed: new Set() };
    lanes.set(key, numbers);
    return numbers;
  };
  for (const { before, after } of changes) {
    const isSame =
      before && after && before.sequenceNumber === after.sequenceNumber && before.onramp === after.onramp;
    if (isSame) continue;
    if (before) numbersOf(before).removed.add(BigInt(before.sequenceNumber));
    if (after) numbersOf(after).added.add(BigInt(after.sequenceNumber));
  }
  return lanes.values();
}

/** A number that another message still has is not missing. */
async function trulyGone(
  client: ClientBase,
  where: readonly unknown[],
  numbers: ReadonlySet<bigint>,
): Promise<Set<bigint>> {
  const { rows } = await client.query(
    `select sequence_number from message
     where source_selector = $1 and dest_selector = $2 and onramp = $3 and sequence_number = any($4::numeric[])`,
    [...where, [...numbers].map(String)],
  );
  const present = new Set(rows.map((row) => BigInt(row.sequence_number)));
  return new Set([...numbers].filter((number) => !present.has(number)));
}

function contiguous(numbers: readonly bigint[]): Run[] {
  return mergeRuns(numbers.map((number) => ({ from: number, to: number })));
}

/** Overlapping and adjacent runs become one. */
function mergeRuns(runs: readonly Run[]): Run[] {
  const merged: Run[] = [];
  for (const run of [...runs].sort((a, b) => (a.from < b.from ? -1 : a.from > b.from ? 1 : 0))) {
    const last = merged.at(-1);
    if (last && run.from <= last.to + 1n) last.to = run.to > last.to ? run.to : last.to;
    else merged.push({ ...run });
  }
  return merged;
}

function withoutNumbers(runs: readonly Run[], gone: ReadonlySet<bigint>): Run[] {
  if (gone.size === 0) return [...runs];
  return runs.flatMap((run) => {
    const pieces: Run[] = [];
    let from = run.from;
    for (const number of [...gone].sort((a, b) => (a < b ? -1 : 1))) {
      if (number < from || number > run.to) continue;
      if (number > from) pieces.push({ from, to: number - 1n });
      from = number + 1n;
    }
    if (from <= run.to) pieces.push({ from, to: run.to });
    return pieces;
  });
}

/** Takes out the stored runs that touch these: those that begin within reach, and the one that begins before. */
async function takeTouchingRuns(
  client: ClientBase,
  where: readonly unknown[],
  affected: readonly Run[],
): Promise<Run[]> {
  const { rows } = await client.query(
    `delete from lane_run r
     using (
       select distinct t.from_sequence
       from unnest($4::numeric[], $5::numeric[]) as a (lower_end, upper_end)
       cross join lateral (
         (select from_sequence from lane_run
          where source_selector = $1 and dest_selector = $2 and onramp = $3
            and from_sequence between a.lower_end - 1 and a.upper_end + 1)
         union all
         (select from_sequence from (
            select from_sequence, to_sequence from lane_run
            where source_selector = $1 and dest_selector = $2 and onramp = $3
              and from_sequence < a.lower_end - 1
            order by from_sequence desc limit 1) before
          where to_sequence >= a.lower_end - 1)) t) touched
     where r.source_selector = $1 and r.dest_selector = $2 and r.onramp = $3
       and r.from_sequence = touched.from_sequence
     returning r.from_sequence, r.to_sequence`,
    [...where, affected.map(({ from }) => from.toString()), affected.map(({ to }) => to.toString())],
  );
  return rows.map((row) => ({ from: BigInt(row.from_sequence), to: BigInt(row.to_sequence) }));
}

async function insertRuns(
  client: ClientBase,
  where: readonly unknown[],
  runs: readonly Run[],
): Promise<void> {
  if (runs.length === 0) return;
  await client.query(
    `insert into lane_run (source_selector, dest_selector, onramp, from_sequence, to_sequence)
     select $1, $2, $3, * from unnest($4::numeric[], $5::numeric[])`,
    [...where, runs.map(({ from }) => from.toString()), runs.map(({ to }) => to.toString())],
  );
}
