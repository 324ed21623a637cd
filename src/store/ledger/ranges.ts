/**
 * Ranges of blocks that are still to be read: the backlog (`index_backlog`), each range of which is read from its upper end
 * down; the ledger of failures (`index_failure`), whose ranges are retried for ever, with backoff; and logs of trusted
 * contracts that no decoder understands (`index_unreadable`), kept whole for a version that does.
 */
import type { ClientBase } from 'pg';
import { readWith } from '../reads/reads.ts';
import { columnsOf } from '../sql.ts';

/** Blocks to read, both ends included. */
export interface BlockRange {
  readonly from: number;
  readonly to: number;
  readonly purpose: 'routers' | 'history' | 'contracts';
  /** Only logs of these contracts; null: of all. */
  readonly contracts: readonly string[] | null;
}

export interface PendingRange extends BlockRange {
  readonly id: string;
}

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

export interface UnreadableLog {
  readonly blockNumber: number;
  readonly blockHash: string;
  readonly transactionHash: string;
  readonly logIndex: number;
  readonly address: string;
  readonly topics: readonly string[];
  readonly data: string;
  readonly reason: string;
}

export interface RangesStep {
  /** Hashes of blocks that a reorganisation replaced. */
  readonly orphaned?: readonly string[];
  /** There are no blocks above: what is pending of them, and what has failed, is dropped. */
  readonly endsAt?: number;
  /** The history begins here: the backlog below is dropped. */
  readonly startBlock?: number;
  readonly pending?: readonly BlockRange[];
  /** Ids of pending ranges whose blocks are in `pending` now. */
  readonly replaced?: readonly string[];
  /** A piece at the upper end of a pending range that has been read, or put on the ledger of failures. */
  readonly done?: { readonly id: string; readonly from: number };
  readonly failed?: readonly NewFailure[];
  /** Ids of failed ranges that have been read, or were split. */
  readonly recovered?: readonly string[];
  readonly postponed?: readonly (Pick<FailedRange, 'id'> & Pick<NewFailure, 'reason' | 'retryInMs'>)[];
  readonly unreadable?: readonly UnreadableLog[];
  /** Blocks that were read: of their unreadable logs, only `unreadable` is left. */
  readonly read?: BlockRange;
  /** Blocks with unreadable logs go on the backlog again: this version may have a decoder for them. */
  readonly rescanUnreadable?: boolean;
}

const RANGE = 'id, from_block::float8 as "from", to_block::float8 as "to", purpose, contracts';

/**
 * The backlog in the order in which it is to be read. Routers' history comes first: it registers the contracts whose logs
 * the other ranges are read for. Ranges of single contracts come last, when all contracts are known.
 */
export function readPendingRanges(client: ClientBase, network: string) {
  return readWith(client)<PendingRange>(
    `select ${RANGE} from index_backlog where network = $1
     order by array_position(array['routers', 'history', 'contracts'], purpose), to_block desc, id`,
    [network],
  );
}

export function readDueFailures(client: ClientBase, network: string, limit: number) {
  return readWith(client)<FailedRange>(
    `select ${RANGE}, failures, first_failed_at as since from index_failure
     where network = $1 and retry_at <= now() order by failures, retry_at, id limit $2`,
    [network, limit],
  );
}

export async function writeRanges(client: ClientBase, network: string, step: RangesStep): Promise<void> {
  const { orphaned = [], replaced = [], recovered = [], startBlock, endsAt, done } = step;
  const write = (text: string, ...values: readonly unknown[]) => client.query(text, [network, ...values]);

  if (orphaned.length > 0)
    await write('delete from index_unreadable where network = $1 and block_hash = any($2)', orphaned);
  if (startBlock !== undefined) {
    const history = `network = $1 and purpose = 'history'`;
    await write(`delete from index_backlog where ${history} and to_block < $2`, startBlock);
    await write(`update index_backlog set from_block = $2 where ${history} and from_block < $2`, startBlock);
  }
  if (endsAt !== undefined) {
    // What is left of a pending range becomes another one: nobody goes on reading the old.
    await write(
      `with cut as (delete from index_backlog where network = $1 and to_block > $2
                    returning from_block, purpose, contracts)
       insert into index_backlog (network, from_block, to_block, purpose, contracts)
       select $1, from_block, $2, purpose, contracts from cut where from_block <= $2`,
      endsAt,
    );
    await write('delete from index_failure where network = $1 and from_block > $2', endsAt);
    await write('update index_failure set to_block = $2 where network = $1 and to_block > $2', endsAt);
  }
  if (replaced.length > 0)
    await write('delete from index_backlog where network = $1 and id = any($2)', replaced);
  for (const { from, to, purpose, contracts } of step.pending ?? [])
    await write(
      'insert into index_backlog (network, from_block, to_block, purpose, contracts) values ($1, $2, $3, $4, $5)',
      ...[from, to, purpose, contracts],
    );
  if (done) {
    const { id, from } = done;
    await write('delete from index_backlog where network = $1 and id = $2 and from_block >= $3', id, from);
    await write('update index_backlog set to_block = $3 where network = $1 and id = $2', id, from - 1);
  }
  for (const { from, to, purpose, contracts, reason, retryInMs, since = null } of step.failed ?? [])
    await write(
      `insert into index_failure
         (network, from_block, to_block, purpose, contracts, reason, retry_at, first_failed_at)
       values ($1, $2, $3, $4, $5, $6, now() + make_interval(secs => $7 / 1000.0), coalesce($8, now()))`,
      ...[from, to, purpose, contracts, reason, retryInMs, since],
    );
  if (recovered.length > 0)
    await write('delete from index_failure where network = $1 and id = any($2)', recovered);
  for (const { id, reason, retryInMs } of step.postponed ?? [])
    await write(
      `update index_failure
       set failures = failures + 1, reason = $3, retry_at = now() + make_interval(secs => $4 / 1000.0)
       where network = $1 and id = $2`,
      ...[id, reason, retryInMs],
    );
  // Except for blocks that are pending, or have failed, in any case.
  if (step.rescanUnreadable)
    await write(
      `insert into index_backlog (network, from_block, to_block, purpose, contracts)
       select $1, block_number, block_number, 'contracts', array_agg(distinct address)
       from index_unreadable u
       where network = $1 and not exists (
         select from (select network, from_block, to_block, contracts from index_backlog
                      union all select network, from_block, to_block, contracts from index_failure) pending
         where network = $1 and u.block_number between from_block and to_block
           and (contracts is null or u.address = any(contracts)))
       group by block_number`,
    );
  await writeUnreadableLogs(write, step);
}

async function writeUnreadableLogs(
  write: (text: string, ...values: readonly unknown[]) => Promise<unknown>,
  { unreadable: logs = [], read }: RangesStep,
): Promise<void> {
  if (read)
    await write(
      `delete from index_unreadable
       where network = $1 and block_number between $2 and $3 and ($4::text[] is null or address = any($4))
         and (block_hash, transaction_hash, log_index) not in (select * from unnest($5::text[], $6::text[], $7::integer[]))`,
      ...[read.from, read.to, read.contracts],
      ...columnsOf(logs, 'blockHash', 'transactionHash', 'logIndex'),
    );
  for (const { blockHash, logIndex, blockNumber, transactionHash, address, topics, data, reason } of logs)
    await write(
      `insert into index_unreadable
         (network, block_hash, log_index, block_number, transaction_hash, address, topics, data, reason)
       values ($1, $2, $3, $4, $5, $6, $7, $8, $9)
       on conflict (network, block_hash, transaction_hash, log_index) do update set reason = excluded.reason`,
      ...[blockHash, logIndex, blockNumber, transactionHash, address, topics, data, reason],
    );
}
