/**
 * A message as a line of CSV (RFC 4180), for spreadsheets and for tools that read nothing else.
 *
 * The columns are flat and their order is part of the contract: new ones are added at the end. Lists, and values that
 * differ between networks, are JSON in their cell. An empty cell is null. CSV cannot be imported; NDJSON can.
 */
import { type Message, type NetworkInfo, sourceMembers } from '../message.ts';

export type Cell = string | number | boolean | null;
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
    ['feeItems', ({ fees }) => json(fees.fixedFeesDetails.items ?? null)],
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
  ['bpsFees', ({ fees }) => json(fees.bpsFeeDetails ?? null)],
  ['sourceMembers', (message) => jsonOfMembers(sourceMembers(message))],
];

/** The names of the columns, in their order. */
export const csvColumns: readonly string[] = columns.map(([name]) => name);

/** The first line, with its line end; `added` names columns behind those of the record. */
export function csvHeader(added: readonly string[] = []): string {
  return lineOf([...csvColumns, ...added]);
}

/** The line of one message, with its line end. */
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
  return isPlain ? value : json(value ?? null);
}

function json(value: unknown): string | null {
  return value === null ? null : JSON.stringify(value);
}

function jsonOfMembers(members: Readonly<Record<string, unknown>>): string | null {
  return Object.keys(members).length === 0 ? null : JSON.stringify(members);
}
