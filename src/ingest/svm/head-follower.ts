/**
 * Follows the newest finalized slot. There are no forks to follow: what is finalized stays.
 *
 * A gap with many transactions goes to the history loop, slots that cannot be read go to the ledger of failures: nothing
 * holds up the head.
 */
import {
  type HistoryReading,
  logProblemsOf,
  stepOf,
  unconfirmedOf,
  withFinality,
} from '../engine/block-readings.ts';
import { reasonOf } from '../engine/faults.ts';
import { historyRange } from '../engine/pending-ranges.ts';
import { slotHash } from './decode/transaction-facts.ts';
import type { FinalizedHead } from './node.ts';
import type { SvmNetwork } from './programs.ts';
import type { ReadSlots } from './reading.ts';

/** A look at a list that has little new. */
const PAGE_SIZE = 50;
/** With more new transactions of one program, the newest come first and the rest is left to the history loop. */
const MAX_ENTRIES = 400;
/** How often new slots are tried before they are left to the ledger of failures. */
const ATTEMPTS = 3;

/** What it returns reads what is new, and resolves to whether there is more. */
export function createHeadFollower({ chain, progress }: SvmNetwork, readSlots: ReadSlots) {
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
        const limits = { pageSize: PAGE_SIZE, maxEntries: MAX_ENTRIES };
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
