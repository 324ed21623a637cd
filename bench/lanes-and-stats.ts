/**
 * Do lanes and statistics answer in the same time whatever the store holds?
 *
 * Two stores in one PostgreSQL, one with a hundred times the messages of the other, each behind a real server.
 * Requests alternate between them, so that whatever else the machine does falls on both; what counts is the ratio.
 *
 *     npm run bench:statistics            # 10,000 beside 1,000,000 messages
 */
import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import pg from 'pg';
import { pino } from 'pino';
import { createServer } from '../src/api/server/server.ts';
import { addFlatHistogram, deliveryBucket, flatHistogram } from '../src/domain/delivery-times.ts';
import { networks } from '../src/domain/networks/networks.ts';
import { knownSchema } from '../src/store/schema/migrate.ts';
import { declaredSchema } from '../src/store/schema/writer-guard.ts';
import { openEmbedded } from '../src/store/server/embedded.ts';
import { openStore } from '../src/store/store.ts';
import { machineFacts, measuredOn, writeResults } from './results-file.ts';

const SIZES = [10_000, 1_000_000] as const;
const LANES = 30;
const DAYS = 30;
const ROUNDS = 200;
const PATHS = ['/v2/lanes', '/v2/stats', '/v2/networks?active=true', '/v2/messages?limit=20'];

const dataFolder = await mkdtemp(path.join(os.tmpdir(), 'lanescan-bench-'));
const embedded = await openEmbedded({ dataFolder });
try {
  const services = [];
  for (const size of SIZES) services.push(await serve(size));
  const table = await measure(services.map(({ url }) => url));
  print(table);
  for (const { close } of services) await close();
} finally {
  await embedded.leave();
  await rm(dataFolder, { recursive: true, force: true });
}

async function serve(size: number): Promise<{ url: string; close: () => Promise<void> }> {
  const name = `bench_${size}`;
  await withClient('postgres', (client) => client.query(`create database ${name}`));
  const { host, user } = embedded.connection;
  const store = await openStore({
    place: { url: `postgresql:///${name}?host=${encodeURIComponent(host)}&user=${user}` },
  });
  console.error(`Making ${size.toLocaleString('en')} messages`);
  await withClient(name, (client) => fill(client, size));
  const app = createServer({ store, version: 'bench', log: pino({ level: 'silent' }) });
  const url = await app.listen({ port: 0, host: '127.0.0.1' });
  return {
    url,
    close: async () => {
      await app.close();
      await store.close();
    },
  };
}

/** Rows as an import would leave them: the messages, and the statistics that writing them keeps. */
async function fill(client: pg.Client, size: number): Promise<void> {
  const lanes = Array.from({ length: LANES }, (_, index) => {
    const source = networks[index * 3];
    const dest = networks[index * 3 + 1];
    if (!source || !dest) throw new Error('The table of networks is shorter than the bench needs');
    return { source, dest };
  });
  const info = ({ name, selector, chainId, family, displayName }: (typeof networks)[number]) => ({
    name,
    chainSelector: selector,
    chainId,
    chainFamily: family,
    displayName,
  });
  const stored = (selector: string) => BigInt.asIntN(64, BigInt(selector)).toString();
  await client.query(
    'create table lane_of (lane int primary key, source bigint, dest bigint, onramp bytea, description text)',
  );
  for (const [lane, { source, dest }] of lanes.entries()) {
    const description = {
      onramp: `0x${'11'.repeat(20)}`,
      routerAddress: null,
      version: '1.6.0',
      sourceNetworkInfo: info(source),
      destNetworkInfo: info(dest),
    };
    await client.query('insert into lane_of values ($1, $2, $3, $4, $5)', [
      lane,
      stored(source.selector),
      stored(dest.selector),
      Buffer.alloc(20, lane + 1),
      JSON.stringify(description),
    ]);
  }
  const { rows: indexes } = await client.query(
    `select indexname, indexdef from pg_indexes where tablename = 'message' and indexname not like '%_pkey'`,
  );
  await client.query(indexes.map(({ indexname }) => `drop index ${indexname}`).join(';'));
  // One in five hundred is in flight on either store's scale: what is under way does not grow with the past.
  await client.query(
    `insert into message (message_id, sent_at, position, source_selector, dest_selector, sequence_number, delivery_ms,
                          finality, summary_length, status, ready, is_snapshot, sender, receiver, origin, onramp,
                          send_transaction, digest, record)
     select sha256(n::text::bytea), now() - (${size} - n) * (interval '${DAYS} days' / ${size}), n, l.source, l.dest,
            n / ${LANES} + 1, case when n <= ${size} - 20 then 20000 + n % 100000 end, 0, 20,
            case when n <= ${size} - 20 then 7 else 2 end, false, true,
            substring(sha256((n % 500)::text::bytea) for 20), substring(sha256((n % 900)::text::bytea) for 20),
            substring(sha256((n % 500)::text::bytea) for 20), l.onramp, sha256(n::text::bytea),
            substring(sha256(n::text::bytea) for 16),
            '{"messageId":"0x' || encode(sha256(n::text::bytea), 'hex') || '","sendTimestamp":"' ||
              to_char(now() - (${size} - n) * (interval '${DAYS} days' / ${size}), 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') ||
              '","padding":"' || repeat('x', 1800) || '"}'
     from generate_series(1, ${size}) n join lane_of l on l.lane = n % ${LANES}`,
  );
  await client.query(indexes.map(({ indexdef }) => indexdef).join(';'));
  await client.query(`
    insert into lane_total select source_selector, dest_selector, status, ready, count(*) from message group by 1, 2, 3, 4;
    insert into day_total select sent_at::date, source_selector, dest_selector, status, count(*) from message group by 1, 2, 3, 4;
    insert into lane_run select source_selector, dest_selector, onramp, min(sequence_number), max(sequence_number)
      from message group by 1, 2, 3;
    insert into lane_onramp (source_selector, dest_selector, onramp, last_sent_at, description, newest_message, present, runs)
      select l.source, l.dest, l.onramp, newest.sent_at, l.description, newest.message_id, total.messages, 1
      from lane_of l
      cross join lateral (select sent_at, message_id from message
                          where source_selector = l.source and dest_selector = l.dest
                          order by sent_at desc, message_id desc limit 1) newest
      cross join lateral (select sum(messages) as messages from lane_total
                          where source_selector = l.source and dest_selector = l.dest) total;`);
  const { rows } = await client.query(
    `select source_selector, dest_selector, sent_at::date::text as day, delivery_ms, count(*)::int as messages
     from message where status = 7 group by 1, 2, 3, 4`,
  );
  const days = new Map<string, { lane: string[]; histogram: Map<number, number> }>();
  for (const row of rows) {
    const lane = [row.source_selector, row.dest_selector, row.day];
    const histogram = days.get(lane.join())?.histogram ?? new Map<number, number>();
    addFlatHistogram(histogram, [deliveryBucket(Number(row.delivery_ms)), row.messages]);
    days.set(lane.join(), { lane, histogram });
  }
  const values = [...days.values()].map(({ lane, histogram }) => [
    ...lane,
    JSON.stringify(flatHistogram(histogram)),
  ]);
  await client.query(
    'insert into lane_delivery select * from unnest($1::bigint[], $2::bigint[], $3::date[], $4::json[])',
    [0, 1, 2, 3].map((column) => values.map((row) => row[column])),
  );
  await client.query('vacuum analyze');
}

interface Measured {
  readonly path: string;
  readonly medianMs: readonly number[];
}

async function measure(urls: readonly string[]): Promise<Measured[]> {
  const table: Measured[] = [];
  for (const target of PATHS) {
    const times = urls.map((): number[] => []);
    for (let round = 0; round < ROUNDS; round++) {
      for (const [index, url] of urls.entries()) {
        const began = performance.now();
        const answer = await fetch(`${url}${target}`);
        await answer.arrayBuffer();
        if (answer.status !== 200) throw new Error(`${target} answered ${answer.status}`);
        times[index]?.push(performance.now() - began);
      }
    }
    table.push({ path: target, medianMs: times.map(median) });
  }
  return table;
}

function median(times: number[]): number {
  return times.sort((a, b) => a - b)[times.length >> 1] ?? 0;
}

function print(table: readonly Measured[]): void {
  const [small, large] = SIZES.map((size) => size.toLocaleString('en'));
  console.log(
    `${'median of a request'.padEnd(28)}${small?.padStart(12)}${large?.padStart(12)}${'ratio'.padStart(8)}`,
  );
  const results = table.map(({ path: target, medianMs: [few = 0, many = 0] }) => {
    const ratio = many / few;
    console.log(
      `${target.padEnd(28)}${`${few.toFixed(2)} ms`.padStart(12)}${`${many.toFixed(2)} ms`.padStart(12)}${ratio.toFixed(2).padStart(8)}`,
    );
    return { path: target, ratio: Number(ratio.toFixed(2)), medianMs: { [SIZES[0]]: few, [SIZES[1]]: many } };
  });
  writeResults('lanes-and-stats', { date: measuredOn(), machine: machineFacts(), rounds: ROUNDS, results });
}

async function withClient(database: string, use: (client: pg.Client) => Promise<unknown>): Promise<void> {
  const client = new pg.Client({
    ...embedded.connection,
    database,
    options: declaredSchema(await knownSchema()),
  });
  await client.connect();
  try {
    await use(client);
  } finally {
    await client.end();
  }
}
