/**
 * Arithmetic on ranges of blocks: which blocks have been read, and how ranges that are read for single contracts are put
 * together so that no block is read twice.
 */
import type { BlockRange, PendingRange } from '../../store/ledger/index-ledger.ts';

const MAX_MERGED_ROWS = 1_000;

/** Both ends included. */
export interface Span {
  readonly from: number;
  readonly to: number;
}

/** A range of the history of all trusted contracts. */
export function historyRange(from: number, to: number): BlockRange {
  return { from, to, purpose: 'history', contracts: null };
}

/** The part of a span that none of the others covers, from the lowest on. */
export function without(span: Span, others: readonly Span[]): readonly Span[] {
  let left: readonly Span[] = span.from > span.to ? [] : [span];
  for (const { from, to } of others) {
    left = left.flatMap((part) =>
      [
        { from: part.from, to: Math.min(part.to, from - 1) },
        { from: Math.max(part.from, to + 1), to: part.to },
      ].filter((rest) => rest.from <= rest.to),
    );
  }
  return left;
}

/**
 * Adds ranges that are read for single contracts to those on the backlog. Where they overlap, the blocks are read once
 * for all contracts: without this, each contract that is found in history would be a separate pass.
 */
export function mergePending(backlog: readonly PendingRange[], additions: readonly BlockRange[]) {
  const spans = additions.filter(({ purpose }) => purpose === 'contracts');
  const others = additions.filter(({ purpose }) => purpose !== 'contracts');
  if (spans.length === 0) return { pending: others, replaced: [] };
  const touches = (row: PendingRange) =>
    row.purpose === 'contracts' && spans.some(({ from, to }) => row.from <= to + 1 && from <= row.to + 1);
  const touching = backlog.filter(touches);
  // Many short ranges (single blocks with unreadable logs) are left as they are: reading them again costs little.
  const rows = touching.length > MAX_MERGED_ROWS ? [] : touching;
  const all: readonly BlockRange[] = [...rows, ...spans];
  const edges = [...new Set(all.flatMap(({ from, to }) => [from, to + 1]))].sort((a, b) => a - b);
  const merged: BlockRange[] = [];
  for (const [index, from] of edges.entries()) {
    const next = edges[index + 1];
    if (next === undefined) break;
    const covering = all.filter((range) => range.from <= from && from <= range.to);
    if (covering.length === 0) continue;
    const contracts = [...new Set(covering.flatMap((range) => range.contracts ?? []))].sort();
    const last = merged.at(-1);
    const isSame = last?.to === from - 1 && last.contracts?.join() === contracts.join();
    if (last && isSame) merged[merged.length - 1] = { ...last, to: next - 1 };
    else merged.push({ from, to: next - 1, purpose: 'contracts', contracts });
  }
  return { pending: [...others, ...merged], replaced: rows.map(({ id }) => id) };
}
