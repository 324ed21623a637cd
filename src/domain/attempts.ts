/** The attempts to execute a message: what each came to, and why it failed. */
import { hex } from '@scure/base';
import type { Executed, ExecutionDetails, Fact, Observation } from './facts.ts';
import { type FailureReason, failureReason } from './failures/failure-reason.ts';
import type { Message } from './message.ts';

export interface Attempt {
  readonly outcome: 'SUCCESS' | 'FAILED';
  /** ISO 8601; null where it is not known. */
  readonly at: string | null;
  /** Chain selector. */
  readonly network: string;
  readonly blockNumber: number | null;
  readonly blockHash: string | null;
  readonly transactionHash: string | null;
  readonly logIndex: number | null;
  /** The account that sent the transaction; null where it is not known. */
  readonly caller: string | null;
  /** In decimal; null where the chain does not say. */
  readonly gasUsed: string | null;
  /** In hexadecimal; null where it is not known. */
  readonly returnData: string | null;
  /** Why it failed; null for a success, and where the return data is not known. */
  readonly reason: FailureReason | null;
}

/** From the first to the last. A message whose execution no chain has told us has the one in its record. */
export function attemptsOf(message: Message, facts: readonly Fact[]): readonly Attempt[] {
  const details = new Map(
    facts.flatMap((fact) => (fact.kind === 'ExecutionDetails' ? [[placeOf(fact.seen), fact]] : [])),
  );
  const executed = facts
    .filter((fact) => fact.kind === 'Executed')
    .sort((a, b) => compareObservations(a.seen, b.seen));
  if (executed.length === 0) return recordedAttempt(message);
  return executed.map((fact) => attemptOf(fact, details.get(placeOf(fact.seen)), message));
}

function attemptOf(
  { success, seen }: Executed,
  details: ExecutionDetails | undefined,
  message: Message,
): Attempt {
  const { at, network, blockNumber, blockHash, transactionHash, logIndex } = seen;
  return {
    outcome: success ? 'SUCCESS' : 'FAILED',
    at,
    network,
    blockNumber,
    blockHash,
    transactionHash,
    logIndex,
    caller: details?.caller ?? null,
    gasUsed: details?.gasUsed ?? null,
    returnData: details?.returnData ?? null,
    reason: success || !details ? null : reasonOf(details, message),
  };
}

function reasonOf({ returnData, gasUsed }: ExecutionDetails, { extraArgs }: Message): FailureReason {
  const gasLimit = 'gasLimit' in extraArgs ? extraArgs.gasLimit : undefined;
  return failureReason({
    returnData: hex.decode(returnData.slice(2)),
    ...(gasUsed !== null && { gasUsed: BigInt(gasUsed) }),
    ...(gasLimit !== undefined && { gasLimit: BigInt(gasLimit) }),
  });
}

/** Of a record that was imported or mirrored. */
function recordedAttempt({ status, receiptTimestamp, receiptTransactionHash, destNetworkInfo }: Message) {
  if (status !== 'SUCCESS' && status !== 'FAILED') return [];
  return [
    {
      outcome: status,
      at: receiptTimestamp,
      network: destNetworkInfo.chainSelector,
      blockNumber: null,
      blockHash: null,
      transactionHash: receiptTransactionHash,
      logIndex: null,
      caller: null,
      gasUsed: null,
      returnData: null,
      reason: null,
    },
  ];
}

/** Unique for a log. */
function placeOf({ network, blockHash, logIndex }: Observation): string {
  return `${network} ${blockHash} ${logIndex}`;
}

function compareObservations(a: Observation, b: Observation): number {
  return a.blockNumber - b.blockNumber || (a.logIndex ?? 0) - (b.logIndex ?? 0);
}
