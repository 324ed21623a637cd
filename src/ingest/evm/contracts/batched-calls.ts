/**
 * Batches the contract calls of many sequences, each of which needs answers before it knows its next calls.
 *
 * A sequence is a generator: it yields calls and receives their answers. All sequences advance in step, so that the calls of
 * one stage go to the node as one batch, without duplicates. A sequence that throws fails alone; a failure of the node fails
 * all of them.
 */
import type { CallAnswer, ChainNode, ContractCall, Hex } from '../rpc/chain.ts';

export type BatchedCalls<T> = Generator<readonly ContractCall[], T, readonly CallAnswer[]>;

export type Finding<T> = { readonly result: T } | { readonly error: unknown };

/** A cache of answers that never change, kept from one call of `runBatched` to the next. */
export interface AnswerCache {
  readonly answers: Map<string, Hex>;
  /** Whether the answer to this call never changes. */
  isImmutable(call: ContractCall): boolean;
}

const MAX_CACHED_ANSWERS = 10_000;
/** In hexadecimal digits. Addresses and names are shorter; it bounds the memory that contracts can claim. */
const MAX_CACHED_LENGTH = 1_000;

/** Runs all sequences to their end; the findings have the order of the sequences. */
export async function runBatched<T>(
  node: ChainNode,
  sequences: readonly BatchedCalls<T>[],
  cache?: AnswerCache,
): Promise<readonly Finding<T>[]> {
  const findings: Finding<T>[] = new Array(sequences.length);
  const answered = new Map<string, CallAnswer>();
  let waiting = sequences.flatMap((sequence, index) => advance(sequence, index, []));
  while (waiting.length > 0) {
    const unasked = new Map<string, ContractCall>();
    for (const call of waiting.flatMap(({ calls }) => calls)) {
      const key = keyOf(call);
      if (!answered.has(key) && !cache?.answers.has(key)) unasked.set(key, call);
    }
    const answers = unasked.size === 0 ? [] : await node.calls([...unasked.values()]);
    for (const [index, [key, call]] of [...unasked].entries()) {
      const answer = answers[index];
      answered.set(key, answer);
      if (answer !== undefined && cache?.isImmutable(call)) keep(cache, key, answer);
    }
    waiting = waiting.flatMap(({ sequence, index, calls }) =>
      advance(
        sequence,
        index,
        calls.map((call) => {
          const key = keyOf(call);
          return answered.has(key) ? answered.get(key) : cache?.answers.get(key);
        }),
      ),
    );
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

/** A full cache is cleared as a whole: answers of busy contracts are back with the next batch. */
function keep({ answers }: AnswerCache, key: string, answer: Hex): void {
  if (answer.length > MAX_CACHED_LENGTH) return;
  if (answers.size >= MAX_CACHED_ANSWERS) answers.clear();
  answers.set(key, answer);
}
