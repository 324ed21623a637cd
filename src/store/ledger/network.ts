/** The row of a network (`index_network`): its lease, where its history begins, and its counters. */
import type { ClientBase } from 'pg';
import { createLeases, LeaseLostError } from './lease.ts';

export const networkLeases = createLeases({
  table: 'index_network',
  keyColumn: 'selector',
  untilColumn: 'lease_until',
  renewedValues: { seen_at: 'clock_timestamp()' },
});

export interface NetworkRow {
  readonly startBlock: number | null;
  /** Where following the head began; null where nothing has been read. */
  readonly followedFrom: number | null;
  /** The earliest event of a router that was found so far. */
  readonly firstRouterBlock: number | null;
  readonly foreignLogs: number;
  /** Whether executions were read without their details, by an earlier version. */
  readonly lacksAttempts: boolean;
}

export interface NetworkUpdate {
  readonly startBlock?: number | undefined;
  /** Only the first counts. */
  readonly followedFrom?: number | undefined;
  /** Only the lowest counts. */
  readonly routerBlock?: number | undefined;
  /** Added to the counter. */
  readonly untrusted?: number | undefined;
  /** False once the details of earlier executions are pending. */
  readonly lacksAttempts?: false | undefined;
}

export async function readNetworkRow(client: ClientBase, network: string): Promise<NetworkRow> {
  const { rows } = await client.query(
    `select start_block, followed_from, first_router_block, foreign_logs, lacks_attempts
     from index_network where selector = $1`,
    [network],
  );
  const [row] = rows;
  const block = (value: unknown) => (value == null ? null : Number(value));
  return {
    startBlock: block(row?.start_block),
    followedFrom: block(row?.followed_from),
    firstRouterBlock: block(row?.first_router_block),
    foreignLogs: Number(row?.foreign_logs ?? 0),
    lacksAttempts: row?.lacks_attempts === true,
  };
}

/** Throws a LeaseLostError unless `holder` has the lease. The row lock keeps the lease until the transaction ends. */
export async function updateNetworkRow(
  client: ClientBase,
  network: string,
  holder: string,
  { startBlock, followedFrom, routerBlock, untrusted = 0, lacksAttempts }: NetworkUpdate,
): Promise<void> {
  const { rowCount } = await client.query(
    `update index_network
     set start_block = coalesce($3, start_block), followed_from = coalesce(followed_from, $4),
         first_router_block = least(first_router_block, $5), foreign_logs = foreign_logs + $6,
         lacks_attempts = coalesce($7, lacks_attempts)
     where selector = $1 and ${networkLeases.isHeldBySql('$2')}`,
    [
      network,
      holder,
      startBlock ?? null,
      followedFrom ?? null,
      routerBlock ?? null,
      untrusted,
      lacksAttempts ?? null,
    ],
  );
  if (rowCount !== 1)
    throw new LeaseLostError(
      'The lease on this network has expired, or another indexer has it; asking for it again',
    );
}
