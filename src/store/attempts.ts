/** Reads what is known of the executions of one message. */
import type { Fact } from '../domain/facts.ts';
import { MAX_ATTEMPTS } from '../domain/query.ts';
import type { Read } from './reads/reads.ts';

export interface MessageExecutions {
  readonly record: string;
  /** `Executed` and `ExecutionDetails`, the latest ones where there are too many. */
  readonly facts: readonly Fact[];
  readonly isTruncated: boolean;
}

/** Undefined for an unknown message. */
export async function readExecutions(read: Read, messageId: string): Promise<MessageExecutions | undefined> {
  const id = Buffer.from(messageId, 'hex');
  const [message] = await read('select record from message where message_id = $1', [id]);
  if (!message) return undefined;
  // Both facts of an attempt are of one block, so a limit that ends among them costs no more than the earliest attempt.
  const rows = await read(
    `select body from fact where message_id = $1 and kind in ('Executed', 'ExecutionDetails')
     order by (body::jsonb -> 'seen' ->> 'blockNumber')::bigint desc, kind limit $2`,
    [id, 2 * MAX_ATTEMPTS + 1],
  );
  const isTruncated = rows.length > 2 * MAX_ATTEMPTS;
  const facts = rows.slice(0, 2 * MAX_ATTEMPTS).map(({ body }) => JSON.parse(body as string) as Fact);
  return { record: message.record as string, facts, isTruncated };
}
