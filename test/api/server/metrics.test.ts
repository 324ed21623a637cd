/** /metrics: what it tells, what it never does, and that the dashboard and the alerts ask for nothing else. */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { parse } from 'yaml';
import { DATABASE_NAME } from '../../../src/store/server/embedded.ts';
import { socketConnection } from '../../../src/store/server/embedded-binaries.ts';
import { openStore } from '../../../src/store/store.ts';
import { ANY_SCHEMA } from '../../database.ts';
import { makeMessage, makeSnapshot, sepolia } from '../../fixtures.ts';
import { freshFolder } from '../../fresh-folder.ts';
import { connectTo } from '../../postgres.ts';
import { type RunningServer, serveStore, startServer } from '../running-server.ts';

const operations = (name: string) =>
  readFileSync(new URL(`../../../docs/operations/${name}`, import.meta.url), 'utf8');

// 1 to 9 without 4 and 7: two holes of one number each on one on-ramp.
const messages = [1, 2, 3, 5, 6, 8, 9].map((number) =>
  makeMessage({ number, status: number === 1 ? 'SUCCESS' : number === 2 ? 'FAILED' : 'SENT' }),
);

let server: RunningServer;
/** On the same database, which it takes for a replica too. */
let replicated: RunningServer;
/** On an embedded database, whose disk is in sight. */
let embedded: RunningServer;

/** A store in a data folder, with as many messages as show what one takes, all of them recorded a day ago. */
async function serveEmbedded(): Promise<RunningServer> {
  const dataFolder = freshFolder();
  const store = await openStore({ place: { dataFolder } });
  await store.apply(Array.from({ length: 1_000 }, (_, number) => makeSnapshot(makeMessage({ number }))));
  const client = new pg.Client(socketConnection(path.join(dataFolder, 'postgres'), DATABASE_NAME));
  await client.connect();
  await client.query(`set lanescan.schema = '${ANY_SCHEMA}'`);
  await client.query(`update history set recorded_at = recorded_at - interval '1 day'`);
  await client.end();
  return serveStore({ ...store, url: '' });
}

beforeAll(async () => {
  server = await startServer(messages);
  const client = await connectTo(server.store.url);
  // Of a network that is indexed, and of a webhook: another process would have written both.
  await client.query(
    `insert into network_progress (selector, head_block, head_at, indexed_block, indexed_at, updated_at)
     values ($1, 1000, now(), 900, now() - interval '300 s', now())`,
    [BigInt.asIntN(64, BigInt(sepolia.chainSelector)).toString()],
  );
  await client.end();
  await server.store.webhooks.rewind('orders', '0');
  await server.store.mirror.heartbeat('https://mirror.example/with/a/path', { isCurrent: true });
  const { url } = server.store;
  replicated = await serveStore({ ...(await openStore({ place: { url }, replicas: [url] })), url });
  // Durations are shown once there is one.
  await replicated.ask('/v2/messages');
  // A scrape does not wait for a replica that takes its time to answer.
  const hasAnswered = async () => expect(await replicated.store.replicas()).toMatchObject([{ lag: 0 }]);
  await vi.waitFor(hasAnswered, { timeout: 120_000 });
  embedded = await serveEmbedded();
});
afterAll(async () => {
  await embedded.close();
  await replicated.close();
  await server.close();
});

interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

async function scrape(from = server): Promise<readonly Sample[]> {
  const { status, text, headers } = await from.ask('/metrics');
  expect(status).toBe(200);
  expect(headers['content-type']).toBe('text/plain; charset=utf-8');
  return text
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => {
      const [, name = '', labels = '', value = ''] = /^(\w+)(?:\{(.*)\})? (\S+)$/.exec(line) ?? [];
      expect(name, line).not.toBe('');
      const pairs = [...labels.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)].map(([, key, text]) => [key, text]);
      return { name, labels: Object.fromEntries(pairs), value: Number(value) };
    });
}

function figureOf(
  samples: readonly Sample[],
  name: string,
  labels: Record<string, string> = {},
): number | undefined {
  return samples.find(
    (sample) =>
      sample.name === name && Object.entries(labels).every(([key, value]) => sample.labels[key] === value),
  )?.value;
}

describe('a scrape', () => {
  test('has the figures of the store: messages, lanes, holes, networks, webhooks', async () => {
    const samples = await scrape();
    const figures = {
      lanescan_database_up: 1,
      lanescan_history_position: 7,
      lanescan_messages_in_flight: 5,
      lanescan_messages_ready_for_manual_execution: 1,
      lanescan_lanes: 1,
      lanescan_missing_sequence_numbers: 2,
      lanescan_onramps_with_holes: 1,
      lanescan_feed_followers: 0,
      lanescan_http_requests_in_flight: 1,
    };
    for (const [name, value] of Object.entries(figures)) expect(figureOf(samples, name), name).toBe(value);
    for (const [status, count] of Object.entries({ SUCCESS: 1, FAILED: 1, SENT: 5, BLESSED: 0 }))
      expect(figureOf(samples, 'lanescan_messages', { status }), status).toBe(count);
    const network = { network: sepolia.name };
    const orders = { subscription: 'orders' };
    for (const [name, labels, value] of [
      ['lanescan_network_lag_blocks', network, 100],
      ['lanescan_network_indexed', network, 0],
      ['lanescan_network_stopped', network, 0],
      ['lanescan_webhook_lag_changes', orders, 7],
      ['lanescan_webhook_deliveries', { ...orders, state: 'parked' }, 0],
    ] as const)
      expect(figureOf(samples, name, labels), name).toBe(value);
    expect(figureOf(samples, 'lanescan_network_lag_seconds', network)).toBeGreaterThanOrEqual(300);
    expect(figureOf(samples, 'process_resident_memory_bytes')).toBeGreaterThan(1e6);
  });

  test('shows how replicas do, by their place in DATABASE_REPLICA_URL, where there are any', async () => {
    const samples = await scrape(replicated);
    const replica = { replica: '1' };
    // One that takes writes itself is not read from.
    expect(figureOf(samples, 'lanescan_replica_used', replica)).toBe(0);
    expect(figureOf(samples, 'lanescan_replica_lag_changes', replica)).toBe(0);
    const without = (await scrape()).filter(({ name }) => name.startsWith('lanescan_replica'));
    expect(without).toEqual([]);
  });

  test('has the bytes of every table, and of the database', async () => {
    const samples = await scrape();
    const client = await connectTo(server.store.url);
    const { rows } = await client.query(
      `select pg_total_relation_size('message')::float8 as message, pg_indexes_size('message')::float8 as indexes,
              pg_database_size(current_database())::float8 as database`,
    );
    await client.end();
    const bytesOf = (part: string) =>
      figureOf(samples, 'lanescan_table_bytes', { table: 'message', part }) ?? 0;
    expect(bytesOf('indexes')).toBe(rows[0].indexes);
    expect(bytesOf('heap') + bytesOf('toast') + bytesOf('indexes')).toBe(rows[0].message);
    expect(figureOf(samples, 'lanescan_database_bytes')).toBeCloseTo(rows[0].database, -6);
  });

  test('has growth and free space where they are known', async () => {
    const samples = await scrape(embedded);
    expect(figureOf(samples, 'lanescan_disk_free_bytes')).toBeGreaterThan(1e6);
    // Messages of January are loaded: nothing has been sent in the last week.
    expect(figureOf(samples, 'lanescan_database_growth_bytes_per_day')).toBe(0);
    const unknown = (await scrape()).filter(({ name }) => /_disk_free_|_growth_/.test(name));
    expect(unknown).toEqual([]);
  });

  test('counts requests by the pattern of their route, method and status, with their durations', async () => {
    const before = await scrape();
    const path = `/v2/messages/${messages[0]?.messageId}`;
    const { headers } = await server.ask(path);
    await server.ask(path.replace('/v2', ''));
    await server.ask(path, { headers: { 'If-None-Match': String(headers.etag) } });
    await server.ask(path, { method: 'HEAD' });
    await server.ask('/v2/messages?limit=0');
    await server.ask('/nowhere/at/all');
    await server.ask('/v2/messages', { method: 'PROPFIND' });
    const after = await scrape();
    const grown = (labels: Record<string, string>) => {
      const name = 'lanescan_http_request_duration_seconds_count';
      return (figureOf(after, name, labels) ?? 0) - (figureOf(before, name, labels) ?? 0);
    };
    const route = '/v2/messages/{messageId}';
    for (const [of, method, status, count] of [
      [route, 'GET', '200', 2],
      [route, 'GET', '304', 1],
      [route, 'HEAD', '200', 1],
      ['/v2/messages', 'GET', '400', 1],
      ['none', 'GET', '404', 1],
      ['none', 'other', '405', 1],
    ] as const)
      expect(grown({ route: of, method, status }), `${method} ${of} ${status}`).toBe(count);
    const buckets = after.filter(
      ({ name, labels }) =>
        name === 'lanescan_http_request_duration_seconds_bucket' &&
        labels.route === route &&
        labels.status === '304',
    );
    expect(buckets.at(-1)).toMatchObject({ labels: { le: '+Inf' }, value: 1 });
    expect(buckets.map(({ value }) => value)).toEqual([...buckets.map(({ value }) => value)].sort());
  });

  test('shows connections, and reads by what they were for', async () => {
    await server.ask('/v2/messages');
    await server.ask('/v2/messages');
    const samples = await scrape();
    for (const pool of ['readers', 'writers', 'exporters']) {
      expect(figureOf(samples, 'lanescan_database_waiting', { pool })).toBe(0);
      expect(figureOf(samples, 'lanescan_database_connections', { pool, state: 'idle' })).toBeTypeOf(
        'number',
      );
    }
    expect(
      figureOf(samples, 'lanescan_database_query_duration_seconds_count', { query: 'search', outcome: 'ok' }),
    ).toBeGreaterThanOrEqual(2);
  });

  test('asks the database once in a few seconds, however many scrape', { tags: 'slow' }, async () => {
    const count = async (query: string) =>
      figureOf(await scrape(), 'lanescan_database_query_duration_seconds_count', { query }) ?? 0;
    await scrape();
    const before = { figures: await count('figures'), disk: await count('disk') };
    await Promise.all(Array.from({ length: 30 }, () => scrape()));
    // Three statements a look; a slow machine may look a second time.
    expect((await count('figures')) - before.figures).toBeLessThanOrEqual(6);
    // Sizes and growth are looked at once a minute: five statements, and one for each halving of seven changes.
    expect((await count('disk')) - before.disk).toBeLessThanOrEqual(10);
  });

  test('has no label that a client could choose, and no growth under a thousand odd requests', {
    tags: 'slow',
  }, async () => {
    const asked = await startServer(messages.slice(0, 1));
    onTestFinished(() => asked.close());
    const odd = (index: number) => [
      asked.ask(`/odd-${index}?secret=${index}`),
      asked.ask(`/v2/messages/0x${index.toString(16).padStart(64, '0')}`),
      asked.ask('/v2/messages', { headers: { 'User-Agent': `odd-${index}`, Host: `odd-${index}` } }),
      asked.ask(`/v2/messages?odd-${index}=1`),
    ];
    await Promise.all(odd(0));
    await scrape(asked);
    const before = (await scrape(asked)).length;
    for (let index = 1; index <= 250; index += 10) {
      await Promise.all(Array.from({ length: 10 }, (_, step) => odd(index + step)).flat());
    }
    const samples = await scrape(asked);
    expect(samples.filter(({ name }) => name.startsWith('lanescan')).length).toBeGreaterThan(50);
    // Garbage collections may show a kind for the first time.
    expect(samples.filter(({ name }) => !name.startsWith('nodejs')).length).toBeLessThanOrEqual(before);
    const { text } = await asked.ask('/metrics');
    expect(text).not.toMatch(/odd-|secret|127\.0\.0\.1|postgresql:/);
  });

  test('takes no parameter, and is not for caches', async () => {
    expect((await server.ask('/metrics?x=1')).status).toBe(400);
    expect((await server.ask('/metrics')).headers['cache-control']).toBe('no-store');
  });
});

describe('what is documented', () => {
  /** The series of an expression: words that are neither functions nor labels. */
  const seriesIn = (expression: string) => expression.match(/\b(?:lanescan|process|nodejs)_\w+/g) ?? [];

  const base = (name: string) => name.replace(/_(bucket|sum|count)$/, '');
  /** Of all that a server can have: replicas, and a disk in sight. */
  const scrapeAll = async () => [...(await scrape(replicated)), ...(await scrape(embedded))];
  const ownMetrics = async () => {
    const names = (await scrapeAll()).map(({ name }) => base(name));
    return [...new Set(names)].filter((name) => name.startsWith('lanescan_'));
  };

  test('the dashboard asks only for series that a scrape has, and for every metric of ours', async () => {
    const dashboard = JSON.parse(operations('grafana-dashboard.json')) as {
      panels: { title: string; type: string; targets?: { expr: string }[] }[];
    };
    const known = new Set((await scrapeAll()).map(({ name }) => name));
    const panels = dashboard.panels.filter(({ type }) => type !== 'row');
    expect(panels.length).toBeGreaterThan(20);
    for (const { title, targets = [] } of panels) {
      expect(targets.length, title).toBeGreaterThan(0);
      for (const { expr } of targets) {
        expect(seriesIn(expr).length, expr).toBeGreaterThan(0);
        for (const name of seriesIn(expr)) expect(known, `${title}: ${name}`).toContain(name);
      }
    }
    const series = panels.flatMap(({ targets = [] }) => targets.flatMap(({ expr }) => seriesIn(expr)));
    expect(series.map(base)).toEqual(expect.arrayContaining(await ownMetrics()));
  });

  test('every metric of ours is told in the guides', async () => {
    const guides = operations('../operations.md') + operations('indexing.md');
    const ours = await ownMetrics();
    expect(ours.length).toBeGreaterThan(20);
    // In a list, the second name on may be short of its beginning.
    const spellings = (name: string) => [
      `\`${name}\``,
      ...[...name.matchAll(/_/g)].map(({ index }) => `\`…${name.slice(index)}\``),
    ];
    const isTold = (name: string) => spellings(name).some((text) => guides.includes(text));
    expect(ours.filter((name) => !isTold(name))).toEqual([]);
  });

  test('the alerts ask only for series and labels that a scrape has', async () => {
    const { groups } = parse(operations('prometheus-alerts.yaml')) as {
      groups: {
        rules: { alert: string; expr: string; labels: object; annotations: { summary: string } }[];
      }[];
    };
    const samples = await scrapeAll();
    const rules = groups.flatMap((group) => group.rules);
    expect(new Set(rules.map(({ alert }) => alert)).size).toBe(rules.length);
    for (const { alert, expr, annotations, labels } of rules) {
      expect(annotations.summary, alert).toMatch(/\w/);
      expect(labels).toMatchObject({ severity: expect.stringMatching(/^(warning|critical)$/) });
      expect(seriesIn(expr).length, alert).toBeGreaterThan(0);
      for (const name of seriesIn(expr)) {
        const series = samples.filter((sample) => sample.name === name);
        expect(series.length, `${alert}: ${name}`).toBeGreaterThan(0);
        const known = new Set(series.flatMap(({ labels }) => Object.keys(labels)));
        for (const [, label = ''] of expr.matchAll(/[{,]\s*(\w+)\s*=/g))
          expect(known, `${alert}: ${label}`).toContain(label);
      }
    }
  });
});
