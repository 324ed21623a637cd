/** What a message waits for, what is wrong with it, and what to do. */
import type { FailureReason } from '../domain/failures/failure-reason.ts';
import type { Message } from '../domain/message.ts';
import { counted, grouped, printable } from './format.ts';
import { isInFlight, networkName } from './message-words.ts';

const SAFE_FLAG = 0x10000;

/** What the sender asked the source chain for: its own finality, the safe head, or a number of block confirmations. */
function requestedFinality({ finality, extraArgs }: Message): 'finalized' | 'safe' | number {
  if (finality > 0) return finality;
  const config = 'requestedFinalityConfig' in extraArgs ? Number(extraArgs.requestedFinalityConfig) : 0;
  return (config & SAFE_FLAG) === 0 ? 'finalized' : 'safe';
}

export function finalityWords(message: Message): string {
  const requested = requestedFinality(message);
  if (requested === 'finalized') return 'the source chain’s own';
  return requested === 'safe'
    ? 'the safe head of the source chain'
    : counted(requested, 'block confirmation');
}

export interface MessageProblem {
  readonly title: string;
  /** What happened. The reason of a failure, where it is known, is shown behind it. */
  readonly whatHappened: string;
  readonly consequence: string;
  /** Who can fix the reason of a failure, and how; null where no reason is known. */
  readonly advice: string | null;
  readonly canBeExecuted: boolean;
}

const whoCanFix: Readonly<Record<FailureReason['fixableBy'], string>> = {
  anyone: 'You can fix this.',
  sender: 'The sender can fix this.',
  'receiver-owner': 'The owner of the receiver can fix this.',
  'pool-owner': 'The owner of the token pool can fix this.',
  network: 'The operators of CCIP can fix this.',
  nobody: 'Nobody can make this message succeed.',
  unknown: 'It is not known who can fix this.',
};

/** Null where nothing is wrong. */
export function problemOf(
  message: Message,
  options: {
    readonly reason?: Pick<FailureReason, 'fixableBy' | 'advice'> | undefined;
    readonly isOverdue?: boolean;
  },
): MessageProblem | null {
  const { reason, isOverdue = false } = options;
  const { readyForManualExecution: canBeExecuted, extraArgs } = message;
  const dest = networkName(message.destNetworkInfo);
  const safety =
    message.tokenAmounts.length > 0
      ? 'Its tokens are safe: they wait until it is executed.'
      : 'Nothing is lost.';
  const anybody = `Anybody with a wallet on ${dest} can execute it`;
  if (message.status === 'FAILED') {
    const limit =
      'gasLimit' in extraArgs
        ? `gas limit of ${grouped(extraArgs.gasLimit)}`
        : `limit of ${grouped(extraArgs.computeUnits)} compute units`;
    const why = reason ? '.' : `: the receiver reverted, or the ${limit} was too low.`;
    return {
      title: 'The execution failed',
      whatHappened: `It reached ${dest}, but its execution there failed${why}`,
      consequence: `${safety} ${canBeExecuted ? `${anybody} again.` : 'Manual execution is not possible yet; try again later.'}`,
      advice: reason ? `${whoCanFix[reason.fixableBy]} ${printable(reason.advice)}` : null,
      canBeExecuted,
    };
  }
  if (canBeExecuted) {
    return {
      title: 'Waiting for manual execution',
      whatHappened: `It reached ${dest}, but it was not executed there in the time allowed.`,
      consequence: `${safety} ${anybody} now.`,
      advice: null,
      canBeExecuted,
    };
  }
  if (!isOverdue || !isInFlight(message)) return null;
  return {
    title: 'This takes longer than usual',
    whatHappened: nextStep(message),
    consequence: 'Nothing can be done by hand yet.',
    advice: null,
    canBeExecuted,
  };
}

function nextStep(message: Message): string {
  const source = networkName(message.sourceNetworkInfo);
  const dest = networkName(message.destNetworkInfo);
  const pending = (message.verifiers?.items ?? []).filter(
    (verifier) => verifier.status === 'PENDING' && verifier.isRequired,
  );
  switch (message.status) {
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
      return `It is ready and waits to be executed on ${dest}.`;
  }
}

function finalityWait(message: Message, source: string): string {
  const requested = requestedFinality(message);
  if (requested === 'finalized') return `It waits for ${source} to finalize the block that contains it.`;
  return requested === 'safe'
    ? `It waits for the block that contains it to become safe on ${source}.`
    : `It waits for ${requested} block confirmations on ${source}.`;
}
