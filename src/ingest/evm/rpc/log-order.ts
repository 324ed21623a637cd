/**
 * The order of logs. Nodes answer in the order of the chain, as a rule; some answer in another one, and some count log
 * indexes anew in each transaction. Both are brought to one form; what contradicts itself is rejected.
 */
import type { ChainLog } from './chain.ts';

/** The logs by block and index, or what is wrong with them. */
export function orderLogs(
  logs: readonly ChainLog[],
): { readonly logs: readonly ChainLog[] } | { readonly problem: string } {
  const hashes = new Map<number, string>();
  const numbers = new Map<string, number>();
  const places = new Set<string>();
  for (const { blockNumber, blockHash, transactionHash, logIndex } of logs) {
    const hash = hashes.get(blockNumber) ?? blockHash;
    const number = numbers.get(blockHash) ?? blockNumber;
    if (hash !== blockHash || number !== blockNumber)
      return { problem: `two hashes for block ${blockNumber}, or one for two blocks` };
    hashes.set(blockNumber, blockHash);
    numbers.set(blockHash, blockNumber);
    // Of two transactions the same index is no contradiction: it counts within each.
    const place = `${transactionHash} ${logIndex}`;
    if (places.has(place)) return { problem: `log ${logIndex} of block ${blockNumber} twice` };
    places.add(place);
  }
  return { logs: sortLogs(logs) };
}

/** By block and index, the order of the chain. */
export function sortLogs(logs: readonly ChainLog[]): readonly ChainLog[] {
  return logs.toSorted((one, other) => one.blockNumber - other.blockNumber || one.logIndex - other.logIndex);
}
