/** Total orders over what sources said, and the greatest of several candidates. */
import type { Observation } from './facts.ts';

/**
 * By place on the chain; the other members make the order total.
 *
 * On Solana logs are counted within their transaction, and nothing tells the order of the transactions of a slot: the logs of
 * each stay together.
 */
export function compareObservations(a: Observation, b: Observation): number {
  return (
    a.blockNumber - b.blockNumber ||
    compareText(countingTransaction(a), countingTransaction(b)) ||
    (a.logIndex ?? -1) - (b.logIndex ?? -1) ||
    compareText(a.blockHash, b.blockHash) ||
    compareText(a.transactionHash ?? '', b.transactionHash ?? '') ||
    compareText(a.at, b.at)
  );
}

/** The transaction that logs are counted in; empty where they are counted in their block. */
function countingTransaction({ blockHash, transactionHash }: Observation): string {
  return blockHash.startsWith('0x') ? '' : (transactionHash ?? '');
}

export function greatest<T>(candidates: readonly T[], compare: (a: T, b: T) => number): T | undefined {
  let best: T | undefined;
  for (const candidate of candidates) {
    if (best === undefined || compare(candidate, best) > 0) best = candidate;
  }
  return best;
}

/** By UTF-16 unit, independent of the locale. */
export function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
