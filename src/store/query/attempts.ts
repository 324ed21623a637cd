/** Reads what is known of the executions of messages, also of those that reorganisations removed. */
import { type ExecutionFacts, newestAttempts, placeOf } from '../../domain/attempts.ts';
import { MAX_ATTEMPTS } from '../../domain/filters/query.ts';
import { ATTEMPT_KINDS } from '../facts/kinds.ts';
import { type FactRow, factColumnsOf, readMessageFact } from '../facts/stored-fact.ts';
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
  const rows = await read(
    // All rows of a block have the same rank, so that the newest attempts are among them whatever their order in the block.
    `select id, fact_id, removed_at, ${factColumnsOf('ranked')} from (
       select known.*, encode(message_id, 'hex') as id,
         rank() over (partition by message_id order by block_number desc) as place
       from (
         select message_id, fact_id, null::timestamptz as removed_at, ${factColumnsOf('f')} from fact f
         where message_id = any($1) and kind in ${ATTEMPT_KINDS}
         union all
         select message_id, fact_id, removed_at, ${factColumnsOf('r')} from removed_attempt r
         where message_id = any($1)) known) ranked
     where place <= $2`,
    [messageIdArray(messageIds), MAX_ROWS_OF_ATTEMPT * (maxAttempts + 1)],
  );
  const rowsOf = groupBy(rows, ({ id }) => id as string);
  return new Map([...rowsOf].map(([id, found]) => [id, executionsOf(id, found, maxAttempts)]));
}

/** Its two facts, both of which may have been removed once and come back. */
const MAX_ROWS_OF_ATTEMPT = 4;

function executionsOf(messageId: string, rows: readonly FactRow[], maxAttempts: number): Executions {
  const idOf = ({ fact_id }: FactRow) => (fact_id as Buffer).toString('hex');
  const standing = new Set(rows.filter(({ removed_at }) => removed_at === null).map(idOf));
  const known = rows
    .filter((row) => row.removed_at === null || !standing.has(idOf(row)))
    .map((row) => ({ fact: readMessageFact(row, messageId), removedAt: row.removed_at as Date | null }));
  const facts = known.map(({ fact }) => fact);
  const newest = newestAttempts(facts, maxAttempts + 1);
  const places = new Set(newest.slice(0, maxAttempts).map(({ seen }) => placeOf(seen)));
  const kept = known.filter(({ fact }) => fact.kind !== 'Snapshot' && places.has(placeOf(fact.seen)));
  return {
    facts: kept.filter(({ removedAt }) => removedAt === null).map(({ fact }) => fact),
    removed: kept.flatMap(({ fact, removedAt }) =>
      removedAt === null ? [] : [{ fact, removedAt: removedAt.toISOString() }],
    ),
    isTruncated: newest.length > maxAttempts,
  };
}
