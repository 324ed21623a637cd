// @module-tag slow: stops and starts a worker of a cluster
/**
 * What the service does while a worker is away, and that it goes on by itself. Needs CITUS_URL, and two shell commands,
 * CITUS_STOP_WORKER and CITUS_START_WORKER, that stop and start the worker of the port in WORKER_PORT.
 */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { clusterFindings } from '../../src/cli/doctor/database-findings.ts';
import { isDatabaseUnavailable } from '../../src/store/store.ts';
import { expectError, type RunningServer, type SearchBody, startServer } from '../api/running-server.ts';
import { makeMessage, makeSnapshot } from '../fixtures.ts';
import { queryOnce } from '../postgres.ts';
import { type ClusterNode, readWorkers, untilAnswering, urlOnNode } from './faults.ts';

const { CITUS_URL, CITUS_STOP_WORKER, CITUS_START_WORKER } = process.env;
const canStop =
  CITUS_URL !== undefined && CITUS_STOP_WORKER !== undefined && CITUS_START_WORKER !== undefined;
const MESSAGES = 40;

/** Where it is skipped, the line of the skipped tests says what it needs. */
const title = canStop
  ? 'while a worker is away'
  : 'while a worker is away: set CITUS_STOP_WORKER and CITUS_START_WORKER';

describe.skipIf(!canStop)(title, () => {
  const messages = Array.from({ length: MESSAGES }, (_, number) => makeMessage({ number }));
  let server: RunningServer;
  let worker: ClusterNode;
  let isStopped = false;
  /** Message ids, by whether the worker that stops has their shard. */
  const ids = { there: [] as string[], elsewhere: [] as string[] };

  beforeAll(async () => {
    server = await startServer(messages);
    [worker] = (await readWorkers(server.store.url)) as [ClusterNode];
    const placed = await queryOnce<{ id: string; port: number }>(
      server.store.url,
      `select '0x' || encode(id, 'hex') as id, nodeport as port
       from unnest($1::bytea[]) as chosen (id)
       join pg_dist_shard_placement on shardid = get_shard_id_for_distribution_column('message', id)`,
      [messages.map(({ messageId }) => Buffer.from(messageId.slice(2), 'hex'))],
    );
    for (const { id, port } of placed) ids[port === worker.port ? 'there' : 'elsewhere'].push(id);
    expect([ids.there.length > 0, ids.elsewhere.length > 0, placed.length]).toEqual([true, true, MESSAGES]);
  });
  afterEach(() => startWorker());
  afterAll(() => server.close());

  const shell = (command = '') =>
    promisify(execFile)('sh', ['-c', `${command} </dev/null >/dev/null 2>&1`], {
      env: { ...process.env, WORKER_PORT: String(worker.port) },
    });

  async function stopWorker(): Promise<void> {
    isStopped = true;
    await shell(CITUS_STOP_WORKER);
  }

  async function startWorker(): Promise<void> {
    if (!isStopped) return;
    await shell(CITUS_START_WORKER);
    await untilAnswering(urlOnNode(server.store.url, worker));
    isStopped = false;
  }

  const statusOf = async (path: string) => (await server.ask(path)).status;
  const address = () => `${worker.host}:${worker.port}`;

  it('rejects reads of its shards with the cause, answers others, and goes on when it is back', async () => {
    await stopWorker();

    // Not from the response cache: this page was not asked for before.
    const others = ['/v2/messages?limit=7', '/v2/lanes', '/v2/networks', '/readyz'];
    for (const path of [`/v2/messages/${ids.there[0]}`, ...others]) {
      const answer = await server.ask(path);
      expectError(answer, 503, 'SERVICE_UNAVAILABLE');
      expect(answer.headers['retry-after'], path).toMatch(/^\d+$/);
      expect(answer.json().message).toBe(
        'A worker of the database cluster does not answer at the moment. Try again shortly.',
      );
    }
    for (const path of [`/v2/messages/${ids.elsewhere[0]}`, '/v2/stats', '/healthz']) {
      expect(await statusOf(path), path).toBe(200);
    }
    // The log names the worker for the operator.
    expect(server.log.some((line) => line.includes(address()))).toBe(true);

    await startWorker();
    await expect.poll(() => statusOf('/readyz')).toBe(200);
    const page = await server.ask('/v2/messages?limit=100');
    expect(page.status).toBe(200);
    expect(page.json<SearchBody>().data.length).toBe(MESSAGES);
    expect(await statusOf(`/v2/messages/${ids.there[0]}`)).toBe(200);
  });

  it('shows it in the metrics and to `doctor`', async () => {
    const up = async () => {
      const { text } = await server.ask('/metrics');
      const lines = text.matchAll(/^lanescan_cluster_worker_up\{worker="([^"]+)"\} (\d)$/gm);
      return Object.fromEntries([...lines].map(([, name, value]) => [name, value]));
    };
    const findings = async () => [...clusterFindings(await server.store.cluster())];
    const others = Object.fromEntries(
      (await readWorkers(server.store.url))
        .filter(({ port }) => port !== worker.port)
        .map(({ host, port }) => [`${host}:${port}`, '1']),
    );
    await expect.poll(up).toEqual({ ...others, [address()]: '1' });
    expect((await findings()).map(({ severity }) => severity)).toEqual(['ok', 'ok', 'ok']);
    expect((await findings())[1]?.what).toMatch(`Worker ${address()}: 2 shards, 0.0 GB`);

    await stopWorker();
    await expect.poll(up).toEqual({ ...others, [address()]: '0' });
    const what = `Worker ${address()}: does not answer; searches fail, and nothing is written until it is back`;
    expect(await findings()).toContainEqual(expect.objectContaining({ severity: 'error', what }));
    await startWorker();
    await expect.poll(up).toEqual({ ...others, [address()]: '1' });
  });

  it('makes writers wait and retry, until everything is written', async () => {
    await stopWorker();
    const more = Array.from({ length: MESSAGES }, (_, index) => makeMessage({ number: MESSAGES + index }));
    let failures = 0;
    const writing = (async () => {
      for (;;) {
        try {
          return await server.store.apply(more.map(makeSnapshot));
        } catch (error) {
          if (!isDatabaseUnavailable(error)) throw error;
          failures++;
        }
      }
    })();
    await expect.poll(() => failures).toBeGreaterThan(2);
    await startWorker();
    expect(await writing).toMatchObject({ created: MESSAGES });
    const changes = await server.store.changesAfter('0', 1_000);
    expect(changes.changes.map(({ position }) => Number(position))).toEqual(
      Array.from({ length: 2 * MESSAGES }, (_, index) => index + 1),
    );
  });
});
