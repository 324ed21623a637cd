/**
 * Reads new blocks of an EVM chain as they come, across forks, and reports when they have become final.
 *
 * A block that cannot be read goes to the ledger of failures on its own, and a long gap goes to the history loop:
 * nothing holds up the head.
 */
import type { IndexLedger } from '../../store/ledger/index-ledger.ts';
import { stepOf } from '../chain/family.ts';
import { RangeTooLarge, reasonOf } from '../chain/faults.ts';
import { historyRange, type Progress } from '../chain/progress.ts';
import type { Block, Chain } from './chain.ts';
import { DeepReorganization, type HeadView, readHeaders, viewHead } from './head.ts';
import type { BlockReader, LogReading } from './reading.ts';

/** New blocks in one step. */
const MAX_NEW_BLOCKS = 256;
/** Further behind the final block than this, the head comes first and the gap goes to the history loop. */
const MAX_GAP = 4 * MAX_NEW_BLOCKS;
/** How often the next blocks are tried before they are taken one by one, and the one at fault is left out. */
const ATTEMPTS = 3;
const FACT_BLOCKS_AT_ONCE = 100;

export interface HeadFollowerOptions {
  /** CCIP's number for the network. */
  readonly selector: string;
  readonly chain: Chain;
  readonly ledger: IndexLedger;
  readonly reader: BlockReader;
  readonly progress: Progress;
}

/** What a look at the head has found. */
interface Found {
  readonly view: HeadView;
  /** New ones, above the view's base. */
  readonly headers: readonly Block[];
  /** What these say; undefined where there are none, or they are left out. */
  readonly reading: LogReading | undefined;
  /** It is too far away: what is between is left to the history loop. */
  readonly isGap: boolean;
}

export class HeadFollower {
  readonly #options: HeadFollowerOptions;
  #newBlocks = MAX_NEW_BLOCKS;
  /** How often in a row the next blocks could not be read although the node has shown them, and why. */
  #unread = { times: 0, reason: '' };

  constructor(options: HeadFollowerOptions) {
    this.#options = options;
  }

  /** Reads what is new; true where there is more. After a few failures the block at fault is left out. */
  async follow(): Promise<boolean> {
    try {
      const hasMore = await this.#followOnce(this.#unread.times >= ATTEMPTS);
      this.#unread = { times: 0, reason: '' };
      this.#newBlocks = Math.min(MAX_NEW_BLOCKS, this.#newBlocks * 2);
      return hasMore;
    } catch (error) {
      if (error instanceof RangeTooLarge) {
        this.#newBlocks = Math.max(1, Math.min(error.acceptedBlocks ?? Infinity, this.#newBlocks >> 1));
        if (this.#newBlocks > 1) return true;
      }
      // One block at a time shows which of them cannot be read.
      if (this.#unread.times >= ATTEMPTS - 1) this.#newBlocks = 1;
      throw error;
    }
  }

  /** Reads what is new; true where there is more. `skip`: the next block is left to the ledger of failures. */
  async #followOnce(skip: boolean): Promise<boolean> {
    const { progress } = this.#options;
    const mark = progress.book.mark;
    const found = await this.#look(skip);
    const { head, final, base } = found.view;
    await this.#recordFound(found, mark, skip);
    const newTip = found.isGap ? final : found.headers.at(-1);
    const indexedBlock = newTip?.number ?? base.number;
    progress.headTime = head.timestamp;
    progress.figures = {
      headBlock: head.number,
      headAt: head.timestamp * 1000,
      finalizedBlock: final.number,
      indexedBlock,
      indexedAt: newTip ? newTip.timestamp * 1000 : this.#timeOf(indexedBlock),
    };
    await this.#finalize(Math.min(final.number, indexedBlock));
    return indexedBlock < head.number;
  }

  async #look(skip: boolean): Promise<Found> {
    const { chain, reader, progress } = this.#options;
    let isReading = false;
    try {
      return await chain.run(async (node) => {
        isReading = false;
        const view = await viewHead(node, progress.held);
        const gap = Math.min(view.final.number, view.head.number) - view.base.number;
        if (gap > MAX_GAP) return { view, headers: [], reading: undefined, isGap: true };
        const count = Math.min(view.head.number - view.base.number, skip ? 1 : this.#newBlocks);
        const headers = count > 0 ? await readHeaders(node, view.base, count) : [];
        const [first, last] = [headers[0], headers.at(-1)];
        isReading = true;
        const reading =
          first && last && !skip
            ? await reader.read(node, {
                from: first.number,
                to: last.number,
                contracts: null,
                headers,
                mayBeAbandoned: true,
                orphaned: view.orphans.map(({ hash }) => hash),
              })
            : undefined;
        return { view, headers, reading, isGap: false };
      });
    } catch (error) {
      if (error instanceof DeepReorganization) await this.#recoverFromDeepReorganization();
      if (isReading && !(error instanceof RangeTooLarge))
        this.#unread = { times: this.#unread.times + 1, reason: reasonOf(error) };
      throw error;
    }
  }

  async #recordFound({ view, headers, reading, isGap }: Found, mark: number, skip: boolean): Promise<void> {
    const { progress } = this.#options;
    const { final, base } = view;
    const orphaned = view.orphans.map(({ hash }) => hash);
    if (orphaned.length > 0) progress.notice(`${orphaned.length} blocks above ${base.number} were abandoned`);
    const [skipped] = skip ? headers : [];
    if (skipped)
      progress.notice(`Block ${skipped.number} cannot be read yet: ${this.#unread.reason}`, 'warn');
    if (headers.length === 0 && orphaned.length === 0 && !isGap) return;
    const [first, last] = [headers[0], headers.at(-1)];
    await progress.record(() => ({
      ...(reading && stepOf(reading)),
      orphaned,
      blocks: isGap ? [final] : headers,
      owed: [
        // With the blocks that were read and had not become final: that they have is told with the rest.
        ...(isGap ? [historyRange((progress.final ?? base).number + 1, final.number)] : []),
        ...progress.owedFor(reading?.contracts ?? [], base.number),
        ...(first && last ? progress.owedForOverlap(mark, { from: first.number, to: last.number }) : []),
      ],
      failed: skipped
        ? [progress.failureOf(historyRange(skipped.number, skipped.number), this.#unread.reason)]
        : [],
      ...(isGap && { forgetBelow: final.number }),
    }));
    if (reading) progress.noticeRefused(reading);
  }

  /** In milliseconds, of a tip that did not move: as before, or the head's where it is the head. */
  #timeOf(indexedBlock: number): number {
    const { figures, headTime } = this.#options.progress;
    return figures && figures.indexedBlock === indexedBlock ? figures.indexedAt : headTime * 1000;
  }

  /** Reports messages in blocks that have become final, and forgets those blocks. */
  async #finalize(finalNumber: number): Promise<void> {
    const { ledger, progress } = this.#options;
    const { held, final: anchor } = progress;
    const last = held.findLast(({ number }) => number <= finalNumber);
    if (!anchor || !last || last.number <= anchor.number) return;
    const settled = held.filter(({ number }) => number > anchor.number && number <= finalNumber);
    const numbers = new Map(settled.map(({ hash, number }) => [hash, number]));
    await progress.record(async () => {
      // Asked when nothing else is recorded: a message of these blocks that is read late, because its range had
      // failed, is either among these or final when it is read.
      const sent = await ledger.sentIn(this.#options.selector, [...numbers.keys()]);
      const facts = sent.map(({ messageId, blockHash }) =>
        progress.sourceFinalized(`0x${messageId}`, { number: numbers.get(blockHash) ?? 0, hash: blockHash }),
      );
      return { facts, forgetBelow: last.number };
    });
  }

  /**
   * Blocks that were final are gone. What was seen in them is looked up by the facts themselves, from the newest
   * down, until the node's chain has them all; the head then begins anew at what is final now.
   */
  async #recoverFromDeepReorganization(): Promise<void> {
    const { chain, ledger, progress } = this.#options;
    const orphaned = new Set(progress.held.map(({ hash }) => hash));
    const { final, lowest } = await chain.run(async (node) => {
      const newFinal = await node.finalized(await node.head());
      let below = Number.MAX_SAFE_INTEGER;
      let lowestOrphan = newFinal.number;
      for (;;) {
        const seen = await ledger.factBlocks(this.#options.selector, below, FACT_BLOCKS_AT_ONCE);
        const within = seen.filter(({ number }) => number <= newFinal.number);
        const blocks = await node.blocks(within.map(({ number }) => number));
        const gone = seen.filter(({ number, hash }) => {
          const index = within.findIndex((block) => block.number === number);
          return index < 0 || blocks[index]?.hash !== hash;
        });
        for (const { number, hash } of gone) {
          orphaned.add(hash);
          lowestOrphan = Math.min(lowestOrphan, number);
        }
        const last = seen.at(-1);
        if (gone.length === 0 || !last || seen.length < FACT_BLOCKS_AT_ONCE) {
          return { final: newFinal, lowest: lowestOrphan };
        }
        // Two blocks of one height may stand on either side of a page's end.
        below = last.number + 1;
      }
    });
    const from = Math.max(0, Math.min(lowest, progress.final?.number ?? lowest));
    await progress.record(() => ({
      orphaned: [...orphaned],
      blocks: [final],
      owed: from <= final.number ? [historyRange(from, final.number)] : [],
    }));
    progress.notice(
      `The chain abandoned blocks that it had called final; everything from block ${from} on is read again. ` +
        'Consider a greater depth for `finality`.',
      'error',
    );
  }
}
