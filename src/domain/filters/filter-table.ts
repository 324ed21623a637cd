/**
 * The filters of the search, each declared once: what it takes, what it means, and how it is described.
 *
 * Parser, cursor, live push, OpenAPI document and command line derive from this table; `store/query/search.ts` has the SQL,
 * and `explorer/src/server/search-view.ts` the labels, because this table is too large for a page. The order is that of the documentation.
 */

import { type BytesHex, parseAddress, parseTransactionHash } from '../addresses.ts';
import { statuses } from '../lifecycle.ts';
import type { Message } from '../message.ts';
import {
  addressKind,
  type FilterKind,
  hashKind,
  MAX_MESSAGE_IDS,
  messageIdsKind,
  selectorKind,
  statusesKind,
  switchKind,
  termsKind,
  timeKind,
} from './parameter-values.ts';

interface Filter<T> {
  readonly kind: FilterKind<T>;
  readonly description: string;
  readonly example: string;
  /**
   * The reference meaning, written for clarity rather than speed: property tests compare the SQL with it. It knows the
   * record alone; commits, blessings and earlier attempts, which a search by transaction also finds, are not part of it.
   */
  readonly matches: (value: T, message: Message) => boolean;
}

const ROUNDING = 'Messages have times of whole milliseconds; a finer time is rounded up to the next one.';

export const filterTable = {
  sender: filter(addressKind, {
    description: 'Sender on the source chain, in any notation of its family.',
    example: '0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266',
    matches: (value, message) => isAny(value, senderOf(message)),
  }),
  receiver: filter(addressKind, {
    description: 'Receiver on the destination chain, in any notation of its family.',
    example: '7EcDhSYGxXyscszYEp35KHN8vvw3svAuLKTzXwCFLtV',
    matches: (value, message) => isAny(value, receiverOf(message)),
  }),
  sourceChainSelector: filter(selectorKind, {
    description: 'Chain selector of the source network.',
    example: '16015286601757825753',
    matches: (value, message) => value === message.sourceNetworkInfo.chainSelector,
  }),
  destChainSelector: filter(selectorKind, {
    description: 'Chain selector of the destination network.',
    example: '14767482510784806043',
    matches: (value, message) => value === message.destNetworkInfo.chainSelector,
  }),
  readyForManualExecOnly: filter(switchKind, {
    description: '`true` keeps only messages that are ready for manual execution; `false` keeps all.',
    example: 'true',
    matches: (_, message) => message.readyForManualExecution,
  }),
  sourceTransactionHash: filter(hashKind, {
    description: 'Transaction that sent the message.',
    example: '0x3cbe9b32e0a1c5a1e0a6e0e3a2f3c5d17d8f9a0b1c2d3e4f5061728394a5b6c7',
    matches: (value, message) => isAny(value, sendTransactionOf(message)),
  }),
  status: filter(statusesKind, {
    description: `One status or several, separated by commas: ${statuses.join(', ')}.`,
    example: 'COMMITTED,BLESSED',
    matches: (value, message) => value.includes(message.status),
  }),
  sentAfter: filter(timeKind, {
    description: `Sent at this time or later (ISO 8601 with a time zone). ${ROUNDING}`,
    example: '2026-01-01T00:00:00Z',
    matches: (value, message) => sentAtOf(message) >= value,
  }),
  sentBefore: filter(timeKind, {
    description: `Sent before this time (ISO 8601 with a time zone). ${ROUNDING}`,
    example: '2026-02-01T00:00:00Z',
    matches: (value, message) => sentAtOf(message) < value,
  }),
  address: filter(addressKind, {
    description: 'Sender, receiver or origin, in any notation of its family.',
    example: '0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266',
    matches: (value, message) =>
      isAny(value, senderOf(message), receiverOf(message), addressAt('source', message.origin, message)),
  }),
  sourceTokenAddress: filter(addressKind, {
    description: 'A token that the message transfers, by its address on the source chain.',
    example: '0x779877A7B0D9E8603169DdbD7836e478b4624789',
    matches: (value, message) =>
      isAny(
        value,
        ...message.tokenAmounts.map((token) => addressAt('source', token.sourceTokenAddress, message)),
      ),
  }),
  destTransactionHash: filter(hashKind, {
    description:
      'Transaction on the destination chain: the execution, an earlier attempt, the commit, or the blessing. A stream ' +
      'matches the execution alone.',
    example: '0x8d1f0a6f5a1ce3f2b4c5d6e7f8091a2b3c4d5e6f708192a3b4c5d6e7f8091a2b',
    matches: (value, message) => isAny(value, receiptTransactionOf(message)),
  }),
  messageId: filter(messageIdsKind, {
    description: `One message id or several, separated by commas, at most ${MAX_MESSAGE_IDS}.`,
    example: '0x9f1b0f2f3a4c5d6e7f8091a2b3c4d5e6f708192a3b4c5d6e7f8091a2b3c4d5e6',
    matches: (value, message) => isAny(value, idOf(message)),
  }),
  q: filter(termsKind, {
    description:
      'Terms separated by commas, all of which must match: a source or destination token, a source pool, ' +
      'a transaction hash of either side (any transaction of the message), a message id, a sender or a receiver.',
    example: '0x779877A7B0D9E8603169DdbD7836e478b4624789',
    matches: (terms, message) => {
      const tokensAndPools = message.tokenAmounts.flatMap((token) => [
        addressAt('source', token.sourceTokenAddress, message),
        addressAt('dest', token.destTokenAddress, message),
        addressAt('source', token.sourcePoolAddress, message),
      ]);
      const addresses = [senderOf(message), receiverOf(message), ...tokensAndPools];
      const hashes = [sendTransactionOf(message), receiptTransactionOf(message)];
      return terms.every(
        (term) =>
          isAny(term.addresses, ...addresses) ||
          isAny(term.hashes, ...hashes) ||
          term.messageId === idOf(message),
      );
    },
  }),
  chainSelector: filter(selectorKind, {
    description: 'Chain selector of the source or the destination network.',
    example: '16015286601757825753',
    matches: (value, { sourceNetworkInfo, destNetworkInfo }) =>
      value === sourceNetworkInfo.chainSelector || value === destNetworkInfo.chainSelector,
  }),
};

export type FilterName = keyof typeof filterTable;
export type FilterValue<Name extends FilterName> =
  (typeof filterTable)[Name] extends Filter<infer T> ? T : never;
export const filterNames = Object.keys(filterTable) as readonly FilterName[];

function filter<T>(kind: FilterKind<T>, entry: Omit<Filter<T>, 'kind'>): Filter<T> {
  return { kind, ...entry };
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
