/** The backlog (`index_backlog`): ranges of blocks that have not been read. Each is read from its upper end down. */
import type { ClientBase } from 'pg';
import { type BlockRange, type OwedRange, parseRange, rangeColumns } from './block-range.ts';

/** Routers' history comes first: it names the contracts whose logs the other ranges are read for. */
export async function readNextOwed(client: ClientBase, network: string): Promise<OwedRange | undefined> {
  const { rows } = await client.query(
    `select ${rangeColumns} from index_backlog where network = $1
     order by purpose = 'routers' desc, to_block desc, id limit 1`,
    [network],
  );
  return rows[0] && parseRange(rows[0]);
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
