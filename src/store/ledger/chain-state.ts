/** What the indexer holds of a chain: blocks, trusted contracts, anchors of lists, and registrations of ramps. */
import type { ClientBase } from 'pg';
import { readWith } from '../reads/reads.ts';
import { columnsOf } from '../sql.ts';
import { selectorOf, storedSelector } from '../write/message-row.ts';

export interface BlockId {
  readonly number: number;
  readonly hash: string;
}

/**
 * A router of the configuration, or a contract that a trusted one registered (`index_contract`). `body` is opaque here: the
 * chain family writes and reads it.
 */
export interface RegisteredContract {
  readonly address: string;
  /** Null for a router of the configuration. */
  readonly namedBy: string | null;
  /** The block that registered it, while a reorganisation may replace that block; null once it is final. */
  readonly blockHash: string | null;
  readonly body: unknown;
}

/** A transaction of an address from which a list, newest first, can be continued downwards (`index_anchor`). */
export interface Anchor {
  readonly address: string;
  readonly blockNumber: number;
  readonly transactionHash: string;
}

/** A ramp registered by a router (`index_registration`). */
export interface RampRegistration {
  readonly contract: string;
  readonly role: string;
  /** Selector of the chain at the other end. */
  readonly remote: string;
  /** The block of the router's event; null where only a view lists the ramp. */
  readonly blockNumber: number | null;
}

export interface ChainState {
  /** By height; the last is the checkpoint. Empty where nothing has been read. */
  readonly blocks: readonly BlockId[];
  readonly contracts: readonly RegisteredContract[];
  /** Of each address, from the highest block down. */
  readonly anchors: readonly Anchor[];
}

export interface ChainStateStep {
  /** Hashes of blocks that a reorganisation replaced: every fact that was seen in them is retracted. */
  readonly orphaned?: readonly string[];
  /** Blocks that were read and may still be replaced. */
  readonly blocks?: readonly BlockId[];
  /** Blocks below this height are final and are removed from the ledger. */
  readonly forgetBelow?: number;
  /** A contract that is known already stays as it is. */
  readonly contracts?: readonly RegisteredContract[];
  /** Transactions from which lists can be continued. One a block: any of its transactions serves. */
  readonly anchors?: readonly Anchor[];
  /** Of several events of a ramp, the lowest block is kept. */
  readonly registrations?: readonly RampRegistration[];
}

export async function readChainState(client: ClientBase, network: string): Promise<ChainState> {
  const read = async (text: string) => (await client.query(text, [network])).rows;
  const contracts = await read(
    `select address, named_by as "namedBy", block_hash as "blockHash", body from index_contract
     where network = $1 order by address`,
  );
  return {
    blocks: await read(
      'select number::float8 as number, hash from index_block where network = $1 order by index_block.number',
    ),
    contracts: contracts.map((row) => ({ ...row, body: JSON.parse(row.body) })),
    anchors: await read(
      `select address, block_number::float8 as "blockNumber", transaction_hash as "transactionHash" from index_anchor
       where network = $1 order by address, block_number desc`,
    ),
  };
}

export async function readRegistrations(client: ClientBase, network: string) {
  const rows = await readWith(client)<RampRegistration>(
    `select contract, role, remote, block_number::float8 as "blockNumber" from index_registration
     where network = $1 order by contract, remote`,
    [network],
  );
  return rows.map((row) => ({ ...row, remote: selectorOf(row.remote) }));
}

export async function writeChainState(client: ClientBase, network: string, step: ChainStateStep) {
  const { orphaned = [], blocks = [], forgetBelow, contracts = [], anchors = [], registrations = [] } = step;
  const write = (text: string, ...values: readonly unknown[]) => client.query(text, [network, ...values]);

  if (orphaned.length > 0) {
    await write('delete from index_block where network = $1 and hash = any($2)', orphaned);
    await write('delete from index_contract where network = $1 and block_hash = any($2)', orphaned);
  }
  if (blocks.length > 0)
    await write(
      `insert into index_block (network, number, hash) select $1, * from unnest($2::bigint[], $3::text[])
       on conflict (network, number) do update set hash = excluded.hash`,
      ...columnsOf(blocks, 'number', 'hash'),
    );
  if (forgetBelow !== undefined) {
    await write(
      `update index_contract set block_hash = null
       where network = $1 and block_hash in (select hash from index_block where network = $1 and number < $2)`,
      forgetBelow,
    );
    await write('delete from index_block where network = $1 and number < $2', forgetBelow);
  }
  if (contracts.length > 0)
    await write(
      `insert into index_contract (network, address, named_by, block_hash, body)
       select $1, * from unnest($2::text[], $3::text[], $4::text[], $5::text[])
       on conflict do nothing`,
      ...columnsOf(contracts, 'address', 'namedBy', 'blockHash'),
      contracts.map(({ body }) => JSON.stringify(body)),
    );
  if (anchors.length > 0)
    await write(
      `insert into index_anchor (network, address, block_number, transaction_hash)
       select $1, * from unnest($2::text[], $3::bigint[], $4::text[])
       on conflict (network, address, block_number) do update set transaction_hash = excluded.transaction_hash`,
      ...columnsOf(anchors, 'address', 'blockNumber', 'transactionHash'),
    );
  for (const { contract, role, remote, blockNumber } of registrations)
    await write(
      `insert into index_registration (network, contract, remote, role, block_number) values ($1, $2, $3, $4, $5)
       on conflict (network, contract, remote)
       do update set block_number = least(index_registration.block_number, excluded.block_number)`,
      ...[contract, storedSelector(remote), role, blockNumber],
    );
}
