/** The steps of a message, the forecast of its delivery, and the diagnosis of what is wrong. */
import { type Status, statusRank, usesVerifiers } from '../../../src/domain/lifecycle.ts';
import { type Message, requestedFinality } from '../../../src/domain/message.ts';
import { duration, grouped, networkName, printable } from '../../../src/text/format.ts';
import type { Delivery, FailureReason, Stage } from '../server/api-types.ts';

export interface Step {
  readonly status: Status;
  readonly state: 'reached' | 'current' | 'ahead';
  readonly stage: Stage | null;
  /** Milliseconds since the step before; null where a time is not known. */
  readonly tookMs: number | null;
}

const committedWay: readonly Status[] = ['SENT', 'SOURCE_FINALIZED', 'COMMITTED', 'BLESSED', 'SUCCESS'];
const verifiedWay: readonly Status[] = ['SENT', 'SOURCE_FINALIZED', 'VERIFYING', 'VERIFIED', 'SUCCESS'];

/** The stages that were reached, then those that are still to come; stages that were skipped are left out. */
export function stepsOf(
  { version, status }: Pick<Message, 'version' | 'status'>,
  stages: readonly Stage[],
): readonly Step[] {
  const reached = stages.map((stage, index): Step => {
    const before = stages[index - 1];
    const isLast = index === stages.length - 1;
    return {
      status: stage.status,
      state: isLast && status !== 'SUCCESS' ? 'current' : 'reached',
      stage,
      tookMs: before?.dwellMs ?? null,
    };
  });
  const way = usesVerifiers(version) ? verifiedWay : committedWay;
  const ahead = way.filter((next) => statusRank(next) > statusRank(status));
  return [
    ...reached,
    ...ahead.map((next): Step => ({ status: next, state: 'ahead', stage: null, tookMs: null })),
  ];
}

export function isUnderWay({ status }: Pick<Message, 'status'>): boolean {
  return status !== 'SUCCESS' && status !== 'FAILED';
}

export interface Forecast {
  readonly kind: 'on-time' | 'soon' | 'slow' | 'overdue';
  readonly words: string;
}

/** Forecast from the lane's delivery times for a message in flight; null where the lane has no deliveries. */
export function forecast(elapsedMs: number, { p50Ms, p90Ms, p99Ms }: Delivery): Forecast | null {
  if (p50Ms === null || p90Ms === null || p99Ms === null) return null;
  if (elapsedMs <= p50Ms) {
    return {
      kind: 'on-time',
      words: `About ${duration(p50Ms - elapsedMs)} to go; half of this lane’s messages take ${duration(p50Ms)}.`,
    };
  }
  if (elapsedMs <= p90Ms) {
    return {
      kind: 'soon',
      words: `Any moment now, within ${duration(p90Ms - elapsedMs)} as a rule; 9 of 10 take less than ${duration(p90Ms)}.`,
    };
  }
  if (elapsedMs <= p99Ms) {
    return {
      kind: 'slow',
      words: `Slower than 9 of 10 on this lane, which take less than ${duration(p90Ms)}. That happens; overdue after ${duration(p99Ms)}.`,
    };
  }
  return {
    kind: 'overdue',
    words: `Overdue: 99 of 100 messages on this lane take less than ${duration(p99Ms)}.`,
  };
}

export interface Diagnosis {
  readonly title: string;
  readonly words: string;
  /** What the message comes to, behind the reason. */
  readonly consequence?: string;
  /** What to do, where the reason of a failure is known. */
  readonly advice?: string;
  readonly canBeExecuted: boolean;
}

const whoCanFix: Readonly<Record<FailureReason['fixableBy'], string>> = {
  anyone: 'You can fix this.',
  sender: 'The sender can fix this.',
  'receiver-owner': 'The owner of the receiver can fix this.',
  'pool-owner': 'The owner of the token pool can fix this.',
  network: 'The operators of CCIP can fix this.',
  nobody: 'Nobody can make this message succeed.',
  unknown: 'Who can fix this is not known.',
};

/** What is wrong with a message, in a sentence for the page; null where nothing is. */
export function diagnosis(message: Message, isOverdue: boolean, failure?: FailureReason): Diagnosis | null {
  const { status, readyForManualExecution, extraArgs } = message;
  const dest = networkName(message.destNetworkInfo);
  const tokens =
    message.tokenAmounts.length > 0
      ? ' Its tokens are safe: they wait until it is executed.'
      : ' Nothing is lost.';
  const limit =
    'gasLimit' in extraArgs
      ? `gas limit of ${grouped(extraArgs.gasLimit)}`
      : `${grouped(extraArgs.computeUnits)} compute units`;
  if (status === 'FAILED') {
    const why = failure ? '.' : `: the receiver reverted, or the ${limit} did not suffice.`;
    const open = readyForManualExecution
      ? `Anybody with a wallet on ${dest} can execute it again.`
      : 'It is not open for manual execution yet; try again later.';
    return {
      title: 'The execution failed',
      words: `It reached ${dest}, but its execution there failed${why}`,
      consequence: `${tokens.trim()} ${open}`,
      ...(failure && { advice: `${whoCanFix[failure.fixableBy]} ${printable(failure.advice)}` }),
      canBeExecuted: readyForManualExecution,
    };
  }
  if (readyForManualExecution) {
    return {
      title: 'It waits for manual execution',
      words: `It reached ${dest}, but it was not executed there in the time allowed.${tokens} Anybody with a wallet on ${dest} can execute it now.`,
      canBeExecuted: true,
    };
  }
  if (!isOverdue || !isUnderWay(message)) return null;
  return {
    title: 'It takes longer than it should',
    words: `${waitsFor(message)} There is nothing to do by hand yet.`,
    canBeExecuted: false,
  };
}

function finalityWait(message: Message, source: string): string {
  const requested = requestedFinality(message);
  if (requested === 'finalized') return `It waits for ${source} to finalize the block that it was sent in.`;
  return requested === 'safe'
    ? `It waits for the block that it was sent in to be safe on ${source}.`
    : `It waits for ${requested} block confirmations on ${source}.`;
}

/** What the next step depends on. */
function waitsFor(message: Message): string {
  const { status, sourceNetworkInfo, destNetworkInfo, verifiers } = message;
  const source = networkName(sourceNetworkInfo);
  const dest = networkName(destNetworkInfo);
  const pending = (verifiers?.items ?? []).filter(
    (verifier) => verifier.status === 'PENDING' && verifier.isRequired,
  );
  switch (status) {
    case 'SENT':
      return finalityWait(message, source);
    case 'SOURCE_FINALIZED':
      return `It is final on ${source} and waits to be committed on ${dest}.`;
    case 'COMMITTED':
      return `It is committed on ${dest} and waits for approval or execution there.`;
    case 'VERIFYING':
      return pending.length === 0
        ? 'It waits for its verifiers.'
        : `It waits for ${pending.map(({ metadata }) => printable(metadata.name)).join(' and ')} to verify it.`;
    default:
      return `It is ready, and waits to be executed on ${dest}.`;
  }
}
