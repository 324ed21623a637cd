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
import { hashBytes, textOfHashBytes } from './hash-bytes.ts';
import { kindNumber, kindNumbers } from './kinds.ts';
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

/**
 * SQL of the columns that a fact is read from, of the table with this name.
 *
 * @param prefix of the columns, where a row has several facts
 * @param body another expression of the body
 */
export function factColumnsOf(table: string, prefix = '', body = `${table}.body`): string {
  const others = ['kind', ...Object.keys(observationColumns)];
  return [`${body} as ${prefix}body`, ...others.map((name) => `${table}.${name} as ${prefix}${name}`)].join(
    ', ',
  );
}

/** The same, with null for the bodies of details, which may be long: for `detailsPlace`. */
export function factColumnsWithoutDetails(table: string): string {
  return factColumnsOf(
    table,
    '',
    `case when ${table}.kind <> ${kindNumbers.ExecutionDetails} then ${table}.body end`,
  );
}

/** SQL of the columns that a range fact is read from. */
export const RANGE_FACT_COLUMNS = [
  'source_selector',
  'dest_selector',
  'from_sequence',
  'to_sequence',
  'merkle_root',
]
  .map((name) => `lane_fact.${name}, `)
  .join('')
  .concat(factColumnsOf('lane_fact'));

/** The tables of attempts, and when those in them were removed: an attempt that came back with its block counts as standing. */
export const attemptTables = [
  ['fact', 'null::timestamptz'],
  ['earlier_attempt', 'null::timestamptz'],
  ['removed_attempt', 'removed_at'],
] as const;

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
export function readMessageFact(row: FactRow, messageId: BytesHex, prefix = ''): MessageFact {
  const context = messageContext(messageId, valuesOfRow(row, prefix));
  return unpackJson(row[`${prefix}body`] as Buffer, context) as unknown as MessageFact;
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

/** What a row of `lane_fact` is beside an observation: a piece of a range, and its root. */
export const rangeColumns = {
  source_selector: 'bigint',
  dest_selector: 'bigint',
  to_sequence: 'numeric',
  from_sequence: 'numeric',
  onramp: 'bytea',
  merkle_root: 'bytea',
} as const satisfies CopyColumns;

/** The columns of a range fact that decide what its body holds. */
export interface RangePiece {
  readonly sourceSelector: string;
  readonly destSelector: string;
  readonly from: string;
  readonly to: string;
}

/** A row of `lane_fact` without its range and lane. */
export function rangeFactValues(fact: RangeFact, piece: RangePiece) {
  return anonymousValues(fact, (observation, root) => rangeContext(piece, root, observation));
}

/** @param row with `RANGE_FACT_COLUMNS` */
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
export function readRootFact(row: FactRow, prefix = ''): RootFact {
  const context = rootContext(hexOf(row.merkle_root), valuesOfRow(row, prefix));
  return unpackJson(row[`${prefix}body`] as Buffer, context) as unknown as RootFact;
}

/** Where a log is: equal for facts that were seen in the same one, however they spell it. */
export function storedPlaceOf(seen: Observation): string {
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

function valuesOfRow(row: FactRow, prefix = ''): ObservationValues {
  const value = (column: keyof typeof observationColumns) => row[prefix + column] ?? null;
  const hexValue = (column: 'block_hash' | 'transaction') => {
    const bytes = value(column);
    return bytes === null ? null : hexOf(bytes);
  };
  return {
    network: value('network') as string | null,
    block_number: value('block_number') as string | null,
    seen_at: (value('seen_at') as Date | null)?.toISOString() ?? null,
    log_index: value('log_index') as number | null,
    block_hash: hexValue('block_hash'),
    transaction: hexValue('transaction'),
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

function rangeContext(piece: RangePiece, root: BytesHex, values: ObservationValues): PackingContext {
  const { sourceSelector, destSelector, from, to } = piece;
  const lane = [selectorOf(sourceSelector), selectorOf(destSelector), from, to];
  return [`0x${root}`, ...lane, ...observationContext(values)];
}

function rootContext(root: BytesHex, values: ObservationValues): PackingContext {
  return [`0x${root}`, ...observationContext(values)];
}

function textOf(bytes: string | number | null): string | undefined {
  return bytes === null ? undefined : textOfHashBytes(String(bytes));
}

function hexOf(bytes: unknown): BytesHex {
  return (bytes as Buffer).toString('hex');
}
