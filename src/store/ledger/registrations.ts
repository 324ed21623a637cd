/** Ramps that routers name (`index_registration`): by an event of their history, or by their views alone. */
import type { ClientBase } from 'pg';
import { selectorOf, storedSelector } from '../write/message-row.ts';

export interface RampRegistration {
  readonly contract: string;
  readonly role: string;
  /** Selector of the chain at the other end. */
  readonly remote: string;
  /** The block of a router's event that names it; null where only a view does. */
  readonly blockNumber: number | null;
}

export async function readRegistrations(
  client: ClientBase,
  network: string,
): Promise<readonly RampRegistration[]> {
  const { rows } = await client.query(
    'select contract, role, remote, block_number from index_registration where network = $1 order by contract, remote',
    [network],
  );
  return rows.map((row) => ({
    contract: row.contract,
    role: row.role,
    remote: selectorOf(row.remote),
    blockNumber: row.block_number === null ? null : Number(row.block_number),
  }));
}

/** Of several events, the lowest block is kept. */
export async function writeRegistrations(
  client: ClientBase,
  network: string,
  registrations: readonly RampRegistration[],
): Promise<void> {
  for (const { contract, role, remote, blockNumber } of registrations) {
    await client.query(
      `insert into index_registration (network, contract, remote, role, block_number) values ($1, $2, $3, $4, $5)
       on conflict (network, contract, remote)
       do update set block_number = least(index_registration.block_number, excluded.block_number)`,
      [network, contract, storedSelector(remote), role, blockNumber],
    );
  }
}
