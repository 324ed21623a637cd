/**
 * Reads history of an EVM chain in ranges of blocks whose length adapts: it grows while answers are small, and shrinks
 * when a node refuses.
 */
import type { BlockRange } from '../../store/ledger/index-ledger.ts';
import type { HistoryReading } from '../chain/family.ts';
import { NodeFault, RangeTooLarge } from '../chain/faults.ts';
import type { Progress } from '../chain/progress.ts';
import type { Chain, Hex } from './chain.ts';
import { refuseStrangers } from './head.ts';
import type { BlockReader, LogReading } from './reading.ts';
import type { EvmSource } from './settings.ts';

/** Logs that one step over history should have: enough to be worth a transaction, few enough to fit in memory. */
const WANTED_LOGS = 1_000;
const FIRST_RANGE = 1_000;
/** Ranges that are read well before a longer one than was refused is tried again. */
const RANGES_BEFORE_GROWTH = 16;
/** Headers are asked for one by one; a range that is checked against them is shorter. */
const MAX_CHECKED_RANGE = 250;

export interface HistoryReaderOptions {
  readonly source: EvmSource;
  readonly chain: Chain;
  readonly reader: BlockReader;
  readonly progress: Progress;
}

export class HistoryReader {
  readonly #options: HistoryReaderOptions;
  #range = FIRST_RANGE;
  #rangesBeforeGrowth = 0;

  constructor(options: HistoryReaderOptions) {
    this.#options = options;
  }

  nextPiece(owed: BlockRange): BlockRange {
    return { ...owed, from: Math.max(owed.from, owed.to - this.#rangeLength() + 1) };
  }

  async read(range: BlockRange, extent: 'part' | 'whole'): Promise<HistoryReading> {
    if (extent === 'whole') return this.#readBlocks(range);
    for (let piece = range; ; ) {
      try {
        const reading = await this.#readBlocks(piece);
        this.#adapt(reading.logs, piece);
        return reading;
      } catch (error) {
        if (!this.#shrink(error, piece)) throw error;
        piece = this.nextPiece(range);
      }
    }
  }

  #readBlocks({ from, to, contracts }: BlockRange): Promise<LogReading & HistoryReading> {
    const { source, chain, reader, progress } = this.#options;
    const { final: anchor, era } = progress;
    if (!anchor) throw new Error('History is read below a block that is final');
    const isFinal = to <= anchor.number;
    return chain.run(
      async (node) => {
        const isChecked = source.verify === 'all' || !isFinal;
        // With one more, where there is one: its parent must be the last of these.
        const end = isChecked ? Math.max(to, Math.min(to + 1, anchor.number)) : from - 1;
        const numbers = Array.from({ length: end - from + 1 }, (_, index) => from + index);
        const blocks = await node.blocks([...numbers, anchor.number]);
        refuseStrangers(node, blocks.slice(0, -1));
        for (const { number, hash } of blocks) {
          const held = progress.held.find((block) => block.number === number);
          if (held && held.hash !== hash)
            throw new NodeFault(`${node.name} has another block ${number} than was read`);
        }
        const reading = await reader.read(node, {
          from,
          to,
          contracts: contracts as readonly Hex[] | null,
          ...(isChecked && { headers: blocks.slice(0, to - from + 1) }),
          mayBeAbandoned: !isFinal,
        });
        return { ...reading, from, era: isFinal ? undefined : era };
      },
      Math.max(to, anchor.number),
    );
  }

  #rangeLength(): number {
    const { verify, maxRange } = this.#options.source;
    const longest = verify === 'all' ? MAX_CHECKED_RANGE : maxRange;
    return Math.max(1, Math.min(this.#range, longest, maxRange));
  }

  /** Whether a shorter range can be tried. */
  #shrink(error: unknown, { from, to }: BlockRange): boolean {
    if (!(error instanceof RangeTooLarge) || to <= from) return false;
    const length = to - from + 1;
    this.#range = Math.max(1, Math.min(error.acceptedBlocks ?? Infinity, length >> 1));
    this.#rangesBeforeGrowth = RANGES_BEFORE_GROWTH;
    return true;
  }

  #adapt(logs: number, { from, to }: BlockRange): void {
    const length = to - from + 1;
    const wanted = Math.floor((length * WANTED_LOGS) / Math.max(1, logs));
    // Only a range of full length shows that a longer one might be accepted.
    const isFullLength = length >= this.#rangeLength();
    const grown = isFullLength && this.#rangesBeforeGrowth === 0 ? this.#range * 2 : this.#range;
    if (isFullLength && this.#rangesBeforeGrowth > 0) this.#rangesBeforeGrowth--;
    this.#range = Math.max(1, Math.min(grown, wanted, this.#options.source.maxRange));
  }
}
