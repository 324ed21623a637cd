/**
 * Work that has to ask contracts before it knows its result, many pieces at a time.
 *
 * An inquiry is a generator: it yields calls and is handed their answers. All inquiries go on in step, so that what a
 * hundred of them ask at the same stage goes to the node as one batch, nothing twice. An inquiry that throws fails
 * alone; only the node can fail them all.
 */
import type { CallAnswer, ChainNode, ContractCall, Hex } from './chain.ts';

export type Inquiry<T> = Generator<readonly ContractCall[], T, readonly CallAnswer[]>;

export type Finding<T> = { readonly result: T } | { readonly error: unknown };

/** Answers that hold for good, kept from one conduct to the next. */
export interface AnswerMemory {
  readonly answers: Map<string, Hex>;
  /** Whether the answer to this call will be the same for ever. */
  isLasting(call: ContractCall): boolean;
}

const MAX_REMEMBERED = 10_000;
/** Nobody's address or name is longer; a contract shall not fill our memory with its answers. */
const MAX_REMEMBERED_LENGTH = 1_000;

/** Brings inquiries to their end; the findings are in their order. */
export async function conduct<T>(
  node: ChainNode,
  inquiries: readonly Inquiry<T>[],
  memory?: AnswerMemory,
): Promise<readonly Finding<T>[]> {
  const findings: Finding<T>[] = new Array(inquiries.length);
  const heard = new Map<string, CallAnswer>();
  let waiting = inquiries.flatMap((inquiry, index) => advance(inquiry, index, []));
  while (waiting.length > 0) {
    const unasked = new Map<string, ContractCall>();
    for (const call of waiting.flatMap(({ calls }) => calls)) {
      const key = keyOf(call);
      if (!heard.has(key) && !memory?.answers.has(key)) unasked.set(key, call);
    }
    const answers = unasked.size === 0 ? [] : await node.calls([...unasked.values()]);
    for (const [index, [key, call]] of [...unasked].entries()) {
      const answer = answers[index];
      heard.set(key, answer);
      if (answer !== undefined && memory?.isLasting(call)) remember(memory, key, answer);
    }
    waiting = waiting.flatMap(({ inquiry, index, calls }) =>
      advance(
        inquiry,
        index,
        calls.map((call) => {
          const key = keyOf(call);
          return heard.has(key) ? heard.get(key) : memory?.answers.get(key);
        }),
      ),
    );
  }
  return findings;

  function advance(inquiry: Inquiry<T>, index: number, answers: readonly CallAnswer[]) {
    try {
      const step = inquiry.next(answers);
      if (!step.done) return [{ inquiry, index, calls: step.value }];
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

/** Clearing a full memory, rather than forgetting one by one, is enough: the busy contracts are back at once. */
function remember({ answers }: AnswerMemory, key: string, answer: Hex): void {
  if (answer.length > MAX_REMEMBERED_LENGTH) return;
  if (answers.size >= MAX_REMEMBERED) answers.clear();
  answers.set(key, answer);
}
