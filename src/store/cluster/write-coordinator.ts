/**
 * Writes that become visible as a whole, on one node and on a cluster.
 *
 * On one node a transaction is atomic for readers: nothing is to be done. On a cluster it is committed in two phases, and becomes
 * visible on each worker at another moment. So a write lasts beyond its commit:
 *
 * 1. It takes an advisory lock of its session. A position that an earlier writer assigned and did not publish is published first.
 * 2. Its transaction assigns positions (`publication`) and marks them as not published.
 * 3. After the commit it waits until every worker has committed, counts the new rows of the history, and publishes the position.
 *
 * Invariants: everything up to `store.position` is visible on all nodes; a writer sees everything that was committed before it.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { ClientBase } from 'pg';
import type { WriteLog } from '../../base/log.ts';
import { OperatorError } from '../../base/operator-error.ts';
import type { UseClient } from '../server/client.ts';
import { ClusterAwayError } from '../server/database-errors.ts';
import { messageIdArray } from '../write/message-row.ts';

/** The channel of the notification that each published position sends, with the position. */
export const CHANGE_CHANNEL = 'lanescan_change';

/** SQL that raises the revision at a new position. Every write does, also one that changes no record. */
const raiseRevision = (position: string) =>
  `update store_revision set revision = revision + greatest(1, ${position} - (select position from store))`;

export interface WriteCoordinator {
  /** Runs one transaction of a writer. `work` begins and commits it on `client`. */
  run<T>(client: ClientBase, work: () => Promise<T>): Promise<T>;
  /** The same for repairs, which may find rows of the history missing. They set the position themselves. */
  runRepair<T>(client: ClientBase, work: () => Promise<T>): Promise<T>;
  /** Locks out other writers until the end of the transaction, and returns the last position that was assigned. */
  lockPosition(client: ClientBase): Promise<bigint>;
  /** To be called in the transaction before it writes rows of these messages (ids in hex). */
  prepareWrite(client: ClientBase, messageIds: readonly string[]): Promise<void>;
  /** Stores the last position that the transaction assigned, and raises the revision, also where no position was assigned. */
  advancePosition(client: ClientBase, position: bigint): Promise<void>;
}

export const singleNodeWrites: WriteCoordinator = {
  run: (_client, work) => work(),
  runRepair: (_client, work) => work(),
  async lockPosition(client) {
    const { rows } = await client.query('select position from store for update');
    return BigInt(rows[0].position);
  },
  async prepareWrite() {},
  async advancePosition(client, position) {
    await client.query(
      `with raised as (${raiseRevision('$1')}) update store set position = $1 returning pg_notify($2, position::text)`,
      [position.toString(), CHANGE_CHANNEL],
    );
  },
};

/** Key of the advisory lock. It must never change: processes of different releases share a database. */
const WRITER_LOCK = 7_264_910_332;
/** How long prepared transactions may take to be committed. Citus recovers those of a crash within a minute. */
const SETTLE_TIMEOUT_MS = 10_000;
const SETTLE_POLL_MS = 20;
const RETRY_INTERVAL_MS = 1_000;

/** `use` lends a connection of a writer. */
export function createDistributedWrites(use: UseClient, writeLog: WriteLog): WriteCoordinator {
  let isRetrying = false;

  const runPublished = <T>(client: ClientBase, work: () => Promise<T>): Promise<T> =>
    withWriterLock(client, async () => {
      await publish(client);
      const result = await work();
      // The transaction is committed: a failure to publish is not a failure of the write.
      await publish(client).catch(publishLater);
      return result;
    });

  function publishLater(error: unknown): void {
    if (isRetrying) return;
    isRetrying = true;
    writeLog(`The latest changes are stored but not published yet: ${(error as Error).message}`);
    const retry = async () => {
      isRetrying = false;
      // Every write publishes first. A pool that is closed ends the retries.
      await use((client) => runPublished(client, async () => undefined)).catch((failure) => {
        if (!/after calling end/.test((failure as Error).message)) publishLater(failure);
      });
    };
    setTimeout(() => void retry(), RETRY_INTERVAL_MS).unref();
  }

  return {
    run: runPublished,
    runRepair: (client, work) =>
      withWriterLock(client, async () => {
        await waitForPreparedTransactions(client);
        return work();
      }),
    async lockPosition(client) {
      const { rows } = await client.query(
        'select greatest(position, assigned_position) as position from store, publication for update',
      );
      return BigInt(rows[0].position);
    },
    async prepareWrite(client, messageIds) {
      // Citus prepares only connections that a DML statement has used. COPY does not count, and without a PREPARE a worker that
      // crashes loses what was copied to it. This deletes nothing and reaches each shard that COPY will write to.
      await client.query('delete from execution_input where message_id = any($1) and fetched_at is null', [
        messageIdArray(messageIds),
      ]);
    },
    async advancePosition(client, position) {
      await client.query('update publication set assigned_position = $1, is_published = false', [
        position.toString(),
      ]);
    },
  };
}

async function withWriterLock<T>(client: ClientBase, work: () => Promise<T>): Promise<T> {
  await client.query('select pg_advisory_lock($1)', [WRITER_LOCK]);
  try {
    return await work();
  } finally {
    await client.query('select pg_advisory_unlock($1)', [WRITER_LOCK]).catch(() => undefined);
  }
}

/** Publishes the assigned position when all of its rows are visible. Under the writers' lock, outside of a transaction. */
async function publish(client: ClientBase): Promise<void> {
  const { rows } = await client.query(
    'select position, greatest(position, assigned_position) as assigned_position, is_published from store, publication',
  );
  const { position, assigned_position: assigned, is_published: isPublished } = rows[0];
  if (isPublished) return;
  await waitForPreparedTransactions(client);
  await requireRows(client, BigInt(position), BigInt(assigned));
  await client.query(
    `with published as (update publication set is_published = true returning assigned_position),
       raised as (${raiseRevision('(select assigned_position from published)')})
     update store set position = greatest(position, assigned_position) from published
     returning pg_notify($1, position::text)`,
    [CHANGE_CHANNEL],
  );
}

/**
 * Waits until no worker has a transaction that is prepared and not committed. Citus commits it right after the coordinator,
 * unless a node fails in between; then its recovery does.
 */
async function waitForPreparedTransactions(client: ClientBase): Promise<void> {
  const until = performance.now() + SETTLE_TIMEOUT_MS;
  for (;;) {
    const { rows } = await client.query(
      `select success, result from run_command_on_workers(
         'select count(*) from pg_prepared_xacts where database = current_database() and gid like ''citus\\_%''')`,
    );
    const away = rows.filter(({ success }) => !success);
    if (away.length > 0) {
      throw new ClusterAwayError(`${away.length} of ${rows.length} workers of the cluster do not answer`);
    }
    if (rows.every(({ result }) => Number(result) === 0)) return;
    if (performance.now() > until) {
      throw new ClusterAwayError('A worker of the cluster has not committed a prepared transaction yet');
    }
    // Not everybody may do this; without it, the recovery that runs every minute does.
    await client.query('select recover_prepared_transactions()').catch(() => undefined);
    await delay(SETTLE_POLL_MS);
  }
}

/** Throws where the history lacks positions after `from`, up to `to`. */
async function requireRows(client: ClientBase, from: bigint, to: bigint): Promise<void> {
  const { rows } = await client.query('select count(*) from history where position > $1 and position <= $2', [
    from.toString(),
    to.toString(),
  ]);
  const missing = to - from - BigInt(rows[0].count);
  if (missing === 0n) return;
  throw new OperatorError(
    `The history lacks ${missing} of the positions ${from + 1n} to ${to}, although every worker has committed.`,
    'A worker has lost rows. Restore it from its backup; or run `lanescan repair`, which goes on without them.',
  );
}
