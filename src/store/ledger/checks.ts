/**
 * Consistency checks of a network: numbers that contracts count by themselves (`index_counter`), open findings about its
 * completeness (`index_finding`), and what the records have of each lane.
 */
import type { ClientBase } from 'pg';
import type { Status } from '../../domain/lifecycle.ts';
import type { NumberRun } from '../../domain/missing-numbers.ts';
import { type FindingKind, findingKindOf } from '../../domain/networks/index-findings.ts';
import { hashText } from '../facts/hash-bytes.ts';
import { kindNumbers } from '../facts/kinds.ts';
import { readUsing } from '../reads/reads.ts';
import type { UseClient } from '../server/client.ts';
import { selectorOf, storedSelector } from '../write/message-row.ts';
import { type BlockId, readRegistrations } from './chain-state.ts';
import { readBelowStatus, readUnexecuted } from './facts.ts';

export interface LaneKey {
  readonly sourceSelector: string;
  readonly destSelector: string;
  /** Canonical bytes in hex. */
  readonly onramp: string;
}

export interface LaneCounter extends LaneKey {
  readonly kind: 'sent' | 'committed';
  readonly lastNumber: string;
  /** Whether everything from number 1 on is expected. */
  readonly isWhole: boolean;
}

export interface FindingKey {
  readonly kind: FindingKind;
  /** What it is about, such as an address; one finding for each kind and subject. */
  readonly subject: string;
}

export interface IndexFinding extends FindingKey {
  /** For operators: it may name hosts. */
  readonly detail: string;
  /** What the chain family needs to look at it again, as JSON. */
  readonly body?: unknown;
  /** Endpoints from which the blocks were read since, in vain. */
  readonly tried?: readonly string[];
  readonly attempts?: number;
  /** Milliseconds until the blocks are read again. */
  readonly retryInMs?: number;
}

export interface StoredFinding extends IndexFinding {
  readonly tried: readonly string[];
  readonly attempts: number;
  readonly foundAt: Date;
  /** Whether it is time to read the blocks again. */
  readonly isDue: boolean;
}

export interface ChecksStep {
  readonly counters?: readonly LaneCounter[];
  /** Added, or changed where they are open already. */
  readonly findings?: readonly IndexFinding[];
  /** Findings that hold no longer. */
  readonly resolved?: readonly FindingKey[];
}

export type CheckLedger = ReturnType<typeof createCheckLedger>;

/** SQL condition on a lane: `laneValues`. */
const OF_LANE = `source_selector = $1 and dest_selector = $2 and onramp = decode($3, 'hex')`;
/** More runs than a lane can have holes worth reporting. */
const MAX_RUNS = 10_000;
/** SQL of a record's member; PostgreSQL's JSON functions reject some texts that records may have. */
const SEND_BLOCK = `substring(record from '"sendBlockNumber":([0-9]{1,16})[,}]')::bigint`;

export function createCheckLedger(withReader: UseClient) {
  const read = readUsing(withReader);
  const readOne = async <R>(text: string, values: readonly unknown[]) =>
    (await read<R>(text, values))[0] as R;
  const readRuns = (text: string, lane: LaneKey, ...values: readonly unknown[]) =>
    read<NumberRun>(text, [...laneValues(lane), ...values]);
  return {
    /**
     * Ranges that have not been read, ranges on the ledger of failures, and whether history of other networks has not been
     * read: commits that they tell of are yet to come.
     */
    workload: (network: string) =>
      readOne<{ readonly pending: number; readonly failed: number; readonly isElsewhere: boolean }>(
        `select (select count(*)::int from index_backlog where network = $1) as pending,
                (select count(*)::int from index_failure where network = $1) as failed,
                exists (select from index_backlog where network <> $1)
                  or exists (select from index_network where selector <> $1 and followed_from is null)
                  as "isElsewhere"`,
        [storedSelector(network)],
      ),
    async findings(network: string): Promise<readonly StoredFinding[]> {
      const rows = await read<StoredFinding & { readonly body: string | null }>(
        `select kind, subject, detail, body, found_at as "foundAt", tried, attempts,
                coalesce(retry_at <= now(), true) as "isDue"
         from index_finding where network = $1 order by kind, subject`,
        [storedSelector(network)],
      );
      return rows
        .filter(({ kind }) => findingKindOf(kind))
        .map((row) => ({ ...row, body: row.body === null ? undefined : JSON.parse(row.body) }));
    },
    unexecuted: (network: string, after: string | null, limit: number) =>
      withReader((client) => readUnexecuted(client, storedSelector(network), after, limit)),
    belowStatus: (messageIds: readonly string[], status: Status) =>
      withReader((client) => readBelowStatus(client, messageIds, status)),
    registrations: (network: string) =>
      withReader((client) => readRegistrations(client, storedSelector(network))),
    /** Milliseconds since the counters of a network were last compared; null where they never were. */
    async checkAgeMs(network: string) {
      const { age } = await readOne<{ readonly age: number | null }>(
        `select (extract(epoch from clock_timestamp() - max(checked_at)) * 1000)::float8 as age from index_counter
         where (source_selector = $1 and kind = 'sent') or (dest_selector = $1 and kind = 'committed')`,
        [storedSelector(network)],
      );
      return age;
    },
    /** Runs of the numbers of messages that are recorded, the lowest first. */
    sentRuns: (lane: LaneKey) =>
      readRuns(
        `select from_sequence as "from", to_sequence as "to" from lane_run where ${OF_LANE}
         order by from_sequence limit ${MAX_RUNS}`,
        lane,
      ),
    /**
     * The same, of messages that were sent in these blocks, both ends included, and that a chain has shown: what imports say
     * alone does not count. Reads every message of the lane.
     */
    sentRunsBetween: (lane: LaneKey, { from, to }: { readonly from: number; readonly to: number }) =>
      readRuns(
        mergedRuns(`select numrange(sequence_number, sequence_number + 1) as run from message
                    where ${OF_LANE} and not is_snapshot and ${SEND_BLOCK} between $4 and $5`),
        lane,
        from,
        to,
      ),
    /** Runs of the numbers that commits cover, the lowest first. A blessing covers nothing that was not committed. */
    committedRuns: (lane: LaneKey) =>
      readRuns(
        mergedRuns(`select numrange(from_sequence, to_sequence + 1) as run from lane_fact where ${OF_LANE}`),
        lane,
      ),
    /** The highest committed number of each lane from a network. */
    async committedEnds(network: string) {
      const rows = await read<{ readonly dest: string; readonly onramp: string; readonly last: string }>(
        `select dest_selector as dest, encode(onramp, 'hex') as onramp, max(to_sequence) as last
         from lane_fact where source_selector = $1 group by dest_selector, onramp order by 1, 2`,
        [storedSelector(network)],
      );
      return rows.map(({ dest, ...lane }) => ({
        sourceSelector: network,
        destSelector: selectorOf(dest),
        ...lane,
      }));
    },
    /** Where a chain has shown numbers of a lane that are higher than its counter, from the lowest number on. */
    async blocksAbove(network: string, { lastNumber, kind, ...lane }: LaneCounter, limit: number) {
      const shown =
        kind === 'sent'
          ? `select m.sequence_number as seen_number, f.block_number, f.block_hash from message m
             join fact f using (message_id)
             where ${OF_LANE} and sequence_number > $4 and f.kind = ${kindNumbers.Sent} and f.network = $5`
          : `select to_sequence as seen_number, block_number, block_hash from lane_fact
             where ${OF_LANE} and to_sequence > $4 and kind = ${kindNumbers.Committed} and network = $5`;
      const rows = await read<{ readonly number: number; readonly hash: Buffer }>(
        `select distinct on (seen_number) block_number::float8 as number, block_hash as hash
         from (${shown}) shown order by seen_number limit $6`,
        [...laneValues(lane), lastNumber, storedSelector(network), limit],
      );
      const blocks = rows.map(({ number, hash }): BlockId => ({ number, hash: hashText(hash) ?? '' }));
      return [...new Map(blocks.map((block) => [block.hash, block])).values()];
    },
    /** The block of the message with this number; undefined where it is not recorded. */
    async sendBlock(lane: LaneKey, sequenceNumber: string) {
      const [row] = await read(
        `select ${SEND_BLOCK} as block from message where ${OF_LANE} and sequence_number = $4 limit 1`,
        [...laneValues(lane), sequenceNumber],
      );
      return row && Number(row.block);
    },
    /** How many logs of a contract are kept because they could not be decoded. */
    async unreadableLogs(network: string, contract: string) {
      const { logs } = await readOne<{ readonly logs: number }>(
        'select count(*)::int as logs from index_unreadable where network = $1 and address = $2',
        [storedSelector(network), contract],
      );
      return logs;
    },
    /** Logs of a contract that are kept under one of these first topics, in the order of their blocks. */
    keptLogs: (network: string, contract: string, topics: readonly string[]) =>
      read<{ readonly blockNumber: number; readonly topics: readonly string[] }>(
        `select block_number::float8 as "blockNumber", topics from index_unreadable
         where network = $1 and address = $2 and topics[1] = any($3) order by block_number, log_index`,
        [storedSelector(network), contract, topics],
      ),
  };
}

/** SQL of the runs that ranges (`run`) make together, the lowest first. */
function mergedRuns(ranges: string): string {
  return `select lower(run) as "from", upper(run) - 1 as "to"
    from (select unnest(runs) as run from (select range_agg(run) as runs from (${ranges}) ranges) merged) each
    order by run limit ${MAX_RUNS}`;
}

function laneValues({ sourceSelector, destSelector, onramp }: LaneKey): string[] {
  return [storedSelector(sourceSelector), storedSelector(destSelector), onramp];
}

/** A finding that is open already keeps the time when it was found, and what it does not say anew. */
export async function writeChecks(
  client: ClientBase,
  network: string,
  { counters = [], findings = [], resolved = [] }: ChecksStep,
): Promise<void> {
  for (const { kind, lastNumber, isWhole, ...lane } of counters)
    await client.query(
      `insert into index_counter
         (source_selector, dest_selector, onramp, kind, last_number, is_whole, checked_at)
       values ($1, $2, decode($3, 'hex'), $4, $5, $6, now())
       on conflict (source_selector, dest_selector, onramp, kind) do update set
         last_number = excluded.last_number, is_whole = excluded.is_whole, checked_at = excluded.checked_at`,
      [...laneValues(lane), kind, lastNumber, isWhole],
    );
  for (const { kind, subject, detail, body, tried, attempts, retryInMs } of findings) {
    const given = body === undefined ? null : JSON.stringify(body);
    const retryInSeconds = retryInMs === undefined ? null : retryInMs / 1_000;
    await client.query(
      `insert into index_finding as known (network, kind, subject, detail, body, tried, attempts, retry_at)
       values ($1, $2, $3, $4, $5, coalesce($6, '{}'::text[]), coalesce($7, 0), now() + make_interval(secs => $8))
       on conflict (network, kind, subject) do update set
         detail = excluded.detail, body = coalesce(excluded.body, known.body),
         tried = coalesce($6, known.tried), attempts = coalesce($7, known.attempts),
         retry_at = coalesce(excluded.retry_at, known.retry_at)`,
      [network, kind, subject, detail, given, tried ?? null, attempts ?? null, retryInSeconds],
    );
  }
  for (const { kind, subject } of resolved) {
    const key = [network, kind, subject];
    await client.query('delete from index_finding where network = $1 and kind = $2 and subject = $3', key);
  }
}
