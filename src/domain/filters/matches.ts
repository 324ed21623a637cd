/**
 * The reference meaning of the filters, written for clarity rather than speed: property tests compare the SQL with it, and
 * live push filters changes with it. It knows the record alone: commits, blessings and earlier attempts, which a search by
 * transaction also finds, are not part of it.
 */
import { type BytesHex, parseAddress, parseTransactionHash } from '../addresses.ts';
import type { Message } from '../message.ts';
import type { Filters, PageKey } from './query.ts';

/** Whether a message matches one filter. The type makes the table complete: a new filter needs its predicate. */
const predicates: {
  readonly [N in keyof Filters]-?: (value: NonNullable<Filters[N]>, message: Message) => boolean;
} = {
  sender: (value, message) => isAny(value, senderOf(message)),
  receiver: (value, message) => isAny(value, receiverOf(message)),
  address: (value, message) =>
    isAny(value, senderOf(message), receiverOf(message), addressAt('source', message.origin, message)),
  sourceTransactionHash: (value, message) => isAny(value, sendTransactionOf(message)),
  destTransactionHash: (value, message) => isAny(value, receiptTransactionOf(message)),
  sourceTokenAddress: (value, message) => isAny(value, ...sourceTokensOf(message)),
  messageId: (value, message) => isAny(value, idOf(message)),
  sourceChainSelector: (value, message) => value === message.sourceNetworkInfo.chainSelector,
  destChainSelector: (value, message) => value === message.destNetworkInfo.chainSelector,
  chainSelector: (value, { sourceNetworkInfo, destNetworkInfo }) =>
    value === sourceNetworkInfo.chainSelector || value === destNetworkInfo.chainSelector,
  readyForManualExecOnly: (_, message) => message.readyForManualExecution,
  status: (value, message) => value.includes(message.status),
  sentAfter: (value, message) => sentAtOf(message) >= value,
  sentBefore: (value, message) => sentAtOf(message) < value,
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
    const isMatch = predicates[name] as (value: unknown, message: Message) => boolean;
    return filters[name] === undefined || isMatch(filters[name], message);
  });
}

function isAny(values: readonly BytesHex[], ...present: readonly (BytesHex | undefined)[]): boolean {
  return present.some((bytes) => bytes !== undefined && values.includes(bytes));
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

/** Newest first; for the same time, the greater message id first. */
export function compareNewestFirst(a: Message, b: Message): number {
  return sentAtOf(b) - sentAtOf(a) || (a.messageId < b.messageId ? 1 : a.messageId > b.messageId ? -1 : 0);
}

export function pageKey(message: Message): PageKey {
  return { sentAt: sentAtOf(message), messageId: idOf(message) };
}
