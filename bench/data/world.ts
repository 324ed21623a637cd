/**
 * The world that is measured: message `n` of `size`, the same for the same numbers on every machine.
 *
 * Who sends what to whom follows from `n` alone, so that workloads can draw parameters without asking the database.
 * A little less than half is ordinary traffic: a dozen lanes of very different weight, busy senders and many that sent
 * once. The rest is made to hurt, in two casts of actors who are all common:
 *
 * - `strangers` never meet: a sender with a tenth of everything, a receiver with another tenth, a source, a
 *   destination, messages ready for execution, and a transaction with thousands of messages. Any two of them have
 *   (but for one message of the first two, at the old end) nothing in common, so that a search for both finds out
 *   late.
 * - `pairs` meet two by two, often, and never three at a time: what an index over two columns finds at once, a third
 *   condition rejects.
 */
import { statuses } from '../../src/domain/lifecycle.ts';
import type { NetworkInfo } from '../../src/domain/message.ts';
import { findNetwork } from '../../src/domain/networks/networks.ts';

/** Changes whenever the same number means another message: kept databases of another version are made anew. */
export const WORLD_VERSION = 1;

export const END_MS = Date.UTC(2026, 10, 1);
export const SPAN_MS = 400 * 86_400_000;
export const BUSY_SENDERS = 20;
const BUSY_RECEIVERS = 30;
/** The newest of them are under way. */
const IN_FLIGHT = 500;
const BIG_TRANSACTION = 2_000;

export interface Lane {
  readonly source: NetworkInfo;
  readonly dest: NetworkInfo;
  readonly onramp: string;
  readonly router: string;
  readonly feeToken: string;
}

/** What a search can ask for of message `n`. Addresses have their canonical spelling, and so have hashes. */
export interface Envelope {
  readonly n: number;
  readonly messageId: string;
  readonly sentAtMs: number;
  readonly lane: number;
  readonly sender: string;
  readonly receiver: string;
  readonly origin: string;
  readonly sendTransaction: string;
  readonly receiptTransaction: string | null;
  readonly status: (typeof statuses)[number];
  readonly isReady: boolean;
  /** Which of the lane's tokens it transfers; null for none. */
  readonly token: number | null;
}

// ---- Numbers from numbers

/** Thirty-two bits that look random; for a fixed salt no two `n` have the same. */
export function mix(n: number, salt: number): number {
  let h = (n ^ Math.imul(salt + 1, 0x9e3779b1)) >>> 0;
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return (h ^ (h >>> 16)) >>> 0;
}

const fourDigits = Array.from({ length: 65_536 }, (_, number) => number.toString(16).padStart(4, '0'));

export function hexOf(n: number, salt: number, words: number): string {
  let text = '';
  for (let word = 0; word < words; word++) {
    const bits = mix(n, salt * 64 + word);
    text += fourDigits[bits >>> 16];
    text += fourDigits[bits & 0xffff];
  }
  return text;
}

/** The transaction that executes message `n`. */
export const executionTransaction = (n: number) => `0x${hexOf(n, 4, 8)}`;

const nineDigits = (number: number) => String(number % 1_000_000_000).padStart(9, '0');

/** Of decimal digits only: an EVM address without letters is its own checksum, which would take longest of all. */
function account(kind: number, number: number): string {
  const salt = 1_000 + kind * 8;
  return `0x${kind}${nineDigits(number)}${nineDigits(mix(number, salt))}${nineDigits(mix(number, salt + 1))}${nineDigits(mix(number, salt + 2))}${nineDigits(mix(number, salt + 3)).slice(0, 3)}`;
}

const busySender = (number: number) => account(1, number);
const ordinarySender = (number: number) => account(2, number);
const singleSender = (number: number) => account(3, number);
const busyReceiver = (number: number) => account(4, number);
const ordinaryReceiver = (number: number) => account(5, number);
const person = (number: number) => account(6, number);
/** Numbers below 1,000 that no lane, cast or other contract has are free. */
export const contract = (number: number) => account(7, number);
export const unknownAccount = (number: number) => account(8, number);

// ---- Lanes

function network(name: string): NetworkInfo {
  const found = findNetwork(name);
  if (!found) throw new Error(`No network ${name}`);
  const { selector, chainId, family, displayName } = found;
  return { name: found.name, chainSelector: selector, chainId, chainFamily: family, displayName };
}

const ethereum = network('ethereum-mainnet');
const base = network('ethereum-mainnet-base-1');
const arbitrum = network('ethereum-mainnet-arbitrum-1');
const avalanche = network('avalanche-mainnet');
const bnb = network('binance_smart_chain-mainnet');
const polygon = network('polygon-mainnet');
const optimism = network('ethereum-mainnet-optimism-1');
const linea = network('ethereum-mainnet-linea-1');

const lane = (number: number, source: NetworkInfo, dest: NetworkInfo): Lane => ({
  source,
  dest,
  onramp: contract(100 + number),
  router: contract(200 + number),
  feeToken: contract(300 + number),
});

/** The first holds half of everything. */
const MAIN_LANE = 0;
const LONE_SOURCE_LANE = 8;
const LONE_DEST_LANE = 9;
const PAIR_SOURCE_LANE = 10;
const PAIR_DEST_LANE = 11;
const PAIR_BOTH_LANE = 12;
export const lanes: readonly Lane[] = [
  lane(0, ethereum, base),
  lane(1, ethereum, arbitrum),
  lane(2, base, ethereum),
  lane(3, arbitrum, ethereum),
  lane(4, ethereum, avalanche),
  lane(5, avalanche, ethereum),
  lane(6, arbitrum, base),
  lane(7, avalanche, arbitrum),
  // Polygon only sends to Ethereum, and only Ethereum sends to BNB Chain: common, and never together.
  lane(8, polygon, ethereum),
  lane(9, ethereum, bnb),
  lane(10, optimism, base),
  lane(11, ethereum, linea),
  lane(12, optimism, linea),
];
/** Of ordinary traffic, in per cent. */
const ordinaryLanes = weighted([60, 13, 8, 6, 5, 4, 3, 1]);

// ---- Casts

const WHALE = contract(1);
const HUB = contract(2);
const PAIR_SENDER = contract(3);
const PAIR_RECEIVER = contract(4);

interface Role {
  /** Per thousand. */
  readonly weight: number;
  readonly sender?: string;
  readonly receiver?: string;
  readonly lane?: number;
  readonly isReady?: true;
}

const roles: readonly Role[] = [
  { weight: 470 },
  { weight: 100, sender: WHALE, lane: MAIN_LANE },
  { weight: 100, receiver: HUB, lane: MAIN_LANE },
  { weight: 80, lane: LONE_SOURCE_LANE },
  { weight: 80, lane: LONE_DEST_LANE },
  { weight: 20, lane: MAIN_LANE, isReady: true },
  { weight: 15, sender: PAIR_SENDER, receiver: PAIR_RECEIVER, lane: MAIN_LANE },
  { weight: 15, sender: PAIR_SENDER, lane: PAIR_SOURCE_LANE },
  { weight: 15, sender: PAIR_SENDER, lane: PAIR_DEST_LANE },
  { weight: 15, sender: PAIR_SENDER, lane: MAIN_LANE, isReady: true },
  { weight: 15, receiver: PAIR_RECEIVER, lane: PAIR_SOURCE_LANE },
  { weight: 15, receiver: PAIR_RECEIVER, lane: PAIR_DEST_LANE },
  { weight: 15, receiver: PAIR_RECEIVER, lane: MAIN_LANE, isReady: true },
  { weight: 15, lane: PAIR_BOTH_LANE },
  { weight: 15, lane: PAIR_SOURCE_LANE, isReady: true },
  { weight: 15, lane: PAIR_DEST_LANE, isReady: true },
];
const MEETING = 5;
const meeting: Role = { weight: 0, sender: WHALE, receiver: HUB, lane: MAIN_LANE };
const roleTable = weighted(roles.map(({ weight }) => weight));

/** Indexes, each as often as its weight says. */
function weighted(weights: readonly number[]): readonly number[] {
  return weights.flatMap((weight, index) => Array.from({ length: weight }, () => index));
}

function pick<T>(table: readonly T[], bits: number): T {
  return table[bits % table.length] as T;
}

// ---- The world

export interface World {
  readonly size: number;
  envelope(n: number): Envelope;
  /** The parameters of the six filters of the specification, as each cast would give them. */
  readonly casts: Readonly<Record<'strangers' | 'pairs', Readonly<Record<string, string>>>>;
  busySender(number: number): string;
  ordinarySender(number: number): string;
  readonly ordinarySenders: number;
  token(laneNumber: number, number: number): { source: string; dest: string; pool: string };
}

export const TOKENS_PER_LANE = 8;

export function createWorld(size: number): World {
  const ordinarySenders = Math.max(50, Math.floor(size / 100));
  const ordinaryReceivers = Math.max(100, Math.floor(size / 50));
  const bigFrom = Math.floor(size / 2);
  const rareEvery = Math.floor(size / 20);

  const transactionOf = (n: number) => {
    const first =
      n >= bigFrom && n < bigFrom + Math.min(BIG_TRANSACTION, size / 10)
        ? bigFrom
        : mix(n >>> 1, 3) % 5 === 0
          ? n & ~1
          : n;
    return `0x${hexOf(first, 2, 8)}`;
  };

  const statusOf = (n: number, isReady: boolean): Envelope['status'] => {
    // Hardly any message has these two: one is spread evenly, the other all at the old end.
    if (n < 200 && n % 40 === 11) return 'BLESSED';
    if (n % rareEvery === 7) return 'VERIFIED';
    if (isReady) return 'FAILED';
    if (n >= size - IN_FLIGHT) return statuses[mix(n, 5) % 3] ?? 'SENT';
    return mix(n, 5) % 300 === 0 ? 'FAILED' : 'SUCCESS';
  };

  const senderOf = (n: number): string => {
    const bits = mix(n, 7);
    const share = bits % 100;
    if (share < 25) return busySender(Math.floor(BUSY_SENDERS * (mix(n, 8) / 2 ** 32) ** 2));
    if (share < 80) return ordinarySender(mix(n, 9) % ordinarySenders);
    return singleSender(n);
  };

  return {
    size,
    ordinarySenders,
    busySender,
    ordinarySender,
    token: (laneNumber, number) => ({
      source: contract(1_000 + laneNumber * 100 + number),
      dest: contract(11_000 + laneNumber * 100 + number),
      pool: contract(21_000 + laneNumber * 100 + number),
    }),
    casts: {
      strangers: {
        sender: WHALE,
        receiver: HUB,
        sourceChainSelector: polygon.chainSelector,
        destChainSelector: bnb.chainSelector,
        readyForManualExecOnly: 'true',
        sourceTransactionHash: transactionOf(bigFrom),
      },
      pairs: {
        sender: PAIR_SENDER,
        receiver: PAIR_RECEIVER,
        sourceChainSelector: optimism.chainSelector,
        destChainSelector: linea.chainSelector,
        readyForManualExecOnly: 'true',
        sourceTransactionHash: transactionOf(bigFrom),
      },
    },
    envelope(n) {
      // The two strangers have one message in common, among the oldest.
      const role: Role | undefined = n === MEETING ? meeting : roles[pick(roleTable, mix(n, 1))];
      if (!role) throw new Error('Every number has a role');
      const isReady = role.isReady ?? false;
      const status = statusOf(n, isReady);
      const laneNumber = role.lane ?? pick(ordinaryLanes, mix(n, 4));
      const sender = role.sender ?? senderOf(n);
      const receiver =
        role.receiver ??
        (mix(n, 10) % 100 < 40
          ? busyReceiver(Math.floor(BUSY_RECEIVERS * (mix(n, 11) / 2 ** 32) ** 2))
          : ordinaryReceiver(mix(n, 11) % ordinaryReceivers));
      const isPerson = sender.startsWith('0x2') || sender.startsWith('0x3');
      return {
        n,
        messageId: `0x${hexOf(n, 1, 8)}`,
        sentAtMs: END_MS - SPAN_MS + Math.floor((n * SPAN_MS) / size / 1_000) * 1_000,
        lane: laneNumber,
        sender,
        receiver,
        origin: isPerson ? sender : person(mix(n, 12) % ordinarySenders),
        sendTransaction: transactionOf(n),
        receiptTransaction: status === 'SUCCESS' || status === 'FAILED' ? executionTransaction(n) : null,
        status,
        isReady,
        token: mix(n, 13) % 2 === 0 ? Math.floor(TOKENS_PER_LANE * (mix(n, 14) / 2 ** 32) ** 2) : null,
      };
    },
  };
}
