/** The Solana family: CCIP 1.6, read from the transactions of router and off-ramp programs over JSON-RPC. */
import type { BlockRange } from '../../store/ledger/index-ledger.ts';
import { combineTasks, createTokenTasks } from '../engine/background-tasks.ts';
import type { HistoryReading } from '../engine/block-readings.ts';
import { createConfirmation } from '../engine/confirmation.ts';
import { createContractRegistry } from '../engine/contract-registry.ts';
import type { ChainFamily, ConnectOptions, NetworkReader, NetworkStart } from '../engine/family.ts';
import { NodeError, RequestRejectedError } from '../engine/faults.ts';
import { createExecutionOpenings } from '../engine/manual-execution.ts';
import { createProgress } from '../engine/progress.ts';
import { readManualExecutionDelay } from './accounts.ts';
import { createCompletenessCheck } from './checks/completeness-check.ts';
import { readable } from './decode/borsh.ts';
import { slotHash } from './decode/transaction-facts.ts';
import { createHeadFollower } from './head-follower.ts';
import { readMintClaims } from './mint-claims.ts';
import { type ChainNode, createChain, type FinalizedHead } from './node.ts';
import { programAddresses } from './program-addresses.ts';
import {
  agreedCheck,
  checkOffRamps,
  type ProgramRegistry,
  programsOf,
  readRouters,
  routerContract,
  type SvmNetwork,
} from './programs.ts';
import { createSlotReader, type SlotQuery, sayingOf } from './reading.ts';
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
