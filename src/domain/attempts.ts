/** The attempts to execute a message: what each came to, why it failed, and their JSON. */
import { hex } from '@scure/base';
import type { Executed, ExecutionDetails, Fact, Observation } from './facts.ts';
import { type FailureReason, failureReason, type GroupedReason } from './failures/failure-reason.ts';
import { programFailureReason } from './failures/program-reason.ts';
import type { Message } from './message.ts';
import { networkBySelector } from './networks/networks.ts';
import { compareObservations } from './total-order.ts';

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
  /** In decimal; null where the chain does not say. On Solana: compute units of the transaction. */
  readonly gasUsed: string | null;
  /** In hexadecimal; null where it is not known, and on Solana. */
  readonly returnData: string | null;
  /** The error of a failed transaction of Solana, as JSON; null elsewhere. */
  readonly transactionError: string | null;
  /** The last lines of its log; null elsewhere. They are untrusted text of programs. */
  readonly logs: readonly string[] | null;
  /** Why it failed; null for a success, and where the return data is not known. */
  readonly reason: FailureReason | null;
  /** When a reorganisation removed its block (ISO 8601); null for an attempt that is still on chain. */
  readonly removedAt: string | null;
}

/** A fact of an execution that a reorganisation took back. */
export interface RemovedFact {
  readonly fact: Fact;
  /** ISO 8601. */
  readonly removedAt: string;
}

export interface ExecutionFacts {
  /** `Executed` and `ExecutionDetails`. */
  readonly facts: readonly Fact[];
  readonly removed: readonly RemovedFact[];
}

/**
 * From the first to the last, with those that reorganisations removed. Where no chain has reported an execution, the one in
 * the record is the last.
 */
export function attemptsOf(message: Message, facts: readonly Fact[], removed: readonly RemovedFact[] = []) {
  const removedAt = new Map(removed.map((entry) => [entry.fact, entry.removedAt]));
  const all = [...facts, ...removedAt.keys()];
  const details = new Map(
    all.flatMap((fact) => (fact.kind === 'ExecutionDetails' ? [[placeOf(fact.seen), fact]] : [])),
  );
  const attempts = all
    .filter((fact) => fact.kind === 'Executed')
    .sort(compareAttempts)
    .map((fact) => attemptOf(fact, details.get(placeOf(fact.seen)), message, removedAt.get(fact)));
  return attempts.some((attempt) => attempt.removedAt === null)
    ? attempts
    : [...attempts, ...recordedAttempt(message)];
}

/** The last attempt that is still on chain. */
export function lastAttempt(attempts: readonly Attempt[]): Attempt | undefined {
  return attempts.findLast(({ removedAt }) => removedAt === null);
}

/** The newest one first, at most so many. */
export function newestAttempts(facts: readonly Fact[], most: number): readonly Executed[] {
  return facts
    .filter((fact) => fact.kind === 'Executed')
    .sort((a, b) => compareAttempts(b, a))
    .slice(0, most);
}

export function isSameLog(a: Observation, b: Observation): boolean {
  return placeOf(a) === placeOf(b);
}

export function attemptOf(
  { success, seen }: Executed,
  details: ExecutionDetails | undefined,
  message: Message,
  removedAt: string | null = null,
): Attempt {
  const { at, network, blockNumber, blockHash, transactionHash, logIndex } = seen;
  const { extraArgs, version } = message;
  const gasLimit = 'gasLimit' in extraArgs ? extraArgs.gasLimit : extraArgs.computeUnits?.toString();
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
    transactionError: details?.failure?.error ?? null,
    logs: details?.failure?.logs ?? null,
    reason: success || !details ? null : reasonOfDetails(details, { gasLimit, version }),
    removedAt,
  };
}

export interface ExecutionTerms {
  /** For its receiver, in decimal; on Solana, its compute units. */
  readonly gasLimit: string | undefined;
  readonly version: string | null;
}

/** Null where the details do not say. */
export function reasonOfDetails(
  { returnData, gasUsed, failure }: ExecutionDetails,
  { gasLimit, version }: ExecutionTerms,
): GroupedReason | null {
  if (failure) return programFailureReason(failure, gasLimit === undefined ? undefined : Number(gasLimit));
  if (returnData === null) return null;
  return failureReason({
    returnData: hex.decode(returnData.slice(2)),
    version,
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
      transactionError: null,
      logs: null,
      reason: null,
      removedAt: null,
    },
  ];
}

/** Unique for a log. On Solana logs are counted within their transaction. */
export function placeOf({ network, blockHash, transactionHash, logIndex }: Observation): string {
  return `${network} ${blockHash} ${transactionHash} ${logIndex}`;
}

/** In the order of the chain. A message is executed once: of the attempts in one block, the one that succeeded is the last. */
function compareAttempts(a: Executed, b: Executed): number {
  return (
    a.seen.blockNumber - b.seen.blockNumber ||
    Number(a.success) - Number(b.success) ||
    compareObservations(a.seen, b.seen)
  );
}

// ---- JSON, the same in the API, in exports, in streams and in webhooks

export function attemptJson({ network, reason, ...attempt }: Attempt) {
  return {
    ...attempt,
    network,
    networkName: networkBySelector(network)?.name ?? null,
    reason: reason && reasonJson(reason),
  };
}

export function reasonJson({ code, saidBy, text, fixableBy, advice, error, wrappers, data }: FailureReason) {
  return { code, saidBy, text, fixableBy, advice, error, wrappers, data };
}
