/**
 * The meaning of a search, written for reading rather than speed: the reference against which tests hold
 * the SQL, and the filter for changes that are pushed.
 */
import { type BytesHex, parseAddress, parseTransactionHash } from './addresses.ts';
import type { Message } from './message.ts';
import type { Filters, PageKey } from './query.ts';

/** Whether a message is what one filter asks for. The type makes the table complete: a new filter needs its meaning. */
const meanings: {
  readonly [N in keyof Filters]-?: (wanted: NonNullable<Filters[N]>, message: Message) => boolean;
} = {
  sender: (wanted, message) => isAny(wanted, senderOf(message)),
  receiver: (wanted, message) => isAny(wanted, receiverOf(message)),
  address: (wanted, message) =>
    isAny(wanted, senderOf(message), receiverOf(message), addressAt('source', message.origin, message)),
  sourceTransactionHash: (wanted, message) => isAny(wanted, sendTransactionOf(message)),
  destTransactionHash: (wanted, message) => isAny(wanted, receiptTransactionOf(message)),
  sourceTokenAddress: (wanted, message) => isAny(wanted, ...sourceTokensOf(message)),
  messageId: (wanted, message) => isAny(wanted, idOf(message)),
  sourceChainSelector: (wanted, message) => wanted === message.sourceNetworkInfo.chainSelector,
  destChainSelector: (wanted, message) => wanted === message.destNetworkInfo.chainSelector,
  readyForManualExecOnly: (_, message) => message.readyForManualExecution,
  status: (wanted, message) => wanted.includes(message.status),
  sentAfter: (wanted, message) => sentAtOf(message) >= wanted,
  sentBefore: (wanted, message) => sentAtOf(message) < wanted,
  q: (terms, message) => {
    const addresses = [senderOf(message), receiverOf(message), ...tokensAndPoolsOf(message)];
    const hashes = [sendTransactionOf(message), receiptTransactionOf(message)];
    return terms.every(
      (term) =>
        isAny(term.addresses, ...addresses) ||
        isAny(term.hashes, ...hashes) ||
        term.messageId === idOf(message),
    );
  },
};

export function matches(filters: Filters, message: Message): boolean {
  return (Object.keys(filters) as (keyof Filters)[]).every((name) => {
    const isMatch = meanings[name] as (wanted: unknown, message: Message) => boolean;
    return filters[name] === undefined || isMatch(filters[name], message);
  });
}

function isAny(wanted: readonly BytesHex[], ...held: readonly (BytesHex | undefined)[]): boolean {
  return held.some((bytes) => bytes !== undefined && wanted.includes(bytes));
}

type End = 'source' | 'dest';

function familyAt(end: End, message: Message) {
  return (end === 'source' ? message.sourceNetworkInfo : message.destNetworkInfo).chainFamily;
}

function addressAt(end: End, text: string, message: Message): BytesHex | undefined {
  return parseAddress(text, familyAt(end, message))?.bytes;
}

const senderOf = (message: Message) => addressAt('source', message.sender, message);
const receiverOf = (message: Message) => addressAt('dest', message.receiver, message);
const idOf = (message: Message) => message.messageId.slice(2);
const sentAtOf = (message: Message) => Date.parse(message.sendTimestamp);

function sendTransactionOf(message: Message): BytesHex | undefined {
  return parseTransactionHash(message.sendTransactionHash, familyAt('source', message))?.bytes;
}

function receiptTransactionOf(message: Message): BytesHex | undefined {
  const hash = message.receiptTransactionHash;
  return hash === null ? undefined : parseTransactionHash(hash, familyAt('dest', message))?.bytes;
}

function sourceTokensOf(message: Message): readonly (BytesHex | undefined)[] {
  return message.tokenAmounts.map((token) => addressAt('source', token.sourceTokenAddress, message));
}

function tokensAndPoolsOf(message: Message): readonly (BytesHex | undefined)[] {
  return message.tokenAmounts.flatMap((token) => [
    addressAt('source', token.sourceTokenAddress, message),
    addressAt('dest', token.destTokenAddress, message),
    addressAt('source', token.sourcePoolAddress, message),
  ]);
}

/** Newest first; of those sent at the same moment, the greater message id. */
export function compareNewestFirst(a: Message, b: Message): number {
  return sentAtOf(b) - sentAtOf(a) || (a.messageId < b.messageId ? 1 : a.messageId > b.messageId ? -1 : 0);
}

export function pageKey(message: Message): PageKey {
  return { sentAt: sentAtOf(message), messageId: idOf(message) };
}
