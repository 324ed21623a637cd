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
import type pg from 'pg';
import { pino } from 'pino';
import { createServer } from '../src/api/server/server.ts';
import type { NetworkInfo } from '../src/domain/message.ts';
import { networks } from '../src/domain/networks/networks.ts';
import { openEmbedded } from '../src/store/server/embedded.ts';
import { openStore } from '../src/store/store.ts';
import { sortKeySql, storedSelector } from '../src/store/write/message-row.ts';
import { clusterOf, createEmpty, fillStatistics, withClient } from './data/database.ts';
import { median } from './interleave.ts';
import { machineFacts, measuredOn, writeResults } from './results-file.ts';

const SIZES = [10_000, 1_000_000] as const;
const LANES = 30;
const DAYS = 30;
const ROUNDS = 200;
const PATHS = ['/v2/lanes', '/v2/stats', '/v2/networks?active=true', '/v2/messages?limit=20'];

const dataFolder = await mkdtemp(path.join(os.tmpdir(), 'lanescan-bench-'));
const embedded = await openEmbedded({ dataFolder });
const cluster = clusterOf(embedded);
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
  await createEmpty(cluster, name);
  console.error(`Making ${size.toLocaleString('en')} messages`);
  await withClient(cluster.url(name), (client) => fill(client, size));
  const store = await openStore({ place: { url: cluster.url(name) } });
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
  await client.query(
    'create table lane_of (lane int primary key, source bigint, dest bigint, onramp bytea, members text)',
  );
  for (let lane = 0; lane < LANES; lane++) {
    const [source, dest] = [networkAt(lane * 3), networkAt(lane * 3 + 1)];
    const members = {
      onramp: `0x${'11'.repeat(20)}`,
      routerAddress: null,
      version: '1.6.0',
      sourceNetworkInfo: source,
      destNetworkInfo: dest,
    };
    await client.query('insert into lane_of values ($1, $2, $3, $4, $5)', [
      lane,
      storedSelector(source.chainSelector),
      storedSelector(dest.chainSelector),
      Buffer.alloc(20, lane + 1),
      JSON.stringify(members).slice(1),
    ]);
  }
  const sentAt = `(now() - (${size} - n) * (interval '${DAYS} days' / ${size}))`;
  // One in five hundred is in flight on either store's scale: what is under way does not grow with the past.
  await client.query(
    `insert into message (message_id, sort_key, sent_at, position, source_selector, dest_selector, sequence_number, delivery_ms,
                          finality, summary_length, status, ready, is_snapshot, sender, receiver, origin, onramp,
                          send_transaction, digest, record)
     select sha256(n::text::bytea), ${sortKeySql(sentAt, 'sha256(n::text::bytea)')}, ${sentAt}, n, l.source, l.dest,
            n / ${LANES} + 1, case when n <= ${size} - 20 then 20000 + n % 100000 end, 0, 20,
            case when n <= ${size} - 20 then 7 else 2 end, false, true,
            substring(sha256((n % 500)::text::bytea) for 20), substring(sha256((n % 900)::text::bytea) for 20),
            substring(sha256((n % 500)::text::bytea) for 20), l.onramp, sha256(n::text::bytea),
            substring(sha256(n::text::bytea) for 16),
            '{"messageId":"0x' || encode(sha256(n::text::bytea), 'hex') || '","sendTimestamp":"' ||
              to_char(${sentAt}, 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') ||
              '","padding":"' || repeat('x', 1200) || '",' || l.members
     from generate_series(1, ${size}) n join lane_of l on l.lane = n % ${LANES}`,
  );
  await fillStatistics(client);
  await client.query('vacuum analyze');
}

function networkAt(index: number): NetworkInfo {
  const found = networks[index];
  if (!found) throw new Error('The table of networks is shorter than the bench needs');
  const { name, selector, chainId, family, displayName } = found;
  return { name, chainSelector: selector, chainId, chainFamily: family, displayName };
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
