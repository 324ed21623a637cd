// @module-tag slow: crashes nodes of a cluster, which recover for seconds
/**
 * Writes on a cluster are whole or absent, whichever node crashes at whichever step of a commit, and readers see them in order.
 * Needs CITUS_URL.
 */
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { Status } from '../../src/domain/lifecycle.ts';
import { isDatabaseUnavailable, type Store } from '../../src/store/store.ts';
import type { ApplyReport } from '../../src/store/write/apply.ts';
import { openTestStore } from '../database.ts';
import { makeMessage, makeSnapshot } from '../fixtures.ts';
import { queryOnce } from '../postgres.ts';
import {
  type ClusterNode,
  crashNode,
  type HeldCommit,
  holdAfterPrepare,
  holdBeforePrepare,
  holdCopy,
  readWorkers,
  stopPreparedBackends,
  urlOnNode,
} from './faults.ts';

const BATCH = 40;

describe.skipIf(process.env.CITUS_URL === undefined)('a store on a cluster', () => {
  let store: Store & { readonly url: string };
  let workers: readonly ClusterNode[];
  let held: HeldCommit | undefined;
  /** Messages and changes that are acknowledged, or about to be. */
  let messages = 0;
  let written = 0;

  beforeAll(async () => {
    store = await openTestStore();
    workers = await readWorkers(store.url);
    expect(workers.length).toBeGreaterThan(1);
  });
  afterEach(release);
  afterAll(() => store.close());

  async function release(): Promise<void> {
    await held?.release();
    held = undefined;
  }
  const workerUrl = (index: number) => urlOnNode(store.url, workers[index] as ClusterNode);

  /** Writes a batch, and does something while it is held at that step. */
  async function writeWhileHeld<Held extends HeldCommit>(
    hold: () => Promise<Held>,
    work: (commit: Held) => Promise<unknown>,
  ): Promise<ApplyReport> {
    const commit = await hold();
    held = commit;
    const writing = writeBatch();
    await commit.reached();
    await work(commit);
    await release();
    return writing;
  }

  /** Writes the next batch, again and again until it is acknowledged, as an indexer does. */
  function writeBatch(): Promise<ApplyReport> {
    messages += BATCH;
    written += BATCH;
    return write(messages - BATCH, 'SENT');
  }

  async function write(first: number, status: Status): Promise<ApplyReport> {
    const batch = Array.from({ length: BATCH }, (_, index) =>
      makeSnapshot(makeMessage({ number: first + index + 1, status })),
    );
    for (;;) {
      try {
        return await store.apply(batch);
      } catch (error) {
        if (!isDatabaseUnavailable(error)) throw error;
      }
    }
  }

  /** The published position, with the changes up to it, and all changes that a statement sees. */
  async function positions() {
    const [row] = await queryOnce(store.url, 'select position::float8 as position from store');
    const position = Number(row?.position ?? 0);
    const [changes] = await queryOnce<{ published: number; visible: number }>(
      store.url,
      `select count(distinct position) filter (where position <= $1)::float8 as published, count(*)::float8 as visible
       from history`,
      [position],
    );
    return { position, published: changes?.published ?? 0, visible: changes?.visible ?? 0 };
  }

  /** Everything that was acknowledged is there once and in order, and what is derived from it agrees. */
  async function expectWhole(): Promise<void> {
    await expect.poll(async () => (await positions().catch(() => undefined))?.position).toBe(written);
    expect(await positions()).toEqual({ position: written, published: written, visible: written });
    const [counted] = await queryOnce(store.url, 'select count(*)::float8 as messages from message');
    expect(counted?.messages).toBe(messages);
    expect(await changesAfter(0)).toEqual(Array.from({ length: written }, (_, index) => index + 1));
    const report = await store.derived.compare({ signal: new AbortController().signal });
    expect(report).toMatchObject({ messages, disagreements: [] });
  }

  async function changesAfter(position: number): Promise<number[]> {
    const { changes } = await store.changesAfter(String(position), 1_000, 100_000_000);
    return changes.map((change) => Number(change.position));
  }

  it('shows no position whose change is not visible, while batches are written', async () => {
    let isWriting = true;
    const writer = (async () => {
      for (let batch = 0; batch < 10; batch++) await writeBatch();
    })().finally(() => {
      isWriting = false;
    });
    let [seen, reads] = [0, 0];
    while (isWriting) {
      const { position, published } = await positions();
      expect(published).toBe(position);
      const read = await changesAfter(seen);
      expect(read).toEqual(read.map((_, index) => seen + index + 1));
      seen += read.length;
      reads++;
    }
    await writer;
    expect(reads).toBeGreaterThan(0);
    await expectWhole();
  });

  it('is written again where a worker ends the session that it copies rows to', async () => {
    const copy = () => holdCopy(store.url, workers[0] as ClusterNode);
    expect(await writeWhileHeld(copy, ({ endSession }) => endSession())).toMatchObject({ created: BATCH });
    await expectWhole();
  });

  it.each([
    ['worker 0 crashes before it has prepared a commit', holdBeforePrepare, 0],
    ['worker 1 crashes before it has prepared a commit', holdBeforePrepare, 1],
    ['worker 0 crashes after it has prepared a commit', holdAfterPrepare, 0],
    ['worker 1 crashes after it has prepared a commit', holdAfterPrepare, 1],
    ['the coordinator crashes after the workers have prepared', holdAfterPrepare, null],
  ] as const)('loses and doubles nothing when %s', async (_when, hold, worker) => {
    const crashed = worker === null ? store.url : workerUrl(worker);
    await writeWhileHeld(
      () => hold(store.url),
      () => crashNode(crashed),
    );
    await expectWhole();
  });

  /** Writes a batch, and does something while one worker has still to commit it: the others show their part of it. */
  async function whileOneWorkerHasToCommit(
    work: (state: { readonly before: number; readonly resume: () => void }) => Promise<void>,
  ): Promise<void> {
    held = await holdAfterPrepare(store.url);
    const before = written;
    const writing = writeBatch();
    await held.reached();
    const resume = await stopPreparedBackends(workerUrl(0));
    try {
      await release();
      await expect.poll(async () => (await positions()).visible).toBeGreaterThan(before);
      await work({ before, resume });
    } finally {
      resume();
    }
    await writing;
  }

  it('keeps readers and a second writer before a change that only some workers have committed', async () => {
    await whileOneWorkerHasToCommit(async ({ before, resume }) => {
      const second = writeBatch();
      await someWriterWaits();
      const seen = await positions();
      expect(seen.visible).toBeLessThan(before + BATCH);
      expect(seen).toMatchObject({ position: before, published: before });
      expect(await changesAfter(before)).toEqual([]);
      expect(await store.latestPosition()).toBe(String(before));
      resume();
      await second;
    });
    await expectWhole();
  });

  it('is whole after the coordinator crashed while one worker had still to commit', async () => {
    await whileOneWorkerHasToCommit(async ({ before }) => {
      // Ends the session of the writer between its commit and its publication.
      await crashNode(store.url);
      expect(await changesAfter(before)).toEqual([]);
    });
    await writeBatch();
    await expectWhole();
  });

  it('lets a second writer see all that the first has committed, although a worker crashed', async () => {
    held = await holdAfterPrepare(store.url);
    const first = writeBatch();
    await held.reached();
    written += BATCH;
    const second = write(messages - BATCH, 'SUCCESS');
    await someWriterWaits();
    await crashNode(workerUrl(0));
    await release();
    expect(await first).toMatchObject({ created: BATCH });
    expect(await second).toMatchObject({ created: 0, updated: BATCH });
    await expectWhole();
  });

  /** Waits until a writer waits for a lock of another one. */
  async function someWriterWaits(): Promise<void> {
    const waiting = `select 1 from pg_locks join pg_stat_activity using (pid)
      where not granted and datname = current_database() and application_name = 'lanescan'`;
    await expect.poll(async () => (await queryOnce(store.url, waiting)).length).toBeGreaterThan(0);
  }
});
