/** The columns of a record: what `message` and `message_token` store beside the JSON, to find it by. */
import { hash } from 'node:crypto';
import { type ChainFamily, parseAddress, parseTransactionHash } from '../../domain/addresses.ts';
import type { Observation } from '../../domain/facts.ts';
import { statusRank } from '../../domain/lifecycle.ts';
import { type Message, wireRecord } from '../../domain/message.ts';
import { networkBySelector } from '../../domain/networks/networks.ts';

/** Columns as COPY takes them: text, with bytes in hex, null as null. */
export interface MessageRow {
  readonly messageId: string;
  readonly sentAt: string;
  readonly sourceSelector: string;
  readonly destSelector: string;
  readonly sequenceNumber: string;
  readonly deliveryMs: number | null;
  readonly finality: number;
  readonly summaryLength: number;
  readonly status: number;
  readonly ready: boolean;
  readonly sender: string;
  readonly receiver: string;
  readonly origin: string;
  readonly onramp: string;
  readonly sendTransaction: string;
  readonly receiptTransaction: string | null;
  readonly digest: string;
  readonly record: string;
}

export interface TokenRow {
  readonly messageId: string;
  readonly tokenIndex: number;
  readonly sentAt: string;
  readonly sourceSelector: string;
  readonly destSelector: string;
  readonly sourceToken: string;
  readonly destToken: string;
  readonly sourcePool: string;
}

export function messageRow(message: Message): MessageRow {
  const source = message.sourceNetworkInfo.chainFamily;
  const dest = message.destNetworkInfo.chainFamily;
  const { json, summaryLength } = wireRecord(message);
  return {
    messageId: message.messageId.slice(2),
    sentAt: message.sendTimestamp,
    sourceSelector: storedSelector(message.sourceNetworkInfo.chainSelector),
    destSelector: storedSelector(message.destNetworkInfo.chainSelector),
    sequenceNumber: message.sequenceNumber,
    deliveryMs: message.deliveryTime,
    finality: message.finality,
    summaryLength,
    status: statusRank(message.status),
    ready: message.readyForManualExecution,
    sender: addressColumn(message.sender, source),
    receiver: addressColumn(message.receiver, dest),
    origin: addressColumn(message.origin, source),
    onramp: addressColumn(message.onramp, source),
    sendTransaction: transactionColumn(message.sendTransactionHash, source),
    receiptTransaction:
      message.receiptTransactionHash === null
        ? null
        : transactionColumn(message.receiptTransactionHash, dest),
    digest: recordDigest(json),
    record: json,
  };
}

export function tokenRows(message: Message): TokenRow[] {
  const source = message.sourceNetworkInfo.chainFamily;
  const dest = message.destNetworkInfo.chainFamily;
  return message.tokenAmounts.map((token, tokenIndex) => ({
    messageId: message.messageId.slice(2),
    tokenIndex,
    sentAt: message.sendTimestamp,
    sourceSelector: storedSelector(message.sourceNetworkInfo.chainSelector),
    destSelector: storedSelector(message.destNetworkInfo.chainSelector),
    sourceToken: addressColumn(token.sourceTokenAddress, source),
    destToken: addressColumn(token.destTokenAddress, dest),
    sourcePool: addressColumn(token.sourcePoolAddress, source),
  }));
}

/** An unsigned 64-bit selector in PostgreSQL's signed bigint. */
export function storedSelector(selector: string): string {
  const known = storedSelectors.get(selector);
  if (known !== undefined) return known;
  const stored = BigInt.asIntN(64, BigInt(selector)).toString();
  if (storedSelectors.size >= MAX_STORED_SELECTORS) storedSelectors.clear();
  storedSelectors.set(selector, stored);
  return stored;
}

/** There are a few hundred networks. */
const storedSelectors = new Map<string, string>();
const MAX_STORED_SELECTORS = 1_000;

export function addressColumn(text: string, family: ChainFamily): string {
  const spelling = parseAddress(text, family);
  if (!spelling) throw new Error(`A record reached the store with a malformed ${family} address: ${text}`);
  return spelling.bytes;
}

function transactionColumn(text: string, family: ChainFamily): string {
  const spelling = parseTransactionHash(text, family);
  if (!spelling) throw new Error(`A record reached the store with a malformed ${family} hash: ${text}`);
  return spelling.bytes;
}

/** The transaction of an observation; null if it has no transaction or the notation of its network is unknown. */
export function observedTransaction({ network, transactionHash }: Observation): string | null {
  const family = transactionHash === null ? undefined : networkBySelector(network)?.family;
  return (family && transactionHash && parseTransactionHash(transactionHash, family)?.bytes) || null;
}

/** Message ids as an array literal for a statement: the driver would convert each to bytes and back. */
export function messageIdArray(ids: readonly string[]): string {
  return ids.length === 0 ? '{}' : `{"\\\\x${ids.join('","\\\\x')}"}`;
}

/** Tells a change of a record without reading it. */
export function recordDigest(json: string): string {
  return hash('sha256', json, 'hex').slice(0, 32);
}

/** The unsigned selector that a stored bigint stands for. */
export function selectorOf(stored: string): string {
  return BigInt.asUintN(64, BigInt(stored)).toString();
}
