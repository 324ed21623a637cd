/**
 * Facts as rows, and back: columns for what rows are found and ordered by, and the packed rest.
 *
 * The body is the whole fact as packed JSON, with what the columns hold as context, so that it refers to a value of a column
 * where it has exactly the same one, and holds any other spelling itself. So a fact is read back with the very text that its
 * id is the hash of, whatever a chain or a source has written.
 */
import { hash } from 'node:crypto';
import type { BytesHex } from '../../domain/addresses.ts';
import {
  type ChainFact,
  factMessageId,
  type MessageFact,
  type Observation,
  type RangeFact,
  type RootFact,
} from '../../domain/facts.ts';
import type { CopyColumns } from '../write/copy.ts';
import { observedTransaction, selectorOf, storedSelector } from '../write/message-row.ts';
import { hashBytes, hashText } from './hash-bytes.ts';
import { kindNumber } from './kinds.ts';
import { type JsonValue, type PackingContext, packJson, unpackJson } from './packed-json.ts';

/** What every table of facts has of an observation. */
export const observationColumns = {
  network: 'bigint',
  block_number: 'bigint',
  seen_at: 'timestamptz',
  log_index: 'integer',
  block_hash: 'bytea',
  transaction: 'bytea',
} as const satisfies CopyColumns;

/** The columns of `fact` and `earlier_attempt`. */
export const messageFactColumns = {
  ...observationColumns,
  kind: 'smallint',
  message_id: 'bytea',
  fact_id: 'bytea',
  body: 'bytea',
} as const satisfies CopyColumns;

/** Values for COPY and for parameters: bytes in hex, except for the body. */
type ObservationValues = Readonly<Record<keyof typeof observationColumns, string | number | null>>;
export interface MessageFactValues extends ObservationValues {
  readonly kind: number;
  readonly message_id: BytesHex;
  readonly fact_id: BytesHex;
  readonly body: Buffer;
}

/** A row that was read, with at least the columns of `factColumnsOf`. */
export type FactRow = Readonly<Record<string, unknown>>;

/** SQL of the columns that a fact is read from, of the table with this name. */
export function factColumnsOf(table: string): string {
  return ['kind', 'body', ...Object.keys(observationColumns)]
    .map((column) => `${table}.${column}`)
    .join(', ');
}

/** The id of a snapshot beside chain facts: a message has one at most. */
export const SNAPSHOT_FACT_ID: BytesHex = '0'.repeat(32);

/** A hash of the fact as JSON: the same observation from two sources is one fact. */
export function factId(json: string): BytesHex {
  return hash('sha256', json, 'hex').slice(0, 32);
}

/** The row of a fact of a single message. */
export function messageFactValues(fact: MessageFact, id: BytesHex): MessageFactValues {
  const observation = fact.kind === 'Snapshot' ? noObservation : observationValues(fact.seen);
  const messageId = factMessageId(fact).slice(2).toLowerCase();
  const context = messageContext(messageId, observation);
  return {
    ...observation,
    kind: kindNumber(fact),
    message_id: messageId,
    fact_id: id,
    body: packJson(fact as unknown as JsonValue, context),
  };
}

/** The fact of a row of `fact`, `earlier_attempt` or `removed_attempt`. */
export function readMessageFact(row: FactRow, messageId: BytesHex): MessageFact {
  const context = messageContext(messageId, valuesOfRow(row));
  return unpackJson(row.body as Buffer, context) as unknown as MessageFact;
}

/**
 * An execution's details without what they say: where they were seen, from the columns alone. Whoever folds messages needs no
 * more, and the body, which may be long, need not be read.
 */
export function detailsPlace(row: FactRow, messageId: BytesHex): ChainFact {
  const { network, block_number, block_hash, transaction, log_index, seen_at } = valuesOfRow(row);
  return {
    kind: 'ExecutionDetails',
    messageId: `0x${messageId}`,
    returnData: null,
    gasUsed: null,
    caller: null,
    seen: {
      network: selectorOf(String(network)),
      blockNumber: Number(block_number),
      blockHash: textOf(block_hash) ?? '',
      transactionHash: textOf(transaction) ?? null,
      logIndex: log_index === null ? null : Number(log_index),
      at: String(seen_at),
    },
  };
}

/** What the rows of range facts have beside the observation: the lane, the range and its root. */
export interface RangeColumns {
  readonly sourceSelector: string;
  readonly destSelector: string;
  readonly from: string;
  readonly to: string;
}

/** The columns of a range fact's piece that hold the fact. */
export function rangeFactValues(fact: RangeFact, piece: RangeColumns) {
  return anonymousValues(fact, (observation, root) => rangeContext(piece, root, observation));
}

/** @param row with the columns of `factColumnsOf`, and those of `RANGE_COLUMNS` */
export function readRangeFact(row: FactRow): RangeFact {
  const piece = {
    sourceSelector: String(row.source_selector),
    destSelector: String(row.dest_selector),
    from: String(row.from_sequence),
    to: String(row.to_sequence),
  };
  const context = rangeContext(piece, hexOf(row.merkle_root), valuesOfRow(row));
  return unpackJson(row.body as Buffer, context) as unknown as RangeFact;
}

export function rootFactValues(fact: RootFact) {
  return anonymousValues(fact, (observation, root) => rootContext(root, observation));
}

/** @param row with the columns of `factColumnsOf`, and the root */
export function readRootFact(row: FactRow): RootFact {
  const context = rootContext(hexOf(row.merkle_root), valuesOfRow(row));
  return unpackJson(row.body as Buffer, context) as unknown as RootFact;
}

/** Where a log is: equal for facts that were seen in the same one, however they spell it. */
export function placeOf(seen: Observation): string {
  const { network, block_hash, transaction, log_index } = observationValues(seen);
  return `${network} ${block_hash} ${transaction} ${log_index}`;
}

/** Facts of no single message: their rows have the root, and no message id. */
function anonymousValues(
  fact: RangeFact | RootFact,
  contextOf: (observation: ObservationValues, root: BytesHex) => PackingContext,
) {
  const observation = observationValues(fact.seen);
  const root = rootBytes(fact.merkleRoot);
  return {
    ...observation,
    kind: kindNumber(fact),
    fact_id: factId(JSON.stringify(fact)),
    merkle_root: root,
    body: packJson(fact as unknown as JsonValue, contextOf(observation, root)),
  };
}

function rootBytes(merkleRoot: string): BytesHex {
  const [, digits] = /^0x([0-9a-fA-F]{64})$/.exec(merkleRoot) ?? [];
  if (digits === undefined) throw new Error(`A fact reached the store with a malformed root: ${merkleRoot}`);
  return digits.toLowerCase();
}

// ---- Columns of an observation

const noObservation: ObservationValues = {
  network: null,
  block_number: null,
  seen_at: null,
  log_index: null,
  block_hash: null,
  transaction: null,
};

const MAX_LOG_INDEX = 2 ** 31 - 1;

/** Values that a column cannot hold come as near as it can, and are exact in the body. */
function observationValues(seen: Observation): ObservationValues {
  const { network, blockNumber, blockHash, transactionHash, logIndex, at } = seen;
  const time = new Date(at);
  return {
    network: storedSelector(network),
    block_number: blockNumber,
    seen_at: (Number.isNaN(time.getTime()) ? new Date(0) : time).toISOString(),
    log_index: logIndex === null ? null : Math.min(logIndex, MAX_LOG_INDEX),
    block_hash: hashBytes(blockHash),
    // Canonical, so that a search by any spelling finds it.
    transaction: transactionHash === null ? null : (observedTransaction(seen) ?? hashBytes(transactionHash)),
  };
}

function valuesOfRow(row: FactRow): ObservationValues {
  return {
    network: row.network as string | null,
    block_number: row.block_number as string | null,
    seen_at: (row.seen_at as Date | null)?.toISOString() ?? null,
    log_index: row.log_index as number | null,
    block_hash: row.block_hash === null ? null : hexOf(row.block_hash),
    transaction: row.transaction === null ? null : hexOf(row.transaction),
  };
}

// ---- Contexts. Their order is part of the format of stored bodies: append only.

function observationContext(values: ObservationValues): PackingContext {
  const { network, block_number, log_index, block_hash, transaction, seen_at } = values;
  return [
    network === null ? undefined : selectorOf(String(network)),
    block_number === null ? undefined : Number(block_number),
    log_index === null ? undefined : Number(log_index),
    textOf(block_hash),
    textOf(transaction),
    seen_at === null ? undefined : String(seen_at),
  ];
}

function messageContext(messageId: BytesHex, values: ObservationValues): PackingContext {
  return [`0x${messageId}`, ...observationContext(values)];
}

function rangeContext(piece: RangeColumns, root: BytesHex, values: ObservationValues): PackingContext {
  const { sourceSelector, destSelector, from, to } = piece;
  const lane = [selectorOf(sourceSelector), selectorOf(destSelector), from, to];
  return [`0x${root}`, ...lane, ...observationContext(values)];
}

function rootContext(root: BytesHex, values: ObservationValues): PackingContext {
  return [`0x${root}`, ...observationContext(values)];
}

function textOf(bytes: string | number | null): string | undefined {
  return bytes === null ? undefined : hashText(Buffer.from(String(bytes), 'hex'));
}

function hexOf(bytes: unknown): BytesHex {
  return (bytes as Buffer).toString('hex');
}
