/** What a consistency check of a network reads from the store: findings, registrations, and what the records have. */
import type { ClientBase } from 'pg';
import { storedSelector } from '../write/message-row.ts';
import { readRegistrations } from './chain-state.ts';
import {
  readBlocksAbove,
  readCommittedEnds,
  readCommittedRuns,
  readSendBlock,
  readSentRuns,
  readSentRunsBetween,
} from './counters.ts';
import { readBelowStatus, readUnexecuted } from './facts.ts';
import { readFindings } from './findings.ts';

export interface Workload {
  /** Ranges that have not been read. */
  readonly pending: number;
  /** Ranges on the ledger of failures. */
  readonly failed: number;
  /** Whether history of other networks has not been read: commits that they tell of are yet to come. */
  readonly isElsewhere: boolean;
}

export interface KeptLog {
  readonly blockNumber: number;
  readonly topics: readonly string[];
}

export type CheckLedger = ReturnType<typeof createCheckLedger>;

export function createCheckLedger(withReader: <T>(use: (client: ClientBase) => Promise<T>) => Promise<T>) {
  const read =
    <Args extends readonly unknown[], T>(query: (client: ClientBase, ...args: Args) => Promise<T>) =>
    (...args: Args): Promise<T> =>
      withReader((client) => query(client, ...args));
  const readOfNetwork =
    <Args extends readonly unknown[], T>(
      query: (client: ClientBase, network: string, ...args: Args) => Promise<T>,
    ) =>
    (network: string, ...args: Args): Promise<T> =>
      withReader((client) => query(client, storedSelector(network), ...args));
  return {
    workload: readOfNetwork(async (client, network): Promise<Workload> => {
      const { rows } = await client.query(
        `select (select count(*)::int from index_backlog where network = $1) as pending,
                (select count(*)::int from index_failure where network = $1) as failed,
                exists (select from index_backlog where network <> $1)
                  or exists (select from index_network where selector <> $1 and followed_from is null)
                  as "isElsewhere"`,
        [network],
      );
      return rows[0];
    }),
    findings: readOfNetwork(readFindings),
    unexecuted: readOfNetwork(readUnexecuted),
    belowStatus: read(readBelowStatus),
    registrations: readOfNetwork(readRegistrations),
    /** Milliseconds since the counters of a network were last compared; null where they never were. */
    checkAgeMs: readOfNetwork(async (client, network): Promise<number | null> => {
      const { rows } = await client.query(
        `select extract(epoch from clock_timestamp() - max(checked_at)) * 1000 as age from index_counter
         where (source_selector = $1 and kind = 'sent') or (dest_selector = $1 and kind = 'committed')`,
        [network],
      );
      return rows[0].age === null ? null : Number(rows[0].age);
    }),
    sentRuns: read(readSentRuns),
    sentRunsBetween: read(readSentRunsBetween),
    committedRuns: read(readCommittedRuns),
    committedEnds: read(readCommittedEnds),
    blocksAbove: readOfNetwork(readBlocksAbove),
    sendBlock: read(readSendBlock),
    /** How many logs of a contract are kept because they could not be decoded. */
    unreadableLogs: readOfNetwork(async (client, network, contract: string): Promise<number> => {
      const { rows } = await client.query(
        'select count(*)::int as logs from index_unreadable where network = $1 and address = $2',
        [network, contract],
      );
      return rows[0].logs;
    }),
    /** Logs of a contract that are kept under one of these first topics, in the order of their blocks. */
    keptLogs: readOfNetwork(
      async (client, network, contract: string, topics: readonly string[]): Promise<readonly KeptLog[]> => {
        const { rows } = await client.query(
          `select block_number as "blockNumber", topics from index_unreadable
           where network = $1 and address = $2 and topics[1] = any($3) order by block_number, log_index`,
          [network, contract, topics],
        );
        return rows.map((row) => ({ ...row, blockNumber: Number(row.blockNumber) }));
      },
    ),
  };
}
