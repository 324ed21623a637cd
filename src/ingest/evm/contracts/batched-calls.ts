/**
 * Batches the contract calls of many sequences, each of which needs answers before it knows its next calls.
 *
 * A sequence is a generator: it yields calls and receives their answers. All sequences advance in step, so that the calls of
 * one stage go to the node as one batch, without duplicates. A sequence that throws fails alone; a failure of the node fails
 * all of them.
 */
import type { CallAnswer, ChainNode, ContractCall } from '../rpc/chain.ts';
import { getToken, typeAndVersion } from './abi.ts';

export type BatchedCalls<T> = Generator<readonly ContractCall[], T, readonly CallAnswer[]>;

/** One of the two. */
export interface Finding<T> {
  readonly result?: T;
  readonly error?: unknown;
}

/** A pool keeps its token and a contract its type. Routers and implementations are exchanged at times. */
const immutable: ReadonlySet<string> = new Set([getToken.selector, typeAndVersion.selector]);
const MAX_CACHED_ANSWERS = 10_000;
/** In hexadecimal digits. Addresses and names are shorter; it bounds the memory that contracts can claim. */
const MAX_CACHED_LENGTH = 1_000;

/**
 * Runs all sequences to their end; the findings have the order of the sequences.
 *
 * @param cache answers that never change, kept from one call to the next
 */
export async function runBatched<T>(
  node: ChainNode,
  sequences: readonly BatchedCalls<T>[],
  cache = new Map<string, CallAnswer>(),
): Promise<readonly Finding<T>[]> {
  const findings: Finding<T>[] = new Array(sequences.length);
  const answered = new Map<string, CallAnswer>();
  let waiting = sequences.flatMap((sequence, index) => advance(sequence, index, []));
  while (waiting.length > 0) {
    const unasked = new Map<string, ContractCall>();
    for (const call of waiting.flatMap(({ calls }) => calls)) {
      const key = keyOf(call);
      const cached = cache.get(key);
      if (cached !== undefined) answered.set(key, cached);
      if (!answered.has(key)) unasked.set(key, call);
    }
    const answers = unasked.size === 0 ? [] : await node.calls([...unasked.values()]);
    for (const [index, [key, { data }]] of [...unasked].entries()) {
      const answer = answers[index];
      answered.set(key, answer);
      if (!immutable.has(data) || !answer || answer.length > MAX_CACHED_LENGTH) continue;
      // A full cache is cleared as a whole: answers of busy contracts are back with the next batch.
      if (cache.size >= MAX_CACHED_ANSWERS) cache.clear();
      cache.set(key, answer);
    }
    const answerTo = (call: ContractCall) => answered.get(keyOf(call));
    waiting = waiting.flatMap(({ sequence, index, calls }) => advance(sequence, index, calls.map(answerTo)));
  }
  return findings;

  function advance(sequence: BatchedCalls<T>, index: number, answers: readonly CallAnswer[]) {
    try {
      const step = sequence.next(answers);
      if (!step.done) return [{ sequence, index, calls: step.value }];
      findings[index] = { result: step.value };
    } catch (error) {
      findings[index] = { error };
    }
    return [];
  }
}

function keyOf({ to, data }: ContractCall): string {
  return `${to}${data}`;
}
