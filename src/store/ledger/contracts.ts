/** Trusted contracts (`index_contract`): routers of the configuration, and what a trusted contract registered. */
import type { ClientBase } from 'pg';

/** `body` is opaque here: the chain family writes and reads it. */
export interface RegisteredContract {
  readonly address: string;
  /** Null for a router of the configuration. */
  readonly namedBy: string | null;
  /** The block that registered it, while a reorganisation may replace that block; null once it is final. */
  readonly blockHash: string | null;
  readonly body: unknown;
}

export async function readContracts(
  client: ClientBase,
  network: string,
): Promise<readonly RegisteredContract[]> {
  const { rows } = await client.query(
    'select address, named_by, block_hash, body from index_contract where network = $1 order by address',
    [network],
  );
  return rows.map((row) => ({
    address: row.address,
    namedBy: row.named_by,
    blockHash: row.block_hash,
    body: JSON.parse(row.body),
  }));
}

export async function removeOrphanedContracts(
  client: ClientBase,
  network: string,
  hashes: readonly string[],
): Promise<void> {
  if (hashes.length === 0) return;
  await client.query('delete from index_contract where network = $1 and block_hash = any($2)', [
    network,
    hashes,
  ]);
}

/** Marks contracts as final that a block below `height` registered. Call it before those blocks are removed. */
export async function confirmContractsBelow(
  client: ClientBase,
  network: string,
  height: number,
): Promise<void> {
  await client.query(
    `update index_contract set block_hash = null
     where network = $1 and block_hash in (select hash from index_block where network = $1 and number < $2)`,
    [network, height],
  );
}

/** A contract that is known already stays as it is. */
export async function addContracts(
  client: ClientBase,
  network: string,
  contracts: readonly RegisteredContract[],
): Promise<void> {
  if (contracts.length === 0) return;
  await client.query(
    `insert into index_contract (network, address, named_by, block_hash, body)
     select $1, * from unnest($2::text[], $3::text[], $4::text[], $5::text[])
     on conflict do nothing`,
    [
      network,
      contracts.map(({ address }) => address),
      contracts.map(({ namedBy }) => namedBy),
      contracts.map(({ blockHash }) => blockHash),
      contracts.map(({ body }) => JSON.stringify(body)),
    ],
  );
}
