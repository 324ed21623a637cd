/** The formats of an export: from stored records to the text of a file. */

import { attemptJson, attemptsOf, type ExecutionFacts, lastAttempt } from '../attempts.ts';
import { type Message, type NetworkInfo, sourceMembers } from '../message.ts';
import { ATTEMPTS_MEMBER } from './record-members.ts';

// ---- CSV (RFC 4180), for spreadsheets and for tools that read nothing else. The columns are flat and their order is part of the
// contract: new ones are added at the end. Lists, and values that differ between networks, are JSON in their cell. An empty
// cell is null. CSV cannot be imported; NDJSON can.

type Cell = string | number | boolean | null;
type Column = readonly [name: string, cell: (message: Message) => Cell];

const networkColumns = (end: 'source' | 'dest', networkOf: (message: Message) => NetworkInfo): Column[] => [
  [`${end}Network`, (message) => networkOf(message).name],
  [`${end}NetworkDisplayName`, (message) => networkOf(message).displayName],
  [`${end}ChainSelector`, (message) => networkOf(message).chainSelector],
  [`${end}ChainId`, (message) => networkOf(message).chainId],
  [`${end}ChainFamily`, (message) => networkOf(message).chainFamily],
];

/**
 * The columns of each field, in the order of the file; null: one column with the field itself. The type makes the table
 * complete: a new field goes to the end.
 */
const columnsOfField: Readonly<Required<Record<keyof Message, readonly Column[] | null>>> = {
  messageId: null,
  status: null,
  readyForManualExecution: null,
  sendTimestamp: null,
  receiptTimestamp: null,
  deliveryTime: null,
  sourceNetworkInfo: networkColumns('source', ({ sourceNetworkInfo }) => sourceNetworkInfo),
  destNetworkInfo: networkColumns('dest', ({ destNetworkInfo }) => destNetworkInfo),
  origin: null,
  sender: null,
  receiver: null,
  sendTransactionHash: null,
  sendBlockNumber: null,
  sendLogIndex: null,
  receiptTransactionHash: null,
  version: null,
  sequenceNumber: null,
  nonce: null,
  onramp: null,
  routerAddress: null,
  finality: null,
  executor: [['executor', ({ executor }) => executor?.address ?? null]],
  fees: [
    ['feeToken', ({ fees }) => fees.fixedFeesDetails.tokenAddress],
    ['feeAmount', ({ fees }) => fees.fixedFeesDetails.totalAmount],
    ['feeItems', ({ fees }) => json(fees.fixedFeesDetails.items)],
  ],
  tokenAmounts: null,
  extraArgs: null,
  verifiers: null,
  data: null,
  offramp: null,
  encodedMessage: null,
  reportedStatus: null,
};
const columns: readonly Column[] = [
  ...(Object.keys(columnsOfField) as (keyof Message)[]).flatMap(
    (field) => columnsOfField[field] ?? [[field, (message: Message) => cellOf(message[field])] as const],
  ),
  ['bpsFees', ({ fees }) => json(fees.bpsFeeDetails)],
  ['sourceMembers', (message) => json(sourceMembers(message))],
];

export const csvColumns: readonly string[] = columns.map(([name]) => name);

export function csvLine(message: Message, added: readonly Cell[] = []): string {
  return lineOf([...columns.map(([, cell]) => cell(message)), ...added]);
}

function lineOf(cells: readonly Cell[]): string {
  return `${cells.map(cellText).join(',')}\r\n`;
}

/**
 * Text that a spreadsheet would take for a formula is preceded by an apostrophe, because names and addresses are untrusted.
 * Numbers are not changed.
 */
function cellText(cell: Cell): string {
  if (cell === null) return '';
  if (typeof cell !== 'string') return String(cell);
  const text = /^[=+\-@\t\r\n]/.test(cell) ? `'${cell}` : cell;
  return /[",\r\n]|^\s|\s$/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

function cellOf(value: unknown): Cell {
  const isPlain = typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean';
  return isPlain ? value : json(value);
}

/** Null for nothing, and for an object without members. */
function json(value: unknown): string | null {
  const text = JSON.stringify(value ?? null);
  return text === 'null' || text === '{}' ? null : text;
}

// ---- Both formats

export const exportFormats = ['csv', 'ndjson'] as const;
export type ExportFormat = (typeof exportFormats)[number];

/** Columns of a CSV file with attempts: all of them as JSON, and why the last one failed. */
const attemptColumns = [ATTEMPTS_MEMBER, 'failureCode', 'failureReason'];

/** The text before the first record. */
export function exportHead(format: ExportFormat, withAttempts = false): string {
  return format === 'ndjson' ? '' : lineOf([...csvColumns, ...(withAttempts ? attemptColumns : [])]);
}

/** Records as they are stored, each with its line end. */
export function exportLines(records: readonly string[], format: ExportFormat): string {
  if (format === 'ndjson') return records.map((record) => `${record}\n`).join('');
  return records.map((record) => csvLine(JSON.parse(record) as Message)).join('');
}

/** Records, each with its attempts behind it, and its line end. */
export function exportLinesWithAttempts(
  records: readonly string[],
  executionsOf: (message: Message) => ExecutionFacts,
  format: ExportFormat,
): string {
  return records
    .map((record) => {
      const message = JSON.parse(record) as Message;
      const { facts, removed } = executionsOf(message);
      const attempts = attemptsOf(message, facts, removed);
      const all = JSON.stringify(attempts.map(attemptJson));
      // The record stays as it is stored, also where it has numbers that JavaScript cannot hold.
      if (format === 'ndjson') return `${record.slice(0, -1)},"${ATTEMPTS_MEMBER}":${all}}\n`;
      const reason = lastAttempt(attempts)?.reason;
      return csvLine(message, [all, reason?.code ?? null, reason?.text ?? null]);
    })
    .join('');
}
