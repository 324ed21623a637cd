/** The inputs of a manual execution, collected from the facts of the message and of its batch. */
import type { ExecutionMaterial, RangeFact, Sent } from '../../domain/facts.ts';
import type { Message } from '../../domain/message.ts';
import { hasAllVerifications, knownVerifications } from '../../domain/verification.ts';
import { kindNumbers } from '../facts/kinds.ts';
import { type FactRow, factColumnsOf, readMessageFact } from '../facts/stored-fact.ts';
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
  /** Bytes of all messages of the root, where they are too many; where they are twice as many, at least so many. */
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
  const rows = await read(
    `select m.record, ${factColumnsOf('f')} from message m
     left join fact f on f.message_id = m.message_id and f.kind = ${kindNumbers.Sent}
     where m.message_id = $1`,
    [Buffer.from(messageId, 'hex')],
  );
  const [row] = rows;
  if (!row) return undefined;
  const message = JSON.parse(row.record as string) as Message;
  const material = rows.map((sent) => materialOf(sent, messageId)).find((found) => found !== undefined);
  if (!material) return { kind: 'unavailable', reason: 'not read from its chain' };
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
    // A batch that is too large even when it is packed stays in the database.
    `select number, id, packed_bytes, ${factColumnsOf('f', '', `case when packed_bytes <= $7 then f.body end`)}
     from (
       select m.sequence_number as number, encode(m.message_id, 'hex') as id, m.message_id = $6 as is_asked_for, m.sent_at,
         f.*, sum(octet_length(f.body)) over () as packed_bytes
       from message m left join fact f on f.message_id = m.message_id and f.kind = ${kindNumbers.Sent}
       where m.source_selector = $1 and m.dest_selector = $2 and m.onramp = $3
         and m.sequence_number between $4 and $5) f
     order by number, is_asked_for desc, sent_at desc`,
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
  const packedBytes = Number(rows[0]?.packed_bytes ?? 0);
  if (packedBytes > MAX_BATCH_BYTES)
    return { kind: 'unavailable', reason: 'too large', run, bytes: packedBytes };
  const { batch, bytes } = batchOf(rows);
  if (bytes > MAX_BATCH_BYTES) return { kind: 'unavailable', reason: 'too large', run, bytes };
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

/** The messages by their numbers, as JSON, and how many bytes they have. Of those that are too many, only the first are kept. */
function batchOf(rows: readonly FactRow[]) {
  const batch = new Map<bigint, string>();
  const numbers = new Set<bigint>();
  let bytes = 0;
  for (const row of rows) {
    const number = BigInt(row.number as string);
    if (numbers.has(number)) continue;
    const material = materialOf(row, row.id as string);
    if (!material || !('message' in material)) continue;
    const json = JSON.stringify(material.message);
    numbers.add(number);
    bytes += Buffer.byteLength(json);
    if (bytes <= MAX_BATCH_BYTES) batch.set(number, json);
  }
  return { batch, bytes };
}

/** What a row of `Sent` has for executions; undefined for a message that has no such row. */
function materialOf(row: FactRow, messageId: string): ExecutionMaterial | undefined {
  return row.body === null ? undefined : (readMessageFact(row, messageId) as Sent).execution;
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
