/**
 * Lists of an address's transactions: from a slot down, by pages, newest first.
 *
 * A list may be silently short: a node that lags or has pruned its history, or that does not know the transaction to
 * continue from, answers with fewer entries or none. So the end of a list is believed only where the node has the blocks
 * of all slots that it covers, knows the transaction behind which the list is empty, no transaction further down is known,
 * and no other endpoint has one.
 */
import type { Anchor } from '../../store/ledger/index-ledger.ts';
import { NodeError, RequestRejectedError } from '../engine/faults.ts';
import type { Span } from '../engine/pending-ranges.ts';
import type { Chain, ChainNode, SignatureInfo } from './node.ts';

export interface ListQuery extends Span {
  readonly address: string;
  /** The slot that the node must have reached. */
  readonly head: number;
  /** Entries in one page, at most 1,000. */
  readonly pageSize: number;
  /** No further page is asked for with so many entries, once at least one slot is complete. */
  readonly maxEntries: number;
}

export interface SignatureList {
  /** From the highest slot down; slots from `from` on are complete. */
  readonly entries: readonly SignatureInfo[];
  readonly from: number;
}

export type SignatureLists = ReturnType<typeof createSignatureLists>;

/** Entries at the head between two anchors that are stored. */
const ENTRIES_BETWEEN_ANCHORS = 500;
/** How often an empty page is asked for again: some are empty for a moment. */
const LOOKS_AT_END = 3;
/** Genesis has no transactions. */
const FIRST_SLOT = 1;

export function createSignatureLists(chain: Chain) {
  /** Transactions that were read, by address and slot. */
  const anchors = new Map<string, Map<number, string>>();
  /** Where the latest list of an address stopped early. It was listed, and not necessarily read. */
  const cursors = new Map<string, SignatureInfo>();
  const sinceAnchor = new Map<string, number>();

  const anchorsOf = (address: string): Map<number, string> => {
    const known = anchors.get(address) ?? new Map<number, string>();
    anchors.set(address, known);
    return known;
  };

  /** The known transaction next above a slot. */
  const startAbove = (address: string, slot: number): SignatureInfo | undefined => {
    const cursor = cursors.get(address);
    let best = cursor && cursor.slot > slot ? cursor : undefined;
    for (const [anchorSlot, signature] of anchorsOf(address)) {
      if (anchorSlot > slot && (!best || anchorSlot < best.slot))
        best = { signature, slot: anchorSlot, isFailed: false };
    }
    return best;
  };

  /** Throws where the list may go on. Returns the lowest slot down to which it is complete. */
  const lowestAtEnd = async (node: ChainNode, query: ListQuery, last: SignatureInfo | undefined) => {
    const { address, from, to, head } = query;
    const end = last ? `ends at slot ${last.slot}` : 'is empty';
    const incomplete = (why: string) =>
      new RequestRejectedError(`${node.name}: its list of ${address} ${end}, and ${why}`, 'history-missing');
    if (last && !(await node.knows(last.signature))) {
      cursors.delete(address);
      throw incomplete(`it does not know ${last.signature}, behind which the list should go on`);
    }
    const available = await node.firstAvailableSlot();
    const first = Math.max(available, FIRST_SLOT);
    if (first > Math.max(to, FIRST_SLOT)) {
      throw incomplete(
        `it has no block below slot ${first}; add an endpoint with the whole history, or set a later \`start\``,
      );
    }
    const bottom = last?.slot ?? to + 1;
    const known = [...anchorsOf(address).keys()].find((slot) => slot < bottom && slot >= first);
    if (known !== undefined) throw incomplete(`a transaction in slot ${known} is known`);
    const others = await chain.secondOpinion(
      node,
      (other) => other.signatures(pageBelow(query, last, 1)),
      head,
    );
    const further = others?.find(({ slot }) => slot <= to && slot >= first);
    if (further) throw incomplete(`another endpoint has ${further.signature} in slot ${further.slot}`);
    return first === FIRST_SLOT ? from : Math.max(from, first);
  };

  return {
    load(stored: readonly Anchor[]): void {
      for (const { address, blockNumber, transactionHash } of stored)
        anchorsOf(address).set(blockNumber, transactionHash);
    },

    /** Reads a list from `to` down, as far as `maxEntries` allow. */
    async list(node: ChainNode, query: ListQuery): Promise<SignatureList> {
      const { address, from, to, head, pageSize, maxEntries } = query;
      const entries: SignatureInfo[] = [];
      let last = to >= head ? undefined : startAbove(address, to);
      for (;;) {
        let page: readonly SignatureInfo[] = [];
        const looks = to >= head ? 2 : 1 + LOOKS_AT_END;
        for (let look = 0; page.length === 0 && look < looks; look++) {
          page = await node.signatures(pageBelow(query, last, pageSize));
        }
        if (last && page[0] && page[0].slot > last.slot) {
          throw new NodeError(`${node.name}: its list of ${address} does not go down from slot ${last.slot}`);
        }
        entries.push(...page.filter(({ slot }) => slot <= to));
        const lowest = page.at(-1);
        if (!lowest) {
          const complete = await lowestAtEnd(node, query, last);
          return { entries: entries.filter(({ slot }) => slot >= complete), from: complete };
        }
        last = lowest;
        if (lowest.slot < from) return { entries: entries.filter(({ slot }) => slot >= from), from };
        // The lowest slot of a page may go on in the next.
        if (entries.length >= maxEntries && lowest.slot < to) {
          const complete = entries.filter(({ slot }) => slot > lowest.slot);
          const end = complete.at(-1);
          if (end) cursors.set(address, end);
          return { entries: complete, from: lowest.slot + 1 };
        }
      }
    },

    /**
     * Remembers transactions that were listed and read, each of an address. Returns those that are worth storing: the
     * lowest of each address, and at the head one for each few hundred.
     */
    confirm(address: string, entries: readonly SignatureInfo[], isHead: boolean): readonly Anchor[] {
      const lowest = entries.at(-1);
      if (!lowest) return [];
      const count = (sinceAnchor.get(address) ?? 0) + entries.length;
      const isDue = !isHead || anchorsOf(address).size === 0 || count >= ENTRIES_BETWEEN_ANCHORS;
      sinceAnchor.set(address, isDue ? 0 : count);
      if (!isDue) return [];
      anchorsOf(address).set(lowest.slot, lowest.signature);
      return [{ address, blockNumber: lowest.slot, transactionHash: lowest.signature }];
    },
  };
}

function pageBelow({ address, head }: ListQuery, last: SignatureInfo | undefined, limit: number) {
  return { address, limit, minContextSlot: head, ...(last && { before: last.signature }) };
}
