/** The inputs of a manual execution, collected from the facts of the message and of its batch. */
import type { RangeFact } from '../../domain/facts.ts';
import type { Message } from '../../domain/message.ts';
import { hasAllVerifications, knownVerifications } from '../../domain/verification.ts';
import type { Read } from '../reads/reads.ts';
import { rangesCovering } from '../write/lane-facts.ts';
import { addressColumn, storedSelector } from '../write/message-row.ts';

/** Up to version 1.6: the proof for one message of a root takes all of them. */
export interface BatchInputs {
  readonly kind: 'batch';
  readonly message: Message;
  readonly offramp: string;
  readonly merkleRoot: string;
  /** Time of the block with the commit. */
  readonly committedAt: string;
  /** Every message of the root in the order of its number, as ready-made JSON. */
  readonly batch: readonly string[];
}

/** Above 1.6: the message and the results of its verifiers. */
export interface VerifiedInputs {
  readonly kind: 'verified';
  readonly offramp: string;
  readonly encodedMessage: string;
  /** Verifiers by the addresses that the destination knows them under. */
  readonly verifications: readonly { readonly verifier: string; readonly data: string }[];
  /** Whether they are all that the destination asks for. */
  readonly isComplete: boolean;
}

export interface UnavailableInputs {
  readonly kind: 'unavailable';
  readonly reason:
    | 'not read from its chain'
    | 'not committed'
    | 'off-ramp unknown'
    | 'too long'
    | 'too large'
    | 'incomplete';
  /** What the root covers, where it is known. */
  readonly run?: SequenceRun;
  /** The numbers of the root whose messages are not here, in order. */
  readonly missing?: readonly SequenceRun[];
  /** Bytes of all messages of the root, where they are too many. */
  readonly bytes?: number;
}

/** Sequence numbers, both ends included. */
export interface SequenceRun {
  readonly from: bigint;
  readonly to: bigint;
}

/** As the server that the message was mirrored from gave them. */
export interface MirroredInputs {
  readonly kind: 'mirrored';
  readonly body: string;
}

export type ExecutionInputs = BatchInputs | VerifiedInputs | MirroredInputs | UnavailableInputs;

/** The protocol's merkle trees have no more leaves; a commit of more is rejected. */
const MAX_BATCH_MESSAGES = 256n;
/** The most bytes of messages in a batch: twice what 256 messages with 30 kB of data each take. */
export const MAX_BATCH_BYTES = 32 * 1024 * 1024;

/** SQL of `Sent.execution`. Only `Sent` has it; the body of a snapshot may hold text that PostgreSQL's JSON rejects. */
const MATERIAL = `case when f.kind = 'Sent' then f.body::json -> 'execution' end`;

/** Undefined for an unknown message. */
export async function readExecutionInputs(
  read: Read,
  messageId: string,
): Promise<ExecutionInputs | undefined> {
  const inputs = await readIndexedInputs(read, messageId);
  if (inputs?.kind !== 'unavailable') return inputs;
  const [mirrored] = await read('select body from execution_input where message_id = $1', [
    Buffer.from(messageId, 'hex'),
  ]);
  return mirrored ? { kind: 'mirrored', body: mirrored.body as string } : inputs;
}

/** What the chains that are indexed here said. */
async function readIndexedInputs(
  read: Read,
  messageId: string,
): Promise<Exclude<ExecutionInputs, MirroredInputs> | undefined> {
  const [row] = await read(
    `select m.record, (select (${MATERIAL})::text from fact f
                       where f.message_id = m.message_id and (${MATERIAL}) is not null limit 1) as material
     from message m where m.message_id = $1`,
    [Buffer.from(messageId, 'hex')],
  );
  if (!row) return undefined;
  const message = JSON.parse(row.record as string) as Message;
  if (row.material === null) return { kind: 'unavailable', reason: 'not read from its chain' };
  const material = JSON.parse(row.material as string);
  if (!('encodedMessage' in material)) return readBatchInputs(read, messageId, message);
  return {
    kind: 'verified',
    offramp: material.offramp,
    encodedMessage: material.encodedMessage,
    verifications: knownVerifications(message).map(({ destAddress, data }) => ({
      verifier: destAddress,
      data,
    })),
    isComplete: hasAllVerifications(message),
  };
}

async function readBatchInputs(
  read: Read,
  messageId: string,
  message: Message,
): Promise<BatchInputs | UnavailableInputs> {
  const ranges = (await rangesCovering(read, [message])).get(0) ?? [];
  const [commit] = ranges.filter(({ kind }) => kind === 'Committed').sort(newestFirst);
  if (!commit) return { kind: 'unavailable', reason: 'not committed' };
  const run = { from: BigInt(commit.fromSequenceNumber), to: BigInt(commit.toSequenceNumber) };
  if (commit.offramp === undefined) return { kind: 'unavailable', reason: 'off-ramp unknown', run };
  if (run.to - run.from >= MAX_BATCH_MESSAGES) return { kind: 'unavailable', reason: 'too long', run };

  const { sourceNetworkInfo, destNetworkInfo, onramp } = message;
  const rows = await read(
    // A reorganisation may have given a number to two messages for a moment; the one asked for is in the root.
    // A batch that is too large stays in the database.
    `select number, bytes, case when bytes <= $7 then message end as message
     from (
       select number, message, sum(octet_length(message)) over () as bytes
       from (
         select distinct on (m.sequence_number) m.sequence_number as number, material.message
         from message m left join lateral (
           select (${MATERIAL} -> 'message')::text as message from fact f
           where f.message_id = m.message_id and (${MATERIAL} -> 'message') is not null limit 1) material on true
         where m.source_selector = $1 and m.dest_selector = $2 and m.onramp = $3
           and m.sequence_number between $4 and $5
         order by m.sequence_number, m.message_id = $6 desc, material.message is null, m.sent_at desc) batch) measured
     order by number`,
    [
      storedSelector(sourceNetworkInfo.chainSelector),
      storedSelector(destNetworkInfo.chainSelector),
      Buffer.from(addressColumn(onramp, sourceNetworkInfo.chainFamily), 'hex'),
      commit.fromSequenceNumber,
      commit.toSequenceNumber,
      Buffer.from(messageId, 'hex'),
      MAX_BATCH_BYTES,
    ],
  );
  const bytes = Number(rows[0]?.bytes ?? 0);
  if (bytes > MAX_BATCH_BYTES) return { kind: 'unavailable', reason: 'too large', run, bytes };
  const batch = new Map(
    rows.flatMap((row) =>
      row.message === null ? [] : [[BigInt(row.number as string), row.message as string] as const],
    ),
  );
  const missing = missingRuns(run, batch);
  if (missing.length > 0) return { kind: 'unavailable', reason: 'incomplete', run, missing };
  const { offramp, merkleRoot, seen } = commit;
  return {
    kind: 'batch',
    message,
    offramp,
    merkleRoot,
    committedAt: seen.at,
    batch: [...batch.values()],
  };
}

function newestFirst(a: RangeFact, b: RangeFact): number {
  return b.seen.blockNumber - a.seen.blockNumber || (b.seen.logIndex ?? -1) - (a.seen.logIndex ?? -1);
}

function missingRuns(run: SequenceRun, present: ReadonlyMap<bigint, unknown>): readonly SequenceRun[] {
  const missing: { from: bigint; to: bigint }[] = [];
  for (let number = run.from; number <= run.to; number++) {
    if (present.has(number)) continue;
    const last = missing.at(-1);
    if (last?.to === number - 1n) last.to = number;
    else missing.push({ from: number, to: number });
  }
  return missing;
}
