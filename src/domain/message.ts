/**
 * The Message record and its wire form.
 *
 * The types come from the schema, but the schema is not loaded here: only the documentation needs it at run time, and
 * loading it takes longer than most commands run.
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

/** The nine fields of `view=summary`, in wire order. The type makes the list complete. */
export const summaryKeys = keysOf<keyof MessageSummary>({
  messageId: true,
  origin: true,
  sender: true,
  receiver: true,
  status: true,
  sourceNetworkInfo: true,
  destNetworkInfo: true,
  sendTransactionHash: true,
  sendTimestamp: true,
});

/** The other fields of the record, in wire order. The type makes the list complete. */
export const detailKeys = keysOf<Exclude<keyof Message, keyof MessageSummary>>({
  nonce: true,
  sequenceNumber: true,
  onramp: true,
  routerAddress: true,
  sendBlockNumber: true,
  sendLogIndex: true,
  receiptTransactionHash: true,
  receiptTimestamp: true,
  deliveryTime: true,
  data: true,
  tokenAmounts: true,
  extraArgs: true,
  readyForManualExecution: true,
  version: true,
  finality: true,
  verifiers: true,
  executor: true,
  fees: true,
});

function keysOf<Key extends string>(table: Readonly<Record<Key, true>>): readonly Key[] {
  return Object.keys(table) as Key[];
}

export interface WireRecord {
  readonly json: string;
  /** How many characters of `json`, closed with `}`, are the summary view. */
  readonly summaryLength: number;
}

const wireKeys: readonly (keyof Message)[] = [...summaryKeys, ...detailKeys];
/** Where the details begin. JSON cannot have these characters inside a string, and no summary has such a nested key. */
const DETAILS_MARK = `,"${detailKeys[0]}":`;

/**
 * The wire form of a record. The fields of the summary come first, so that the summary view is a prefix of the stored text
 * and needs neither a second copy nor parsing.
 */
export function wireRecord(message: Message): WireRecord {
  const json = JSON.stringify(isInWireOrder(message) ? message : inWireOrder(message));
  return { json, summaryLength: codePointLength(json.slice(0, json.indexOf(DETAILS_MARK))) };
}

/** True for messages of the parser; those that were folded from facts are ordered first. */
function isInWireOrder(message: Message): boolean {
  let place = 0;
  for (const key in message) if (key !== wireKeys[place++]) return false;
  return place === wireKeys.length;
}

function inWireOrder(message: Message): Partial<Message> {
  const ordered: Record<string, unknown> = {};
  for (const key of wireKeys) ordered[key] = message[key];
  return ordered;
}

/** PostgreSQL counts code points, JavaScript UTF-16 units. */
function codePointLength(text: string): number {
  return text.length - (text.match(/[\ud800-\udbff]/g)?.length ?? 0);
}
