/** Groups of reasons: failed messages that failed for the same cause, whatever the figures in their errors. */
import { type Fixer, titleOfError, titleOfPanic, titleOfText } from './explanations.ts';
import type { FailureReason } from './failure-reason.ts';

export interface ReasonGroup {
  /** The same exactly for reasons of the same group. */
  readonly key: string;
  /** As in the reason; `not-known` where nothing was returned to us. */
  readonly code: string;
  /** What happened, without the figures of a single message. It may quote untrusted contracts. */
  readonly title: string;
  readonly fixableBy: Fixer;
}

/** Without return data: imported and mirrored messages, and those of chains that do not report it. */
const notKnown: ReasonGroup = {
  key: 'not-known',
  code: 'not-known',
  title: 'The reason is not known here',
  fixableBy: 'unknown',
};

const subjects: Readonly<Partial<Record<Fixer, string>>> = {
  'receiver-owner': 'The receiver',
  'pool-owner': 'The token or its pool',
};
const SELECTOR_LENGTH = 10;
const MAX_TITLE_LENGTH = 160;

export function reasonGroup(reason: FailureReason | null): ReasonGroup {
  if (!reason) return notKnown;
  const { code, fixableBy } = reason;
  const { title, detail = '' } = describe(reason);
  return {
    key: `${code} ${fixableBy} ${detail}`,
    code,
    title: title.length > MAX_TITLE_LENGTH ? `${title.slice(0, MAX_TITLE_LENGTH - 1)}…` : title,
    fixableBy,
  };
}

/** `detail` tells groups of one code apart. */
function describe(reason: FailureReason): { title: string; detail?: string } {
  if (reason.group) return reason.group;
  const { code, fixableBy, data, error } = reason;
  const subject = subjects[fixableBy] ?? 'The execution';
  const first = error?.arguments[0]?.value;
  if (code === 'out-of-gas') return { title: 'Out of gas: reverted without a reason, at the gas limit' };
  if (code === 'no-reason') return { title: `${subject} reverted without a reason` };
  if (code === 'unknown-error') {
    const selector = data.slice(0, SELECTOR_LENGTH);
    return { title: `${subject} reverted with an unknown error (${selector})`, detail: selector };
  }
  if (error?.isFromOperator) return { title: `${subject} reverted with ${code}`, detail: 'operator' };
  if (code === 'Error') return { title: titleOfText(first), detail: withoutFigures(first ?? '') };
  if (code === 'Panic') return { title: titleOfPanic(first ?? ''), detail: first ?? '' };
  return { title: titleOfError(code) ?? `${subject} reverted with ${code}` };
}

/** Messages that differ in numbers and addresses only are of one group. */
function withoutFigures(text: string): string {
  return text.replace(/0x[0-9a-f]+|\d+/gi, '#');
}
