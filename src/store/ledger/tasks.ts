/**
 * Background tasks (`index_chore`): queries about a message on its destination, for what no event contains.
 *
 * Only messages of verifier lanes have them. The worker of the destination does them.
 */
import type { ClientBase } from 'pg';
import type { Fact, Sent } from '../../domain/facts.ts';
import { FAILED_EXECUTION, kindNumbers } from '../facts/kinds.ts';
import { readWith } from '../reads/reads.ts';
import { columnsOf } from '../sql.ts';
import { storedSelector } from '../write/message-row.ts';

export type TaskKind = 'policy' | 'verification';

/** A request to make on a network about one message that was sent to it. */
export interface Task {
  /** 64 hexadecimal digits. */
  readonly messageId: string;
  readonly kind: TaskKind;
  readonly attempts: number;
}

export interface TasksStep {
  readonly facts?: readonly Fact[];
  readonly tasksDone?: readonly Task[];
  /** Of messages whose sending was retracted; kept where the source's worker has recorded it again meanwhile. */
  readonly tasksObsolete?: readonly Task[];
  readonly tasksPostponed?: readonly (Task & { readonly dueInMs: number })[];
}

export function readDueTasks(client: ClientBase, network: string, kind: TaskKind, limit: number) {
  return readWith(client)<Task>(
    `select encode(message_id, 'hex') as "messageId", kind, attempts from index_chore
     where network = $1 and kind = $2 and due_at <= now() order by due_at, message_id limit $3`,
    [network, kind, limit],
  );
}

/** @param reopened messages that lost an answer to a reorganisation */
export async function writeTasks(
  client: ClientBase,
  network: string,
  { facts = [], tasksDone = [], tasksObsolete = [], tasksPostponed = [] }: TasksStep,
  reopened: readonly Sent[],
): Promise<void> {
  await addTasks(client, facts, reopened);
  const executed = facts.filter((fact) => fact.kind === 'Executed');
  if (executed.length > 0)
    await client.query(
      `delete from index_chore where message_id = any($1) and network = $2 and kind = 'verification'`,
      [executed.map(({ messageId }) => bytesOf(messageId.slice(2))), network],
    );
  const keyOf = ({ messageId, kind }: Task) => [bytesOf(messageId), network, kind];
  for (const task of tasksDone) await client.query(`delete from index_chore where ${TASK}`, keyOf(task));
  for (const task of tasksObsolete)
    await client.query(
      `delete from index_chore where ${TASK} and not exists (
         select 1 from fact where fact.message_id = $1 and fact.kind = ${kindNumbers.Sent})`,
      keyOf(task),
    );
  for (const task of tasksPostponed)
    await client.query(
      `update index_chore set attempts = attempts + 1, due_at = now() + make_interval(secs => $4 / 1000.0)
       where ${TASK}`,
      [...keyOf(task), task.dueInMs],
    );
}

/** SQL condition on message, network and kind. */
const TASK = 'index_chore.message_id = $1 and index_chore.network = $2 and index_chore.kind = $3';

/** Adds the tasks of new messages, and of those reopened. */
async function addTasks(client: ClientBase, facts: readonly Fact[], reopened: readonly Sent[]) {
  const sent = [...facts.filter((fact) => fact.kind === 'Sent'), ...reopened].filter(
    ({ execution }) => execution !== undefined && 'encodedMessage' in execution,
  );
  if (sent.length === 0) return;
  const { rows: answers } = await client.query(
    `select encode(message_id, 'hex') as id, kind from fact where message_id = any($1) and kind = any($2)`,
    [
      sent.map(({ message }) => bytesOf(message.messageId.slice(2))),
      taskAnswers.flatMap(({ answers }) => answers),
    ],
  );
  // What is known needs no request.
  const known = new Set(answers.map(({ id, kind }) => `${id},${kind}`));
  const tasks = sent.flatMap(({ message }) => {
    const id = message.messageId.slice(2);
    const network = storedSelector(message.destNetworkInfo.chainSelector);
    return taskAnswers.flatMap(({ kind, answers }) =>
      answers.some((answer) => known.has(`${id},${answer}`)) ? [] : [{ id: bytesOf(id), network, kind }],
    );
  });
  if (tasks.length === 0) return;
  await client.query(
    `insert into index_chore (message_id, network, kind)
     select * from unnest($1::bytea[], $2::bigint[], $3::text[]) on conflict do nothing`,
    columnsOf(tasks, 'id', 'network', 'kind'),
  );
}

/** The kinds of facts that answer each kind of task. An execution includes the verifications. */
const taskAnswers: readonly { readonly kind: TaskKind; readonly answers: readonly number[] }[] = [
  { kind: 'policy', answers: [kindNumbers.VerifierPolicy] },
  { kind: 'verification', answers: [kindNumbers.Executed, FAILED_EXECUTION] },
];

function bytesOf(digits: string): Buffer {
  return Buffer.from(digits, 'hex');
}
