/**
 * The meaning of a search, written for reading rather than speed: the reference against which tests hold
 * the SQL, and the filter for changes that are pushed.
 */
import { type BytesHex, parseAddress, parseTransactionHash } from './addresses.ts';
import type { Message } from './message.ts';
import type { Filters, PageKey, QTerm } from './query.ts';

export function matches(filters: Filters, message: Message): boolean {
  const source = message.sourceNetworkInfo.chainFamily;
  const dest = message.destNetworkInfo.chainFamily;
  const sender = parseAddress(message.sender, source)?.bytes;
  const origin = parseAddress(message.origin, source)?.bytes;
  const receiver = parseAddress(message.receiver, dest)?.bytes;
  const sendTransaction = parseTransactionHash(message.sendTransactionHash, source)?.bytes;
  const receiptTransaction =
    message.receiptTransactionHash === null
      ? undefined
      : parseTransactionHash(message.receiptTransactionHash, dest)?.bytes;
  const messageId = message.messageId.slice(2);
  const sourceTokens = message.tokenAmounts.map(
    (token) => parseAddress(token.sourceTokenAddress, source)?.bytes,
  );
  const destTokens = message.tokenAmounts.map((token) => parseAddress(token.destTokenAddress, dest)?.bytes);
  const pools = message.tokenAmounts.map((token) => parseAddress(token.sourcePoolAddress, source)?.bytes);
  const sentAt = Date.parse(message.sendTimestamp);

  const isAny = (wanted: readonly BytesHex[] | undefined, ...held: readonly (BytesHex | undefined)[]) =>
    wanted === undefined || held.some((bytes) => bytes !== undefined && wanted.includes(bytes));
  const termMatches = (term: QTerm) =>
    isAny(term.addresses, sender, receiver, ...sourceTokens, ...destTokens, ...pools) ||
    isAny(term.hashes, sendTransaction, receiptTransaction) ||
    term.messageId === messageId;

  return (
    isAny(filters.sender, sender) &&
    isAny(filters.receiver, receiver) &&
    isAny(filters.address, sender, receiver, origin) &&
    isAny(filters.sourceTransactionHash, sendTransaction) &&
    isAny(filters.destTransactionHash, receiptTransaction) &&
    isAny(filters.sourceTokenAddress, ...sourceTokens) &&
    isAny(filters.messageId, messageId) &&
    (filters.sourceChainSelector ?? message.sourceNetworkInfo.chainSelector) ===
      message.sourceNetworkInfo.chainSelector &&
    (filters.destChainSelector ?? message.destNetworkInfo.chainSelector) ===
      message.destNetworkInfo.chainSelector &&
    (!filters.readyForManualExecOnly || message.readyForManualExecution) &&
    (filters.status === undefined || filters.status.includes(message.status)) &&
    (filters.sentAfter === undefined || sentAt >= filters.sentAfter) &&
    (filters.sentBefore === undefined || sentAt < filters.sentBefore) &&
    (filters.q === undefined || filters.q.every(termMatches))
  );
}

/** Newest first; of those sent at the same moment, the greater message id. */
export function compareNewestFirst(a: Message, b: Message): number {
  return (
    Date.parse(b.sendTimestamp) - Date.parse(a.sendTimestamp) ||
    (a.messageId < b.messageId ? 1 : a.messageId > b.messageId ? -1 : 0)
  );
}

export function pageKey(message: Message): PageKey {
  return { sentAt: Date.parse(message.sendTimestamp), messageId: message.messageId.slice(2) };
}
