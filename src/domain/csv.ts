/**
 * A message as a line of CSV (RFC 4180), for spreadsheets and for tools that read nothing else.
 *
 * The columns are flat and their order is part of the contract: new ones are added at the end. What is a list
 * or differs between networks stands in its cell as JSON. An empty cell is null. CSV cannot come back in
 * through an import; NDJSON can.
 */
import type { Message, NetworkInfo } from './message.ts';

type Cell = string | number | boolean | null;

const networkColumns = (end: 'source' | 'dest', networkOf: (message: Message) => NetworkInfo) =>
  [
    [`${end}Network`, (message) => networkOf(message).name],
    [`${end}NetworkDisplayName`, (message) => networkOf(message).displayName],
    [`${end}ChainSelector`, (message) => networkOf(message).chainSelector],
    [`${end}ChainId`, (message) => networkOf(message).chainId],
    [`${end}ChainFamily`, (message) => networkOf(message).chainFamily],
  ] satisfies readonly (readonly [string, (message: Message) => Cell])[];

const columns: readonly (readonly [name: string, cell: (message: Message) => Cell])[] = [
  ['messageId', ({ messageId }) => messageId],
  ['status', ({ status }) => status],
  ['readyForManualExecution', ({ readyForManualExecution }) => readyForManualExecution],
  ['sendTimestamp', ({ sendTimestamp }) => sendTimestamp],
  ['receiptTimestamp', ({ receiptTimestamp }) => receiptTimestamp],
  ['deliveryTime', ({ deliveryTime }) => deliveryTime],
  ...networkColumns('source', ({ sourceNetworkInfo }) => sourceNetworkInfo),
  ...networkColumns('dest', ({ destNetworkInfo }) => destNetworkInfo),
  ['origin', ({ origin }) => origin],
  ['sender', ({ sender }) => sender],
  ['receiver', ({ receiver }) => receiver],
  ['sendTransactionHash', ({ sendTransactionHash }) => sendTransactionHash],
  ['sendBlockNumber', ({ sendBlockNumber }) => sendBlockNumber],
  ['sendLogIndex', ({ sendLogIndex }) => sendLogIndex],
  ['receiptTransactionHash', ({ receiptTransactionHash }) => receiptTransactionHash],
  ['version', ({ version }) => version],
  ['sequenceNumber', ({ sequenceNumber }) => sequenceNumber],
  ['nonce', ({ nonce }) => nonce],
  ['onramp', ({ onramp }) => onramp],
  ['routerAddress', ({ routerAddress }) => routerAddress],
  ['finality', ({ finality }) => finality],
  ['executor', ({ executor }) => executor?.address ?? null],
  ['feeToken', ({ fees }) => fees.fixedFeesDetails.tokenAddress],
  ['feeAmount', ({ fees }) => fees.fixedFeesDetails.totalAmount],
  ['feeItems', ({ fees }) => json(fees.fixedFeesDetails.items ?? null)],
  ['tokenAmounts', ({ tokenAmounts }) => json(tokenAmounts)],
  ['extraArgs', ({ extraArgs }) => json(extraArgs)],
  ['verifiers', ({ verifiers }) => json(verifiers)],
  ['data', ({ data }) => data],
];

/** The names of the columns, in their order. */
export const csvColumns: readonly string[] = columns.map(([name]) => name);

/** The first line, with its line end. */
export const csvHeader = lineOf(csvColumns);

/** The line of one message, with its line end. */
export function csvLine(message: Message): string {
  return lineOf(columns.map(([, cell]) => cell(message)));
}

function lineOf(cells: readonly Cell[]): string {
  return `${cells.map(cellText).join(',')}\r\n`;
}

/**
 * Text that a spreadsheet would take for a formula gets an apostrophe in front: names and addresses are other
 * people's words. A number is ours, and stays one where it is negative.
 */
function cellText(cell: Cell): string {
  if (cell === null) return '';
  if (typeof cell !== 'string') return String(cell);
  const text = /^[=+\-@\t\r\n]/.test(cell) ? `'${cell}` : cell;
  return /[",\r\n]|^\s|\s$/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

function json(value: unknown): string | null {
  return value === null ? null : JSON.stringify(value);
}
