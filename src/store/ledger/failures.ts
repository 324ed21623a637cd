/** The ledger of failures (`index_failure`): ranges that could not be read. They are retried for ever, with backoff. */
import type { ClientBase } from 'pg';
import { type BlockRange, type PendingRange, parseRange, rangeColumns } from './block-range.ts';

export interface FailedRange extends PendingRange {
  /** How often this very range could not be read; a failure as part of a longer range counts once. */
  readonly failures: number;
  /** When its blocks could not be read for the first time, also as part of a longer range. */
  readonly since: Date;
}

export interface NewFailure extends BlockRange {
  readonly reason: string;
  readonly retryInMs: number;
  /** When it failed first, for a part of a range that is on the ledger already. */
  readonly since?: Date;
}

export interface PostponedFailure {
  readonly id: string;
  readonly reason: string;
  readonly retryInMs: number;
}

export async function readDueFailures(
  client: ClientBase,
  network: string,
  limit: number,
): Promise<readonly FailedRange[]> {
  const { rows } = await client.query(
    `select ${rangeColumns}, failures, first_failed_at as since from index_failure
     where network = $1 and retry_at <= now() order by failures, retry_at, id limit $2`,
    [network, limit],
  );
  return rows.map((row) => ({ ...parseRange(row), failures: row.failures, since: row.since }));
}

export async function addFailures(
  client: ClientBase,
  network: string,
  failures: readonly NewFailure[],
): Promise<void> {
  for (const range of failures) {
    await client.query(
      `insert into index_failure
         (network, from_block, to_block, purpose, contracts, reason, retry_at, first_failed_at)
       values ($1, $2, $3, $4, $5, $6, now() + make_interval(secs => $7 / 1000.0), coalesce($8, now()))`,
      [
        network,
        range.from,
        range.to,
        range.purpose,
        range.contracts,
        range.reason,
        range.retryInMs,
        range.since ?? null,
      ],
    );
  }
}

export async function removeFailures(
  client: ClientBase,
  network: string,
  ids: readonly string[],
): Promise<void> {
  if (ids.length === 0) return;
  await client.query('delete from index_failure where network = $1 and id = any($2)', [network, ids]);
}

export async function postponeFailures(
  client: ClientBase,
  network: string,
  postponed: readonly PostponedFailure[],
): Promise<void> {
  for (const { id, reason, retryInMs } of postponed) {
    await client.query(
      `update index_failure
       set failures = failures + 1, reason = $3, retry_at = now() + make_interval(secs => $4 / 1000.0)
       where network = $1 and id = $2`,
      [network, id, reason, retryInMs],
    );
  }
}

/** Drops the blocks above the end of the chain. */
export async function endFailuresAt(client: ClientBase, network: string, end: number): Promise<void> {
  await client.query('delete from index_failure where network = $1 and from_block > $2', [network, end]);
  await client.query('update index_failure set to_block = $2 where network = $1 and to_block > $2', [
    network,
    end,
  ]);
}
