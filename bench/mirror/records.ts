/** The records that are mirrored: record `n` follows from its number, so that a million of them take no memory. */
import type { Message } from '../../src/domain/message.ts';
import { digits, evmAddress, makeMessage, makeToken, networkInfo } from '../../test/fixtures.ts';

const ethereum = networkInfo('ethereum-mainnet');
const base = networkInfo('ethereum-mainnet-base-1');
const arbitrum = networkInfo('ethereum-mainnet-arbitrum-1');
const avalanche = networkInfo('avalanche-mainnet');
const lanes = [
  [ethereum, base],
  [ethereum, arbitrum],
  [base, ethereum],
  [arbitrum, ethereum],
  [ethereum, avalanche],
  [avalanche, arbitrum],
] as const;

/** The first record's send time, and the time between two: a million of them span 400 days. */
const FIRST_SENT_MS = Date.UTC(2025, 0, 1);
const INTERVAL_MS = 34_560;
const SENDERS = 5_000;
/** Every so many, one has failed and one is under way; both are fetched again at the end. */
const UNSETTLED_EVERY = 200;

/** Odd, so that multiplication modulo 2^32 has an inverse. */
const SCATTER = 0x9e3779b1;
const GATHER = 0x0e8b2f51;

export function recordOf(n: number): Message {
  const [source, dest] = lanes[n % lanes.length] ?? lanes[0];
  const status = n % UNSETTLED_EVERY === 7 ? 'FAILED' : n % UNSETTLED_EVERY === 13 ? 'SENT' : 'SUCCESS';
  const sentAt = FIRST_SENT_MS + n * INTERVAL_MS;
  const isExecuted = status !== 'SENT';
  const sender = evmAddress('sender', n % SENDERS);
  return makeMessage({
    number: n,
    messageId: messageIdOf(n),
    status,
    sourceNetworkInfo: source,
    destNetworkInfo: dest,
    sender,
    origin: sender,
    receiver: evmAddress('receiver', n % (SENDERS + 1)),
    // Numbers of a lane have no gap, as on a chain.
    sequenceNumber: String(Math.floor(n / lanes.length) + 1),
    sendTimestamp: new Date(sentAt).toISOString(),
    receiptTimestamp: isExecuted ? new Date(sentAt + 60_000).toISOString() : null,
    data: `0x${digits('data', n).repeat(4)}`,
    tokenAmounts: n % 2 === 0 ? [makeToken(source, dest, `token ${n % 40}`)] : [],
  });
}

/** Ids look random, as hashes do: neighbours in time are not neighbours in the database's index. */
export function messageIdOf(n: number): string {
  const scattered = Math.imul(n, SCATTER) >>> 0;
  return `0x${scattered.toString(16).padStart(8, '0')}${digits('message', n).slice(8)}`;
}

/** The number of an id, whether there is such a record or not. */
export function numberOf(messageId: string): number {
  return Math.imul(Number.parseInt(messageId.slice(2, 10), 16), GATHER) >>> 0;
}
