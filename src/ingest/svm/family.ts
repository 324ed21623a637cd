/** The Solana family: CCIP 1.6, read from the transactions of router and off-ramp programs over JSON-RPC. */
import { base58, hex } from '@scure/base';
import type { BytesHex } from '../../domain/addresses.ts';
import { tokenPrograms } from '../../domain/failures/program-errors.ts';
import { claimedText } from '../../domain/names/claimed-text.ts';
import { MAX_NAME_CHARACTERS, MAX_SYMBOL_CHARACTERS, type TokenClaims } from '../../domain/names/tokens.ts';
import type { BlockRange } from '../../store/ledger/index-ledger.ts';
import { combineTasks, createTokenTasks } from '../engine/background-tasks.ts';
import {
  type HistoryReading,
  logProblemsOf,
  stepOf,
  unconfirmedOf,
  withFinality,
} from '../engine/block-readings.ts';
import { createConfirmation } from '../engine/confirmation.ts';
import { createContractRegistry } from '../engine/contract-registry.ts';
import type { ChainFamily, ConnectOptions, NetworkReader, NetworkStart } from '../engine/family.ts';
import { NodeError, RequestRejectedError, reasonOf } from '../engine/faults.ts';
import { createExecutionOpenings } from '../engine/manual-execution.ts';
import { createProgress, historyRange } from '../engine/progress.ts';
import { type Account, readManualExecutionDelay } from './accounts.ts';
import { createCompletenessCheck } from './checks/completeness-check.ts';
import { BorshReader, readable } from './decode/borsh.ts';
import { slotHash } from './decode/transaction-facts.ts';
import { type ChainNode, createChain, type FinalizedHead } from './node.ts';
import { METADATA_PROGRAM, programAddresses } from './program-addresses.ts';
import {
  agreedCheck,
  checkOffRamps,
  type ProgramRegistry,
  programsOf,
  readRouters,
  routerContract,
  type SvmNetwork,
} from './programs.ts';
import { createSlotReader, type ReadSlots, type SlotQuery, sayingOf } from './reading.ts';
import type { SvmSource } from './settings.ts';
import { createSignatureLists } from './signature-lists.ts';
import { probeNetwork } from './svm-network-probe.ts';

/** Entries in one page of a list; nodes give 1,000 at most. */
const PAGE_SIZE = 500;
/** Transactions of each program in one piece of history: enough to be worth a step, few enough for memory. */
const MAX_ENTRIES = 500;
/** A range that has to be read as a whole and has more is split. */
const MAX_ENTRIES_OF_WHOLE = 5_000;

export const svmFamily: ChainFamily<SvmSource> = { connect, probe: probeNetwork };

function connect(source: SvmSource, options: ConnectOptions): NetworkReader {
  const { store, endpointTiming, userAgent, signal } = options;
  const { timing, writeLog } = options.progress;
  const { network, routers, offramps } = source;
  const { selector } = network;
  const chain = createChain(source, {
    userAgent,
    signal,
    writeLog,
    ...(endpointTiming && { timing: endpointTiming }),
  });
  const registry: ProgramRegistry = createContractRegistry();
  const progress = createProgress(options.progress, registry);
  const confirmation = createConfirmation<ChainNode>({ chain, waitMs: timing.secondOpinionMs, signal });
  const parts: SvmNetwork = { source, chain, store, progress, registry, confirmation };
  const lists = createSignatureLists(chain);
  let rmnRemotes: ReadonlyMap<string, string> = new Map();
  let lacksAttempts = false;
  const read = createSlotReader(parts, lists, () => rmnRemotes);
  const check = createCompletenessCheck(parts);

  const readStart = async (node: ChainNode): Promise<NetworkStart> => {
    const head = await node.head();
    rmnRemotes = await readRouters(node, routers, selector, head.slot);
    const newRouters = routers.filter((router) => !registry.contracts.has(router));
    const known = new Set(programsOf(registry.contracts.values()));
    const newOffRamps = offramps.filter((offRamp) => !known.has(offRamp));
    const { contracts, rejected } = await agreedCheck(confirmation, node, newOffRamps, head.slot, (one) =>
      checkOffRamps(one, newOffRamps, routers, head.slot),
    );
    const { start: wanted } = source;
    const isByTime = wanted !== null && 'time' in wanted;
    const start = isByTime ? await slotAtTime(node, wanted.time / 1_000, head) : wanted?.block;
    const offRampNames = [...registry.contracts].filter(([, { role }]) => role === 'offRamp');
    return {
      final: { number: head.slot, hash: slotHash(head.slot) },
      start,
      // Where the off-ramps are configured, the routers' events before the start are not needed to find them.
      deployed: offramps.length > 0 ? start : undefined,
      newRouters,
      contracts: [...newRouters.map(routerContract), ...contracts],
      rejected,
      readAgain: lacksAttempts ? offRampNames.map(([name]) => name) : [],
    };
  };

  const readSlots = (
    node: ChainNode,
    { from, to, contracts }: BlockRange,
    how: Pick<SlotQuery, 'head' | 'isWhole' | 'isOpinion'>,
  ): Promise<HistoryReading> => {
    const maxEntries = how.isWhole ? MAX_ENTRIES_OF_WHOLE : MAX_ENTRIES;
    return read(node, { ...how, from, to, contracts, pageSize: PAGE_SIZE, maxEntries, isHead: false });
  };

  /**
   * Reads one slot that was left to the ledger of failures, as a rule because one endpoint alone has shown what is in it:
   * what two endpoints agree on replaces what is recorded. Where no other one keeps the slot, one is trusted.
   */
  const review = async (slot: BlockRange, head: number): Promise<HistoryReading> => {
    const readings = new Map<string, HistoryReading>();
    let answers = 0;
    const ask = (node: ChainNode) =>
      readSlots(node, slot, { head, isWhole: true, isOpinion: true }).catch(async (error: unknown) => {
        const isPruned = error instanceof RequestRejectedError && error.kind === 'history-missing';
        if (!isPruned || (await node.firstAvailableSlot()) <= slot.from) throw error;
        return undefined;
      });
    for await (const reading of chain.opinions([], ask, head)) {
      answers++;
      if (!reading) continue;
      const saying = sayingOf({ facts: reading.facts, registrations: [] });
      if (readings.has(saying)) return { ...reading, replaced: [slotHash(slot.from)] };
      readings.set(saying, reading);
    }
    const [only] = readings.values();
    const endpoints = chain.health().length;
    if (only && readings.size === 1 && answers === endpoints) return only;
    throw new NodeError(
      `No two endpoints have shown the same in slot ${slot.from} yet: ${answers} of ${endpoints} have answered`,
    );
  };

  const openings = createExecutionOpenings(progress, {
    isOffRamp: (address) => programsOf(registry.contracts.values()).includes(address),
    readDelay: (offRamp, tip) =>
      chain.run(async (node) => {
        const [account] = await node.accounts([programAddresses.config(offRamp)], tip);
        return account && readable(() => readManualExecutionDelay(account, offRamp));
      }, tip),
    withFailed: true,
  });

  return {
    progress,
    load(state) {
      registry.load(state.contracts, routers);
      lacksAttempts = state.lacksAttempts;
      lists.load(state.anchors);
    },
    readStart: () => chain.run(readStart),
    follow: createHeadFollower(parts, read),
    // Lists can only be read from their newest end: a range is one piece, which stops early.
    nextPiece: (pending) => pending,
    readHistory(range, extent) {
      const head = progress.head.final?.number ?? range.to;
      const isWhole = extent === 'whole';
      const isSlot = range.from === range.to && range.to < head && range.contracts === null;
      if (isWhole && isSlot && chain.health().length > 1) return review(range, head);
      return chain.share(
        (node) => readSlots(node, range, { head, isWhole, isOpinion: false }),
        head,
        check.avoidedEndpoints(),
      );
    },
    tasks: combineTasks(
      openings,
      check,
      createTokenTasks(progress, (tokens) => {
        const tip = progress.head.tip?.number ?? 0;
        return chain.run((node) => readMintClaims(node, tokens, tip), tip);
      }),
    ),
    health: () => chain.health(),
    close: () => chain.close(),
  };
}

/** No slot is shorter, in seconds: so many slots at most lie between two times. */
const SHORTEST_SLOT = 0.35;

/** A slot at or before a time (seconds since 1970), and near it, by bisection. A future time is above the head. */
async function slotAtTime(node: ChainNode, time: number, head: FinalizedHead): Promise<number> {
  if (head.timestamp < time) return head.slot + 1;
  let low = await node.firstAvailableSlot();
  const first = await node.timeAt(low);
  // The node does not have that time. A slot that is certainly before it makes the gap visible.
  if (first !== undefined && first > time) {
    return Math.max(0, low - Math.ceil((first - time) / SHORTEST_SLOT));
  }
  let high = head.slot;
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    const seconds = await node.timeAt(middle);
    // A long run of skipped slots is taken for later: history then begins somewhat too early, never too late.
    if (seconds === undefined || seconds >= time) high = middle;
    else low = middle + 1;
  }
  return low;
}

// ---- Follows the newest finalized slot. There are no forks to follow: what is finalized stays.
//
// A gap with many transactions goes to the history loop, slots that cannot be read go to the ledger of failures: nothing
// holds up the head.

/** A look at a list that has little new. */
const HEAD_PAGE_SIZE = 50;
/** With more new transactions of one program, the newest come first and the rest is left to the history loop. */
const MAX_HEAD_ENTRIES = 400;
/** How often new slots are tried before they are left to the ledger of failures. */
const ATTEMPTS = 3;

/** What it returns reads what is new, and resolves to whether there is more. */
function createHeadFollower({ chain, progress }: SvmNetwork, readSlots: ReadSlots) {
  /** How often in a row new slots could not be read although a node has shown them, and why. */
  let unread = { times: 0, reason: '' };

  const setHead = ({ slot, timestamp }: FinalizedHead, indexedSlot: number): void => {
    const at = timestamp * 1_000;
    progress.head.set({
      headBlock: slot,
      headAt: at,
      finalizedBlock: slot,
      indexedBlock: indexedSlot,
      indexedAt: indexedSlot === slot ? at : (progress.head.stats?.indexedAt ?? at),
    });
  };

  const look = async (tip: number): Promise<{ head: FinalizedHead; reading: HistoryReading | undefined }> => {
    const isSkipped = unread.times >= ATTEMPTS;
    let isReading = false;
    try {
      return await chain.run(async (node) => {
        isReading = false;
        const head = await node.head();
        isReading = true;
        if (head.slot <= tip || isSkipped) return { head, reading: undefined };
        const range = { from: tip + 1, to: head.slot, head: head.slot, contracts: null };
        const limits = { pageSize: HEAD_PAGE_SIZE, maxEntries: MAX_HEAD_ENTRIES };
        const how = { isWhole: false, isHead: true, isOpinion: false };
        return { head, reading: await readSlots(node, { ...range, ...limits, ...how }) };
      }, tip);
    } catch (error) {
      if (isReading) unread = { times: unread.times + 1, reason: reasonOf(error) };
      throw error;
    }
  };

  return async () => {
    const { tip } = progress.head;
    if (!tip) throw new Error('The head is followed from a slot that was recorded');
    const mark = progress.recorder.mark();
    const { head, reading } = await look(tip.number);
    const { slot } = head;
    // What is recorded as noticed now has the time of the head.
    setHead(head, Math.min(tip.number, slot));
    if (slot <= tip.number) return false;
    const above = tip.number + 1;
    if (!reading) progress.log(`Slots ${above} to ${slot} cannot be read yet: ${unread.reason}`, 'warn');
    await progress.recorder.record(() => ({
      ...(reading && stepOf(reading)),
      blocks: [{ number: slot, hash: slotHash(slot) }],
      forgetBelow: slot,
      facts: withFinality(reading?.facts ?? [], slot, progress),
      pending: reading && reading.from > above ? [historyRange(above, reading.from - 1)] : [],
      // An off-ramp delivers nothing before its router lets it: a new one needs no second look at older slots.
      rescans: reading ? progress.recorder.rescansSince(mark, { from: reading.from, to: slot }) : [],
      failed: reading
        ? unconfirmedOf(reading, progress)
        : [progress.recorder.failureOf(historyRange(above, slot), unread.reason)],
    }));
    unread = { times: 0, reason: '' };
    if (reading) logProblemsOf(reading, progress.log);
    setHead(head, slot);
    return false;
  };
}

// ---- What mints say of themselves: decimals in the mint's account, name and symbol in its metadata extension (Token-2022) or in
// the account that Metaplex derives from it. Anybody can make a mint and its metadata: all of it is hostile input.

/** Enough for the extensions of a mint; an account can have megabytes. */
const MAX_ACCOUNT_BYTES = 4_096;

/** In the order of the tokens. */
async function readMintClaims(
  node: Pick<ChainNode, 'accounts'>,
  tokens: readonly BytesHex[],
  minContextSlot: number,
): Promise<readonly TokenClaims[]> {
  const mints = tokens.map((bytes) => base58.encode(hex.decode(bytes)));
  const addresses = mints.flatMap((mint) => [mint, programAddresses.metadata(mint)]);
  const accounts = await node.accounts(addresses, minContextSlot, MAX_ACCOUNT_BYTES);
  return mints.map((mint, index) => mintClaims(mint, accounts[2 * index], accounts[2 * index + 1]));
}

const NO_CLAIMS: TokenClaims = { symbol: null, name: null, decimals: null };

export function mintClaims(mint: string, account: Account | undefined, metadata: Account | undefined) {
  const decimals = account && mintDecimals(account);
  if (account === undefined || decimals === undefined) return NO_CLAIMS;
  const texts = extensionTexts(mint, account) ?? metaplexTexts(mint, metadata);
  return { symbol: texts?.symbol ?? null, name: texts?.name ?? null, decimals };
}

const MINT_BYTES = 82;
const DECIMALS_AT = 44;
const IS_INITIALIZED_AT = 45;
/** With extensions, an account says at this place what it is. */
const ACCOUNT_TYPE_AT = 165;
const MINT_TYPE = 1;

function mintDecimals({ owner, data }: Account): number | undefined {
  if (!tokenPrograms.has(owner) || data[IS_INITIALIZED_AT] !== 1) return undefined;
  const isMint = data.length === MINT_BYTES || data[ACCOUNT_TYPE_AT] === MINT_TYPE;
  return isMint ? data[DECIMALS_AT] : undefined;
}

interface Texts {
  readonly name: string | null;
  readonly symbol: string | null;
}

const TOKEN_METADATA_EXTENSION = 19;

/** Extensions are a list of types (u16), lengths (u16) and values. */
function extensionTexts(mint: string, { data }: Account): Texts | undefined {
  const reader = new BorshReader(data.subarray(ACCOUNT_TYPE_AT + 1));
  return readable(() => {
    while (reader.remaining > 0) {
      const type = Number(reader.unsigned(2));
      const length = Number(reader.unsigned(2));
      // Of a long account only the beginning is there.
      const value = reader.fixed(Math.min(length, reader.remaining));
      if (type === TOKEN_METADATA_EXTENSION) return ownTexts(new BorshReader(value), mint);
    }
    return undefined;
  });
}

const METADATA_V1 = 4;

function metaplexTexts(mint: string, account: Account | undefined): Texts | undefined {
  if (account?.owner !== METADATA_PROGRAM) return undefined;
  const reader = new BorshReader(account.data);
  return readable(() => (reader.u8() === METADATA_V1 ? ownTexts(reader, mint) : undefined));
}

/** Both kinds have update authority, mint, name and symbol in this order. */
function ownTexts(reader: BorshReader, mint: string): Texts | undefined {
  reader.publicKey();
  if (reader.publicKey() !== mint) return undefined;
  return {
    name: claimedText(reader.bytes(), MAX_NAME_CHARACTERS),
    symbol: claimedText(reader.bytes(), MAX_SYMBOL_CHARACTERS),
  };
}
