/** Logs of trusted contracts that no decoder understands (`index_unreadable`), kept whole for a version that does. */
import type { ClientBase } from 'pg';
import type { BlockRange } from './block-range.ts';

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

export async function removeOrphanedLogs(
  client: ClientBase,
  network: string,
  hashes: readonly string[],
): Promise<void> {
  if (hashes.length === 0) return;
  await client.query('delete from index_unreadable where network = $1 and block_hash = any($2)', [
    network,
    hashes,
  ]);
}

/** Puts the blocks of all unreadable logs on the backlog, except those that are on it or on the ledger of failures. */
export async function rescanUnreadableLogs(client: ClientBase, network: string): Promise<void> {
  await client.query(
    `insert into index_backlog (network, from_block, to_block, purpose, contracts)
     select $1, block_number, block_number, 'contracts', array_agg(distinct address)
     from index_unreadable u
     where network = $1 and not exists (
       select from (select network, from_block, to_block, contracts from index_backlog
                    union all select network, from_block, to_block, contracts from index_failure) pending
       where network = $1 and u.block_number between from_block and to_block
         and (contracts is null or u.address = any(contracts)))
     group by block_number`,
    [network],
  );
}

/** Of the blocks that were read (again), only these logs are still unreadable. */
export async function writeUnreadableLogs(
  client: ClientBase,
  network: string,
  logs: readonly UnreadableLog[],
  read: BlockRange | undefined,
): Promise<void> {
  if (read) {
    await client.query(
      `delete from index_unreadable
       where network = $1 and block_number between $2 and $3 and ($4::text[] is null or address = any($4))
         and (block_hash, transaction_hash, log_index) not in (select * from unnest($5::text[], $6::text[], $7::integer[]))`,
      [
        network,
        read.from,
        read.to,
        read.contracts,
        logs.map(({ blockHash }) => blockHash),
        logs.map(({ transactionHash }) => transactionHash),
        logs.map(({ logIndex }) => logIndex),
      ],
    );
  }
  for (const log of logs) {
    await client.query(
      `insert into index_unreadable
         (network, block_hash, log_index, block_number, transaction_hash, address, topics, data, reason)
       values ($1, $2, $3, $4, $5, $6, $7, $8, $9)
       on conflict (network, block_hash, transaction_hash, log_index) do update set reason = excluded.reason`,
      [
        network,
        log.blockHash,
        log.logIndex,
        log.blockNumber,
        log.transactionHash,
        log.address,
        log.topics,
        log.data,
        log.reason,
      ],
    );
  }
}
