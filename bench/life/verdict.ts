/** Whether the store has what the generator knows: the number of messages, their statuses, and a sample of records. */
import { isDeepStrictEqual } from 'node:util';
import { type Status, statuses } from '../../src/domain/lifecycle.ts';
import type { Message } from '../../src/domain/message.ts';
import type { Store } from '../../src/store/store.ts';
import { attemptsOf, type Lives, type Member } from './lives.ts';

export interface Verdict {
  readonly messages: number;
  readonly byStatus: Readonly<Record<Status, number>>;
  /** Records that were compared member by member, with their histories and attempts. */
  readonly compared: number;
}

/** Throws at the first difference. Called when all lives have ended. */
export async function checkStore(store: Store, lives: Lives, sample: readonly Member[]): Promise<Verdict> {
  const messages = lives.world.size;
  const expected = countsOf(messages);
  const [exported, { byStatus: counted }] = await Promise.all([countRecords(store), store.metrics()]);
  requireEqual('statuses of the records', exported, expected);
  requireEqual('statuses in the statistics', counted, expected);
  for (const member of sample) await checkLife(store, lives, member);
  return { messages, byStatus: expected, compared: sample.length };
}

function countsOf(messages: number): Record<Status, number> {
  const counts = noCounts();
  for (let n = 0; n < messages; n++) counts[attemptsOf(n).at(-1) ? 'SUCCESS' : 'FAILED']++;
  return counts;
}

async function countRecords(store: Store): Promise<Record<Status, number>> {
  const counts = noCounts();
  for await (const batch of store.exportRecords({}))
    for (const record of batch) counts[(JSON.parse(record) as Message).status]++;
  return counts;
}

function noCounts() {
  return Object.fromEntries(statuses.map((status) => [status, 0])) as Record<Status, number>;
}

async function checkLife(store: Store, lives: Lives, member: Member): Promise<void> {
  const id = lives.messageId(member.n).slice(2);
  const expected = lives.finalRecord(member);
  const found = await store.findMessage(id);
  if (!found) throw new Error(`Message ${member.n} (0x${id}) is not in the store.`);
  const record = JSON.parse(found.record) as Message;
  for (const [key, value] of Object.entries(expected))
    requireEqual(`${key} of message ${member.n} (0x${id})`, record[key as keyof Message], value);
  const verifications = record.verifiers?.items.map(({ status }) => status) ?? [];
  requireEqual(
    `verifications of message ${member.n} (0x${id})`,
    verifications,
    verifications.map(() => 'COMPLETED'),
  );
  const executions = await store.messageExecutions(id);
  const outcomes = executions?.facts.flatMap((fact) => (fact.kind === 'Executed' ? [fact.success] : []));
  requireEqual(
    `attempts of message ${member.n} (0x${id})`,
    outcomes?.sort(),
    [...attemptsOf(member.n)].sort(),
  );
  const history = await store.messageHistory(id);
  requireEqual(
    `the last status in the history of message ${member.n} (0x${id})`,
    history?.entries.at(-1)?.status,
    expected.status,
  );
}

function requireEqual(what: string, actual: unknown, expected: unknown): void {
  if (!isDeepStrictEqual(actual, expected))
    throw new Error(
      `The store is wrong about ${what}: ${JSON.stringify(actual)} instead of ${JSON.stringify(expected)}.`,
    );
}
