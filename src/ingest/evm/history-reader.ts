/**
 * Reads history of an EVM chain in ranges of blocks. Every endpoint gets ranges as long as it accepts, and no longer than
 * the events in them allow.
 */
import type { BlockId, BlockRange } from '../../store/ledger/index-ledger.ts';
import type { HistoryReading } from '../engine/block-readings.ts';
import { NodeError, RangeTooLargeError } from '../engine/faults.ts';
import type { Progress } from '../engine/progress.ts';
import { requireChain } from './head-follower.ts';
import type { BlockReader } from './reading.ts';
import type { Chain, ChainNode, Hex } from './rpc/chain.ts';
import { createRangeLimits } from './rpc/range-limits.ts';
import type { EvmSource } from './settings.ts';

/** Logs that one piece should have: enough to be worth a transaction, few enough for many pieces to fit in memory. */
const WANTED_LOGS = 1_000;
/** Ranges that are read after one had to be shortened before longer ones are planned again. */
const RANGES_BEFORE_GROWTH = 16;
/** A range that is checked against headers, which are asked for one by one, is not longer. */
const MAX_CHECKED_BLOCKS = 250;
/**
 * Blocks above the final one are checked against their headers where there are no more of them than this. A chain whose
 * finality is hours behind has too many: they are read like history, and the blocks with events are held.
 */
const MAX_CHECKED_ABOVE_FINAL = 1_024;

/** @param avoided names of endpoints that history is not read from */
export function createHistoryReader(
  source: EvmSource,
  progress: Progress,
  chain: Chain,
  reader: BlockReader,
  avoided: () => readonly string[],
) {
  const maxBlocks = source.verify === 'all' ? Math.min(MAX_CHECKED_BLOCKS, source.maxRange) : source.maxRange;
  const newState = () => ({
    limits: createRangeLimits(maxBlocks),
    /** The final block that the endpoint was last asked for: whether its chain has it. */
    agreement: undefined as { readonly hash: string; readonly check: Promise<void> } | undefined,
    /** Whether its limit of blocks was reported. It changes from time to time, which is not worth a line. */
    isLimitReported: false,
  });
  /** What is known of endpoints, by name, which is unique among those of a network. */
  const endpoints = new Map<string, ReturnType<typeof newState>>();
  /** How long a range with the wanted number of logs is, by those that were read last. */
  let wantedBlocks = maxBlocks;
  let rangesBeforeGrowth = 0;

  const stateOf = ({ name }: ChainNode) => {
    const known = endpoints.get(name) ?? newState();
    endpoints.set(name, known);
    return known;
  };

  /** The next ranges are likely to be like this one: as dense, and where it had to be shortened, as short. */
  const adapt = (logs: number, blocks: number, isShortened: boolean): void => {
    if (isShortened) rangesBeforeGrowth = RANGES_BEFORE_GROWTH;
    else if (rangesBeforeGrowth > 0) rangesBeforeGrowth--;
    const grown = isShortened ? blocks : rangesBeforeGrowth > 0 ? wantedBlocks : wantedBlocks * 2;
    const wanted = Math.floor((blocks * WANTED_LOGS) / Math.max(1, logs));
    wantedBlocks = Math.max(1, Math.min(wanted, grown, maxBlocks));
  };

  /** Throws where the node's chain is not the one that was read up to this block. */
  const rejectOtherChain = async (node: ChainNode, { number, hash }: BlockId): Promise<void> => {
    const [block] = await node.blocks([number]);
    if (block?.hash !== hash) throw new NodeError(`${node.name} has another block ${number} than was read`);
  };

  /** The same for the final block, which stays: once for all pieces that are read meanwhile. */
  const rejectOtherFinal = (node: ChainNode, final: BlockId): Promise<void> => {
    const state = stateOf(node);
    if (state.agreement?.hash !== final.hash) {
      const check = rejectOtherChain(node, final);
      const agreement = { hash: final.hash, check };
      state.agreement = agreement;
      check.catch(() => {
        if (state.agreement === agreement) state.agreement = undefined;
      });
    }
    return state.agreement.check;
  };

  const readBlocks = async (node: ChainNode, { from, to, contracts }: BlockRange) => {
    const { final, held, tip } = progress.head;
    if (!final || !tip) throw new Error('History is read below a block that is final');
    const isFinal = to <= final.number;
    const isNear = from === to || tip.number - final.number <= MAX_CHECKED_ABOVE_FINAL;
    const isChecked = source.verify === 'all' || (!isFinal && isNear);
    // A block at or above those that are read: a chain that has it has all that was read below it.
    const witness = held.find(({ number }) => number >= to) ?? tip;
    await (isFinal ? rejectOtherFinal(node, final) : rejectOtherChain(node, witness));
    const headers = isChecked ? await readCheckedHeaders(node, from, to) : undefined;
    const reading = await reader.read(node, {
      from,
      to,
      contracts: contracts as readonly Hex[] | null,
      isByAddress: true,
      isBulk: true,
      ...(headers && { headers }),
      mayBeAbandoned: !isFinal,
    });
    // A block that is not final may have been replaced while the logs were read.
    if (!isFinal) await rejectOtherChain(node, witness);
    return { ...reading, from, isFinal, blocks: isFinal ? [] : reading.blocks, items: reading.logs };
  };

  const readCheckedHeaders = async (node: ChainNode, from: number, to: number) => {
    const { final, held } = progress.head;
    // With one more, where there is one: its parent must be the last of these.
    const end = Math.max(to, Math.min(to + 1, final?.number ?? to));
    const blocks = await node.blocks(Array.from({ length: end - from + 1 }, (_, index) => from + index));
    requireChain(node, blocks);
    for (const { number, hash } of blocks) {
      const known = held.find((block) => block.number === number);
      if (known && known.hash !== hash)
        throw new NodeError(`${node.name} has another block ${number} than was read`);
    }
    return blocks.slice(0, to - from + 1);
  };

  const reportLimit = (node: ChainNode, blocks: number, reason: string): void => {
    const state = stateOf(node);
    if (state.isLimitReported) return;
    state.isLimitReported = true;
    progress.log(`${reason}: ranges of ${blocks} blocks are tried instead`);
  };

  /** As much of the upper end of the range as the node accepts. */
  const readPart = async (node: ChainNode, range: BlockRange): Promise<HistoryReading> => {
    const { limits } = stateOf(node);
    let longest = Math.min(range.to - range.from + 1, wantedBlocks);
    for (let isShortened = false; ; isShortened = true) {
      const blocks = Math.min(longest, limits.nextBlocks);
      const begunAt = performance.now();
      limits.begin(blocks);
      try {
        const reading = await readBlocks(node, { ...range, from: range.to - blocks + 1 });
        limits.accept(blocks, performance.now() - begunAt);
        adapt(reading.logs, blocks, isShortened);
        return reading;
      } catch (error) {
        if (!(error instanceof RangeTooLargeError) || blocks === 1) {
          limits.abandon(blocks);
          throw error;
        }
        longest = limits.reject(blocks, error.acceptedBlocks);
        reportLimit(node, longest, error.message);
      }
    }
  };

  return {
    nextPiece(pending: BlockRange): BlockRange {
      const known = [...endpoints.values()].map(({ limits }) => limits.nextBlocks);
      const longest = known.length > 0 ? Math.max(...known) : createRangeLimits(maxBlocks).nextBlocks;
      const from = Math.max(pending.from, pending.to - Math.min(longest, wantedBlocks) + 1);
      const final = progress.head.final?.number ?? pending.to;
      // A piece is final or not as a whole.
      return { ...pending, from: pending.to > final ? Math.max(from, final + 1) : from };
    },
    readHistory(range: BlockRange, extent: 'part' | 'whole'): Promise<HistoryReading> {
      const minimumHead = Math.max(range.to, progress.head.final?.number ?? 0);
      const read = extent === 'whole' ? readBlocks : readPart;
      return chain.share((node): Promise<HistoryReading> => read(node, range), minimumHead, avoided());
    },
  };
}
