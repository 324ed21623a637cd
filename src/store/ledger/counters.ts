/** Numbers that contracts count by themselves (`index_counter`), and what the records have of each lane. */
import type { ClientBase } from 'pg';
import type { NumberRun } from '../../domain/missing-numbers.ts';
import { storedSelector } from '../write/message-row.ts';
import type { BlockId } from './chain-state.ts';

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

export async function writeCounters(client: ClientBase, counters: readonly LaneCounter[]): Promise<void> {
  for (const { sourceSelector, destSelector, onramp, kind, lastNumber, isWhole } of counters) {
    await client.query(
      `insert into index_counter
         (source_selector, dest_selector, onramp, kind, last_number, is_whole, checked_at)
       values ($1, $2, decode($3, 'hex'), $4, $5, $6, now())
       on conflict (source_selector, dest_selector, onramp, kind) do update set
         last_number = excluded.last_number, is_whole = excluded.is_whole, checked_at = excluded.checked_at`,
      [storedSelector(sourceSelector), storedSelector(destSelector), onramp, kind, lastNumber, isWhole],
    );
  }
}

/** More runs than a lane can have holes worth reporting. */
const MAX_RUNS = 10_000;

/** Runs of the numbers of messages that are recorded, the lowest first. */
export async function readSentRuns(client: ClientBase, lane: LaneKey): Promise<readonly NumberRun[]> {
  const { rows } = await client.query(
    `select from_sequence as "from", to_sequence as "to" from lane_run
     where source_selector = $1 and dest_selector = $2 and onramp = decode($3, 'hex')
     order by from_sequence limit ${MAX_RUNS}`,
    laneValues(lane),
  );
  return rows;
}

/** SQL of a record's member; PostgreSQL's JSON functions reject some texts that records may have. */
const SEND_BLOCK = `substring(record from '"sendBlockNumber":([0-9]{1,16})[,}]')::bigint`;

/**
 * The same, of messages that were sent in these blocks, both ends included, and that a chain has shown: what imports say
 * alone does not count. Reads every message of the lane.
 */
export async function readSentRunsBetween(
  client: ClientBase,
  lane: LaneKey,
  { from, to }: { readonly from: number; readonly to: number },
): Promise<readonly NumberRun[]> {
  const { rows } = await client.query(
    `select lower(run) as "from", upper(run) - 1 as "to"
     from (select unnest(runs) as run from (
             select range_agg(numrange(sequence_number, sequence_number + 1)) as runs from message
             where source_selector = $1 and dest_selector = $2 and onramp = decode($3, 'hex') and not is_snapshot
               and ${SEND_BLOCK} between $4 and $5) merged) each
     order by run limit ${MAX_RUNS}`,
    [...laneValues(lane), from, to],
  );
  return rows;
}

/** Runs of the numbers that commits cover, the lowest first. A blessing covers nothing that was not committed. */
export async function readCommittedRuns(client: ClientBase, lane: LaneKey): Promise<readonly NumberRun[]> {
  const { rows } = await client.query(
    `select lower(run) as "from", upper(run) - 1 as "to"
     from (select unnest(range_agg(numrange(from_sequence, to_sequence + 1))) as run from lane_fact
           where source_selector = $1 and dest_selector = $2 and onramp = decode($3, 'hex')) merged
     order by run limit ${MAX_RUNS}`,
    laneValues(lane),
  );
  return rows;
}

/** The highest committed number of each lane from a network. */
export async function readCommittedEnds(
  client: ClientBase,
  source: string,
): Promise<readonly (LaneKey & { readonly last: string })[]> {
  const { rows } = await client.query(
    `select dest_selector as dest, encode(onramp, 'hex') as onramp, max(to_sequence) as last
     from lane_fact where source_selector = $1 group by dest_selector, onramp order by 1, 2`,
    [storedSelector(source)],
  );
  return rows.map(({ dest, onramp, last }) => ({
    sourceSelector: source,
    destSelector: BigInt.asUintN(64, BigInt(dest)).toString(),
    onramp,
    last,
  }));
}

/** Where a chain has shown numbers of a lane that are higher than its counter, from the lowest number on. */
export async function readBlocksAbove(
  client: ClientBase,
  network: string,
  { lastNumber, kind, ...lane }: LaneCounter,
  limit: number,
): Promise<readonly BlockId[]> {
  const shown =
    kind === 'sent'
      ? `select m.sequence_number as number, f.body from message m join fact f using (message_id)
         where source_selector = $1 and dest_selector = $2 and onramp = decode($3, 'hex') and sequence_number > $4
           and f.kind = 'Sent' and f.network = $5`
      : `select to_sequence as number, body from lane_fact
         where source_selector = $1 and dest_selector = $2 and onramp = decode($3, 'hex') and to_sequence > $4
           and body::json ->> 'kind' = 'Committed' and network = $5`;
  const { rows } = await client.query(
    `select distinct on (number) (body::json -> 'seen' ->> 'blockNumber')::bigint as block,
       body::json -> 'seen' ->> 'blockHash' as hash
     from (${shown}) shown order by number limit $6`,
    [...laneValues(lane), lastNumber, network, limit],
  );
  const blocks = rows.map(({ block, hash }) => ({ number: Number(block), hash }));
  return [...new Map(blocks.map((block) => [block.hash, block])).values()];
}

/** The block of the message with this number; undefined where it is not recorded. */
export async function readSendBlock(
  client: ClientBase,
  lane: LaneKey,
  sequenceNumber: string,
): Promise<number | undefined> {
  const { rows } = await client.query(
    `select ${SEND_BLOCK} as block from message
     where source_selector = $1 and dest_selector = $2 and onramp = decode($3, 'hex') and sequence_number = $4
     limit 1`,
    [...laneValues(lane), sequenceNumber],
  );
  return rows[0] && Number(rows[0].block);
}

function laneValues({ sourceSelector, destSelector, onramp }: LaneKey): string[] {
  return [storedSelector(sourceSelector), storedSelector(destSelector), onramp];
}
