/**
 * Reads new blocks of an EVM chain as they come, across forks, and reports when they have become final.
 *
 * A block that cannot be read goes to the ledger of failures on its own, and a long gap goes to the history loop:
 * nothing holds up the head.
 */
import type { BlockId, IndexLedger } from '../../store/ledger/index-ledger.ts';
import { stepOf } from '../chain/family.ts';
import { RangeTooLargeError, reasonOf } from '../chain/faults.ts';
import { historyRange } from '../chain/owed-ranges.ts';
import type { Progress, ReadMark } from '../chain/progress.ts';
import type { Block, Chain, ChainNode } from './chain.ts';
import { DeepReorgError, findFork, type HeadView, readHeaders, refuseOtherFinal, viewHead } from './head.ts';
import type { BlockReader, LogReading } from './reading.ts';

/** New blocks in one step. */
const MAX_NEW_BLOCKS = 256;
/** Further behind than this, the head comes first and the gap goes to the history loop. */
const MAX_GAP = 4 * MAX_NEW_BLOCKS;
/** How often the next blocks are tried before they are taken one by one, and the one at fault is left out. */
const ATTEMPTS = 3;

export interface HeadFollowerOptions {
  /** CCIP's number for the network. */
  readonly selector: string;
  readonly chain: Chain;
  readonly ledger: IndexLedger;
  readonly reader: BlockReader;
  readonly progress: Progress;
}

export interface HeadFollower {
  /** Reads what is new; true where there is more. After a few failures the block at fault is left out. */
  follow(): Promise<boolean>;
}

/** What a look at the head has found. */
interface Found {
  readonly view: HeadView;
  /** New ones, above the view's base. */
  readonly headers: readonly Block[];
  /** What these say; undefined where there are none, or they are left out. */
  readonly reading: LogReading | undefined;
  /** The head is too far away: reading goes on behind this block, and the gap is left to the history loop. */
  readonly landing: Block | undefined;
}

export function createHeadFollower(options: HeadFollowerOptions): HeadFollower {
  const { selector, chain, ledger, reader, progress } = options;
  let newBlocks = MAX_NEW_BLOCKS;
  /** How often in a row the next blocks could not be read although the node has shown them, and why. */
  let unread = { times: 0, reason: '' };

  /** Where to go on when the head is far away: near it, and not below what is final. */
  const landingOf = async (node: ChainNode, { head, final, base }: HeadView): Promise<Block | undefined> => {
    const number = Math.max(Math.min(final.number, head.number), head.number - MAX_NEW_BLOCKS);
    if (number - base.number <= MAX_GAP) return undefined;
    if (number === final.number) return final;
    const [block] = await node.blocks([number]);
    return block;
  };

  const look = async (skip: boolean): Promise<Found> => {
    let isReading = false;
    try {
      return await chain.run(async (node) => {
        isReading = false;
        const view = await viewHead(node, progress.held);
        const landing = await landingOf(node, view);
        if (landing) return { view, headers: [], reading: undefined, landing };
        const count = Math.min(view.head.number - view.base.number, skip ? 1 : newBlocks);
        const headers = count > 0 ? await readHeaders(node, view.base, count) : [];
        refuseOtherFinal(node, view.final, headers);
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
        return { view, headers, reading, landing };
      });
    } catch (error) {
      if (error instanceof DeepReorgError) await recoverFromDeepReorganization();
      if (isReading && !(error instanceof RangeTooLargeError))
        unread = { times: unread.times + 1, reason: reasonOf(error) };
      throw error;
    }
  };

  const recordFound = async (
    { view, headers, reading, landing }: Found,
    mark: ReadMark,
    skip: boolean,
  ): Promise<void> => {
    const { final, base } = view;
    const orphaned = view.orphans.map(({ hash }) => hash);
    if (orphaned.length > 0) progress.notice(`${orphaned.length} blocks above ${base.number} were abandoned`);
    const [skipped] = skip ? headers : [];
    if (skipped) progress.notice(`Block ${skipped.number} cannot be read yet: ${unread.reason}`, 'warn');
    if (headers.length === 0 && orphaned.length === 0 && !landing) return;
    const [first, last] = [headers[0], headers.at(-1)];
    const isFinalNew = final.number > base.number && final.number !== landing?.number;
    await progress.record(() => ({
      ...(reading && stepOf(reading)),
      orphaned,
      blocks: landing ? [...(isFinalNew ? [final] : []), landing] : headers,
      owed: landing ? [historyRange(base.number + 1, landing.number)] : [],
      rereads: [
        ...progress.rereadsFor(reading?.contracts.map(({ address }) => address) ?? [], base.number),
        ...(first && last ? progress.rereadsSince(mark, { from: first.number, to: last.number }) : []),
      ],
      failed: skipped
        ? [progress.failureOf(historyRange(skipped.number, skipped.number), unread.reason)]
        : [],
    }));
    if (reading) progress.noticeRefused(reading);
  };

  /** Reports messages in blocks that have become final, and forgets those blocks. `final` is one that was read. */
  const finalize = async (final: BlockId): Promise<void> => {
    const { held, final: anchor } = progress;
    if (!anchor || final.number <= anchor.number) return;
    const settled = held.filter(({ number }) => number > anchor.number && number <= final.number);
    const numbers = new Map(settled.map(({ hash, number }) => [hash, number]));
    await progress.record(async () => {
      // Asked when nothing else is recorded: a message of these blocks that is read late, because its range had
      // failed, is either among these or final when it is read.
      const sent = await ledger.sentIn(selector, [...numbers.keys()]);
      const facts = sent.map(({ messageId, blockHash }) =>
        progress.sourceFinalized(`0x${messageId}`, { number: numbers.get(blockHash) ?? 0, hash: blockHash }),
      );
      return { facts, blocks: [{ number: final.number, hash: final.hash }], forgetBelow: final.number };
    });
  };

  /**
   * Blocks that were final are gone. The fork is below the lowest block with facts that the node's chain does not have,
   * and above the highest that it has: everything above that one is read again, for a message may have moved down.
   */
  const recoverFromDeepReorganization = async (): Promise<void> => {
    const { final, fork, orphaned } = await chain.run(async (node) => {
      const { final: newFinal } = await node.tips();
      const blocksBelow = (below: number, limit: number) => ledger.factBlocks(selector, below, limit);
      return { final: newFinal, ...(await findFork(node, newFinal, blocksBelow)) };
    });
    const from = fork === undefined ? (progress.startBlock ?? 0) : fork.number + 1;
    await progress.record(() => ({
      orphaned: [...new Set([...progress.held.map(({ hash }) => hash), ...orphaned])],
      blocks: [final],
      owed: from <= final.number ? [historyRange(from, final.number)] : [],
    }));
    progress.notice(
      `The chain abandoned blocks that it had called final; everything from block ${from} on is read again. ` +
        'Consider a greater depth for `finality`.',
      'error',
    );
  };

  /** In milliseconds, of a tip that did not move: as before, or the head's where it is the head. */
  const timeOf = (indexedBlock: number, headTime: number): number => {
    const { figures } = progress;
    return figures && figures.indexedBlock === indexedBlock ? figures.indexedAt : headTime * 1000;
  };

  /** Reads what is new; true where there is more. `skip`: the next block is left to the ledger of failures. */
  const followOnce = async (skip: boolean): Promise<boolean> => {
    const mark = progress.mark();
    const found = await look(skip);
    const { head, final, base } = found.view;
    await recordFound(found, mark, skip);
    const newTip = found.landing ?? found.headers.at(-1);
    const indexedBlock = newTip?.number ?? base.number;
    progress.setHead(
      {
        headBlock: head.number,
        headAt: head.timestamp * 1000,
        finalizedBlock: final.number,
        indexedBlock,
        indexedAt: newTip ? newTip.timestamp * 1000 : timeOf(indexedBlock, head.timestamp),
      },
      head.timestamp,
    );
    const settled = final.number <= indexedBlock ? final : progress.tip;
    if (settled) await finalize(settled);
    return indexedBlock < head.number;
  };

  return {
    async follow() {
      try {
        const hasMore = await followOnce(unread.times >= ATTEMPTS);
        unread = { times: 0, reason: '' };
        newBlocks = Math.min(MAX_NEW_BLOCKS, newBlocks * 2);
        return hasMore;
      } catch (error) {
        if (error instanceof RangeTooLargeError) {
          newBlocks = Math.max(1, Math.min(error.acceptedBlocks ?? Infinity, newBlocks >> 1));
          if (newBlocks > 1) return true;
        }
        // One block at a time shows which of them cannot be read.
        if (unread.times >= ATTEMPTS - 1) newBlocks = 1;
        throw error;
      }
    },
  };
}
