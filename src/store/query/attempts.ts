/** Reads what is known of the executions of messages, also of those that reorganisations removed. */
import type { ExecutionFacts, RemovedFact } from '../../domain/attempts.ts';
import type { Fact } from '../../domain/facts.ts';
import { MAX_ATTEMPTS } from '../../domain/filters/query.ts';
import { groupBy } from '../group-by.ts';
import type { Read } from '../reads/reads.ts';
import { messageIdArray } from '../write/message-row.ts';

/** The executions of one message, the latest ones where there are too many. */
export interface Executions extends ExecutionFacts {
  readonly isTruncated: boolean;
}

export interface MessageExecutions extends Executions {
  readonly record: string;
}

/** Undefined for an unknown message. */
export async function readExecutions(read: Read, messageId: string): Promise<MessageExecutions | undefined> {
  const [message] = await read('select record from message where message_id = $1', [
    Buffer.from(messageId, 'hex'),
  ]);
  if (!message) return undefined;
  const executions = (await readExecutionsOf(read, [messageId])).get(messageId) ?? noExecutions;
  return { record: message.record as string, ...executions };
}

/** Enough for the last attempt that stands, unless reorganisations have removed several of that height. */
const LATEST_ATTEMPTS = 5;

/** The latest executions of several messages, in the given order; unknown messages are left out. */
export async function readLatestExecutions(read: Read, messageIds: readonly string[]) {
  const rows = await read(
    `select encode(message_id, 'hex') as id, record from message where message_id = any($1)`,
    [messageIdArray(messageIds)],
  );
  const records = new Map(rows.map(({ id, record }) => [id as string, record as string]));
  const executions = await readExecutionsOf(read, [...records.keys()], LATEST_ATTEMPTS);
  return messageIds.flatMap((id) => {
    const record = records.get(id);
    return record === undefined ? [] : [{ record, ...(executions.get(id) ?? noExecutions) }];
  });
}

export const noExecutions: Executions = { facts: [], removed: [], isTruncated: false };

/** By message id; a message without executions has no entry. A fact that came back with its block counts as standing. */
export async function readExecutionsOf(
  read: Read,
  messageIds: readonly string[],
  maxAttempts = MAX_ATTEMPTS,
): Promise<ReadonlyMap<string, Executions>> {
  // Both facts of an attempt have the same place, so that a limit does not separate them. The order is that of attemptsOf.
  const rows = await read(
    `select encode(message_id, 'hex') as id, body, removed_at, place from (
       select message_id, body, removed_at, dense_rank() over (
           partition by message_id
           order by (seen ->> 'blockNumber')::bigint desc, is_success desc,
             case when seen ->> 'blockHash' like '0x%' then '' else seen ->> 'transactionHash' end collate "C" desc,
             (seen ->> 'logIndex')::bigint desc nulls last, seen) as place
       from (
         select message_id, body, removed_at, seen,
           bool_or(success is true) over (partition by message_id, seen) as is_success
         from (
           select message_id, body, removed_at, body::jsonb -> 'seen' as seen, (body::jsonb -> 'success')::boolean as success
           from (
             select message_id, body, null::timestamptz as removed_at from fact
             where message_id = any($1) and kind in ('Executed', 'ExecutionDetails')
             union all
             select r.message_id, r.body, r.removed_at from removed_attempt r
             where r.message_id = any($1)
               and not exists (select 1 from fact f where f.message_id = r.message_id and f.fact_id = r.fact_id)) known
         ) parsed) paired) placed
     where place <= $2 order by message_id, place`,
    [messageIdArray(messageIds), maxAttempts + 1],
  );
  const rowsOf = groupBy(rows, ({ id }) => id as string);
  return new Map([...rowsOf].map(([id, found]) => [id, executionsOf(found, maxAttempts)]));
}

function executionsOf(rows: readonly Readonly<Record<string, unknown>>[], maxAttempts: number): Executions {
  const facts: Fact[] = [];
  const removed: RemovedFact[] = [];
  const kept = rows.filter(({ place }) => Number(place) <= maxAttempts);
  for (const { body, removed_at } of kept) {
    const fact = JSON.parse(body as string) as Fact;
    if (removed_at === null) facts.push(fact);
    else removed.push({ fact, removedAt: (removed_at as Date).toISOString() });
  }
  return { facts, removed, isTruncated: rows.length > kept.length };
}
