/** What a consistency check of a network reads from the store: findings, registrations, and what the records have. */
import type { ClientBase } from 'pg';
import type { NumberRun } from '../../domain/missing-numbers.ts';
import { storedSelector } from '../write/message-row.ts';
import type { BlockId } from './blocks.ts';
import {
  type LaneCounter,
  type LaneKey,
  readBlocksAbove,
  readCommittedEnds,
  readCommittedRuns,
  readSendBlock,
  readSentRuns,
  readSentRunsBetween,
} from './counters.ts';
import { type AwaitingExecution, readBelowStatus, readUnexecuted } from './facts.ts';
import { readFindings, type StoredFinding } from './findings.ts';
import { type RampRegistration, readRegistrations } from './registrations.ts';

export interface Workload {
  /** Ranges that have not been read. */
  readonly pending: number;
  /** Ranges on the ledger of failures. */
  readonly failed: number;
  /** Whether history of other networks has not been read: commits that they tell of are yet to come. */
  readonly isElsewhere: boolean;
}

export interface CheckLedger {
  workload(network: string): Promise<Workload>;
  findings(network: string): Promise<readonly StoredFinding[]>;
  registrations(network: string): Promise<readonly RampRegistration[]>;
  /** Milliseconds since the counters of a network were last compared; null where they never were. */
  checkAgeMs(network: string): Promise<number | null>;
  sentRuns(lane: LaneKey): Promise<readonly NumberRun[]>;
  /** Of messages that a chain has shown in these blocks, both ends included. */
  sentRunsBetween(
    lane: LaneKey,
    blocks: { readonly from: number; readonly to: number },
  ): Promise<readonly NumberRun[]>;
  committedRuns(lane: LaneKey): Promise<readonly NumberRun[]>;
  committedEnds(source: string): Promise<readonly (LaneKey & { readonly last: string })[]>;
  /** Blocks of a network with messages, or commits, of a lane above this number, from the lowest number on. */
  blocksAbove(network: string, lane: LaneCounter, limit: number): Promise<readonly BlockId[]>;
  sendBlock(lane: LaneKey, sequenceNumber: string): Promise<number | undefined>;
  /** Messages to this network whose execution was not seen, by their ids, which are above `after`. */
  unexecuted(network: string, after: string | null, limit: number): Promise<readonly AwaitingExecution[]>;
  /** Those of these messages (ids in hex) that have not reached a status by the records. */
  belowStatus(messageIds: readonly string[], status: 'FAILED' | 'SUCCESS'): Promise<ReadonlySet<string>>;
  /** How many logs of a contract are kept because they could not be decoded. */
  unreadableLogs(network: string, contract: string): Promise<number>;
  /** Logs of a contract that are kept under one of these first topics, in the order of their blocks. */
  keptLogs(network: string, contract: string, topics: readonly string[]): Promise<readonly KeptLog[]>;
}

export interface KeptLog {
  readonly blockNumber: number;
  readonly topics: readonly string[];
}

export function createCheckLedger(
  withReader: <T>(use: (client: ClientBase) => Promise<T>) => Promise<T>,
): CheckLedger {
  return {
    workload: (network) =>
      withReader(async (client) => {
        const { rows } = await client.query(
          `select (select count(*)::int from index_backlog where network = $1) as pending,
                  (select count(*)::int from index_failure where network = $1) as failed,
                  exists (select from index_backlog where network <> $1)
                    or exists (select from index_network where selector <> $1 and followed_from is null)
                    as "isElsewhere"`,
          [storedSelector(network)],
        );
        return rows[0];
      }),
    findings: (network) => withReader((client) => readFindings(client, storedSelector(network))),
    unexecuted: (network, after, limit) =>
      withReader((client) => readUnexecuted(client, storedSelector(network), after, limit)),
    belowStatus: async (messageIds, status) =>
      new Set(
        messageIds.length === 0
          ? []
          : await withReader((client) => readBelowStatus(client, messageIds, status)),
      ),
    registrations: (network) => withReader((client) => readRegistrations(client, storedSelector(network))),
    checkAgeMs: (network) =>
      withReader(async (client) => {
        const { rows } = await client.query(
          `select extract(epoch from clock_timestamp() - max(checked_at)) * 1000 as age from index_counter
           where (source_selector = $1 and kind = 'sent') or (dest_selector = $1 and kind = 'committed')`,
          [storedSelector(network)],
        );
        return rows[0].age === null ? null : Number(rows[0].age);
      }),
    sentRuns: (lane) => withReader((client) => readSentRuns(client, lane)),
    sentRunsBetween: (lane, blocks) => withReader((client) => readSentRunsBetween(client, lane, blocks)),
    committedRuns: (lane) => withReader((client) => readCommittedRuns(client, lane)),
    committedEnds: (source) => withReader((client) => readCommittedEnds(client, source)),
    blocksAbove: (network, lane, limit) =>
      withReader((client) => readBlocksAbove(client, storedSelector(network), lane, limit)),
    sendBlock: (lane, sequenceNumber) => withReader((client) => readSendBlock(client, lane, sequenceNumber)),
    unreadableLogs: (network, contract) =>
      withReader(async (client) => {
        const { rows } = await client.query(
          'select count(*)::int as logs from index_unreadable where network = $1 and address = $2',
          [storedSelector(network), contract],
        );
        return rows[0].logs;
      }),
    keptLogs: (network, contract, topics) =>
      withReader(async (client) => {
        const { rows } = await client.query(
          `select block_number as "blockNumber", topics from index_unreadable
           where network = $1 and address = $2 and topics[1] = any($3) order by block_number, log_index`,
          [storedSelector(network), contract, topics],
        );
        return rows.map((row) => ({ ...row, blockNumber: Number(row.blockNumber) }));
      }),
  };
}
