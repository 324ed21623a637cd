/** How an endpoint can fail to answer. Every family throws these; the endpoint pool and the loops act on them. */
import type { ProblemKind } from '../../domain/networks/indexing-problem.ts';

/** An endpoint gave no answer, or one that is wrong, incomplete or contradicts itself. Another endpoint is tried. */
export class NodeError extends Error {
  override readonly name: string = 'NodeError';
  readonly kind: ProblemKind;
  constructor(message: string, kind: ProblemKind = 'bad-answer') {
    super(message);
    this.kind = kind;
  }
}

/** An endpoint that works rejects this request. It may well answer the next one. */
export class RequestRejectedError extends NodeError {}

/** The endpoint does not answer for so many blocks or results at once. Not a fault: ask for less. */
export class RangeTooLargeError extends Error {
  override readonly name = 'RangeTooLargeError';
  /** How many blocks it would accept, where it says so. */
  readonly acceptedBlocks: number | undefined;
  constructor(message: string, acceptedBlocks?: number) {
    super(message);
    this.acceptedBlocks = acceptedBlocks;
  }
}

/** The kind of problem that an error is, for visitors: it names no host. */
export function problemKindOf(error: unknown): ProblemKind {
  if (error instanceof NodeError) return error.kind;
  return error instanceof RangeTooLargeError ? 'range-refused' : 'internal';
}

const MAX_REASON_LENGTH = 300;

/** The error in one line for people, short enough to store. */
export function reasonOf(error: unknown): string {
  return String((error as Error | undefined)?.message ?? error).slice(0, MAX_REASON_LENGTH);
}
