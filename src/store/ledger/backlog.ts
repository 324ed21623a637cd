/** The backlog (`index_backlog`): ranges of blocks that have not been read. Each is read from its upper end down. */
import type { ClientBase } from 'pg';
import { type BlockRange, type PendingRange, parseRange, rangeColumns } from './block-range.ts';

/**
 * All of it in the order in which it is to be read. Routers' history comes first: it names the contracts whose logs the
 * other ranges are read for. Ranges of single contracts come last, when all contracts that history names are known.
 */
export async function readPendingRanges(
  client: ClientBase,
  network: string,
): Promise<readonly PendingRange[]> {
  const { rows } = await client.query(
    `select ${rangeColumns} from index_backlog where network = $1
     order by array_position(array['routers', 'history', 'contracts'], purpose), to_block desc, id`,
    [network],
  );
  return rows.map(parseRange);
}

export async function removeFromBacklog(
  client: ClientBase,
  network: string,
  ids: readonly string[],
): Promise<void> {
  if (ids.length === 0) return;
  await client.query('delete from index_backlog where network = $1 and id = any($2)', [network, ids]);
}

/** Drops the history below the start block. */
export async function trimBacklog(client: ClientBase, network: string, startBlock: number): Promise<void> {
  const history = `network = $1 and purpose = 'history'`;
  await client.query(`delete from index_backlog where ${history} and to_block < $2`, [network, startBlock]);
  await client.query(`update index_backlog set from_block = $2 where ${history} and from_block < $2`, [
    network,
    startBlock,
  ]);
}

export async function addToBacklog(
  client: ClientBase,
  network: string,
  ranges: readonly BlockRange[],
): Promise<void> {
  for (const range of ranges) {
    await client.query(
      `insert into index_backlog (network, from_block, to_block, purpose, contracts) values ($1, $2, $3, $4, $5)`,
      [network, range.from, range.to, range.purpose, range.contracts],
    );
  }
}

/** Removes the piece from `from` up to the upper end of a range. */
export async function shortenBacklog(
  client: ClientBase,
  network: string,
  { id, from }: { readonly id: string; readonly from: number },
): Promise<void> {
  await client.query('delete from index_backlog where network = $1 and id = $2 and from_block >= $3', [
    network,
    id,
    from,
  ]);
  await client.query('update index_backlog set to_block = $3 where network = $1 and id = $2', [
    network,
    id,
    from - 1,
  ]);
}

/** Drops the blocks above the end of the chain. What is left of a range is another one: nobody goes on reading the old. */
export async function endBacklogAt(client: ClientBase, network: string, end: number): Promise<void> {
  await client.query(
    `with cut as (delete from index_backlog where network = $1 and to_block > $2
                  returning from_block, purpose, contracts)
     insert into index_backlog (network, from_block, to_block, purpose, contracts)
     select $1, from_block, $2, purpose, contracts from cut where from_block <= $2`,
    [network, end],
  );
}
