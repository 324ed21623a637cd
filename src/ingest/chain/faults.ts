/** How an endpoint can fail to answer. Every family throws these; the endpoint pool and the loops act on them. */
import type { ProblemKind } from '../../domain/indexing-problem.ts';

/** An endpoint gave no answer, or one that is wrong, incomplete or contradicts itself. Another endpoint is tried. */
export class NodeFault extends Error {
  override readonly name: string = 'NodeFault';
  readonly kind: ProblemKind;
  constructor(message: string, kind: ProblemKind = 'bad-answer') {
    super(message);
    this.kind = kind;
  }
}

/** An endpoint that works refuses this request. It may well answer the next one. */
export class QuestionRefused extends NodeFault {}

/** The endpoint refuses to answer for so many blocks or results at once. Not a fault: ask for less. */
export class RangeTooLarge extends Error {
  override readonly name = 'RangeTooLarge';
  /** How many blocks it would accept, where it says so. */
  readonly acceptedBlocks: number | undefined;
  constructor(message: string, acceptedBlocks?: number) {
    super(message);
    this.acceptedBlocks = acceptedBlocks;
  }
}

/** The kind of problem that an error is, for visitors: it names no host. */
export function problemKindOf(error: unknown): ProblemKind {
  if (error instanceof NodeFault) return error.kind;
  return error instanceof RangeTooLarge ? 'range-refused' : 'internal';
}

const MAX_REASON_LENGTH = 300;

/** The error in one line for people, short enough to store. */
export function reasonOf(error: unknown): string {
  return String((error as Error | undefined)?.message ?? error).slice(0, MAX_REASON_LENGTH);
}
