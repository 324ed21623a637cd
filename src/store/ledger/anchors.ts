/** Anchors (`index_anchor`): transactions of an address from which a list, newest first, can be continued downwards. */
import type { ClientBase } from 'pg';

export interface Anchor {
  readonly address: string;
  readonly blockNumber: number;
  readonly transactionHash: string;
}

/** Of each address, from the highest block down. */
export async function readAnchors(client: ClientBase, network: string): Promise<readonly Anchor[]> {
  const { rows } = await client.query(
    `select address, block_number, transaction_hash from index_anchor where network = $1
     order by address, block_number desc`,
    [network],
  );
  return rows.map((row) => ({
    address: row.address,
    blockNumber: Number(row.block_number),
    transactionHash: row.transaction_hash,
  }));
}

/** One a block: any of its transactions serves. */
export async function addAnchors(
  client: ClientBase,
  network: string,
  anchors: readonly Anchor[],
): Promise<void> {
  if (anchors.length === 0) return;
  await client.query(
    `insert into index_anchor (network, address, block_number, transaction_hash)
     select $1, * from unnest($2::text[], $3::bigint[], $4::text[])
     on conflict (network, address, block_number) do update set transaction_hash = excluded.transaction_hash`,
    [
      network,
      anchors.map(({ address }) => address),
      anchors.map(({ blockNumber }) => blockNumber),
      anchors.map(({ transactionHash }) => transactionHash),
    ],
  );
}
