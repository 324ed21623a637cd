/**
 * A virtual Solana cluster: slots of which some are skipped, transactions that land in the newest slot, accounts with
 * their history. It knows nothing of CCIP (ccip-world.ts does) or of HTTP (endpoint/node.ts does).
 *
 * Transactions that a test lands are kept. Those of a lazy series are computed when they are asked for, so that a
 * million of them take no memory: a series says at which slot its n-th transaction is, and its signatures hold series
 * and index.
 */
import { sha256, sha512 } from '@noble/hashes/sha2.js';
import { concat, fromBase58, fromHex, toBase58, u32, utf8 } from './bytes.ts';
import {
  type LedgerTransaction,
  runTransaction,
  type TransactionFault,
  type TransactionPlan,
} from './runtime.ts';

// ---- What a Solana node knows, and `endpoint/node.ts` serves

/** An entry of `getSignaturesForAddress`, without the status of its slot. */
export interface SignatureEntry {
  readonly signature: string;
  readonly slot: number;
  readonly err: TransactionFault | null;
  readonly memo: string | null;
}

export interface LedgerAccount {
  readonly owner: string;
  readonly data: Uint8Array;
  readonly lamports: number;
  readonly executable: boolean;
}

/** Where a transaction lies: they are ordered by slot, then by their order in it. */
export interface Place {
  readonly slot: number;
  readonly order: number;
}

export interface SignatureQuery {
  /** The highest slot that is looked at. */
  readonly upTo: number;
  /** Neither of the two is among the results. */
  readonly before?: Place | undefined;
  readonly until?: Place | undefined;
  readonly limit: number;
}

export interface Simulation {
  readonly err: TransactionFault | null;
  readonly logs: readonly string[];
  readonly unitsConsumed: number;
  readonly returnData: { readonly programId: string; readonly data: readonly [string, 'base64'] } | null;
}

export interface Ledger {
  readonly genesisHash: string;
  /** The newest slot with a block. */
  readonly head: number;
  /** The highest slot at or below this one that has a block. */
  slotAtOrBelow(slot: number): number;
  /** With its time in seconds since 1970. Undefined where the slot was skipped, or is above the head. */
  block(slot: number): { readonly blockhash: string; readonly blockTime: number } | undefined;
  transaction(signature: string): LedgerTransaction | undefined;
  placeOf(signature: string): Place | undefined;
  /** Newest first. */
  signaturesFor(address: string, query: SignatureQuery): readonly SignatureEntry[];
  /** As it was after the slot. */
  account(address: string, slot: number): LedgerAccount | undefined;
  accountsOf(program: string, slot: number): readonly (readonly [string, LedgerAccount])[];
  simulate(transaction: Uint8Array, slot: number): Simulation;
}

// ---- The cluster

/** Very many transactions that name the same addresses. */
export interface LazySeries {
  readonly count: number;
  /** Every one of them names these, and no others that are asked for. */
  readonly addresses: readonly string[];
  /** Never descending, and never a skipped slot. */
  slotOf(index: number): number;
  planOf(index: number): TransactionPlan;
  /** What comes of the plan; success where it is left out. Lists of signatures say it without running the plan. */
  errOf?(index: number): TransactionFault | null;
}

const SLOT_MS = 400;
/** One slot in so many is skipped. */
const SKIPS_ONE_IN = 12;
const USUAL_HEAD = 1_000;
const SERIES_MARK = fromHex('5e71e55e71e55e71');
/** Orders of landed transactions are below; those of series above. */
const FIRST_SERIES_ORDER = 1e9;
const RENT_LAMPORTS = 2_039_280;

export function createVirtualCluster(options: {
  readonly genesisHash: string;
  /** The newest slot at the beginning. */
  readonly head?: number;
  /** Milliseconds since 1970, of slot 0. */
  readonly startedAtMs?: number;
}) {
  const { genesisHash } = options;
  const isSkipped = (slot: number) => slot > 0 && (Math.imul(slot, 0x9e37_79b1) >>> 9) % SKIPS_ONE_IN === 0;
  const slotAtOrBelow = (slot: number): number => {
    let found = Math.max(0, slot);
    while (isSkipped(found)) found--;
    return found;
  };
  const slotAtOrAbove = (slot: number): number => {
    let found = slot;
    while (isSkipped(found)) found++;
    return found;
  };

  let head = slotAtOrAbove(options.head ?? USUAL_HEAD);
  const startedAtMs = options.startedAtMs ?? Date.now() - head * SLOT_MS;
  /** Seconds since 1970. */
  const timeOf = (slot: number) => Math.floor((startedAtMs + slot * SLOT_MS) / 1000);

  const landed: { readonly transaction: LedgerTransaction; readonly place: Place }[] = [];
  const bySignature = new Map<string, number>();
  /** Indexes into `landed`, ascending. */
  const byAddress = new Map<string, number[]>();
  const series: LazySeries[] = [];
  const accounts = new Map<string, { readonly slot: number; readonly account: LedgerAccount }[]>();
  const simulations = new Map<string, Uint8Array>();

  const blockhashOf = (slot: number) => toBase58(sha256(utf8(`${genesisHash} ${slot}`)));

  /** What a transaction would be if it landed now. */
  const rehearse = (plan: TransactionPlan): LedgerTransaction =>
    runTransaction(plan, {
      signature: landedSignature(genesisHash, landed.length),
      slot: head,
      recentBlockhash: blockhashOf(slotAtOrBelow(head - 1)),
    });
  const orderOf = (number: number, index: number) => (number + 1) * FIRST_SERIES_ORDER + index;
  /** A transaction that landed, or one of a series at or below the head. */
  const find = (signature: string) => {
    const known = landed[bySignature.get(signature) ?? -1];
    if (known) return { place: known.place, transaction: () => known.transaction };
    const { number, index } = readSeriesSignature(signature) ?? { number: -1, index: 0 };
    const own = series[number];
    const slot = own && index < own.count ? own.slotOf(index) : Number.POSITIVE_INFINITY;
    if (!own || slot > head) return undefined;
    const recentBlockhash = blockhashOf(slotAtOrBelow(slot - 1));
    return {
      place: { slot, order: orderOf(number, index) },
      transaction: () => runTransaction(own.planOf(index), { signature, slot, recentBlockhash }),
    };
  };

  const entryOf = ({ signature, slot, meta }: LedgerTransaction): SignatureEntry => ({
    signature,
    slot,
    err: meta.err,
    memo: null,
  });

  /** Newest first: the landed ones of an address, between two places. */
  function* landedFor(address: string, isBelow: (place: Place) => boolean): Generator<Found> {
    const indexes = byAddress.get(address) ?? [];
    for (let at = indexes.length - 1; at >= 0; at--) {
      const { place, transaction } = landed[indexes[at] as number] as (typeof landed)[number];
      if (isBelow(place)) yield { place, entry: () => entryOf(transaction) };
    }
  }
  function* lazyFor(number: number, isBelow: (place: Place) => boolean): Generator<Found> {
    const own = series[number] as LazySeries;
    const placeAt = (index: number): Place => ({ slot: own.slotOf(index), order: orderOf(number, index) });
    let low = 0;
    let high = own.count;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (isBelow(placeAt(middle))) low = middle + 1;
      else high = middle;
    }
    for (let index = low - 1; index >= 0; index--) {
      const place = placeAt(index);
      const entry = (): SignatureEntry => ({
        signature: seriesSignature(number, index),
        slot: place.slot,
        err: own.errOf?.(index) ?? null,
        memo: null,
      });
      yield { place, entry };
    }
  }

  const ledger: Ledger = {
    genesisHash,
    slotAtOrBelow,
    get head() {
      return head;
    },
    block: (slot) =>
      slot < 0 || slot > head || isSkipped(slot)
        ? undefined
        : { blockhash: blockhashOf(slot), blockTime: timeOf(slot) },
    transaction: (signature) => find(signature)?.transaction(),
    placeOf: (signature) => find(signature)?.place,
    signaturesFor(address, { upTo, before, until, limit }: SignatureQuery) {
      const isBelow = (place: Place) =>
        place.slot <= Math.min(upTo, head) && (!before || comparePlaces(place, before) < 0);
      const sources = [
        landedFor(address, isBelow),
        ...series.flatMap((one, number) =>
          one.addresses.includes(address) ? [lazyFor(number, isBelow)] : [],
        ),
      ];
      // Each is ordered from new to old: the newest of all are among the newest of each.
      const newest = sources.flatMap((source) => {
        const found: Found[] = [];
        for (const one of source) {
          if (found.length >= limit || (until && comparePlaces(one.place, until) <= 0)) break;
          found.push(one);
        }
        return found;
      });
      const ordered = newest.sort((a, b) => comparePlaces(b.place, a.place));
      return ordered.slice(0, limit).map(({ entry }) => entry());
    },
    account: (address, slot) => accounts.get(address)?.findLast((entry) => entry.slot <= slot)?.account,
    accountsOf(program, slot) {
      return [...accounts].flatMap(([address, history]) => {
        const account = history.findLast((entry) => entry.slot <= slot)?.account;
        return account?.owner === program ? [[address, account] as const] : [];
      });
    },
    simulate: (transaction) => simulate(transaction, simulations),
  };
  return Object.assign(ledger, {
    isSkipped,
    timeOf,
    rehearse,
    /** Slots pass. The newest slot always has a block. */
    grow(slots: number): void {
      head = slotAtOrAbove(head + slots);
    },
    /** A transaction in the newest slot. */
    land(plan: TransactionPlan): LedgerTransaction {
      const transaction = rehearse(plan);
      const index = landed.length;
      landed.push({ transaction, place: { slot: head, order: index } });
      bySignature.set(transaction.signature, index);
      const { accountKeys } = transaction.message;
      const { writable, readonly } = transaction.meta.loadedAddresses;
      for (const address of new Set([...accountKeys, ...writable, ...readonly]))
        pushInto(byAddress, address, index);
      return transaction;
    },
    /** From the newest slot on. */
    setAccount(address: string, account: Pick<LedgerAccount, 'owner' | 'data'>): void {
      const kept = { ...account, lamports: RENT_LAMPORTS, executable: false };
      pushInto(accounts, address, { slot: head, account: kept });
    },
    addSeries(added: LazySeries): void {
      series.push(added);
    },
    /** What a simulated call of a program returns, by program and the first eight bytes of the data. */
    answerSimulation(program: string, discriminator: Uint8Array, returnData: Uint8Array): void {
      simulations.set(`${program} ${Buffer.from(discriminator).toString('hex')}`, returnData);
    },
  });
}

interface Found {
  readonly place: Place;
  entry(): SignatureEntry;
}

function comparePlaces(a: Place, b: Place): number {
  return a.slot - b.slot || a.order - b.order;
}

function pushInto<K, V>(map: Map<K, V[]>, key: K, value: V): void {
  const list = map.get(key);
  if (list) list.push(value);
  else map.set(key, [value]);
}

function landedSignature(genesisHash: string, index: number): string {
  return toBase58(sha512(utf8(`${genesisHash} transaction ${index}`)));
}

/** 64 bytes: a mark, the series, the index, and a filler. */
function seriesSignature(number: number, index: number): string {
  const id = concat(SERIES_MARK, u32(number), u32(index));
  return toBase58(concat(id, new Uint8Array(48).fill(0xaa)));
}

function readSeriesSignature(
  signature: string,
): { readonly number: number; readonly index: number } | undefined {
  const bytes = Buffer.from(fromBase58(signature));
  if (bytes.length !== 64) return undefined;
  const [number, index] = [bytes.readUInt32LE(8), bytes.readUInt32LE(12)];
  return seriesSignature(number, index) === signature ? { number, index } : undefined;
}

/** Runs the last instruction of a transaction, if a test has said what it returns. */
function simulate(transaction: Uint8Array, known: ReadonlyMap<string, Uint8Array>): Simulation {
  const call = lastCallOf(transaction);
  const answer = call && known.get(`${call.program} ${Buffer.from(call.data.slice(0, 8)).toString('hex')}`);
  if (!call || !answer)
    return {
      err: { InstructionError: [0, 'InvalidInstructionData'] },
      logs: [],
      unitsConsumed: 0,
      returnData: null,
    };
  const data = Buffer.from(answer).toString('base64');
  return {
    err: null,
    logs: [
      `Program ${call.program} invoke [1]`,
      `Program ${call.program} consumed 1500 of 200000 compute units`,
      `Program return: ${call.program} ${data}`,
      `Program ${call.program} success`,
    ],
    unitsConsumed: 1_500,
    returnData: { programId: call.program, data: [data, 'base64'] },
  };
}

/** The program and data of the last instruction of an encoded transaction, legacy or version 0. */
function lastCallOf(
  transaction: Uint8Array,
): { readonly program: string; readonly data: Uint8Array } | undefined {
  let rest = Buffer.from(transaction);
  const take = (size: number): Buffer => {
    if (rest.length < size) throw new RangeError('The transaction is cut off.');
    const taken = rest.subarray(0, size);
    rest = rest.subarray(size);
    return taken;
  };
  /** Seven bits a byte, the lowest first. */
  const count = (): number => {
    const [byte = 0] = take(1);
    return byte < 0x80 ? byte : (byte & 0x7f) + 0x80 * count();
  };
  try {
    take(count() * 64);
    const isVersioned = (rest[0] ?? 0) >= 0x80;
    take(isVersioned ? 4 : 3);
    const keys = Array.from({ length: count() }, () => toBase58(take(32)));
    take(32);
    const calls = Array.from({ length: count() }, () => {
      const [program = 0] = take(1);
      take(count());
      return { program: keys[program] as string, data: take(count()) };
    });
    return calls.at(-1);
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}
