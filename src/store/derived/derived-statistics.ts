/** Check of rows that are derived from many messages: counts, runs of sequence numbers, lanes, delivery times. */
import type { ClientBase } from 'pg';
import { addFlatHistogram, deliveryBucket, flatHistogram } from '../../domain/delivery-times.ts';
import { statusRank } from '../../domain/lifecycle.ts';
import type { Message } from '../../domain/message.ts';
import { describeLane, type LaneDay, readLaneDays, writeLaneDays } from '../write/statistics.ts';

/** A table that one statement over all messages can rebuild. */
interface CountedTable {
  readonly table: string;
  readonly key: readonly string[];
  readonly value: readonly string[];
  /** SQL of all correct rows: the key, then the value. */
  readonly expected: string;
  /** SQL condition of rows without information, which may exist or not. */
  readonly empty?: string;
}

const LANE = ['source_selector', 'dest_selector'] as const;
const ONRAMP = [...LANE, 'onramp'] as const;
const [lane, onramp] = [LANE.join(', '), ONRAMP.join(', ')];

const RUNS = `select ${onramp}, min(sequence_number) as from_sequence, max(sequence_number) as to_sequence,
    count(*) as present
  from (select ${onramp}, sequence_number,
          sequence_number - row_number() over (partition by ${onramp} order by sequence_number) as run
        from (select distinct ${onramp}, sequence_number from message) numbers) numbered
  group by ${onramp}, run`;

export const countedTables: readonly CountedTable[] = [
  {
    table: 'lane_total',
    key: [...LANE, 'status', 'ready'],
    value: ['messages'],
    expected: `select ${lane}, status, ready, count(*) as messages from message group by ${lane}, status, ready`,
    empty: 'messages = 0',
  },
  {
    table: 'day_total',
    key: ['day', ...LANE, 'status'],
    value: ['messages'],
    expected: `select (sent_at at time zone 'UTC')::date as day, ${lane}, status, count(*) as messages
               from message group by 1, ${lane}, status`,
    empty: 'messages = 0',
  },
  {
    table: 'lane_run',
    key: [...ONRAMP, 'from_sequence'],
    value: ['to_sequence'],
    expected: `select ${onramp}, from_sequence, to_sequence from (${RUNS}) runs`,
  },
  {
    table: 'lane_onramp',
    key: ONRAMP,
    value: ['newest_message', 'last_sent_at', 'present', 'runs'],
    expected: `select ${onramp}, newest_message, last_sent_at, present, runs
      from (select distinct on (${onramp}) ${onramp}, message_id as newest_message, sent_at as last_sent_at
            from message order by ${onramp}, sort_key desc, message_id desc) newest
      join (select ${onramp}, sum(present) as present, count(*) as runs from (${RUNS}) runs group by ${onramp}) counted
        using (${onramp})`,
  },
];

/** How many rows of a table are wrong, missing or superfluous. */
export async function countDifferences(client: ClientBase, part: CountedTable): Promise<number> {
  const { table, key, value, expected, empty = 'false' } = part;
  const { rows } = await client.query(
    `select count(*) from (${expected}) e
     full join (select * from ${table} where not (${empty})) k using (${key.join(', ')})
     where (${prefixed('e', value)}) is distinct from (${prefixed('k', value)})`,
  );
  return Number(rows[0].count);
}

/** Writes the rows that differ, in the transaction of the caller, which holds the writers' lock; returns their number. */
export async function repairTable(client: ClientBase, part: CountedTable): Promise<number> {
  const { table, key, value, expected, empty = 'false' } = part;
  const names = [...key, ...value].join(', ');
  // On-ramps that are new here get their description from `compareDescriptions`.
  const [extra, extraValue] = table === 'lane_onramp' ? [', description', `, ''`] : ['', ''];
  const { rows } = await client.query(
    `with expected as materialized (${expected}),
     gone as (
       delete from ${table} k where not (${empty})
         and not exists (select from expected e where (${prefixed('e', key)}) = (${prefixed('k', key)}))
       returning 1),
     put as (
       insert into ${table} as k (${names}${extra}) select ${names}${extraValue} from expected
       on conflict (${key.join(', ')}) do update set ${value.map((name) => `${name} = excluded.${name}`).join(', ')}
       where (${prefixed('k', value)}) is distinct from (${prefixed('excluded', value)})
       returning 1)
     select (select count(*) from gone) + (select count(*) from put) as count`,
  );
  return Number(rows[0].count);
}

function prefixed(alias: string, names: readonly string[]): string {
  return names.map((name) => `${alias}.${name}`).join(', ');
}

/** Counts descriptions of on-ramps that are not those of their newest message; with `repair` corrects them. */
export async function compareDescriptions(client: ClientBase, repair: boolean): Promise<number> {
  const { rows } = await client.query(
    `select ${prefixed('o', ONRAMP)}, description, record
     from lane_onramp o join message m on m.message_id = o.newest_message`,
  );
  let count = 0;
  for (const { source_selector, dest_selector, onramp: address, description, record } of rows) {
    const expected = describeLane(JSON.parse(record) as Message);
    if (description === expected) continue;
    count++;
    if (!repair) continue;
    await client.query(
      'update lane_onramp set description = $4 where source_selector = $1 and dest_selector = $2 and onramp = $3',
      [source_selector, dest_selector, address, expected],
    );
  }
  return count;
}

// --- Delivery times -----------------------------------------------------------------------------------

const ROWS_PER_FETCH = 10_000;
const DAYS_PER_BATCH = 500;
const IS_FILLED = 'json_array_length(histogram) > 0';
const IS_DELIVERED = `status = ${statusRank('SUCCESS')} and delivery_ms is not null`;

/**
 * Counts histograms of delivery times that are wrong; with `repair` corrects them. Reads the days one after the other, so
 * that memory does not grow with the store.
 */
export async function compareDeliveries(client: ClientBase, repair: boolean): Promise<number> {
  let count = 0;
  const { rows: stored } = await client.query(
    `select count(*)::int as days from lane_delivery where ${IS_FILLED}`,
  );
  let superfluous: number = stored[0].days;
  let days: (LaneDay & { readonly histogram: Map<number, number> })[] = [];
  const flush = async () => {
    const keys = days.map(({ key }) => key);
    const known = await readLaneDays(client, keys);
    const different = days.filter(
      ({ key, histogram }) => inOrder(known.get(key.join()) ?? new Map()) !== inOrder(histogram),
    );
    if (repair) await writeLaneDays(client, different);
    count += different.length;
    superfluous -= [...known.values()].filter(({ size }) => size > 0).length;
    days = [];
  };
  await client.query(
    `declare delivered no scroll cursor for
     select source_selector, dest_selector, ((sent_at at time zone 'UTC')::date)::text as day,
            delivery_ms::float8 as ms, count(*)::float8 as count
     from message where ${IS_DELIVERED} group by 1, 2, 3, 4 order by 1, 2, 3`,
  );
  for (;;) {
    const { rows } = await client.query(`fetch ${ROWS_PER_FETCH} from delivered`);
    if (rows.length === 0) break;
    for (const { source_selector: source, dest_selector: dest, day, ms, count: times } of rows) {
      let current = days.at(-1);
      if (current?.key.join() !== [source, dest, day].join()) {
        if (days.length >= DAYS_PER_BATCH) await flush();
        current = { key: [source, dest, day], histogram: new Map() };
        days.push(current);
      }
      addFlatHistogram(current.histogram, [deliveryBucket(ms), times]);
    }
  }
  await flush();
  await client.query('close delivered');
  // Histograms of days on which the lane delivered nothing.
  if (repair && superfluous > 0)
    await client.query(
      `delete from lane_delivery where ${IS_FILLED} and (source_selector, dest_selector, day) not in (
         select source_selector, dest_selector, (sent_at at time zone 'UTC')::date from message
         where ${IS_DELIVERED} group by 1, 2, 3)`,
    );
  return count + superfluous;
}

function inOrder(histogram: ReadonlyMap<number, number>): string {
  return JSON.stringify(flatHistogram(new Map([...histogram].sort(([a], [b]) => a - b))));
}
