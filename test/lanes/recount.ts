/** Statistics counted anew from the messages themselves, in the plainest way there is. */
import type pg from 'pg';
import { deliveryBucket } from '../../src/domain/delivery-times.ts';
import { statusRank } from '../../src/domain/lifecycle.ts';
import type { Message } from '../../src/domain/message.ts';

type Row = Record<string, unknown>;

/** Every statistic as sorted lines of text, one table a key. */
export type Statistics = Readonly<Record<string, readonly string[]>>;

interface OnrampMessages {
  readonly numbers: Set<bigint>;
  newest: Row;
}

export async function recount(client: pg.ClientBase): Promise<Statistics> {
  const { rows } = await client.query(
    `select encode(message_id, 'hex') as id, source_selector, dest_selector, encode(onramp, 'hex') as onramp,
            sequence_number, sent_at, status, ready, delivery_ms, record from message`,
  );
  const counts = { lane_total: new Map(), day_total: new Map(), lane_delivery: new Map() };
  const add = (table: keyof typeof counts, ...key: readonly unknown[]) =>
    counts[table].set(key.join(' '), (counts[table].get(key.join(' ')) ?? 0) + 1);
  const onramps = new Map<string, OnrampMessages>();
  for (const row of rows) {
    const lane = `${row.source_selector} ${row.dest_selector}`;
    const day = row.sent_at.toISOString().slice(0, 10);
    add('lane_total', lane, row.status, row.ready);
    add('day_total', day, lane, row.status);
    if (row.status === statusRank('SUCCESS') && row.delivery_ms !== null) {
      add('lane_delivery', lane, day, deliveryBucket(Number(row.delivery_ms)));
    }
    const key = `${lane} ${row.onramp}`;
    const known = onramps.get(key) ?? { numbers: new Set(), newest: row };
    known.numbers.add(BigInt(row.sequence_number));
    const isNewer =
      row.sent_at > (known.newest.sent_at as Date) ||
      (row.sent_at.getTime() === (known.newest.sent_at as Date).getTime() &&
        row.id > (known.newest.id as string));
    if (isNewer) known.newest = row;
    onramps.set(key, known);
  }
  const runs = [...onramps].map(([key, { numbers, newest }]) => ({
    key,
    newest,
    runs: runsOf(numbers),
    numbers,
  }));
  return {
    ...Object.fromEntries(
      Object.entries(counts).map(([table, map]) => [
        table,
        [...map].map(([key, messages]) => `${key} = ${messages}`).sort(),
      ]),
    ),
    lane_run: runs.flatMap(({ key, runs }) => runs.map(([from, to]) => `${key} ${from}…${to}`)).sort(),
    lane_onramp: runs
      .map(
        ({ key, newest, runs, numbers }) =>
          `${key} ${newest.id} ${(newest.sent_at as Date).toISOString()} ${numbers.size} in ${runs.length} ` +
          describe(JSON.parse(newest.record as string) as Message),
      )
      .sort(),
  };
}

function describe({ onramp, routerAddress, version, sourceNetworkInfo, destNetworkInfo }: Message): string {
  return JSON.stringify({ onramp, routerAddress, version, sourceNetworkInfo, destNetworkInfo });
}

function runsOf(numbers: ReadonlySet<bigint>): [from: bigint, to: bigint][] {
  const runs: [bigint, bigint][] = [];
  for (const number of [...numbers].sort((a, b) => (a < b ? -1 : 1))) {
    const last = runs.at(-1);
    if (last && last[1] + 1n === number) last[1] = number;
    else runs.push([number, number]);
  }
  return runs;
}

/** The same as the store keeps it. */
export async function keptStatistics(client: pg.ClientBase): Promise<Statistics> {
  const lines = async (text: string) =>
    (await client.query(text)).rows.map(({ line }) => line as string).sort();
  const lane = `source_selector || ' ' || dest_selector`;
  return {
    lane_total: await lines(
      `select ${lane} || ' ' || status || ' ' || ready || ' = ' || messages as line from lane_total where messages <> 0`,
    ),
    day_total: await lines(
      `select day || ' ' || ${lane} || ' ' || status || ' = ' || messages as line from day_total where messages <> 0`,
    ),
    lane_delivery: await lines(
      `select ${lane} || ' ' || day || ' ' || bucket || ' = ' || (histogram ->> ordinal::int) as line
       from lane_delivery, json_array_elements_text(histogram) with ordinality as pair (bucket, ordinal)
       where ordinal % 2 = 1`,
    ),
    lane_run: await lines(
      `select ${lane} || ' ' || encode(onramp, 'hex') || ' ' || from_sequence || '…' || to_sequence as line from lane_run`,
    ),
    lane_onramp: await lines(
      `select ${lane} || ' ' || encode(onramp, 'hex') || ' ' || encode(newest_message, 'hex') || ' ' ||
              to_char(last_sent_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') || ' ' || present || ' in ' ||
              runs || ' ' || description as line from lane_onramp`,
    ),
  };
}
