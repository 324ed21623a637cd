/**
 * The Message record and its wire form.
 *
 * The types come from the schema, but nothing of the schema is loaded here: only the documentation needs it at run
 * time, and it takes longer to load than most commands take to run.
 */
import type { Message, MessageSummary } from './message-schema.ts';

export type {
  Fees,
  Message,
  MessageSummary,
  NetworkInfo,
  TokenAmount,
  Verifier,
  Verifiers,
} from './message-schema.ts';

/** The nine fields of `view=summary`, in the order of the wire. */
export const summaryKeys = [
  'messageId',
  'origin',
  'sender',
  'receiver',
  'status',
  'sourceNetworkInfo',
  'destNetworkInfo',
  'sendTransactionHash',
  'sendTimestamp',
] as const satisfies readonly (keyof MessageSummary)[];

/** The rest of the record. */
export const detailKeys = [
  'nonce',
  'sequenceNumber',
  'onramp',
  'routerAddress',
  'sendBlockNumber',
  'sendLogIndex',
  'receiptTransactionHash',
  'receiptTimestamp',
  'deliveryTime',
  'data',
  'tokenAmounts',
  'extraArgs',
  'readyForManualExecution',
  'version',
  'finality',
  'verifiers',
  'executor',
  'fees',
] as const satisfies readonly (keyof Message)[];

export interface WireRecord {
  readonly json: string;
  /** How many characters of `json`, closed with `}`, are the summary view. */
  readonly summaryLength: number;
}

/**
 * The record as it goes over the wire. The summary's fields come first, so that the shorter view is a
 * prefix of the stored text and costs neither a second copy nor a parse.
 */
export function wireRecord(message: Message): WireRecord {
  const summary = JSON.stringify(pick(message, summaryKeys));
  const details = JSON.stringify(pick(message, detailKeys));
  return {
    json: `${summary.slice(0, -1)},${details.slice(1)}`,
    summaryLength: codePointLength(summary) - 1,
  };
}

function pick(message: Message, keys: readonly (keyof Message)[]): Partial<Message> {
  const picked: Record<string, unknown> = {};
  for (const key of keys) picked[key] = message[key];
  return picked;
}

/** PostgreSQL counts characters where JavaScript counts UTF-16 units. */
function codePointLength(text: string): number {
  let length = text.length;
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    if (unit >= 0xd800 && unit < 0xdc00) length--;
  }
  return length;
}
