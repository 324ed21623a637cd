// @module-tag slow: fills a lane with a hundred thousand messages
/** What is told of a long lane is found without reading the lane; that holes are named exactly is in api.test.ts and cli.test.ts. */
import type pg from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { statementForms } from '../../src/store/cluster/statement-forms.ts';
import { readLanes, readStats } from '../../src/store/query/lanes.ts';
import { readNetworkTraffic } from '../../src/store/query/network-progress.ts';
import type { Read } from '../../src/store/reads/reads.ts';
import { provideTestDatabase } from '../database.ts';
import { fuji, makeMessage, sepolia } from '../fixtures.ts';
import { connectTo } from '../postgres.ts';

const LANE = 100_000;

const database = provideTestDatabase();
let client: pg.Client;

beforeAll(async () => {
  client = await connectTo(database.url, { options: '-c timezone=UTC' });
});
afterAll(() => client.end());

describe(`a lane of ${LANE.toLocaleString('en')} messages`, () => {
  /** The message and, beside it, the statistics that its write would have kept. */
  const fill = `
    truncate message, message_token, fact, history, lane_total, day_total, lane_delivery, lane_onramp, lane_run;
    insert into message (message_id, sent_at, position, source_selector, dest_selector, sequence_number, delivery_ms,
                         finality, summary_length, status, ready, is_snapshot, sender, receiver, origin, onramp,
                         send_transaction, digest, record)
    select sha256(n::text::bytea), now() - (${LANE} - n) * interval '10 s', n, $1, $2, n,
           case when n % 50 > 0 then 60000 + n % 1000 end, 0, 20, case when n % 50 > 0 then 7 else n % 6 end, false,
           true, '\\x01', '\\x02', '\\x01', $3, sha256(n::text::bytea), substring(sha256(n::text::bytea) for 16), $4
    from generate_series(1, ${LANE}) n where n not between 54321 and 54345 and n <> 77777;
  `;

  beforeAll(async () => {
    const template = makeMessage({ number: 1 });
    const stored = (selector: string) => BigInt.asIntN(64, BigInt(selector)).toString();
    const [truncation = '', insertion = ''] = fill.split(';\n');
    const onramp = Buffer.from(template.onramp.slice(2), 'hex');
    await client.query(truncation);
    const { rows: indexes } = await client.query(
      `select indexname, indexdef from pg_indexes where tablename = 'message' and indexname not like '%_pkey'`,
    );
    await client.query(indexes.map(({ indexname }) => `drop index ${indexname}`).join(';'));
    await client.query(insertion, [
      stored(sepolia.chainSelector),
      stored(fuji.chainSelector),
      onramp,
      JSON.stringify(template),
    ]);
    await client.query(indexes.map(({ indexdef }) => indexdef).join(';'));
    await client.query(`
      insert into lane_total select source_selector, dest_selector, status, ready, count(*) from message group by 1, 2, 3, 4;
      insert into day_total select sent_at::date, source_selector, dest_selector, status, count(*) from message group by 1, 2, 3, 4;
      insert into lane_delivery select source_selector, dest_selector, day, json_agg(pair)
        from (select source_selector, dest_selector, day, unnest(array[bucket, messages]) as pair from (select source_selector, dest_selector, sent_at::date as day, 225 + sequence_number::int % 20 as bucket,
                     count(*) as messages from message where status = 7 group by 1, 2, 3, 4) counted) pairs group by 1, 2, 3;
      insert into lane_run select source_selector, dest_selector, onramp, min(sequence_number), max(sequence_number)
        from (select *, sequence_number - row_number() over (order by sequence_number) as run from message) m
        group by source_selector, dest_selector, onramp, run`);
    const { onramp: text, routerAddress, version, sourceNetworkInfo, destNetworkInfo } = template;
    await client.query(
      `insert into lane_onramp select source_selector, dest_selector, onramp, max(message_id), max(sent_at), $1, count(*),
         (select count(*) from lane_run) from message group by 1, 2, 3`,
      [JSON.stringify({ onramp: text, routerAddress, version, sourceNetworkInfo, destNetworkInfo })],
    );
    await client.query('vacuum analyze');
  });

  test('is told of in the time that a short one takes: messages are read through the in-flight index only', async () => {
    const scans: string[] = [];
    const explained: Read = async (text, values) => {
      const { rows } = await client.query(`explain (format json, analyze) ${text}`, [...values]);
      scans.push(...messageScans(rows[0]['QUERY PLAN'][0].Plan));
      return (await client.query(text, [...values])).rows;
    };
    const now = new Date();
    const { lanes } = await readLanes(statementForms.single, explained, {
      now,
      deliveredSince: '2020-01-01',
      namedRanges: 100,
      limit: 1000,
    });
    expect(lanes[0]).toMatchObject({ inFlight: 2_000, overdue: expect.any(Number) });
    expect(lanes[0]?.overdue).toBeGreaterThan(1_900);
    expect(scans).toEqual(['message_in_flight']);

    scans.length = 0;
    await readStats(explained, { topLanes: 10, firstDay: '2020-01-01', lastDay: '2030-01-01' });
    await readNetworkTraffic(explained);
    expect(scans).toEqual([]);
  });
});

interface Plan {
  readonly 'Node Type': string;
  readonly 'Index Name'?: string;
  readonly 'Relation Name'?: string;
  readonly Plans?: readonly Plan[];
}

/** By which index, or without one, a plan reads the table of messages. */
function messageScans(plan: Plan): string[] {
  const own = plan['Relation Name'] === 'message' ? [plan['Index Name'] ?? plan['Node Type']] : [];
  return [...own, ...(plan.Plans ?? []).flatMap(messageScans)];
}
