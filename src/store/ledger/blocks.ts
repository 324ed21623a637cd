/** Blocks that a reorganisation may still replace, and the newest final one below them (`index_block`). */
import type { ClientBase } from 'pg';

export interface BlockId {
  readonly number: number;
  readonly hash: string;
}

export async function readBlocks(client: ClientBase, network: string): Promise<readonly BlockId[]> {
  const { rows } = await client.query(
    'select number, hash from index_block where network = $1 order by number',
    [network],
  );
  return rows.map((row) => ({ number: Number(row.number), hash: row.hash }));
}

export async function removeOrphanedBlocks(
  client: ClientBase,
  network: string,
  hashes: readonly string[],
): Promise<void> {
  if (hashes.length === 0) return;
  await client.query('delete from index_block where network = $1 and hash = any($2)', [network, hashes]);
}

export async function addBlocks(
  client: ClientBase,
  network: string,
  blocks: readonly BlockId[],
): Promise<void> {
  if (blocks.length === 0) return;
  await client.query(
    `insert into index_block (network, number, hash) select $1, * from unnest($2::bigint[], $3::text[])
     on conflict (network, number) do update set hash = excluded.hash`,
    [network, blocks.map(({ number }) => number), blocks.map(({ hash }) => hash)],
  );
}

export async function removeBlocksBelow(client: ClientBase, network: string, height: number): Promise<void> {
  await client.query('delete from index_block where network = $1 and number < $2', [network, height]);
}
