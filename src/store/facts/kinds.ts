/** The numbers that stand for the kinds of facts in the store. A number keeps its meaning for ever. */
import type { Fact } from '../../domain/facts.ts';

/**
 * A failed execution has a separate number: its transaction is one to search by, while that of a success is the receipt.
 * The partial indexes on transactions name this number.
 */
export const FAILED_EXECUTION = 7;

export const kindNumbers = {
  Sent: 1,
  SourceFinalized: 2,
  VerifierPolicy: 3,
  VerifierCompleted: 4,
  ManualExecutionOpened: 5,
  /** Of a success. */
  Executed: 6,
  ExecutionDetails: 8,
  Snapshot: 9,
  Committed: 10,
  Blessed: 11,
  RootBlessed: 12,
  RootRemoved: 13,
} as const satisfies Readonly<Record<Fact['kind'], number>>;

export function kindNumber(fact: Fact): number {
  return fact.kind === 'Executed' && !fact.success ? FAILED_EXECUTION : kindNumbers[fact.kind];
}

/** SQL list of the kinds of an attempt: executions and their details. */
export const ATTEMPT_KINDS = `(${kindNumbers.Executed}, ${FAILED_EXECUTION}, ${kindNumbers.ExecutionDetails})`;
/** SQL list of the kinds of executions. */
export const EXECUTION_KINDS = `(${kindNumbers.Executed}, ${FAILED_EXECUTION})`;
